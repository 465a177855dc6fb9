//===- RandomLayouts.cpp - Layouts of every kind, and what they mean ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RandomLayouts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nova::test {

/// Whether `bases` are linearly independent: no non-empty subset has the sum 0.
static bool independent(std::vector<int64_t> bases) {
  for (size_t i = 0; i < bases.size(); ++i) {
    if (!bases[i])
      return false;
    int64_t lead = bases[i] & -bases[i];
    for (size_t j = i + 1; j < bases.size(); ++j)
      if (bases[j] & lead)
        bases[j] ^= bases[i];
  }
  return true;
}

/// `bits` independent vectors of that many bits.
static std::vector<int64_t> randomBasis(std::mt19937 &random, unsigned bits,
                                        bool permuted) {
  std::vector<int64_t> basis(bits);
  for (unsigned i = 0; i < bits; ++i)
    basis[i] = int64_t{1} << i;
  std::shuffle(basis.begin(), basis.end(), random);
  while (!permuted) {
    for (int64_t &vector : basis)
      vector = random() & ((int64_t{1} << bits) - 1);
    if (independent(basis))
      break;
  }
  return basis;
}

LinearLayout randomLayout(std::mt19937 &random, const Kind &kind) {
  unsigned rank = kind.minRank + random() % (kind.maxRank - kind.minRank + 1);
  std::vector<int64_t> core(rank), outer(rank, 1);
  unsigned bits = 0;
  for (unsigned d = 0; d < rank; ++d) {
    unsigned here = random() % (std::min(5u, kind.maxBits - bits) + 1);
    core[d] = int64_t{1} << here;
    bits += here;
    if (kind.outerFactors)
      outer[d] = 1 + random() % 3;
  }
  std::vector<int64_t> basis = randomBasis(random, bits, kind.permuted);
  // Each basis goes to registers, lanes or warps; what lanes lack are copies.
  std::vector<int64_t> registers, lanes, warps;
  for (int64_t vector : basis) {
    unsigned to = random() % 3;
    if (to == 1 && lanes.size() < kLaneBits)
      lanes.push_back(vector);
    else if (to == 2 && warps.size() < 3)
      warps.push_back(vector);
    else
      registers.push_back(vector);
  }
  auto copies = [&](std::vector<int64_t> &bases, size_t count) {
    while (bases.size() < count) {
      int64_t vector = 0;
      if (kind.redundant && random() % 2)
        for (int64_t other : basis)
          vector ^= random() % 2 ? other : 0;
      bases.insert(bases.begin() + random() % (bases.size() + 1), vector);
    }
  };
  copies(lanes, kLaneBits);
  copies(warps, std::max<size_t>(warps.size(), random() % 4));
  return LinearLayout(core, outer, registers, lanes, warps);
}

void forRandomLayouts(int count,
                      const std::function<void(const LinearLayout &)> &test,
                      unsigned minRank) {
  std::mt19937 random(17);
  for (bool permuted : {false, true})
    for (bool redundant : {false, true}) {
      Kind kind;
      kind.minRank = minRank;
      kind.permuted = permuted;
      kind.redundant = redundant;
      for (int i = 0; i < count; ++i) {
        LinearLayout layout = randomLayout(random, kind);
        SCOPED_TRACE(layout.str());
        test(layout);
        if (::testing::Test::HasFailure())
          return; // One layout is enough to look at.
      }
    }
}

Coordinates defined(const LinearLayout &layout, int64_t r, int64_t lane,
                    int64_t warp) {
  size_t bits = layout.registers.size();
  int64_t element = 0;
  for (size_t i = 0; i < bits; ++i)
    element ^= (r >> i & 1) * layout.registers[i];
  for (size_t i = 0; i < layout.lanes.size(); ++i)
    element ^= (lane >> i & 1) * layout.lanes[i];
  for (size_t i = 0; i < layout.warps.size(); ++i)
    element ^= (warp >> i & 1) * layout.warps[i];
  int64_t repeat = r >> bits;
  Coordinates coordinates(layout.core.size());
  for (size_t d = layout.core.size(); d-- > 0;) {
    coordinates[d] =
        element % layout.core[d] + repeat % layout.outer[d] * layout.core[d];
    element /= layout.core[d];
    repeat /= layout.outer[d];
  }
  return coordinates;
}

std::vector<Coordinates> held(const LinearLayout &layout, int64_t lane,
                              int64_t warp) {
  std::vector<Coordinates> result;
  for (int64_t r = 0; r < layout.registerCount(); ++r)
    result.push_back(defined(layout, r, lane, warp));
  return result;
}

std::set<Coordinates> heldSet(const LinearLayout &layout, int64_t lane,
                              int64_t warp) {
  std::vector<Coordinates> list = held(layout, lane, warp);
  return {list.begin(), list.end()};
}

void forThreads(const LinearLayout &layout,
                const std::function<void(int64_t, int64_t)> &test) {
  for (int64_t warp = 0; warp < int64_t{1} << layout.warps.size(); ++warp)
    for (int64_t lane = 0; lane < kWarpSize; ++lane)
      test(lane, warp);
}

bool coversAll(const LinearLayout &layout) {
  std::set<Coordinates> all;
  forThreads(layout, [&](int64_t lane, int64_t warp) {
    all.merge(heldSet(layout, lane, warp));
  });
  int64_t elements = 1;
  for (size_t d = 0; d < layout.core.size(); ++d)
    elements *= layout.core[d] * layout.outer[d];
  return int64_t(all.size()) == elements;
}

bool holdsNothingTwice(const LinearLayout &layout) {
  bool distinct = true;
  forThreads(layout, [&](int64_t lane, int64_t warp) {
    distinct &=
        int64_t(heldSet(layout, lane, warp).size()) == layout.registerCount();
  });
  return distinct;
}

} // namespace nova::test
