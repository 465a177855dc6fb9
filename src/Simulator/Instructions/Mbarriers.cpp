//===- Mbarriers.cpp - mbarrier -------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.13.15: init, inval, expect_tx, complete_tx, arrive, arrive_drop,
// test_wait, try_wait, pending_count. try_wait may suspend a thread for as long
// as the system likes: here until the phase has ended, so that who waits for
// ever is found to. A state is the phase's number and the arrivals that were
// missing.
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"

using namespace nova::sim;

namespace {

constexpr uint32_t kParity = 1, kTest = 2, kRelaxed = 4, kExpect = 8,
                   kDrop = 16, kNoComplete = 32;

SharedPlace placeOf(Warp &w, const Inst &i, unsigned lane) {
  uint64_t address = addressOf(w, i, 1, lane);
  resolve(AccessSpace::Shared, address);
  if (address >= kSharedWindow)
    address -= kSharedWindow;
  return sharedPlace(w, lane, address, 8);
}

void init(Warp &w, const Inst &i, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    SharedPlace at = placeOf(w, i, l);
    uint32_t count = w.row<uint32_t>(i.op[2])[l];
    // Opaque, and never twice the same, so that two inits are two writes.
    uint64_t bits = uint64_t(count) << 32 | ++w.block->cluster.clocks.now;
    uint8_t value[8];
    std::memcpy(value, &bits, 8);
    Conflict found = at.block->shared.write(w.block->cluster.clocks,
                                            w.accessor(static_cast<uint8_t>(l)),
                                            at.offset, 8, value);
    if (found.kind != Conflict::None)
      faultConflict(w, *at.block, l, kSharedBase + at.offset, true, found);
    std::memcpy(at.block->shared.data() + at.offset, value, 8);
    at.block->mbarriers.init(w, l, *at.block, at.offset, count);
  }
}

void invalidate(Warp &w, const Inst &i, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    SharedPlace at = placeOf(w, i, l);
    Mbarrier &b = useMbarrier(w, l, *at.block, at.offset);
    if (!b.waiters.empty() || !b.copies.empty())
      throw FaultFound{
          FaultKind::Phase,
          "ends the life of " + mbarrierName(*at.block, at.offset) +
              (b.copies.empty()
                   ? ", for which warp " +
                         std::to_string(b.waiters[0].warp->index) + " waits"
                   : ", whose copies are under way"),
          l,
          {},
          "shared"};
    at.block->mbarriers.drop(at.offset);
  }
}

/// op[0] state or kNone, op[1] address, op[2] count or bytes, or kNone.
void arrive(Warp &w, const Inst &i, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    SharedPlace at = placeOf(w, i, l);
    Mbarrier &b = useMbarrier(w, l, *at.block, at.offset);
    if (i.op[0] != kNone)
      w.row<uint64_t>(i.op[0])[l] = b.phase << 32 | b.pending;
    uint32_t given = i.op[2] == kNone ? 1 : w.row<uint32_t>(i.op[2])[l];
    if (i.aux & kExpect)
      announceBytes(w, l, b, given);
    if (i.aux & kDrop)
      --b.expected;
    uint64_t phase = b.phase;
    arriveOn(w, l, *at.block, at.offset, b, (i.aux & kExpect) ? 1 : given,
             !(i.aux & kRelaxed));
    if ((i.aux & kNoComplete) && b.phase != phase)
      throw FaultFound{FaultKind::Phase,
                       "ends phase " + std::to_string(phase) + " of " +
                           mbarrierName(*at.block, at.offset) +
                           " and says .noComplete",
                       l,
                       {},
                       "shared"};
  }
}

/// expect_tx, and complete_tx with kDrop.
void countBytes(Warp &w, const Inst &i, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    SharedPlace at = placeOf(w, i, l);
    Mbarrier &b = useMbarrier(w, l, *at.block, at.offset);
    uint32_t bytes = w.row<uint32_t>(i.op[2])[l];
    if (i.aux & kDrop)
      completeBytes(w, l, *at.block, b, bytes);
    else
      announceBytes(w, l, b, bytes);
  }
}

void forget(Mbarrier &b, const Warp &w, uint32_t fragment) {
  std::erase_if(b.waiters, [&](const Mbarrier::Waiter &waiter) {
    return waiter.warp == &w && waiter.fragment == fragment;
  });
}

/// op[0] predicate, op[1] address, op[2] parity or state.
Next atWait(Warp &w, uint32_t fragment, const Inst &i, uint32_t mask) {
  if (!mask)
    return Next::Advance;
  uint32_t done = 0;
  Mbarrier *last = nullptr;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    SharedPlace at = placeOf(w, i, l);
    Mbarrier &b = useMbarrier(w, l, *at.block, at.offset);
    bool passed;
    if (i.aux & kParity) {
      uint32_t parity = w.row<uint32_t>(i.op[2])[l];
      if (parity > 1)
        throw FaultFound{FaultKind::Phase,
                         "waits for parity " + std::to_string(parity) +
                             " of a phase, expected 0 or 1",
                         l,
                         {},
                         "shared"};
      passed = b.passed(parity);
    } else {
      passed = b.phase > w.row<uint64_t>(i.op[2])[l] >> 32;
    }
    if (passed) {
      done |= uint32_t(1) << l;
      if (&b != last && !(i.aux & kRelaxed))
        w.block->cluster.clocks.acquire(w.agent, b.completed);
      last = &b;
      continue;
    }
    if (i.aux & kTest)
      continue;
    bool known = false;
    for (const Mbarrier::Waiter &waiter : b.waiters)
      known |= waiter.warp == &w && waiter.fragment == fragment;
    if (!known)
      b.waiters.push_back({&w, fragment, b.phase, false});
    return w.waitAt(fragment);
  }
  if (!(i.aux & kTest))
    for (Block &owner : w.block->cluster.blocks)
      for (auto &[offset, b] : owner.mbarriers.all)
        forget(b, w, fragment);
  uint32_t &p = w.predicate(i.op[0]);
  p = (p & ~mask) | done;
  if (done == mask || !(i.aux & kTest))
    return Next::Advance;
  // It will look again; others go first.
  ++w.fragments[fragment].pc;
  w.fragments[fragment].state = Fragment::Polling;
  return Next::Switch;
}

bool takeOrder(Decoder &d) {
  bool relaxed = d.take("relaxed");
  for (const char *word : {"acquire", "release", "cta", "cluster"})
    d.take(word);
  return relaxed;
}

bool decode(Decoder &d) {
  TypeMod b32{'b', 32, false, "b32"}, b64{'b', 64, false, "b64"};
  d.names.code.hasMbarriers = true;
  d.sharedAccess(8);
  auto takeSpace = [&] {
    for (const char *space : {"shared", "shared::cta", "shared::cluster"})
      if (d.take(space))
        break;
    if (!d.take("b64"))
      d.fail("no .b64");
  };
  if (d.take("init")) {
    takeSpace();
    d.expectCount(2, 2);
    d.address(d.operand(0), 1);
    d.out.op[2] = d.source(1, b32);
    d.out.run = init;
    return true;
  }
  if (d.take("inval")) {
    takeSpace();
    d.expectCount(1, 1);
    d.address(d.operand(0), 1);
    d.out.run = invalidate;
    return true;
  }
  if (d.take("pending_count")) {
    d.take("b64");
    d.expectCount(2, 2);
    d.out.op[0] = d.target(0, 32);
    d.out.op[1] = d.source(1, b64);
    d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
      alignas(64) uint32_t values[kLanes];
      const uint64_t *states = w.row<uint64_t>(i.op[1]);
      NOVA_LANES values[l] = static_cast<uint32_t>(states[l]);
      store(w.row<uint32_t>(i.op[0]), values, mask);
    };
    return true;
  }
  bool test = d.take("test_wait");
  if (test || d.take("try_wait")) {
    d.out.aux = test ? kTest : 0;
    if (d.take("parity"))
      d.out.aux |= kParity;
    if (takeOrder(d))
      d.out.aux |= kRelaxed;
    takeSpace();
    d.expectCount(3, test ? 3 : 4);
    d.out.op[0] = d.target(0, 1);
    d.address(d.operand(1), 1);
    d.out.op[2] = d.source(2, (d.out.aux & kParity) ? b32 : b64);
    if (d.count() == 4)
      d.source(3, b32); // How long to wait, at most.
    d.out.kind = Kind::Flow;
    d.out.flow = atWait;
    return true;
  }
  bool arrives = d.take("arrive"), drops = !arrives && d.take("arrive_drop");
  bool expects = d.take("expect_tx"), completes = d.take("complete_tx");
  if (!arrives && !drops && !expects && !completes)
    d.fail("no operation that the simulator knows");
  if (d.take("noComplete"))
    d.out.aux |= kNoComplete;
  if (takeOrder(d))
    d.out.aux |= kRelaxed;
  takeSpace();
  if (!arrives && !drops) {
    d.expectCount(2, 2);
    d.address(d.operand(0), 1);
    d.out.op[2] = d.source(1, b32);
    d.out.aux |= completes ? kDrop : 0;
    d.out.run = countBytes;
    return true;
  }
  d.out.aux |= (expects ? kExpect : 0) | (drops ? kDrop : 0);
  d.expectCount(expects ? 3 : 2, 3);
  const nova::sim::ptx::Operand &state = d.operand(0);
  if (state.kind != nova::sim::ptx::Operand::Name || state.name != "_")
    d.out.op[0] = d.target(0, 64);
  d.address(d.operand(1), 1);
  if (d.count() == 3)
    d.out.op[2] = d.source(2, b32);
  d.out.run = arrive;
  return true;
}

} // namespace

void nova::sim::addMbarrierInstructions(InstructionTable &table) {
  table.add("mbarrier", decode);
}
