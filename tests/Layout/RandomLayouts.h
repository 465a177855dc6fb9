//===- RandomLayouts.h - Layouts of every kind, and what they mean --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_LAYOUT_RANDOMLAYOUTS_H
#define NOVA_TESTS_LAYOUT_RANDOMLAYOUTS_H

#include "nova/Layout/LinearLayout.h"

#include <functional>
#include <random>
#include <set>
#include <vector>

namespace nova::test {

using Coordinates = LinearLayout::Coordinates;

/// What the random layouts of a test are like. All are surjective, with
/// distinct registers: what the attribute accepts.
struct Kind {
  unsigned minRank = 0, maxRank = 3;
  unsigned maxBits = 9; ///< Of the core.
  bool permuted =
      false; ///< Each basis a single bit, else any full-rank matrix.
  bool redundant = false; ///< Lanes and warps may repeat sums of other bases.
  bool outerFactors = true;
};

LinearLayout randomLayout(std::mt19937 &random, const Kind &kind);

/// Calls `test` with `count` layouts of each kind.
void forRandomLayouts(int count,
                      const std::function<void(const LinearLayout &)> &test,
                      unsigned minRank = 0);

/// Coordinates that thread (lane, warp) holds in register r, by the definition
/// in the header: bits of the core, row-major, plus the outer factors.
Coordinates defined(const LinearLayout &layout, int64_t r, int64_t lane,
                    int64_t warp);

/// What a thread holds, register by register, and as a set.
std::vector<Coordinates> held(const LinearLayout &layout, int64_t lane,
                              int64_t warp);
std::set<Coordinates> heldSet(const LinearLayout &layout, int64_t lane,
                              int64_t warp);

/// Calls `test` with every thread.
void forThreads(const LinearLayout &layout,
                const std::function<void(int64_t lane, int64_t warp)> &test);

/// Whether some thread holds each element of the tile, by enumeration.
bool coversAll(const LinearLayout &layout);
/// Whether no thread holds an element twice, by enumeration.
bool holdsNothingTwice(const LinearLayout &layout);

} // namespace nova::test

#endif // NOVA_TESTS_LAYOUT_RANDOMLAYOUTS_H
