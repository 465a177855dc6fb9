//===- Cluster.cpp - The warps of a cluster take turns
//-------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

#include <algorithm>

using namespace nova::sim;

/// Turns of those who poll without anything having happened, after which
/// nothing will.
static constexpr unsigned kPolls = 64;

/// SplitMix64: which warp runs when several could.
static uint64_t draw(uint64_t &state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Cluster::Cluster(const LaunchContext &launch) : launch(launch) {
  blocks.reserve(launch.clusterBlocks());
  for (uint32_t k = 0; k < launch.clusterBlocks(); ++k)
    blocks.emplace_back(launch, *this);
}

uint32_t Cluster::threadsAlive() const {
  uint32_t threads = 0;
  for (const Block &b : blocks)
    for (const Warp &w : b.warps)
      threads += static_cast<uint32_t>(std::popcount(w.alive));
  return threads;
}

std::optional<Fault> Cluster::run(std::array<uint32_t, 3> first,
                                  uint64_t seed) {
  const std::array<uint32_t, 3> &extent = launch.shape.cluster;
  auto count = static_cast<uint32_t>(blocks.size());
  clocks.reset(count * launch.warpsPerBlock(), count, launch.code->hasProducts,
               launch.code->hasMbarriers);
  barrier = ClusterBarrier();
  running = nullptr;
  for (uint32_t k = 0; k < count; ++k)
    blocks[k].start({first[0] + k % extent[0],
                     first[1] + k / extent[0] % extent[1],
                     first[2] + k / extent[0] / extent[1]},
                    k);
  uint64_t state =
      seed ^ (uint64_t(first[0]) << 42 | uint64_t(first[1]) << 21 | first[2]);
  std::optional<Fault> fault;
  try {
    std::vector<Warp *> ready;
    uint64_t eventsBefore = events;
    unsigned polls = 0;
    for (;;) {
      ready.clear();
      bool unfinished = false;
      for (Block &b : blocks)
        for (Warp &w : b.warps) {
          unfinished |= !w.finished();
          if (w.canRun())
            ready.push_back(&w);
        }
      if (!unfinished)
        break;
      if (ready.empty()) {
        // Whoever polls tries again, once all others have stopped.
        polls = events == eventsBefore ? polls + 1 : 0;
        eventsBefore = events;
        if (polls > kPolls)
          diagnose();
        bool any = false;
        for (Block &b : blocks)
          for (Warp &w : b.warps) {
            w.wake();
            any |= w.canRun();
          }
        if (!any)
          diagnose();
        continue;
      }
      running = ready[draw(state) % ready.size()];
      running->run();
    }
  } catch (FaultFound &found) {
    fault = describe(found);
  }
  for (Block &b : blocks)
    for (Warp &w : b.warps) {
      counts.warpInstructions += w.warpInstructions;
      counts.laneInstructions += w.laneInstructions;
      w.warpInstructions = w.laneInstructions = 0;
    }
  return fault;
}

void Cluster::arriveAtCluster(Warp &warp, uint32_t lanes, bool releases) {
  if (releases)
    clocks.release(warp.agent, barrier.collecting);
  ++clocks.now;
  ++events;
  for (uint32_t left = lanes; left; left &= left - 1)
    warp.clusterPhase[static_cast<size_t>(std::countr_zero(left))] =
        barrier.phase + 1;
  barrier.arrived += static_cast<uint32_t>(std::popcount(lanes));
  completeCluster();
}

/// Threads that have ended count as arrived (ISA 9.7.13.3).
void Cluster::completeCluster() {
  if (!barrier.arrived || barrier.arrived < threadsAlive())
    return;
  ++clocks.now;
  ++barrier.phase;
  barrier.arrived = 0;
  barrier.completed.merge(barrier.collecting);
  for (auto [warp, fragment] : barrier.waiting)
    warp->wakeUp(fragment);
  barrier.waiting.clear();
}
