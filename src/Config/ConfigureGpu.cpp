//===- ConfigureGpu.cpp - Tiles for GPUs ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <algorithm>

using namespace nova;
using namespace nova::config;

static int64_t ceilDiv(int64_t a, int64_t b) { return b ? (a + b - 1) / b : 0; }

static int64_t gridPoints(const KernelDesc &desc,
                          const std::vector<int64_t> &tile) {
  int64_t points = 1;
  for (size_t i = 0; i < tile.size(); ++i)
    points *= ceilDiv(desc.space[i], tile[i]);
  return points;
}

/// Blocks run in waves of one per multiprocessor, each wave as long as a whole
/// tile takes, edges included.
static Schedule contraction(const KernelDesc &desc,
                            const target::Device &device) {
  Schedule best;
  size_t rank = desc.space.size();
  double flopsPerSm = device.flops.f32 / double(device.smCount);
  double bytesPerSm = device.dramBytesPerSecond / double(device.smCount);
  for (int64_t m : {128, 64, 32, 16})
    for (int64_t n : {128, 64, 32, 16}) {
      std::vector<int64_t> tile(rank, 1);
      tile[rank - 2] =
          std::clamp<int64_t>(m, 1, std::max<int64_t>(desc.space[rank - 2], 1));
      tile[rank - 1] =
          std::clamp<int64_t>(n, 1, std::max<int64_t>(desc.space[rank - 1], 1));
      int64_t points = gridPoints(desc, tile);
      double multiply = 2.0 * double(m) * double(n) * double(desc.depth);
      double load = 4.0 * double(m + n) * double(desc.depth);
      double seconds = std::max(multiply / flopsPerSm, load / bytesPerSm) *
                       double(ceilDiv(points, device.smCount));
      if (best.tile.empty() || seconds < best.seconds)
        best = {tile, 0, seconds,
                "tile " + std::to_string(tile[rank - 2]) + "x" +
                    std::to_string(tile[rank - 1]) + ": " +
                    std::to_string(points) + " blocks over " +
                    std::to_string(device.smCount) + " SMs"};
    }
  return best;
}

/// Grows the tile from the last dimension until a block has enough to do, less
/// where the space would not fill the device.
static Schedule streaming(const KernelDesc &desc,
                          const target::Device &device) {
  // Eight float32 for each of 256 threads: two 16-byte accesses in flight.
  constexpr int64_t kEnough = 2048;
  int64_t positions = 1;
  for (int64_t extent : desc.space)
    positions *= std::max<int64_t>(extent, 1);
  int64_t local = std::max<int64_t>(1, desc.localElements);
  int64_t enough = std::max<int64_t>(
      1, std::min(kEnough / local, positions / device.smCount));
  Schedule schedule;
  schedule.tile.assign(desc.space.size(), 1);
  int64_t product = 1;
  for (size_t i = desc.space.size(); i-- > 0;) {
    schedule.tile[i] = std::clamp<int64_t>(
        desc.space[i], 1, std::max<int64_t>(1, enough / product));
    product *= schedule.tile[i];
    if (schedule.tile[i] < desc.space[i])
      break;
  }
  schedule.seconds = std::max(double(desc.bytes) / device.dramBytesPerSecond,
                              double(desc.flops) / device.flops.f32);
  schedule.reason = std::to_string(product * local) + " elements a block, " +
                    std::to_string(gridPoints(desc, schedule.tile)) +
                    " blocks over " + std::to_string(device.smCount) + " SMs";
  return schedule;
}

Schedule config::configureGpu(const KernelDesc &desc,
                              const target::Device &device) {
  if (desc.kind == KernelClass::Contraction && desc.space.size() >= 2)
    return contraction(desc, device);
  return streaming(desc, device);
}
