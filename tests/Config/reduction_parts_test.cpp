//===- reduction_parts_test.cpp - When a reduction takes two stages --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Tiles.h"

#include <gtest/gtest.h>

#include <random>

using namespace nova;
using namespace nova::config;

static const target::Device &h200() { return *target::findTarget("h200"); }

/// The parts of a reduction over one loop.
static int64_t partsOf(int64_t outputs, int64_t depth) {
  ReductionDesc desc;
  desc.outputs = outputs, desc.depth = depth;
  return reductionParts(desc, depth, h200());
}

static int64_t partsOfProduct(int64_t rows, int64_t columns, int64_t depth, ProductUnit unit = ProductUnit::Tf32) {
  ReductionDesc desc;
  desc.outputs = rows * columns, desc.depth = depth;
  desc.rows = rows, desc.columns = columns, desc.unit = unit;
  return reductionParts(desc, depth, h200());
}

TEST(ReductionParts, AreADivisorAndFillTheDeviceAtMostTwice) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    ReductionDesc desc;
    desc.outputs = 1 + random() % (random() % 2 ? 100 : 200000);
    int64_t extent = 1 + random() % 5000;
    desc.depth = extent * (1 + random() % 8);
    const auto &rows = target::devices();
    const target::Device &device = rows[random() % rows.size()];
    int64_t parts = reductionParts(desc, extent, device);
    ASSERT_GE(parts, 1);
    if (parts == 1)
      continue;
    EXPECT_EQ(extent % parts, 0);
    EXPECT_GE(parts, 4);
    EXPECT_GE(desc.depth / parts, 32);
    EXPECT_LE(parts * ((desc.outputs + 63) / 64), 2 * device.smCount);
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

/// The weight gradient of a transformer's projection: tiles of 128 x 128 are 36, of
/// a device of 132 multiprocessors.
TEST(ReductionParts, AProductIsCutWhereItIsDeepAndHasFewTiles) {
  EXPECT_GT(partsOfProduct(768, 768, 8192), 1);
  EXPECT_GE(partsOfProduct(128, 128, 8192), partsOfProduct(768, 768, 8192));
  EXPECT_EQ(partsOfProduct(128, 128, 256), 1);
  EXPECT_EQ(partsOfProduct(8192, 8192, 8192), 1);
  EXPECT_EQ(partsOfProduct(50257, 768, 8192), 1);
  // A divisor of the depth, whatever it is.
  for (int64_t depth : {8192, 8000, 3000, 4099})
    EXPECT_EQ(depth % partsOfProduct(256, 256, depth), 0);
}

TEST(ReductionParts, APrimeLoopCannotBeCut) {
  EXPECT_EQ(partsOf(1, 4099), 1);
  EXPECT_EQ(partsOf(1, 2 * 4099), 1);
  EXPECT_EQ(partsOf(1, 5 * 50), 5);
}
