//===- ReductionParts.cpp - When a reduction takes two stages ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <algorithm>

using namespace nova::config;

/// Values that one grid point makes: a few warps' width of columns, or the large
/// tile of a product.
static constexpr int64_t kOutputsPerBlock = 64;
static constexpr int64_t kLargeProduct = 128 * 128;
/// A part is at least this deep: its result is written and read again.
static constexpr int64_t kLeastDepth = 32;
static constexpr int64_t kLeastProductDepth = 1024;
static constexpr int64_t kMostProductParts = 8;
/// Of a value of a part: float32, written and read.
static constexpr double kPartBytes = 8;
/// More parts must save a tenth, or they are not worth their memory.
static constexpr double kWorthwhile = 0.9;

/// A product in parts: whole waves of tiles over the multiprocessors, each part's
/// result written and read again. Parts that are no power of two divide the depth
/// no better than those that are.
static int64_t productParts(const ReductionDesc &desc, int64_t extent, const ReductionLimits &limits) {
  double tile = double(kLargeProduct) * desc.depth * 2 / (limits.productFlops / limits.blocks);
  double move = double(desc.outputs) * kPartBytes / limits.bytesPerSecond;
  int64_t tiles = (desc.outputs + kLargeProduct - 1) / kLargeProduct, best = 1;
  double least = 0;
  for (int64_t parts = 1; parts <= kMostProductParts; parts *= 2) {
    if (extent % parts || desc.depth / parts < kLeastProductDepth)
      break;
    int64_t waves = (tiles * parts + limits.blocks - 1) / limits.blocks;
    double seconds = waves * tile / parts + (parts > 1 ? parts * move : 0);
    if (parts == 1 || seconds < least * kWorthwhile)
      best = parts, least = seconds;
  }
  return best;
}

int64_t nova::config::reductionParts(const ReductionDesc &desc, int64_t extent,
                                     const ReductionLimits &limits) {
  if (desc.sharedLoops > 1)
    return productParts(desc, extent, limits);
  int64_t blocks = (desc.outputs + kOutputsPerBlock - 1) / kOutputsPerBlock;
  if (blocks < 1 || blocks * 2 > limits.blocks)
    return 1;
  int64_t most = std::min(limits.blocks * 2 / blocks, desc.depth / kLeastDepth);
  for (int64_t parts = std::min(most, extent); parts >= 4; --parts)
    if (extent % parts == 0)
      return parts;
  return 1;
}
