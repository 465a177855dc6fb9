//===- ReductionParts.cpp - When a reduction takes two stages ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Tiles.h"

#include <algorithm>

using namespace nova;
using namespace nova::config;

/// Values that one grid point makes: a few warps' width of columns.
static constexpr int64_t kOutputsPerBlock = 64;
/// A part is at least this deep: its result is written and read again.
static constexpr int64_t kLeastDepth = 32;
static constexpr int64_t kLeastProductDepth = 256;
static constexpr int64_t kMostProductParts = 16;
/// Two launches must be better than one by what the model can tell.
static constexpr double kGain = 0.95;

/// As many products of a part of the depth, each.
static TileProblem product(const ReductionDesc &desc, int64_t parts) {
  AxisDesc batch, rows, columns, depth;
  batch.extent = desc.batch * parts, rows.extent = desc.rows, columns.extent = desc.columns;
  depth.extent = desc.depth / parts, depth.local = depth.reduced = true;
  TileProblem problem;
  problem.axes = {batch, rows, columns, depth};
  problem.innermost = {2, 3, 1, 0};
  problem.contractions = {{{1}, {2}, {3}, {0}, desc.unit, desc.elementBytes, true, true}};
  problem.contractions.front().leftDepthInner = desc.leftDepthInner;
  problem.contractions.front().rightDepthInner = desc.rightDepthInner;
  int64_t side = desc.batch * desc.depth * desc.elementBytes;
  constexpr int64_t kSum = 4; // float32
  problem.memory = {{{0, 1, 3}, desc.elementBytes, desc.rows * side, false},
                    {{0, 3, 2}, desc.elementBytes, desc.columns * side, false},
                    {{0, 1, 2}, kSum, batch.extent * desc.rows * desc.columns * kSum, true}};
  problem.values = {{{1, 2}, kSum, 0, 0, {3}, true, true}};
  return problem;
}

/// Adds the parts up.
static TileProblem sum(const ReductionDesc &desc, int64_t parts) {
  AxisDesc outputs, part;
  outputs.extent = desc.outputs;
  part.extent = parts, part.local = part.reduced = true;
  TileProblem problem;
  problem.axes = {outputs, part};
  problem.innermost = {0, 1};
  problem.memory = {{{0, 1}, 4, desc.outputs * parts * 4, false}, {{0}, 4, desc.outputs * 4, true}};
  problem.values = {{{0}, 4, 0, 0, {1}, false, true}};
  return problem;
}

static double best(const TileProblem &problem, const target::Device &device) {
  return double(configureTiles(problem, device).candidates.front().predictedNs);
}

static int64_t productParts(const ReductionDesc &desc, int64_t extent, const target::Device &device) {
  int64_t chosen = 1;
  double time = 0;
  for (int64_t parts = 1; parts <= std::min(extent, kMostProductParts); ++parts) {
    if (extent % parts || (parts > 1 && desc.depth / parts < kLeastProductDepth))
      continue;
    double candidate = best(product(desc, parts), device);
    if (parts == 1)
      time = candidate * kGain;
    else if (candidate += best(sum(desc, parts), device); candidate < time)
      chosen = parts, time = candidate;
  }
  return chosen;
}

int64_t nova::config::reductionParts(const ReductionDesc &desc, int64_t extent, const target::Device &device) {
  if (desc.rows > 1 && desc.columns > 1)
    return productParts(desc, extent, device);
  int64_t blocks = (desc.outputs + kOutputsPerBlock - 1) / kOutputsPerBlock;
  if (blocks < 1 || blocks * 2 > device.smCount)
    return 1;
  int64_t most = std::min(device.smCount * 2 / blocks, desc.depth / kLeastDepth);
  for (int64_t parts = std::min(most, extent); parts >= 4; --parts)
    if (extent % parts == 0)
      return parts;
  return 1;
}
