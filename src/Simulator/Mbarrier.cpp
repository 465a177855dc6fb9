//===- Mbarrier.cpp - Barriers that are objects in shared memory ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Access.h"

using namespace nova::sim;

std::string nova::sim::mbarrierName(const Block &owner, uint64_t offset) {
  return "mbarrier " + sharedName(owner, offset);
}

std::string nova::sim::missingText(const Block &owner, const Mbarrier &b) {
  std::string text = "phase " + std::to_string(b.phase) + ", with " +
                     std::to_string(b.pending) + " of " +
                     std::to_string(b.expected) + " arrivals";
  if (b.bytes || b.announced)
    text += " and " + std::to_string(b.bytes) + " of " +
            std::to_string(b.announced) + " bytes";
  text += " missing";
  if (b.bytes && b.anyAnnounced)
    text += " (announced at " +
            describeInst(*owner.launch.code, b.announceInst) + ")";
  return text;
}

void Mbarriers::init(Warp &w, unsigned lane, Block &owner, uint64_t offset,
                     uint32_t count) {
  if (const Mbarrier *old = find(offset))
    throw FaultFound{FaultKind::Phase,
                     "initialises " + mbarrierName(owner, offset) +
                         ", which has been one since " +
                         describeInst(*w.code, old->initInst) +
                         ": mbarrier.inval comes first",
                     lane,
                     {},
                     "shared"};
  static constexpr uint32_t kMost = (1 << 20) - 1; // ISA 9.7.13.15.5
  if (count == 0 || count > kMost)
    throw FaultFound{FaultKind::Limit,
                     "an mbarrier for " + std::to_string(count) +
                         " arrivals, expected 1 to " + std::to_string(kMost),
                     lane,
                     {},
                     "shared"};
  Clocks &clocks = owner.cluster.clocks;
  Mbarrier b;
  b.expected = b.pending = count;
  b.agent = clocks.newMbarrier();
  b.initInst = w.indexOf(*w.current);
  b.initAgent = w.agent;
  b.initLane = static_cast<uint8_t>(lane);
  b.initCount = clocks.now;
  all.push_back({offset, std::move(b)});
}

Mbarrier &nova::sim::useMbarrier(Warp &w, unsigned lane, Block &owner,
                                 uint64_t offset) {
  Mbarrier *b = owner.mbarriers.find(offset);
  auto fail = [&](FaultKind kind, const std::string &what) {
    throw FaultFound{
        kind, "uses " + mbarrierName(owner, offset) + what, lane, {}, "shared"};
  };
  if (!b) {
    fail(FaultKind::Phase, ", where no mbarrier.init has been executed");
    __builtin_unreachable();
  }
  if (!(b->initAgent == w.agent && b->initLane == lane) &&
      b->initCount > owner.cluster.clocks.known(w.agent, b->initAgent))
    fail(FaultKind::Race, ", initialised at " +
                              describeInst(*w.code, b->initInst) +
                              " with no barrier between the two");
  if (!owner.shared.lastWrittenBy(offset, b->initAgent, b->initInst))
    fail(FaultKind::Phase,
         ", over which " +
             describeInst(*w.code, owner.shared.lastWriter(offset)) +
             " has written");
  return *b;
}

/// Whether all of a phase is there: then it ends.
static void finishPhase(Warp &w, unsigned lane, Block &owner, Mbarrier &b) {
  if (b.pending || b.bytes > 0)
    return;
  uint64_t offset = 0;
  for (const auto &[at, barrier] : owner.mbarriers.all)
    if (&barrier == &b)
      offset = at;
  if (b.bytes < 0)
    throw FaultFound{
        FaultKind::Transaction,
        std::to_string(-b.bytes) + " bytes more come to " +
            mbarrierName(owner, offset) + " in phase " +
            std::to_string(b.phase) + " than the " +
            std::to_string(b.announced) +
            " that expect_tx has announced: announce what its copies bring",
        lane,
        {},
        "shared"};
  Clocks &clocks = owner.cluster.clocks;
  ++clocks.now;
  for (const Mbarrier::Region &r : b.copies)
    owner.shared.completeAsync(clocks, r.offset, r.bytes);
  b.copies.clear();
  b.completed.merge(b.collecting);
  if (b.completed.known.size() <= b.agent)
    b.completed.known.resize(b.agent + 1);
  b.completed.known[b.agent] = clocks.now++;
  for (Mbarrier::Waiter &waiter : b.waiters) {
    if (waiter.phase < b.phase)
      throw FaultFound{
          FaultKind::Phase,
          mbarrierName(owner, offset) + " ends phase " +
              std::to_string(b.phase) + " while warp " +
              std::to_string(waiter.warp->index) + " at " +
              describeInst(*w.code,
                           waiter.warp->fragments[waiter.fragment].pc) +
              " has not seen the end of phase " + std::to_string(waiter.phase) +
              ": it would wait for another one; let its arrival be part of "
              "the phase",
          lane,
          {},
          "shared"};
    waiter.woken = true;
    waiter.warp->wakeUp(waiter.fragment);
  }
  ++b.phase;
  b.pending = b.expected;
  b.announced = 0;
  ++owner.cluster.events;
}

void nova::sim::completeBytes(Warp &w, unsigned lane, Block &owner, Mbarrier &b,
                              int64_t bytes) {
  b.bytes -= bytes;
  finishPhase(w, lane, owner, b);
}

void nova::sim::arriveOn(Warp &w, unsigned lane, Block &owner, uint64_t offset,
                         Mbarrier &b, uint32_t count, bool releases) {
  if (count == 0 || count > b.pending)
    throw FaultFound{FaultKind::Phase,
                     "arrives " + std::to_string(count) + " times at " +
                         mbarrierName(owner, offset) + ", which is in " +
                         missingText(owner, b) +
                         ": init counts all arrivals of a phase",
                     lane,
                     {},
                     "shared"};
  Clocks &clocks = owner.cluster.clocks;
  if (releases) {
    clocks.release(w.agent, b.collecting);
    ++clocks.now; // What the warp does next is not released by this.
  }
  b.pending -= count;
  ++owner.cluster.events;
  finishPhase(w, lane, owner, b);
}

void nova::sim::announceBytes(Warp &w, unsigned lane, Mbarrier &b,
                              uint32_t bytes) {
  static constexpr int64_t kMost = (1 << 20) - 1; // ISA 9.7.13.15.5
  b.bytes += bytes;
  b.announced += bytes;
  b.announceInst = w.indexOf(*w.current);
  b.anyAnnounced = true;
  if (b.bytes > kMost)
    throw FaultFound{FaultKind::Transaction,
                     std::to_string(b.bytes) +
                         " bytes announced in a phase, the limit is " +
                         std::to_string(kMost),
                     lane,
                     {},
                     "shared"};
}
