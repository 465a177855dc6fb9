//===- configure_host_test.cpp - Tiles for the CPU -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <gtest/gtest.h>

#include <random>

using namespace nova::config;

static KernelDesc product(std::vector<int64_t> space, int64_t depth) {
  KernelDesc desc;
  desc.kind = KernelClass::Contraction;
  desc.space = space;
  desc.depth = depth;
  int64_t m = space[space.size() - 2], n = space.back();
  desc.flops = 2 * m * n * depth;
  desc.bytes = 4 * (m * depth + n * depth + m * n);
  desc.scratch.push_back({4, {unsigned(space.size() - 2), unsigned(space.size() - 1)}});
  return desc;
}

TEST(ConfigureHost, TilesAreLegalForAnySpace) {
  std::mt19937 random(3);
  HostDevice device;
  for (int round = 0; round < 2000; ++round) {
    KernelDesc desc;
    desc.kind = KernelClass(random() % 3);
    size_t rank = random() % 5;
    for (size_t i = 0; i < rank; ++i)
      desc.space.push_back(random() % 4 == 0 ? random() % 3 : random() % 5000);
    desc.localElements = 1 + random() % 60000;
    desc.depth = random() % 4000;
    desc.bytes = random();
    desc.scratch.push_back({4 * desc.localElements, {}});
    if (rank)
      desc.scratch.push_back({64, {unsigned(rank - 1)}});
    Schedule schedule = configureHost(desc, device);
    ASSERT_EQ(schedule.tile.size(), rank);
    for (size_t i = 0; i < rank; ++i) {
      ASSERT_GE(schedule.tile[i], 1);
      ASSERT_LE(schedule.tile[i], std::max<int64_t>(desc.space[i], 1));
    }
    ASSERT_EQ(schedule.scratchBytes, scratchBytes(desc, schedule.tile));
    ASSERT_FALSE(schedule.reason.empty());
    Schedule again = configureHost(desc, device);
    ASSERT_EQ(schedule.tile, again.tile);
  }
}

TEST(ConfigureHost, ScratchStaysInTheBudgetWhereATileCanShrinkIntoIt) {
  HostDevice device;
  KernelDesc desc;
  desc.kind = KernelClass::Rows;
  desc.space = {8192};
  desc.localElements = 50304;
  desc.scratch = {{4 * 50304, {0}}, {4 * 50304, {0}}};
  Schedule schedule = configureHost(desc, device);
  EXPECT_LE(schedule.scratchBytes, device.scratchBytes);
}

TEST(ConfigureHost, SmallProductsAreCutSoThatEveryCoreHasWork) {
  HostDevice device;
  Schedule schedule = configureHost(product({120, 192}, 48), device);
  int64_t points = (120 + schedule.tile[0] - 1) / schedule.tile[0] * ((192 + schedule.tile[1] - 1) / schedule.tile[1]);
  EXPECT_GE(points, device.cores);
}

TEST(ConfigureHost, LargeProductsTakeLargeTiles) {
  Schedule schedule = configureHost(product({8192, 3072}, 768), HostDevice());
  EXPECT_GE(schedule.tile[0] * schedule.tile[1], 96 * 128);
  EXPECT_NE(schedule.reason.find("points over 8 cores"), std::string::npos);
}

TEST(ConfigureHost, LongLoopsAreCutIntoEqualVectors) {
  KernelDesc desc;
  desc.space = {1 << 20};
  Schedule schedule = configureHost(desc, HostDevice());
  EXPECT_EQ(schedule.tile[0] % 8, 0);
  EXPECT_EQ((1 << 20) % schedule.tile[0], 0);
}
