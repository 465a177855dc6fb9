//===- reduction_parts_test.cpp - When a reduction takes two stages --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <gtest/gtest.h>

#include <random>

using namespace nova::config;

static constexpr ReductionLimits kLimits{132};

/// The parts of a reduction over one loop.
static int64_t partsOf(int64_t outputs, int64_t depth, int64_t sharedLoops = 0) {
  return reductionParts({outputs, depth, sharedLoops}, depth, kLimits);
}

TEST(ReductionParts, AreADivisorAndFillTheDeviceAtMostTwice) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    ReductionDesc desc;
    desc.outputs = 1 + random() % (random() % 2 ? 100 : 200000);
    int64_t extent = 1 + random() % 5000;
    desc.depth = extent * (1 + random() % 8);
    desc.sharedLoops = random() % 3;
    ReductionLimits limits{int64_t(1 + random() % 200)};
    int64_t parts = reductionParts(desc, extent, limits);
    ASSERT_GE(parts, 1);
    if (parts == 1)
      continue;
    EXPECT_EQ(extent % parts, 0);
    EXPECT_GE(parts, 4);
    bool product = desc.sharedLoops > 1;
    EXPECT_GE(desc.depth / parts, product ? 512 : 32);
    int64_t perBlock = product ? 64 * 64 : 64;
    EXPECT_LE(parts * ((desc.outputs + perBlock - 1) / perBlock), 2 * limits.blocks);
  }
}

TEST(ReductionParts, ALossAndColumnSumsAreCut) {
  EXPECT_EQ(partsOf(1, 1 << 20), 256);
  EXPECT_EQ(partsOf(1, 4096), 128);
  EXPECT_EQ(partsOf(768, 4096), 16); // 12 blocks of columns
}

TEST(ReductionParts, WhatIsShortOrFillsTheDeviceStaysWhole) {
  EXPECT_EQ(partsOf(1, 96), 1);
  EXPECT_EQ(partsOf(1, 128), 4);
  EXPECT_EQ(partsOf(64 * 66, 4096), 4);
  EXPECT_EQ(partsOf(64 * 67, 4096), 1);
  EXPECT_EQ(partsOf(50257, 4096), 1);
  EXPECT_EQ(partsOf(0, 4096), 1);
}

TEST(ReductionParts, AProductIsCutWhereItIsDeepAndHasFewTiles) {
  EXPECT_EQ(partsOf(128 * 128, 8192, 2), 16);
  EXPECT_EQ(partsOf(128 * 128, 1024, 2), 1);
  EXPECT_EQ(partsOf(1024 * 1024, 8192, 2), 1);
  // With one shared loop it is a product with a vector: rows, not tiles.
  EXPECT_EQ(partsOf(128 * 128, 8192, 1), 1);
}

TEST(ReductionParts, APrimeLoopCannotBeCut) {
  EXPECT_EQ(partsOf(1, 4099), 1);
  EXPECT_EQ(partsOf(1, 2 * 4099), 1);
  EXPECT_EQ(partsOf(1, 5 * 50), 5);
}
