//===- PackArena.cpp - Offsets for buffers with lifetimes ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/Plan.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace nova;

static int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

int64_t nova::packArena(std::vector<Lifetime> &lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].size > lifetimes[b].size;
  });
  int64_t end = 0;
  std::vector<size_t> byOffset; // placed so far, sorted by offset
  for (size_t index : order) {
    Lifetime &mine = lifetimes[index];
    int64_t need = aligned(mine.size), offset = 0;
    for (size_t other : byOffset) {
      const Lifetime &theirs = lifetimes[other];
      if (theirs.last < mine.first || mine.last < theirs.first)
        continue;
      if (offset + need <= theirs.offset)
        break;
      offset = std::max(offset, theirs.offset + aligned(theirs.size));
    }
    mine.offset = offset;
    end = std::max(end, offset + need);
    auto at = std::upper_bound(byOffset.begin(), byOffset.end(), index, [&](size_t a, size_t b) {
      return lifetimes[a].offset < lifetimes[b].offset;
    });
    byOffset.insert(at, index);
  }
  return end;
}

int64_t nova::peakLiveBytes(const std::vector<Lifetime> &lifetimes) {
  std::map<int64_t, int64_t> change;
  for (const Lifetime &life : lifetimes) {
    change[life.first] += aligned(life.size);
    change[life.last + 1] -= aligned(life.size);
  }
  int64_t live = 0, peak = 0;
  for (auto [time, delta] : change)
    peak = std::max(peak, live += delta);
  return peak;
}
