//===- ConfigureTiles.cpp - A default schedule of tiles --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <algorithm>

using namespace nova::config;

/// Below this much of a power of two a tile leaves lanes idle.
static constexpr int64_t kSmallestCore = 16;

int64_t nova::config::tileExtent(int64_t extent, int64_t limit) {
  extent = std::min(extent, limit);
  int64_t best = 1;
  while (best < extent)
    best *= 2;
  for (int64_t odd : {3, 5, 7})
    for (int64_t core = kSmallestCore; core * odd < best; core *= 2)
      if (core * odd >= extent)
        best = core * odd;
  return best;
}

namespace {
/// Elements of the largest tile; with 128 threads, 32 a thread.
constexpr int64_t kElements = 4096;
/// Elements where nothing is reduced: enough loads in flight, many blocks.
constexpr int64_t kElementwise = 1024;
/// The longest row that stays in registers.
constexpr int64_t kResident = 8192;
constexpr int64_t kRowChunk = 2048;
/// Positions of updates that are compared with a tile at a time.
constexpr int64_t kPositions = 256;
/// Of products: rows and columns of the result, and depth of a step.
constexpr int64_t kRows = 64, kColumns = 64, kDepth = 32;
/// The same where the result has tiles of that size for every multiprocessor and
/// little is computed around the product: twice the work for each byte read.
constexpr int64_t kLargeSide = 128, kLargeWarps = 8;
/// Operands and results of a kernel around whose product little is computed.
constexpr int64_t kFewTensors = 12;
/// So many products in one kernel (an attention's gradients) have as many results
/// alive in registers: what they share is taken in shorter chunks.
constexpr size_t kManyProducts = 3;
constexpr int64_t kManyChunk = 32;
/// A depth up to this is taken at once where the operand serves two products.
constexpr int64_t kSharedDepth = 128;
constexpr size_t kTileRank = 3;

int64_t widest(const TileProblem &problem, const std::vector<unsigned> &axes) {
  int64_t best = -1;
  for (unsigned axis : axes)
    if (best < 0 || problem.axes[axis].extent > problem.axes[best].extent)
      best = axis;
  return best;
}

void products(const TileProblem &problem, TileSchedule &schedule) {
  bool several = problem.contractions.size() > 1;
  auto grow = [&](int64_t axis, int64_t limit) {
    if (axis >= 0)
      schedule.tile[axis] = std::max(schedule.tile[axis], tileExtent(problem.axes[axis].extent, limit));
  };
  bool large = false;
  if (!several && problem.tensors <= kFewTensors) {
    const ContractionDesc &contraction = problem.contractions.front();
    int64_t m = widest(problem, contraction.m), n = widest(problem, contraction.n);
    int64_t tiles = 1;
    for (int64_t i = 0; i < (int64_t)problem.axes.size(); ++i)
      if (!problem.axes[i].local)
        tiles *= i == m || i == n ? (problem.axes[i].extent + kLargeSide - 1) / kLargeSide : problem.axes[i].extent;
    large = m >= 0 && n >= 0 && problem.axes[m].extent >= kLargeSide && problem.axes[n].extent >= kLargeSide &&
            tiles >= problem.multiprocessors;
  }
  if (large)
    schedule.warps = kLargeWarps;
  int64_t chunk = problem.contractions.size() < kManyProducts ? kRows : kManyChunk;
  for (const ContractionDesc &contraction : problem.contractions) {
    for (auto [axes, limit] : {std::pair(&contraction.m, large ? kLargeSide : kRows),
                               std::pair(&contraction.n, large ? kLargeSide : kColumns)}) {
      int64_t axis = widest(problem, *axes);
      if (axis >= 0 && problem.axes[axis].local)
        grow(axis, problem.axes[axis].extent <= kSharedDepth ? kSharedDepth : std::min(limit, chunk));
      else
        grow(axis, limit);
    }
    int64_t depth = widest(problem, contraction.k);
    if (depth >= 0)
      grow(depth, !several ? kDepth : problem.axes[depth].extent <= kSharedDepth ? kSharedDepth : chunk);
  }
  schedule.reason = "products of tiles";
}

/// Rows that are reduced along the contiguous axis: as many as fit.
/// Columns that are: some of them, and a chunk of the long axis.
void rows(const TileProblem &problem, TileSchedule &schedule) {
  std::vector<unsigned> reduced;
  for (unsigned i = 0; i < problem.axes.size(); ++i)
    if (problem.axes[i].local)
      reduced.push_back(i);
  int64_t along = widest(problem, reduced);
  int64_t inner = problem.innermost.empty() ? along : problem.innermost.front();
  int64_t elements = 1;
  if (problem.axes[inner].local) {
    int64_t extent = problem.axes[inner].extent;
    schedule.tile[inner] = elements = tileExtent(extent, extent <= kResident ? kResident : kRowChunk);
    schedule.reason = "rows of " + std::to_string(extent);
  } else {
    schedule.tile[inner] = elements = tileExtent(problem.axes[inner].extent, 32);
    schedule.tile[along] = tileExtent(problem.axes[along].extent, 128);
    elements *= schedule.tile[along];
    schedule.reason = "columns of " + std::to_string(problem.axes[along].extent);
  }
  size_t rank = 0;
  for (int64_t tile : schedule.tile)
    rank += tile > 1;
  // More rows to a block while the tile has room, the innermost first.
  for (unsigned axis : problem.innermost) {
    int64_t room = kElements / elements;
    if (schedule.tile[axis] > 1 || room < 2 || rank == kTileRank)
      continue;
    int64_t limit = 1;
    while (limit * 2 <= std::min<int64_t>(room, problem.axes[axis].local ? kElements : 16))
      limit *= 2;
    schedule.tile[axis] = tileExtent(problem.axes[axis].extent, limit);
    elements *= schedule.tile[axis];
    rank += schedule.tile[axis] > 1;
  }
}

/// Sums of what data selects: positions are looked at one by one, so that a tile
/// of the result is as large as registers allow, and whole rows before many.
void selections(const TileProblem &problem, TileSchedule &schedule) {
  int64_t room = kElements;
  for (bool selected : {false, true})
    for (unsigned axis : problem.innermost) {
      if (problem.axes[axis].local || problem.axes[axis].selected != selected || room < 2)
        continue;
      int64_t limit = 1;
      while (limit * 2 <= room)
        limit *= 2;
      schedule.tile[axis] = tileExtent(problem.axes[axis].extent, limit);
      room /= schedule.tile[axis];
    }
  // Positions are compared a chunk at a time.
  for (unsigned axis = 0; axis < problem.axes.size(); ++axis)
    if (problem.axes[axis].local && problem.axes[axis].reduced)
      schedule.tile[axis] = tileExtent(problem.axes[axis].extent, kPositions);
  schedule.reason = "rows that data selects";
}

void elements(const TileProblem &problem, TileSchedule &schedule) {
  int64_t room = kElementwise;
  size_t rank = 0;
  for (unsigned axis : problem.innermost) {
    if (room < 2 || rank == kTileRank)
      break;
    int64_t limit = 1;
    while (limit * 2 <= room)
      limit *= 2;
    int64_t tile = tileExtent(problem.axes[axis].extent, limit);
    schedule.tile[axis] = tile;
    room /= tile;
    rank += tile > 1;
  }
  schedule.reason = "elements";
}
} // namespace

TileSchedule nova::config::configureTiles(const TileProblem &problem) {
  TileSchedule schedule;
  schedule.tile.assign(problem.axes.size(), 1);
  bool local = std::any_of(problem.axes.begin(), problem.axes.end(), [](const AxisDesc &axis) { return axis.local; });
  bool selected = std::any_of(problem.axes.begin(), problem.axes.end(),
                              [](const AxisDesc &axis) { return axis.selected; });
  if (selected && problem.contractions.empty())
    selections(problem, schedule);
  else if (!problem.contractions.empty())
    products(problem, schedule);
  else if (local)
    rows(problem, schedule);
  else
    elements(problem, schedule);
  schedule.reason += ": tile";
  for (int64_t tile : schedule.tile)
    schedule.reason += " " + std::to_string(tile);
  return schedule;
}
