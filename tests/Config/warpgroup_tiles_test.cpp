//===- warpgroup_tiles_test.cpp - Schedules for TMA and wgmma -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

using namespace nova;
using namespace nova::config;

static const target::Device &device(const char *name) { return *target::findTarget(name); }

/// C = A B.
static TileProblem product(int64_t m, int64_t n, int64_t k, ProductUnit unit = ProductUnit::Tf32) {
  TileProblem problem;
  AxisDesc rows, columns, depth;
  rows.extent = m, columns.extent = n, depth.extent = k;
  depth.local = depth.reduced = true;
  problem.axes = {rows, columns, depth};
  problem.innermost = {1, 2, 0};
  ContractionDesc desc{{0}, {1}, {2}, {}, unit};
  desc.elementBytes = unit == ProductUnit::Half ? 2 : 4;
  problem.contractions = {desc};
  problem.memory = {{{0, 2}, 4, m * k * 4, false}, {{2, 1}, 4, n * k * 4, false}, {{0, 1}, 4, m * n * 4, true}};
  problem.values = {{{0, 1}, 4, 0, 0, {2}, true, true}};
  return problem;
}

static std::vector<TileSchedule> ofHopper(const TileChoice &choice) {
  std::vector<TileSchedule> found;
  std::copy_if(choice.candidates.begin(), choice.candidates.end(), std::back_inserter(found),
               [](const TileSchedule &schedule) { return schedule.family == Family::Hopper; });
  return found;
}

TEST(WarpgroupTiles, OnlyWhereTheDeviceHasThem) {
  TileProblem problem = product(4096, 4096, 4096);
  EXPECT_EQ(configureTiles(problem, device("h200")).candidates.front().family, Family::Hopper);
  for (const char *other : {"a100-80g", "sm_80", "sm_86", "sm_89", "sm_100a", "sm_120a"})
    if (target::findTarget(other)) {
      EXPECT_TRUE(ofHopper(configureTiles(problem, device(other))).empty()) << other;
    }
}

TEST(WarpgroupTiles, OnlyForTensorCores) {
  EXPECT_TRUE(ofHopper(configureTiles(product(4096, 4096, 4096, ProductUnit::Fma), device("h200"))).empty());
}

TEST(WarpgroupTiles, AStepIsAPanelDeep) {
  for (auto [unit, depth] : {std::pair(ProductUnit::Tf32, 32), std::pair(ProductUnit::Half, 64)}) {
    auto found = ofHopper(configureTiles(product(4096, 4096, 4096, unit), device("h200")));
    ASSERT_FALSE(found.empty());
    for (const TileSchedule &schedule : found)
      EXPECT_EQ(schedule.tile[2], depth) << describe(schedule);
  }
}

TEST(WarpgroupTiles, SmallProductsHaveNoWarpgroups) {
  // 32 rows and columns hold no instruction; a depth of 16 no panel.
  EXPECT_TRUE(ofHopper(configureTiles(product(32, 32, 4096), device("h200"))).empty());
  EXPECT_TRUE(ofHopper(configureTiles(product(4096, 4096, 16), device("h200"))).empty());
}

TEST(WarpgroupTiles, TheBlockFitsIntoTheMultiprocessor) {
  for (int64_t m : {64, 200, 1024, 8192})
    for (int64_t n : {64, 768, 50304})
      for (bool outside : {false, true}) {
        TileProblem problem = product(m, n, 768);
        problem.contractions[0].leftDepthInner = problem.contractions[0].rightDepthInner = !outside;
        for (const TileSchedule &schedule : ofHopper(configureTiles(problem, device("h200")))) {
          SCOPED_TRACE(describe(schedule));
          EXPECT_LE((schedule.sharedBytes + 1024) * schedule.residentBlocks, device("h200").sharedBytesPerSm);
          // Roles: one that copies, and one that turns an operand.
          int64_t threads = schedule.warps * 32 + 128 * (1 + outside);
          EXPECT_LE(threads * schedule.residentBlocks, device("h200").threadsPerSm);
          EXPECT_LE(schedule.registers * schedule.warps * 32 * schedule.residentBlocks,
                    device("h200").registersPerSm);
        }
      }
}

TEST(WarpgroupTiles, AnOperandThatIsTurnedTakesSharedMemory) {
  TileProblem inside = product(4096, 4096, 4096), outside = inside;
  outside.contractions[0].leftDepthInner = outside.contractions[0].rightDepthInner = false;
  TileSchedule schedule;
  schedule.tile = {128, 128, 32};
  schedule.warps = 8, schedule.stages = 3, schedule.family = Family::Hopper;
  int64_t tile = 128 * 32 * 4;
  EXPECT_EQ(predict(outside, schedule, device("h200")).sharedBytes,
            predict(inside, schedule, device("h200")).sharedBytes + 2 * tile);
  EXPECT_GT(predict(outside, schedule, device("h200")).seconds, predict(inside, schedule, device("h200")).seconds);
}

TEST(WarpgroupTiles, LargeProductsTakeLargeTilesAndStay) {
  for (ProductUnit unit : {ProductUnit::Tf32, ProductUnit::Half}) {
    TileSchedule schedule = configureTiles(product(8192, 8192, 8192, unit), device("h200")).candidates.front();
    EXPECT_GE(schedule.tile[0] * schedule.tile[1], 128 * 192) << describe(schedule);
    EXPECT_EQ(schedule.teams * schedule.warps, 8) << describe(schedule);
    EXPECT_EQ(schedule.persistentBlocks, device("h200").smCount) << describe(schedule);
  }
}

/// What follows the products counts for more the fewer steps there are: teams hide it.
TEST(WarpgroupTiles, ShortDepthsAreForTeams) {
  for (ProductUnit unit : {ProductUnit::Tf32, ProductUnit::Half}) {
    TileSchedule schedule = configureTiles(product(16384, 50304, 768, unit), device("h200")).candidates.front();
    EXPECT_EQ(schedule.teams, 2) << describe(schedule);
    EXPECT_EQ(schedule.warps, 4) << describe(schedule);
  }
}

/// Blocks that have one tile each do not stay, and have no teams.
TEST(WarpgroupTiles, FewTilesAreABlockEach) {
  for (const TileSchedule &schedule : ofHopper(configureTiles(product(1024, 1024, 4096), device("h200")))) {
    int64_t tiles = (1024 + schedule.tile[0] - 1) / schedule.tile[0] * ((1024 + schedule.tile[1] - 1) / schedule.tile[1]);
    if (tiles <= device("h200").smCount) {
      EXPECT_EQ(schedule.persistentBlocks, 0) << describe(schedule);
      EXPECT_EQ(schedule.teams, 1) << describe(schedule);
    }
  }
}

/// What runs at once lies in a square of elements: bands of rows, of one height if that
/// is near.
TEST(WarpgroupTiles, TilesAreGoneThroughInBands) {
  for (auto [m, n, k] : {std::tuple(16384, 50304, 768), std::tuple(50304, 768, 8192), std::tuple(4096, 4096, 4096)})
    for (const TileSchedule &schedule : ofHopper(configureTiles(product(m, n, k), device("h200")))) {
      int64_t rows = (m + schedule.tile[0] - 1) / schedule.tile[0], columns = (n + schedule.tile[1] - 1) / schedule.tile[1];
      EXPECT_GE(schedule.rasterRows, 1) << describe(schedule);
      EXPECT_LE(schedule.rasterRows, rows) << describe(schedule);
      if (rows > 64 && columns > 64) {
        int64_t height = schedule.rasterRows * schedule.tile[0], width = 132 / schedule.rasterRows * schedule.tile[1];
        EXPECT_LE(height, 4 * width) << describe(schedule);
        EXPECT_LE(width, 4 * height) << describe(schedule);
      }
    }
}
