//===- configure_tiles_test.cpp - Which tile a kernel's axes get ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <gtest/gtest.h>

using namespace nova::config;

using Tile = std::vector<int64_t>;

static AxisDesc grid(int64_t extent, bool selected = false) {
  AxisDesc axis;
  axis.extent = extent;
  axis.selected = selected;
  return axis;
}
static AxisDesc reduced(int64_t extent) {
  AxisDesc axis;
  axis.extent = extent;
  axis.local = axis.reduced = true;
  return axis;
}

TEST(ConfigureTiles, ExtentsAreWhatLayoutsCanExpress) {
  EXPECT_EQ(tileExtent(1, 64), 1);
  EXPECT_EQ(tileExtent(5, 64), 8);
  EXPECT_EQ(tileExtent(48, 64), 48);
  EXPECT_EQ(tileExtent(100, 64), 64);
  EXPECT_EQ(tileExtent(768, 8192), 768);
  EXPECT_EQ(tileExtent(100, 128), 112);
}

/// An embedding's gradient: rows that data selects, by the columns of the table,
/// summed over positions.
TEST(ConfigureTiles, RowsThatDataSelectsAreTakenWholeBeforeMany) {
  TileProblem problem;
  problem.axes = {grid(50257, true), grid(768), reduced(1024)};
  problem.innermost = {1, 0, 2};
  TileSchedule schedule = configureTiles(problem);
  EXPECT_EQ(schedule.tile, (Tile{4, 768, 256}));
  EXPECT_EQ(schedule.reason, "rows that data selects: tile 4 768 256");
  // Rows longer than registers hold are cut; positions that are few are seen at
  // once.
  problem.axes = {grid(50257, true), grid(10000), reduced(40)};
  EXPECT_EQ(configureTiles(problem).tile, (Tile{1, 4096, 48}));
  // Without columns, many rows.
  problem.axes = {grid(50257, true), reduced(1024)};
  problem.innermost = {0, 1};
  EXPECT_EQ(configureTiles(problem).tile, (Tile{4096, 256}));
}

TEST(ConfigureTiles, RowsColumnsAndElements) {
  TileProblem problem;
  problem.axes = {grid(1024), reduced(768)};
  problem.innermost = {1, 0};
  TileSchedule schedule = configureTiles(problem);
  EXPECT_EQ(schedule.tile[1], 768);
  EXPECT_EQ(schedule.reason.find("rows of 768: tile "), 0u) << schedule.reason;
  problem.axes = {reduced(4096), grid(768)};
  schedule = configureTiles(problem);
  EXPECT_EQ(schedule.tile, (Tile{128, 32}));
  EXPECT_EQ(schedule.reason, "columns of 4096: tile 128 32");
  problem.axes = {grid(4096), grid(768)};
  EXPECT_EQ(configureTiles(problem).tile[1], 768);
  EXPECT_EQ(configureTiles(problem).reason.find("elements: tile "), 0u);
}

TEST(ConfigureTiles, AProductGetsLargeTilesWhereTheyFillTheDevice) {
  TileProblem problem;
  problem.axes = {grid(8192), grid(8192), reduced(8192)};
  problem.contractions = {{{0}, {1}, {2}}};
  problem.innermost = {1, 2, 0};
  problem.tensors = 3;
  EXPECT_EQ(configureTiles(problem).tile, (Tile{128, 128, 32}));
  EXPECT_EQ(configureTiles(problem).warps, 8);
  problem.axes[0].extent = 512;
  problem.axes[1].extent = 512;
  EXPECT_EQ(configureTiles(problem).tile, (Tile{64, 64, 32}));
  EXPECT_EQ(configureTiles(problem).warps, 4);
}
