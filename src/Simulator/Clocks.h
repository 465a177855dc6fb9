//===- Clocks.h - Which accesses come before which ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Agents access shared memory: the warps of a cluster, block by block; after
// them, where a kernel has such instructions, for every warp the engine that
// reads the operands of its warpgroup's products; then mbarriers, in whose name
// bulk copies write. A cluster counts synchronisations: `now`. An access
// carries the count at which it happened. known(w, a) is the largest count of
// agent a whose accesses come before what warp w does now; barriers raise it.
// So an earlier access by a at count c races with one by w if c > known(w, a).
// For a = w it is about other lanes of one warp, which bar.warp.sync orders.
//
// Proxies (ISA 8.5). fenced(w, v) is the same for what warp v did by ordinary
// instructions and warp w starts in the asynchronous proxy: a proxy fence is on
// the way from the one to the other.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_CLOCKS_H
#define NOVA_SIMULATOR_CLOCKS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nova::sim {

/// What a release hands to those who acquire it.
struct Order {
  std::vector<uint32_t> known, fenced;
  void clear() {
    std::fill(known.begin(), known.end(), 0);
    std::fill(fenced.begin(), fenced.end(), 0);
  }
  void merge(const Order &other) {
    raise(known, other.known);
    raise(fenced, other.fenced);
  }
  static void raise(std::vector<uint32_t> &to,
                    const std::vector<uint32_t> &from) {
    if (to.size() < from.size())
      to.resize(from.size());
    for (size_t k = 0; k < from.size(); ++k)
      to[k] = std::max(to[k], from[k]);
  }
};

class Clocks {
public:
  /// `engines`, `mbarriers`: whether there are such agents; of mbarriers there
  /// are kMbarriers a block, which more of them share.
  void reset(unsigned warps, unsigned blocks, bool engines, bool mbarriers) {
    now = 1;
    warpCount = warps;
    firstMbarrier = warps + (engines ? warps : 0);
    mbarrierCount = mbarriers ? kMbarriers * blocks : 0;
    stride = firstMbarrier + mbarrierCount;
    proxies = engines || mbarriers;
    rows.assign(size_t(warps) * stride, 0);
    fences.assign(proxies ? size_t(warps) * warps : 0, 0);
    nextMbarrier = 0;
  }

  uint32_t now = 1;
  uint32_t known(unsigned warp, unsigned of) const {
    return rows[size_t(warp) * stride + of];
  }
  uint32_t fenced(unsigned warp, unsigned of) const {
    return fences[size_t(warp) * warpCount + of];
  }
  void learn(unsigned warp, unsigned of, uint32_t count) {
    uint32_t &known = rows[size_t(warp) * stride + of];
    known = std::max(known, count);
  }

  unsigned warps() const { return warpCount; }
  unsigned engineOf(unsigned warp) const { return warpCount + warp; }
  bool isWarp(unsigned agent) const { return agent < warpCount; }
  bool isMbarrier(unsigned agent) const { return agent >= firstMbarrier; }
  unsigned newMbarrier() {
    return firstMbarrier + nextMbarrier++ % std::max(1u, mbarrierCount);
  }

  /// What comes after a release by `warp` is not part of it.
  void release(unsigned warp, Order &into) {
    into.known.resize(stride);
    const uint32_t *own = &rows[size_t(warp) * stride];
    for (unsigned a = 0; a < stride; ++a)
      into.known[a] = std::max(into.known[a], own[a]);
    into.known[warp] = now;
    if (!proxies)
      return;
    into.fenced.resize(warpCount);
    const uint32_t *fence = &fences[size_t(warp) * warpCount];
    for (unsigned a = 0; a < warpCount; ++a)
      into.fenced[a] = std::max(into.fenced[a], fence[a]);
  }
  void acquire(unsigned warp, const Order &from) {
    uint32_t *own = &rows[size_t(warp) * stride];
    for (size_t a = 0; a < from.known.size(); ++a)
      own[a] = std::max(own[a], from.known[a]);
    uint32_t *fence = fences.data() + size_t(warp) * warpCount;
    for (size_t a = 0; a < from.fenced.size(); ++a)
      fence[a] = std::max(fence[a], from.fenced[a]);
  }
  void syncLanes(unsigned warp) { learn(warp, warp, now++); }

  /// Of the asynchronous proxy, by `warp`: all that it knows, and did.
  void fence(unsigned warp) {
    if (!proxies)
      return;
    for (unsigned a = 0; a < warpCount; ++a) {
      uint32_t &f = fences[size_t(warp) * warpCount + a];
      f = std::max(f, known(warp, a));
    }
    fences[size_t(warp) * warpCount + warp] = now++;
  }

  static constexpr unsigned kMbarriers = 64;

private:
  unsigned warpCount = 0, stride = 0, firstMbarrier = 0, mbarrierCount = 0,
           nextMbarrier = 0;
  bool proxies = false;
  std::vector<uint32_t> rows, fences;
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_CLOCKS_H
