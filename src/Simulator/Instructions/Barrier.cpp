//===- Barrier.cpp - bar barrier
//------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.13.1 (barrier, bar), 9.7.13.2 (bar.warp.sync). bar is barrier
// with .aligned: all threads of a warp execute it, and it counts them as a
// warp.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"

using namespace nova::sim;

namespace {

enum : uint32_t { kAligned = 1, kArrive = 2, kNegated = 4 };

/// op[1] barrier, op[2] number of threads or kNone, op[3] predicate of bar.red;
/// small: 1 popc, 2 and, 3 or.
Next atBarrier(Warp &w, uint32_t fragment, const Inst &i, uint32_t mask) {
  Block &b = *w.block;
  if (!mask)
    return Next::Advance;
  auto uniform = [&](uint32_t row, const char *what) {
    const uint32_t *v = w.row<uint32_t>(row);
    uint32_t first = v[std::countr_zero(mask)];
    for (uint32_t left = mask; left; left &= left - 1)
      if (v[std::countr_zero(left)] != first)
        throw FaultFound{FaultKind::Undefined,
                         std::string("lanes have different ") + what,
                         {},
                         {},
                         {}};
    return first;
  };
  if ((i.aux & kAligned) && mask != w.alive)
    throw FaultFound{
        FaultKind::PartialBarrier,
        std::to_string(std::popcount(mask)) + " of the warp's " +
            std::to_string(std::popcount(w.alive)) +
            " threads are at a barrier that all must reach together",
        static_cast<uint32_t>(std::countr_zero(w.alive & ~mask)),
        {},
        {}};
  uint32_t which = uniform(i.op[1], "barriers");
  if (which >= b.barriers.size())
    throw FaultFound{FaultKind::Limit,
                     "barrier " + std::to_string(which) + ", a block has 16",
                     {},
                     {},
                     {}};
  uint32_t expected = b.launch.threads;
  auto here = static_cast<uint32_t>(std::popcount(mask));
  if (i.op[2] != kNone) {
    expected = uniform(i.op[2], "numbers of threads");
    if (expected == 0 || expected % kLanes ||
        expected > (b.launch.threads + 31) / 32 * 32)
      throw FaultFound{FaultKind::Undefined,
                       "a barrier for " + std::to_string(expected) +
                           " threads, expected a multiple of 32, at most the "
                           "block's " +
                           std::to_string(b.launch.threads),
                       {},
                       {},
                       {}};
    if (i.aux & kAligned)
      here = kLanes;
  } else if (i.aux & kAligned) {
    here = static_cast<uint32_t>(std::popcount(w.launched));
  }
  if (i.small) {
    uint32_t p = w.predicate(i.op[3]);
    p = ((i.aux & kNegated) ? ~p : p) & mask;
    Barrier &barrier = b.barriers[which];
    barrier.population += static_cast<uint32_t>(std::popcount(p));
    barrier.all &= p == mask;
    barrier.any |= p != 0;
  }
  if (i.aux & kArrive) {
    b.arrive(w, fragment, which, expected, here, false);
    return Next::Advance;
  }
  return b.arrive(w, fragment, which, expected, here, true) ? Next::Switch
                                                            : Next::Stay;
}

/// bar.warp.sync: Kind::Members has brought the lanes together.
void atWarpBarrier(Warp &w, const Inst &, uint32_t) {
  w.block->cluster.clocks.syncLanes(w.agent);
}

bool decode(Decoder &d) {
  if (d.take("warp")) {
    d.take("sync");
    d.expectCount(1, 1);
    d.out.members = d.source(0, {'b', 32, false, "b32"});
    d.out.kind = Kind::Members;
    d.out.small = kWarpBarrier;
    d.out.run = atWarpBarrier;
    return true;
  }
  if (d.nextIs("cluster"))
    return false; // Cluster.cpp
  d.take("cta");
  bool sync = d.take("sync"), arrive = !sync && d.take("arrive");
  bool red = !sync && !arrive && d.take("red");
  if (!sync && !arrive && !red)
    d.fail("no .sync, .arrive or .red");
  bool aligned = d.take("aligned") || d.root == "bar";
  d.out.aux =
      (aligned ? uint32_t(kAligned) : 0) | (arrive ? uint32_t(kArrive) : 0);
  TypeMod u32{'u', 32, false, "u32"};
  size_t first = 0, last = d.count();
  if (red) {
    uint16_t op = d.take("popc") ? 1 : d.take("and") ? 2 : d.take("or") ? 3 : 0;
    if (!op)
      d.fail("no .popc, .and or .or");
    d.type();
    d.expectCount(3, 4);
    d.out.small = op;
    d.out.op[0] = d.target(0, op == 1 ? 32 : 1);
    bool negated = false;
    d.out.op[3] = d.predicate(d.operand(last - 1), negated);
    d.out.aux |= negated ? uint32_t(kNegated) : 0;
    first = 1, last -= 1;
  } else {
    d.expectCount(arrive ? 2 : 1, 2);
  }
  d.out.op[1] = d.source(first, u32);
  if (last - first == 2)
    d.out.op[2] = d.source(first + 1, u32);
  d.out.kind = Kind::Flow;
  d.out.flow = atBarrier;
  return true;
}

} // namespace

void nova::sim::addBarrierInstructions(InstructionTable &table) {
  table.add("bar", decode);
  table.add("barrier", decode);
}
