//===- AsyncCopy.cpp - cp.async
//--------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.9.25.3: cp.async, commit_group, wait_group, wait_all. A copy is
// done when it is issued, and its bytes are marked as still being copied until
// the thread that issued it waits: whoever touches them before that is
// reported, so no moment of arrival needs to be tried.
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"

#include <algorithm>

using namespace nova::sim;

namespace {

/// op[0] destination, op[1] source address, op[2] bytes to read or kNone, op[4]
/// predicate to ignore the source or kNone; aux: bytes.
void issue(Warp &w, const Inst &i, uint32_t mask) {
  Block &b = *w.block;
  unsigned bytes = i.aux & 255;
  uint32_t ignored = i.op[4] == kNone ? 0 : w.predicate(i.op[4]);
  AsyncCopy copy;
  copy.bytes = bytes;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    uint64_t to = ((i.small & 0x8000) ? w.row<uint32_t>(i.op[0])[l]
                                      : w.row<uint64_t>(i.op[0])[l]) +
                  static_cast<uint64_t>(static_cast<int32_t>(i.target));
    resolve(AccessSpace::Shared, to);
    SharedPlace at = sharedPlace(w, l, to, bytes);
    uint32_t wanted = i.op[2] == kNone ? bytes : w.row<uint32_t>(i.op[2])[l];
    if (ignored >> l & 1)
      wanted = 0;
    if (wanted > bytes)
      throw FaultFound{FaultKind::Undefined,
                       "copies " + std::to_string(wanted) + " of " +
                           std::to_string(bytes) + " bytes",
                       l, to, "shared"};
    if (at.block != &b)
      throw FaultFound{FaultKind::OutOfBounds,
                       "copies to another block's shared memory, expected its "
                       "own",
                       l, to, "shared"};
    Conflict found = b.shared.beginAsync(b.cluster.clocks,
                                         w.accessor(static_cast<uint8_t>(l)),
                                         at.offset, bytes, false);
    if (found.kind != Conflict::None)
      faultConflict(w, b, l, to, true, found);
    uint8_t *place = b.shared.data() + at.offset;
    if (wanted) {
      uint64_t from =
          w.row<uint64_t>(i.op[1])[l] + static_cast<uint64_t>(i.immediate);
      // The whole unit must be aligned, what is read of it must exist.
      const uint8_t *source;
      if (wanted == bytes) {
        source = readGlobal(w, l, from, bytes, bytes);
        std::memcpy(place, source, bytes);
      } else {
        for (uint32_t k = 0; k < wanted; ++k)
          place[k] = *readGlobal(w, l, from + k, 1, 1);
        if (from & (bytes - 1))
          faultGlobal(w, l, from, bytes, false);
      }
    }
    std::memset(place + wanted, 0, bytes - wanted);
    copy.offset[l] = static_cast<uint32_t>(at.offset);
  }
  // A group is a thread's own; nearly always they count alike.
  for (uint32_t left = mask; left;) {
    uint32_t group = w.groups[static_cast<unsigned>(std::countr_zero(left))];
    copy.group = group;
    copy.mask = 0;
    for (unsigned l = 0; l < kLanes; ++l)
      if ((left >> l & 1) && w.groups[l] == group)
        copy.mask |= uint32_t(1) << l;
    left &= ~copy.mask;
    w.copies.push_back(copy);
  }
}

void commit(Warp &w, const Inst &, uint32_t mask) {
  for (unsigned l = 0; l < kLanes; ++l)
    w.groups[l] += mask >> l & 1;
}

/// Waits for all but the last `immediate` groups; with aux for everything, what
/// was not committed too.
void wait(Warp &w, const Inst &i, uint32_t mask) {
  Block &b = *w.block;
  for (AsyncCopy &copy : w.copies) {
    uint32_t done = 0;
    for (uint32_t left = copy.mask & mask; left; left &= left - 1) {
      auto l = static_cast<unsigned>(std::countr_zero(left));
      if (i.aux || int64_t(copy.group) < int64_t(w.groups[l]) - i.immediate) {
        b.shared.completeAsync(b.cluster.clocks, copy.offset[l], copy.bytes);
        done |= uint32_t(1) << l;
      }
    }
    copy.mask &= ~done;
  }
  std::erase_if(w.copies, [](const AsyncCopy &copy) { return copy.mask == 0; });
}

bool decode(Decoder &d) {
  if (!d.take("async"))
    return false;
  if (d.nextIs("bulk") || d.nextIs("mbarrier"))
    return false;
  if (d.take("commit_group")) {
    d.expectCount(0, 0);
    d.out.run = commit;
    return true;
  }
  if (d.take("wait_all")) {
    d.expectCount(0, 0);
    d.out.aux = 1;
    d.out.run = wait;
    return true;
  }
  if (d.take("wait_group")) {
    d.expectCount(1, 1);
    d.out.immediate = d.operand(0).value;
    d.out.run = wait;
    return true;
  }
  bool l2Only = d.take("cg");
  if (!l2Only && !d.take("ca"))
    d.fail("no .ca or .cg");
  if (!(d.take("shared") || d.take("shared::cta")) || !d.take("global"))
    d.fail("no .shared.global");
  for (const char *hint : {"L2::64B", "L2::128B", "L2::256B"})
    d.take(hint);
  bool hint = d.take("L2::cache_hint"); // A policy, which changes no value.
  d.expectCount(3 + hint, 4 + hint);
  if (hint)
    d.source(d.count() - 1, {'b', 64, false, "b64"});
  // Two addresses: the destination's offset stands in `target`.
  d.address(d.operand(0), 0);
  d.out.target = static_cast<uint32_t>(d.out.immediate);
  uint16_t narrow = d.out.small;
  d.address(d.operand(1), 1);
  if (d.out.small != narrow)
    d.fail("a source address of 32 bits");
  uint64_t bytes = static_cast<uint64_t>(d.operand(2).value);
  if (bytes != 16 && (l2Only || (bytes != 4 && bytes != 8)))
    d.fail("a copy of " + std::to_string(bytes) + " bytes");
  d.out.aux = static_cast<uint32_t>(bytes);
  if (d.count() == 4 + size_t(hint)) {
    bool negated = false;
    if (d.widthOf(d.operand(3)) == 1) {
      d.out.op[4] = d.predicate(d.operand(3), negated);
      if (negated)
        d.fail("a negated predicate");
    } else {
      d.out.op[2] = d.source(3, {'u', 32, false, "u32"});
    }
  }
  d.sharedAccess(static_cast<unsigned>(bytes));
  d.out.run = issue;
  return true;
}

} // namespace

void nova::sim::addAsyncCopyInstructions(InstructionTable &table) {
  table.add("cp", decode);
}
