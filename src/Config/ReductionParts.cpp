//===- ReductionParts.cpp - When a reduction takes two stages ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <algorithm>

using namespace nova::config;

/// Values that one grid point makes: a few warps' width of columns, or the tile
/// of a product.
static constexpr int64_t kOutputsPerBlock = 64;
static constexpr int64_t kProductPerBlock = 64 * 64;
/// A part is at least this deep: its result is written and read again.
static constexpr int64_t kLeastDepth = 32;
static constexpr int64_t kLeastProductDepth = 512;

int64_t nova::config::reductionParts(const ReductionDesc &desc, int64_t extent,
                                     const ReductionLimits &limits) {
  bool product = desc.sharedLoops > 1;
  int64_t perBlock = product ? kProductPerBlock : kOutputsPerBlock;
  int64_t blocks = (desc.outputs + perBlock - 1) / perBlock;
  if (blocks < 1 || blocks * 2 > limits.blocks)
    return 1;
  int64_t least = product ? kLeastProductDepth : kLeastDepth;
  int64_t most = std::min(limits.blocks * 2 / blocks, desc.depth / least);
  for (int64_t parts = std::min(most, extent); parts >= 4; --parts)
    if (extent % parts == 0)
      return parts;
  return 1;
}
