//===- linear_layout_test.cpp - The layout algebra, by enumeration --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every answer of the algebra is compared with the list of what each thread
// holds, for random layouts: full-rank matrices and permutations, threads with
// copies, outer factors.
//
//===----------------------------------------------------------------------===//
#include "RandomLayouts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

using namespace nova;
using namespace nova::test;

static constexpr int kLayouts = 40; // of each kind

TEST(LinearLayout, Numbers) {
  EXPECT_EQ(powerOfTwoPart(1), 1);
  EXPECT_EQ(powerOfTwoPart(96), 32);
  EXPECT_EQ(powerOfTwoPart(7), 1);
  EXPECT_EQ(ceilPowerOfTwo(1), 1);
  EXPECT_EQ(ceilPowerOfTwo(5), 8);
  EXPECT_EQ(ceilPowerOfTwo(64), 64);
  EXPECT_EQ(log2Exact(1), 0u);
  EXPECT_EQ(log2Exact(int64_t{1} << 40), 40u);
}

TEST(LinearLayout, CoordinatesAreTheDefinition) {
  forRandomLayouts(kLayouts, [](const LinearLayout &layout) {
    forThreads(layout, [&](int64_t lane, int64_t warp) {
      for (int64_t r = 0; r < layout.registerCount(); ++r)
        ASSERT_EQ(layout.coordinates(r, lane, warp),
                  defined(layout, r, lane, warp));
    });
  });
}

TEST(LinearLayout, CountsAndNames) {
  forRandomLayouts(kLayouts, [](const LinearLayout &layout) {
    int64_t elements = 1, repeats = 1;
    for (unsigned d = 0; d < layout.rank(); ++d) {
      EXPECT_EQ(layout.shape()[d], layout.core[d] * layout.outer[d]);
      elements *= layout.shape()[d];
      repeats *= layout.outer[d];
    }
    EXPECT_EQ(layout.elements(), elements);
    EXPECT_EQ(layout.outerElements(), repeats);
    EXPECT_EQ(layout.coreElements() * repeats, elements);
    EXPECT_EQ(layout.threadCount(), 32 * layout.warpCount());
    for (int64_t e = 0; e < layout.coreElements(); ++e)
      ASSERT_EQ(layout.join(layout.split(e)), e);
  });
}

TEST(LinearLayout, RegistersAddTheSameToEveryThread) {
  forRandomLayouts(kLayouts, [](const LinearLayout &layout) {
    forThreads(layout, [&](int64_t lane, int64_t warp) {
      Coordinates first = layout.coordinates(0, lane, warp);
      for (int64_t r = 0; r < layout.registerCount(); ++r) {
        Coordinates share = layout.registerCoordinates(r),
                    sum = layout.coordinates(r, lane, warp);
        for (unsigned d = 0; d < layout.rank(); ++d) {
          int64_t core = layout.core[d];
          ASSERT_EQ(sum[d],
                    (first[d] ^ share[d] % core) + share[d] / core * core);
        }
      }
    });
  });
}

/// Bases without any promise: neither full rank nor distinct.
static LinearLayout anyLayout(std::mt19937 &random) {
  std::vector<int64_t> core;
  int64_t elements = 1;
  for (unsigned d = random() % 4; d > 0; --d) {
    core.push_back(int64_t{1} << random() % 3);
    elements *= core.back();
  }
  auto bases = [&](size_t count) {
    std::vector<int64_t> list(count);
    for (int64_t &basis : list)
      basis = random() % 3 ? random() % elements : 0;
    return list;
  };
  std::vector<int64_t> outer(core.size(), 1 + random() % 2);
  return LinearLayout(core, outer, bases(random() % 4), bases(kLaneBits),
                      bases(random() % 3));
}

TEST(LinearLayout, SurjectiveAndDistinctByEnumeration) {
  std::mt19937 random(23);
  std::map<std::pair<bool, bool>, int> seen;
  for (int i = 0; i < 2000; ++i) {
    LinearLayout layout = anyLayout(random);
    ASSERT_EQ(layout.isSurjective(), coversAll(layout)) << layout.str();
    ASSERT_EQ(layout.registersAreDistinct(), holdsNothingTwice(layout))
        << layout.str();
    ++seen[{layout.isSurjective(), layout.registersAreDistinct()}];
  }
  EXPECT_EQ(seen.size(), 4u) << "the random layouts lack a case";
}

TEST(LinearLayout, DisjointMeansThatSumsAreXors) {
  std::mt19937 random(29);
  int disjoint = 0;
  for (int i = 0; i < 4000; ++i) {
    Kind kind;
    kind.permuted = i % 2;
    kind.maxBits = 6;
    LinearLayout layout =
        i % 3 ? randomLayout(random, kind) : anyLayout(random);
    bool sums = true;
    forThreads(layout, [&](int64_t lane, int64_t warp) {
      for (int64_t r = 0; r < int64_t{1} << layout.registers.size(); ++r) {
        int64_t sum = 0;
        for (size_t b = 0; b < layout.registers.size(); ++b)
          sum += (r >> b & 1) * layout.registers[b];
        for (size_t b = 0; b < layout.lanes.size(); ++b)
          sum += (lane >> b & 1) * layout.lanes[b];
        for (size_t b = 0; b < layout.warps.size(); ++b)
          sum += (warp >> b & 1) * layout.warps[b];
        sums &= sum == layout.coreElement(r, lane, warp);
      }
    });
    ASSERT_EQ(layout.isDisjoint(), sums) << layout.str();
    disjoint += sums;
  }
  EXPECT_GT(disjoint, 100);
  EXPECT_LT(disjoint, 3900);
}

TEST(LinearLayout, FreeBitsHoldCopies) {
  forRandomLayouts(kLayouts, [](const LinearLayout &layout) {
    for (unsigned bit = 0; bit < kLaneBits; ++bit)
      if (layout.freeLaneBits() >> bit & 1)
        forThreads(layout, [&](int64_t lane, int64_t warp) {
          ASSERT_EQ(held(layout, lane, warp),
                    held(layout, lane ^ 1 << bit, warp));
        });
    for (unsigned bit = 0; bit < layout.warps.size(); ++bit)
      if (layout.freeWarpBits() >> bit & 1)
        forThreads(layout, [&](int64_t lane, int64_t warp) {
          ASSERT_EQ(held(layout, lane, warp),
                    held(layout, lane, warp ^ 1 << bit));
        });
  });
}

TEST(LinearLayout, FreeBitsAreAllWhereBasesAreIndependent) {
  std::mt19937 random(31);
  for (int i = 0; i < 80; ++i) {
    Kind kind;
    kind.permuted = i % 2;
    LinearLayout layout = randomLayout(random, kind);
    for (unsigned bit = 0; bit < kLaneBits; ++bit) {
      bool copies = true;
      forThreads(layout, [&](int64_t lane, int64_t warp) {
        copies &= heldSet(layout, lane, warp) ==
                  heldSet(layout, lane ^ 1 << bit, warp);
      });
      ASSERT_EQ(layout.freeLaneBits() >> bit & 1, copies) << layout.str();
    }
  }
}

TEST(LinearLayout, SliceHoldsTheProjection) {
  forRandomLayouts(
      kLayouts,
      [](const LinearLayout &layout) {
        for (unsigned dim = 0; dim < layout.rank(); ++dim) {
          LinearLayout slice = layout.slice(dim);
          std::vector<int64_t> shape = layout.shape();
          shape.erase(shape.begin() + dim);
          ASSERT_EQ(slice.shape(), shape);
          ASSERT_EQ(slice.warpCount(), layout.warpCount());
          ASSERT_TRUE(slice.isSurjective());
          ASSERT_TRUE(slice.registersAreDistinct());
          forThreads(layout, [&](int64_t lane, int64_t warp) {
            std::set<Coordinates> projected;
            for (Coordinates c : held(layout, lane, warp)) {
              c.erase(c.begin() + dim);
              projected.insert(c);
            }
            ASSERT_EQ(heldSet(slice, lane, warp), projected);
          });
        }
      },
      /*minRank=*/1);
}

TEST(LinearLayout, TransposedHoldsThePermuted) {
  std::mt19937 random(37);
  forRandomLayouts(kLayouts, [&](const LinearLayout &layout) {
    std::vector<unsigned> order(layout.rank());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    LinearLayout transposed = layout.transposed(order);
    int repeated = std::count_if(layout.outer.begin(), layout.outer.end(),
                                 [](int64_t factor) { return factor > 1; });
    forThreads(layout, [&](int64_t lane, int64_t warp) {
      std::vector<Coordinates> permuted;
      for (const Coordinates &c : held(layout, lane, warp)) {
        Coordinates p;
        for (unsigned from : order)
          p.push_back(c[from]);
        permuted.push_back(p);
      }
      ASSERT_EQ(heldSet(transposed, lane, warp),
                (std::set<Coordinates>(permuted.begin(), permuted.end())));
      // Repeats are row-major in the new dimensions: with two, registers move.
      if (repeated <= 1) {
        ASSERT_EQ(held(transposed, lane, warp), permuted);
      }
    });
    std::vector<unsigned> inverse(order.size());
    for (unsigned i = 0; i < order.size(); ++i)
      inverse[order[i]] = i;
    ASSERT_EQ(transposed.transposed(inverse), layout);
  });
}

TEST(LinearLayout, ExpandedHasAZero) {
  forRandomLayouts(kLayouts, [](const LinearLayout &layout) {
    for (unsigned dim = 0; dim <= layout.rank(); ++dim) {
      LinearLayout expanded = layout.expanded(dim);
      forThreads(layout, [&](int64_t lane, int64_t warp) {
        std::vector<Coordinates> want = held(layout, lane, warp);
        for (Coordinates &c : want)
          c.insert(c.begin() + dim, 0);
        ASSERT_EQ(held(expanded, lane, warp), want);
      });
      ASSERT_EQ(expanded.slice(dim), layout);
    }
  });
}

/// Whether registers 0 to n-1, n to 2n-1, ... of every thread ascend along
/// `dim`.
static bool ascends(const LinearLayout &layout, unsigned dim, int64_t n) {
  bool all = true;
  forThreads(layout, [&](int64_t lane, int64_t warp) {
    std::vector<Coordinates> list = held(layout, lane, warp);
    for (int64_t r = 0; r < int64_t(list.size()); ++r) {
      Coordinates want = list[r / n * n];
      want[dim] += r % n;
      all &= list[r] == want;
    }
  });
  return all;
}

TEST(LinearLayout, ContiguousRegistersIsTheLargestRun) {
  std::map<int64_t, int> seen;
  auto check = [&](const LinearLayout &layout) {
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      int64_t largest = 1;
      for (int64_t n = 2;
           n <= int64_t{1} << layout.registers.size() && n <= layout.core[dim];
           n *= 2)
        if (ascends(layout, dim, n))
          largest = n;
      ASSERT_EQ(layout.contiguousRegisters(dim), largest) << "dim " << dim;
      ++seen[largest];
    }
  };
  forRandomLayouts(kLayouts, check, 1);
  // Runs are rare in random matrices: layouts that have one, but for one basis.
  std::mt19937 random(41);
  for (int i = 0; i < 400; ++i) {
    LinearLayout layout =
        LinearLayout::blocked({4, 32}, {1, 0}, 1 << random() % 4, 2);
    std::vector<int64_t> *all[] = {&layout.registers, &layout.lanes,
                                   &layout.warps};
    std::vector<int64_t> &bases = *all[random() % 3];
    if (i % 2 && !bases.empty())
      bases[random() % bases.size()] ^= random() % 16;
    SCOPED_TRACE(layout.str());
    check(layout);
  }
  EXPECT_TRUE(seen[1] && seen[2] && seen[4] && seen[8]);
}

//===----------------------------------------------------------------------===//
// sameThreads
//===----------------------------------------------------------------------===//

/// The register of `from` that holds, in every thread, what register `r` of
/// `to` holds; -1 if there is none.
static int64_t sourceOf(const LinearLayout &from, const LinearLayout &to,
                        int64_t r) {
  for (int64_t s = 0; s < from.registerCount(); ++s) {
    bool same = true;
    forThreads(to, [&](int64_t lane, int64_t warp) {
      same = same && defined(from, s, lane, warp) == defined(to, r, lane, warp);
    });
    if (same)
      return s;
  }
  return -1;
}

static void checkSameThreads(const LinearLayout &from, const LinearLayout &to,
                             int &renamings) {
  std::vector<int64_t> mapping, want;
  bool same = from.sameThreads(to, &mapping);
  bool exists = from.warps.size() == to.warps.size();
  for (int64_t r = 0; r < to.registerCount() && exists; ++r) {
    want.push_back(sourceOf(from, to, r));
    exists = want.back() >= 0;
  }
  ASSERT_EQ(same, exists) << "to " << to.str();
  ASSERT_EQ(from.sameThreads(to), exists);
  if (exists) {
    ASSERT_EQ(mapping, want);
  }
  renamings += exists;
}

TEST(LinearLayout, SameThreadsByEnumeration) {
  std::mt19937 random(43);
  int renamings = 0, others = 0;
  forRandomLayouts(60, [&](const LinearLayout &from) {
    // Registers recombined: a renaming.
    LinearLayout to = from;
    for (int step = 0; step < 6 && to.registers.size() > 1; ++step) {
      size_t i = random() % to.registers.size(),
             j = random() % to.registers.size();
      if (i != j)
        to.registers[i] ^= to.registers[j];
    }
    std::shuffle(to.registers.begin(), to.registers.end(), random);
    int before = renamings;
    checkSameThreads(from, to, renamings);
    ASSERT_EQ(renamings, before + 1);
    // And one basis changed, or dropped.
    LinearLayout other = to;
    std::vector<int64_t> *all[] = {&other.registers, &other.lanes,
                                   &other.warps};
    std::vector<int64_t> &bases = *all[random() % 3];
    if (bases.empty())
      return;
    bases[random() % bases.size()] = random() % from.coreElements();
    int found = 0;
    checkSameThreads(from, other, found);
    others += !found;
    if (!other.registers.empty())
      other.registers.pop_back();
    checkSameThreads(from, other, found);
    other.warps.push_back(0);
    checkSameThreads(from, other, found);
  });
  EXPECT_GT(others, 50);
}

TEST(LinearLayout, SameThreadsOfOtherTiles) {
  LinearLayout layout = LinearLayout::blocked({4, 32}, {1, 0}, 2, 1);
  EXPECT_FALSE(layout.sameThreads(layout.transposed({1, 0})));
  EXPECT_FALSE(
      layout.sameThreads(LinearLayout::blocked({12, 32}, {1, 0}, 2, 1)));
}

//===----------------------------------------------------------------------===//
// blocked
//===----------------------------------------------------------------------===//

TEST(LinearLayout, BlockedCoversEverythingInOrder) {
  std::mt19937 random(47);
  for (int i = 0; i < 600; ++i) {
    unsigned rank = random() % 4;
    std::vector<int64_t> shape(rank);
    for (int64_t &extent : shape)
      extent = 1 + random() % (rank == 3 ? 12 : 48);
    std::vector<unsigned> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t vector = 1 << random() % 4, warps = 1 << random() % 4;
    LinearLayout layout = LinearLayout::blocked(shape, order, vector, warps);
    SCOPED_TRACE(layout.str());
    ASSERT_EQ(layout.shape(), shape);
    ASSERT_EQ(layout.warpCount(), warps);
    ASSERT_TRUE(coversAll(layout));
    ASSERT_TRUE(holdsNothingTwice(layout));
    ASSERT_TRUE(layout.isDisjoint());
    for (unsigned d = 0; d < rank; ++d)
      ASSERT_EQ(layout.core[d], powerOfTwoPart(shape[d]));
    if (rank == 0)
      continue;
    int64_t inVector = std::min(vector, layout.core[order[0]]);
    ASSERT_GE(layout.contiguousRegisters(order[0]), inVector);

    // Vector, lane, warp, rest: one count through the core along the order.
    int64_t core = layout.coreElements();
    auto place = [&](int64_t number) {
      Coordinates c(rank);
      for (unsigned d : order) {
        c[d] = number % layout.core[d];
        number /= layout.core[d];
      }
      return c;
    };
    forThreads(layout, [&](int64_t lane, int64_t warp) {
      for (int64_t r = 0; r < int64_t{1} << layout.registers.size(); ++r) {
        int64_t thread = lane + kWarpSize * warp;
        // Where the core ends first, the threads that are left hold copies.
        int64_t threads = std::min(core / inVector, kWarpSize * warps);
        int64_t number = r % inVector + inVector * (thread % threads) +
                         inVector * threads * (r / inVector);
        ASSERT_EQ(layout.coordinates(r, lane, warp), place(number));
      }
    });
  }
}

TEST(LinearLayout, Text) {
  EXPECT_EQ(
      LinearLayout({4}, {3}, {1}, {2, 0, 0, 0, 0}, {}).str(),
      "core = [4], outer = [3], registers = [1], lanes = [2, 0, 0, 0, 0], "
      "warps = []");
}
