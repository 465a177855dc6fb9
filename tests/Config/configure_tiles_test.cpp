//===- configure_tiles_test.cpp - Which schedules a kernel may take ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace nova;
using namespace nova::config;

using Tile = std::vector<int64_t>;

static const target::Device &h200() { return *target::findTarget("h200"); }

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

static MemoryDesc memory(const TileProblem &problem, AxisSet axes, bool written = false, int64_t bytes = 4) {
  MemoryDesc desc{axes, bytes, bytes, written};
  for (unsigned axis : axes)
    desc.bytes *= problem.axes[axis].extent;
  return desc;
}

static ValueDesc value(AxisSet axes, int64_t first, int64_t last) { return {axes, 4, first, last, {}, false, false}; }

/// C = A B, with float32 operands.
static TileProblem product(int64_t m, int64_t n, int64_t k, ProductUnit unit = ProductUnit::Tf32) {
  TileProblem problem;
  problem.axes = {grid(m), grid(n), reduced(k)};
  problem.innermost = {1, 2, 0};
  problem.contractions = {{{0}, {1}, {2}, {}, unit, 4, true, true}};
  problem.memory = {memory(problem, {0, 2}), memory(problem, {2, 1}), memory(problem, {0, 1}, true)};
  ValueDesc sum{{0, 1}, 4, 0, 0, {2}, true, true};
  problem.values = {sum};
  return problem;
}

/// softmax(Q K) V for `pairs` of sequences of `length` with vectors of `depth`.
static TileProblem attention(int64_t pairs, int64_t length, int64_t depth, ProductUnit unit) {
  TileProblem problem;
  problem.axes = {grid(pairs), grid(length), reduced(length), reduced(depth)};
  problem.innermost = {3, 1, 2, 0};
  problem.contractions = {{{1}, {2}, {3}, {0}, unit, 4, true, true}, {{1}, {3}, {2}, {0}, unit, 4, false, true}};
  problem.memory = {memory(problem, {0, 1, 3}), memory(problem, {0, 2, 3}), memory(problem, {0, 2, 3}),
                    memory(problem, {0, 1, 3}, true)};
  ValueDesc scores{{1, 2}, 4, 0, 2, {3}, true, true}, sum{{1, 3}, 4, 3, 3, {2}, true, true};
  problem.values = {scores, value({1, 2}, 1, 3), sum};
  problem.work = {{{0, 1, 2}, 20}};
  return problem;
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
  TileSchedule schedule = configureTiles(problem, h200()).candidates.front();
  EXPECT_EQ(schedule.tile, (Tile{4, 768, 256}));
  EXPECT_EQ(schedule.reason.find("rows that data selects: tile 4 768 256, 4 warps: "), 0u) << schedule.reason;
  // Rows longer than registers hold are cut; positions that are few are seen at
  // once.
  problem.axes = {grid(50257, true), grid(10000), reduced(40)};
  EXPECT_EQ(configureTiles(problem, h200()).candidates.front().tile, (Tile{1, 4096, 48}));
  // Without columns, many rows.
  problem.axes = {grid(50257, true), reduced(1024)};
  problem.innermost = {0, 1};
  EXPECT_EQ(configureTiles(problem, h200()).candidates.front().tile[1], 256);
}

/// The same of sorted updates: a row to each grid point.
TEST(ConfigureTiles, SumsOfSegmentsHaveOneRowToABlock) {
  TileProblem problem;
  problem.axes = {grid(50257), grid(768), reduced(1)};
  problem.axes[0].single = true;
  problem.innermost = {1, 0, 2};
  MemoryDesc updates{{2, 1}, 4, 8192 * 768 * 4, false};
  problem.memory = {updates, memory(problem, {0, 1}, true)};
  TileSchedule schedule = configureTiles(problem, h200()).candidates.front();
  EXPECT_EQ(schedule.tile, (Tile{1, 256, 1}));
  EXPECT_EQ(schedule.reason.find("sums of segments: "), 0u) << schedule.reason;
  EXPECT_EQ(schedule.warps, 1);
  // At least 180 MB at 4.8 TB/s.
  EXPECT_GT(schedule.predictedNs, 37'000);
  EXPECT_LT(schedule.predictedNs, 150'000);
  problem.axes[1].extent = 3;
  schedule = configureTiles(problem, h200()).candidates.front();
  EXPECT_EQ(schedule.tile, (Tile{1, 4, 1}));
  EXPECT_EQ(schedule.warps, 1);
}

TEST(ConfigureTiles, RowsColumnsAndElements) {
  TileProblem problem;
  problem.axes = {grid(1024), reduced(768)};
  problem.innermost = {1, 0};
  problem.memory = {memory(problem, {0, 1}), memory(problem, {0}, true)};
  TileSchedule schedule = configureTiles(problem, h200()).candidates.front();
  EXPECT_EQ(schedule.tile[1], 768);
  EXPECT_EQ(schedule.reason.find("rows of 768: tile "), 0u) << schedule.reason;
  problem.axes = {reduced(4096), grid(768)};
  problem.memory = {memory(problem, {0, 1}), memory(problem, {1}, true)};
  schedule = configureTiles(problem, h200()).candidates.front();
  EXPECT_GT(schedule.tile[0], 1);
  EXPECT_EQ(schedule.reason.find("columns of 4096: tile "), 0u) << schedule.reason;
  problem.axes = {grid(4096), grid(768)};
  problem.memory = {memory(problem, {0, 1}), memory(problem, {0, 1}, true)};
  schedule = configureTiles(problem, h200()).candidates.front();
  EXPECT_EQ(schedule.reason.find("elements: tile "), 0u) << schedule.reason;
}

TEST(ConfigureTiles, AProductGetsLargeTilesWhereTheyFillTheDevice) {
  for (auto [name, side] : {std::pair("a100", 128), std::pair("h200", 192)}) {
    TileSchedule large = configureTiles(product(8192, 8192, 8192), *target::findTarget(name)).candidates.front();
    EXPECT_GE(large.tile[0] * large.tile[1], 128 * side) << name;
    EXPECT_GE(large.stages, 2) << name;
  }
  TileSchedule small = configureTiles(product(512, 512, 512), h200()).candidates.front();
  EXPECT_GT(ceil(512.0 / double(small.tile[0])) * ceil(512.0 / double(small.tile[1])), 32);
  EXPECT_GT(small.predictedNs, 1000);
  EXPECT_LT(small.predictedNs, 50'000);
}

/// Registers decide before ptxas is asked: what multiplies lane by lane has all of
/// its operands' code in a row, and the sums of its tile.
TEST(ConfigureTiles, AttentionByFmaGetsSmallerTilesThanByTensorCores) {
  for (int64_t depth : {16, 64, 128}) {
    TileChoice fma = configureTiles(attention(96, 1024, depth, ProductUnit::Fma), h200());
    TileChoice mma = configureTiles(attention(96, 1024, depth, ProductUnit::Tf32), h200());
    for (const TileSchedule &schedule : fma.candidates) {
      EXPECT_LE(schedule.registers, 255) << schedule.reason;
      EXPECT_LE(predict(attention(96, 1024, depth, ProductUnit::Fma), schedule, h200()).unrolledFmas, 4096);
    }
    const Tile &f = fma.candidates.front().tile, &m = mma.candidates.front().tile;
    EXPECT_LE(f[1] * f[2], m[1] * m[2]);
    EXPECT_FALSE(fma.dropped.empty());
  }
}

TEST(ConfigureTiles, WhatCannotRunIsDroppedWithItsNumbers) {
  TileProblem problem = product(8192, 8192, 8192);
  // Twelve more tiles of the result in registers.
  for (int i = 0; i < 12; ++i)
    problem.values.push_back(value({0, 1}, 0, 0));
  TileChoice choice = configureTiles(problem, h200());
  ASSERT_FALSE(choice.dropped.empty());
  EXPECT_NE(choice.dropped.front().find(" registers a thread, at most "), std::string::npos)
      << choice.dropped.front();
  for (const TileSchedule &schedule : choice.candidates)
    EXPECT_LE(schedule.registers, 255);
}

TEST(ConfigureTiles, CandidatesAreOrderedAndDifferent) {
  TileChoice choice = configureTiles(product(8192, 768, 768), h200());
  ASSERT_GT(choice.candidates.size(), 3u);
  for (size_t i = 0; i < choice.candidates.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const TileSchedule &a = choice.candidates[i], &b = choice.candidates[j];
      EXPECT_FALSE(sameShape(a, b) && a.stages >= b.stages) << describe(a) << " after " << describe(b);
      EXPECT_GE(a.predictedNs, b.predictedNs - b.predictedNs / 16);
    }
  // A last resort needs clearly fewer registers than the first choice.
  EXPECT_LE(choice.candidates.back().registers, choice.candidates.front().registers * 3 / 4);
}

/// Any problem on any device: legal tiles, the same answer twice.
TEST(ConfigureTiles, AnswersAreLegalForAnyProblemAndDevice) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    const auto &rows = target::devices();
    const target::Device &device = rows[random() % rows.size()];
    if (device.kind != target::DeviceKind::Gpu)
      continue;
    TileProblem problem;
    size_t rank = random() % 5;
    for (size_t i = 0; i < rank; ++i) {
      int64_t extent = random() % 4 == 0 ? random() % 3 : random() % 5000;
      problem.axes.push_back(random() % 2 ? grid(extent) : reduced(extent));
      problem.innermost.push_back(i);
    }
    std::shuffle(problem.innermost.begin(), problem.innermost.end(), random);
    if (rank >= 3 && random() % 2)
      problem.contractions = {{{0}, {1}, {2}, {}, ProductUnit(random() % 3), 4, true, random() % 2 == 0}};
    problem.memory = {memory(problem, problem.innermost), memory(problem, problem.innermost, true)};
    problem.values = {value(problem.innermost, 0, 3)};
    TileChoice choice = configureTiles(problem, device), again = configureTiles(problem, device);
    ASSERT_FALSE(choice.candidates.empty());
    ASSERT_EQ(choice.candidates.size(), again.candidates.size());
    for (size_t c = 0; c < choice.candidates.size(); ++c) {
      const TileSchedule &schedule = choice.candidates[c];
      ASSERT_EQ(schedule.reason, again.candidates[c].reason);
      ASSERT_EQ(schedule.tile.size(), rank);
      for (int64_t tile : schedule.tile) {
        int64_t odd = tile >> __builtin_ctzll(tile);
        ASSERT_TRUE(odd == 1 || odd == 3 || odd == 5 || odd == 7) << tile;
      }
      ASSERT_GT(schedule.predictedNs, 0);
      ASSERT_LE(schedule.warps * 32, 1024);
    }
  }
}
