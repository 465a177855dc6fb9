//===- Clusters.cpp - barrier.cluster mapa setmaxnreg griddepcontrol ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.13.3 (barrier.cluster), 9.7.9.23 (mapa), 9.7.9.24
// (getctarank), 9.7.19.5 (setmaxnreg), 9.7.13.14 (griddepcontrol: launches run
// one after another here, so there is nothing to wait for).
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"

using namespace nova::sim;

namespace {

constexpr uint32_t kAligned = 1, kRelaxed = 2;

Next arriveCluster(Warp &w, uint32_t, const Inst &i, uint32_t mask) {
  if (!mask)
    return Next::Advance;
  if ((i.aux & kAligned) && mask != w.alive)
    throw FaultFound{FaultKind::PartialBarrier,
                     std::to_string(std::popcount(mask)) + " of the warp's " +
                         std::to_string(std::popcount(w.alive)) +
                         " threads arrive at a barrier that all must reach "
                         "together",
                     static_cast<uint32_t>(std::countr_zero(w.alive & ~mask)),
                     {},
                     {}};
  for (uint32_t left = mask; left; left &= left - 1)
    if (auto l = static_cast<unsigned>(std::countr_zero(left));
        w.clusterPhase[l])
      throw FaultFound{FaultKind::Phase,
                       "arrives at the cluster's barrier again without having "
                       "waited",
                       l,
                       {},
                       {}};
  w.block->cluster.arriveAtCluster(w, mask, !(i.aux & kRelaxed));
  return Next::Advance;
}

Next waitCluster(Warp &w, uint32_t fragment, const Inst &i, uint32_t mask) {
  if (!mask)
    return Next::Advance;
  ClusterBarrier &b = w.block->cluster.barrier;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    if (!w.clusterPhase[l])
      throw FaultFound{FaultKind::Phase,
                       "waits for the cluster without having arrived",
                       l,
                       {},
                       {}};
    if (w.clusterPhase[l] > b.phase) {
      b.waiting.push_back({&w, fragment});
      return w.waitAt(fragment);
    }
  }
  for (uint32_t left = mask; left; left &= left - 1)
    w.clusterPhase[static_cast<size_t>(std::countr_zero(left))] = 0;
  if (!(i.aux & kRelaxed))
    w.block->cluster.clocks.acquire(w.agent, b.completed);
  return Next::Advance;
}

bool decodeBarrier(Decoder &d) {
  if (!d.take("cluster"))
    return false;
  bool arrive = d.take("arrive");
  if (!arrive && !d.take("wait"))
    d.fail("no .arrive or .wait");
  d.take("acquire");
  d.take("release");
  d.out.aux = d.take("relaxed") ? kRelaxed : 0;
  d.out.aux |= d.take("aligned") ? kAligned : 0;
  d.expectCount(0, 0);
  d.out.kind = Kind::Flow;
  d.out.flow = arrive ? arriveCluster : waitCluster;
  return true;
}

/// op[0] result, op[1] address, op[2] rank; immediate: the window of generic
/// addresses.
template <typename T> void mapAddress(Warp &w, const Inst &i, uint32_t mask) {
  auto count = static_cast<uint32_t>(w.block->cluster.blocks.size());
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    uint32_t rank = w.row<uint32_t>(i.op[2])[l];
    if (rank >= count)
      throw FaultFound{FaultKind::Undefined,
                       "block " + std::to_string(rank) + " of a cluster of " +
                           std::to_string(count),
                       l,
                       {},
                       {}};
    uint64_t low = w.row<T>(i.op[1])[l] & ((uint64_t(1) << kRankShift) - 1);
    w.row<T>(i.op[0])[l] = static_cast<T>(low | uint64_t(rank) << kRankShift |
                                          static_cast<uint64_t>(i.immediate));
  }
}

bool decodeMapa(Decoder &d) {
  bool shared = d.take("shared::cluster");
  TypeMod t = d.type();
  d.expectCount(3, 3);
  d.out.op[0] = d.target(0, t.bits);
  d.out.op[1] = d.source(1, t);
  d.out.op[2] = d.source(2, {'b', 32, false, "b32"});
  if (!shared) {
    if (t.bits != 64)
      d.fail("generic addresses of 32 bits");
    d.out.immediate = static_cast<int64_t>(kSharedWindow);
  }
  d.out.run = t.bits == 64 ? mapAddress<uint64_t> : mapAddress<uint32_t>;
  return true;
}

bool decodeRank(Decoder &d) {
  d.take("shared::cluster");
  TypeMod t = d.type();
  d.expectCount(2, 2);
  d.out.op[0] = d.target(0, 32);
  d.out.op[1] = d.source(1, t);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
      auto l = static_cast<unsigned>(std::countr_zero(left));
      uint64_t address =
          i.aux ? w.row<uint64_t>(i.op[1])[l] : w.row<uint32_t>(i.op[1])[l];
      w.row<uint32_t>(i.op[0])[l] =
          static_cast<uint32_t>(address >> kRankShift & 0xff);
    }
  };
  d.out.aux = t.bits == 64;
  return true;
}

/// immediate: registers; aux: 1 inc.
Next setRegisters(Warp &w, uint32_t fragment, const Inst &i, uint32_t mask) {
  if (!mask)
    return Next::Advance;
  Block &b = *w.block;
  if (mask != w.alive)
    throw FaultFound{FaultKind::Divergence,
                     std::to_string(std::popcount(mask)) + " of the warp's " +
                         std::to_string(std::popcount(w.alive)) +
                         " threads execute it, expected all of the warpgroup's",
                     static_cast<uint32_t>(std::countr_zero(w.alive & ~mask)),
                     {},
                     {}};
  uint32_t start = b.launch.shape.registers;
  if (!start) // Not known: the assembler chose it.
    return Next::Advance;
  // They are allotted in units of 8 a thread.
  uint32_t own = w.registers.value_or((start + 7) / 8 * 8);
  auto wanted = static_cast<uint32_t>(i.immediate);
  if (i.aux ? wanted < own : wanted > own)
    throw FaultFound{FaultKind::Limit,
                     std::to_string(wanted) +
                         " registers a thread, which has " +
                         std::to_string(own) + ": ." +
                         (i.aux ? "inc takes no fewer" : "dec takes no more"),
                     {},
                     {},
                     {}};
  int64_t change = (int64_t(wanted) - own) * kLanes;
  if (change > b.freeRegisters) {
    b.waitForRegisters.push_back({w.index, fragment});
    return w.waitAt(fragment);
  }
  b.freeRegisters -= change;
  w.registers = wanted;
  if (change < 0) {
    ++b.cluster.events;
    for (auto [warp, waiting] : b.waitForRegisters)
      b.warps[warp].wakeUp(waiting);
    b.waitForRegisters.clear();
  }
  return Next::Advance;
}

bool decodeSetRegisters(Decoder &d) {
  bool inc = d.take("inc");
  if (!inc && !d.take("dec"))
    d.fail("no .inc or .dec");
  if (!d.take("sync") || !d.take("aligned") || !d.take("u32"))
    d.fail("no .sync.aligned.u32");
  d.expectCount(1, 1);
  int64_t count = d.operand(0).value;
  if (d.operand(0).kind != nova::sim::ptx::Operand::Integer || count < 24 ||
      count > 256 || count % 8)
    d.fail("registers of a thread, expected a multiple of 8 from 24 to 256");
  d.out.immediate = count;
  d.out.aux = inc;
  d.out.kind = Kind::Flow;
  d.out.flow = setRegisters;
  return true;
}

bool decodeGrid(Decoder &d) {
  if (!d.take("launch_dependents") && !d.take("wait"))
    d.fail("no .launch_dependents or .wait");
  d.expectCount(0, 0);
  d.out.run = [](Warp &, const Inst &, uint32_t) {};
  return true;
}

} // namespace

void nova::sim::addClusterInstructions(InstructionTable &table) {
  table.add("barrier", decodeBarrier);
  table.add("mapa", decodeMapa);
  table.add("getctarank", decodeRank);
  table.add("setmaxnreg", decodeSetRegisters);
  table.add("griddepcontrol", decodeGrid);
}
