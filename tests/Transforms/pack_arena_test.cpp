//===- pack_arena_test.cpp - Offsets never collide -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/Plan.h"

#include <gtest/gtest.h>

#include <random>

using namespace nova;

TEST(PackArena, NoTwoLiveBuffersOverlapAndTheSizeHoldsAll) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 60; ++i) {
      int64_t first = random() % 40;
      lifetimes.push_back({int64_t(random() % 5000), first, first + int64_t(random() % 10)});
    }
    int64_t size = packArena(lifetimes), peak = peakLiveBytes(lifetimes);
    ASSERT_GE(size, peak);
    for (size_t a = 0; a < lifetimes.size(); ++a) {
      ASSERT_EQ(lifetimes[a].offset % kArenaAlignment, 0);
      ASSERT_LE(lifetimes[a].offset + lifetimes[a].size, size);
      for (size_t b = a + 1; b < lifetimes.size(); ++b) {
        bool together = lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last;
        bool apart = lifetimes[a].offset + lifetimes[a].size <= lifetimes[b].offset ||
                     lifetimes[b].offset + lifetimes[b].size <= lifetimes[a].offset;
        ASSERT_TRUE(!together || apart);
      }
    }
  }
}

TEST(PackArena, ADeadBufferIsReused) {
  std::vector<Lifetime> lifetimes{{1000, 0, 1}, {1000, 2, 3}};
  EXPECT_EQ(packArena(lifetimes), 1024);
  EXPECT_EQ(peakLiveBytes(lifetimes), 1024);
}

TEST(PackArena, NothingNeedsNothing) {
  std::vector<Lifetime> none;
  EXPECT_EQ(packArena(none), 0);
  EXPECT_EQ(peakLiveBytes(none), 0);
}
