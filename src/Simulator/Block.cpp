//===- Block.cpp - A block's start, and its barriers
//---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

#include <algorithm>

using namespace nova::sim;

void Block::start(std::array<uint32_t, 3> number, uint32_t place) {
  id = number;
  rank = place;
  sharedBase = kSharedBase + (uint64_t(place) << kRankShift);
  shared.reset(launch.sharedBytes, launch.code->granule);
  barriers.fill(Barrier());
  mbarriers.reset();
  freeRegisters = 0;
  waitForRegisters.clear();
  uint32_t count = launch.warpsPerBlock();
  warpgroups.assign((count + 3) / 4, WarpgroupOrder());
  warps.resize(count);
  for (uint32_t w = 0; w < count; ++w) {
    uint32_t lanes = std::min(launch.threads - w * kLanes, kLanes);
    warps[w].start(*this, w,
                   lanes == kLanes ? kAllLanes : (uint32_t(1) << lanes) - 1);
  }
}

bool Block::arrive(Warp &warp, uint32_t fragment, uint32_t which,
                   uint32_t expected, uint32_t count, bool wait) {
  Barrier &b = barriers[which];
  uint32_t inst = warp.fragments[fragment].pc;
  if (!b.expected) {
    b.expected = expected;
    b.inst = inst;
  } else if (b.expected != expected) {
    throw FaultFound{FaultKind::PartialBarrier,
                     "barrier " + std::to_string(which) + " is for " +
                         std::to_string(expected) + " threads here and for " +
                         std::to_string(b.expected) + " at " +
                         describeInst(*launch.code, b.inst),
                     {},
                     {},
                     {}};
  }
  b.arrived += count;
  if (b.arrived > b.expected)
    throw FaultFound{FaultKind::PartialBarrier,
                     "barrier " + std::to_string(which) + " expects " +
                         std::to_string(b.expected) + " threads, " +
                         std::to_string(b.arrived) + " have arrived",
                     {},
                     {},
                     {}};
  cluster.clocks.release(warp.agent, b.released);
  ++cluster.events;
  if (wait)
    b.waiting.push_back({warp.index, fragment});
  else
    ++cluster.clocks.now; // What the warp does next is not released by this.
  if (b.arrived < b.expected) {
    if (wait)
      warp.fragments[fragment].state = Fragment::AtBarrier;
    return wait;
  }
  complete(b);
  return false;
}

void Block::complete(Barrier &b) {
  ++cluster.clocks.now;
  Barrier done;
  std::swap(done, b);
  for (auto [warp, fragment] : done.waiting) {
    Warp &w = warps[warp];
    cluster.clocks.acquire(w.agent, done.released);
    const Inst &inst = w.code->body[w.fragments[fragment].pc];
    // bar.red (ISA 9.7.13.1): every thread gets the value.
    if (inst.small) {
      uint32_t mask = w.fragments[fragment].mask;
      if (inst.small == 1) {
        uint32_t *to = w.row<uint32_t>(inst.op[0]);
        for (uint32_t left = mask; left; left &= left - 1)
          to[std::countr_zero(left)] = done.population;
      } else {
        bool value = inst.small == 2 ? done.all : done.any;
        uint32_t &to = w.predicate(inst.op[0]);
        to = value ? to | mask : to & ~mask;
      }
    }
    w.release(fragment);
  }
}
