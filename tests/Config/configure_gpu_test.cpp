//===- configure_gpu_test.cpp - Tiles for GPUs ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <gtest/gtest.h>

#include <random>

using namespace nova;
using namespace nova::config;

TEST(ConfigureGpu, TilesAreLegalForAnySpaceAndDevice) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    const auto &rows = target::devices();
    const target::Device &device = rows[random() % rows.size()];
    if (device.kind != target::DeviceKind::Gpu)
      continue;
    KernelDesc desc;
    desc.kind = KernelClass(random() % 3);
    size_t rank = random() % 5;
    for (size_t i = 0; i < rank; ++i)
      desc.space.push_back(random() % 4 == 0 ? random() % 3 : random() % 5000);
    desc.localElements = 1 + random() % 60000;
    desc.depth = random() % 4000;
    desc.bytes = random();
    Schedule schedule = configureGpu(desc, device);
    ASSERT_EQ(schedule.tile.size(), rank);
    for (size_t i = 0; i < rank; ++i) {
      ASSERT_GE(schedule.tile[i], 1);
      ASSERT_LE(schedule.tile[i], std::max<int64_t>(desc.space[i], 1));
    }
    ASSERT_FALSE(schedule.reason.empty());
    ASSERT_EQ(schedule.tile, configureGpu(desc, device).tile);
  }
}

TEST(ConfigureGpu, ALargeProductGetsLargeTilesAndASmallOneEnoughBlocks) {
  const target::Device &device = *target::findTarget("h200");
  KernelDesc desc;
  desc.kind = KernelClass::Contraction;
  desc.space = {8192, 8192};
  desc.depth = 8192;
  std::vector<int64_t> tile = configureGpu(desc, device).tile;
  EXPECT_GE(tile[0] * tile[1], 64 * 64);
  desc.space = {256, 256};
  tile = configureGpu(desc, device).tile;
  EXPECT_GE(256 / tile[0] * (256 / tile[1]), 64);
}
