//===- ConfigureHost.cpp - Tiles for the CPU -------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Config/Configure.h"

#include <algorithm>
#include <cmath>

using namespace nova::config;

int64_t nova::config::scratchBytes(const KernelDesc &desc, const std::vector<int64_t> &tile) {
  int64_t total = 0;
  for (const ScratchValue &value : desc.scratch) {
    int64_t bytes = value.bytes;
    for (unsigned dim : value.dims)
      bytes *= tile[dim];
    total += (bytes + 63) / 64 * 64;
  }
  return total;
}

static int64_t ceilDiv(int64_t a, int64_t b) { return b ? (a + b - 1) / b : 0; }

static int64_t gridPoints(const KernelDesc &desc, const std::vector<int64_t> &tile) {
  int64_t points = 1;
  for (size_t i = 0; i < tile.size(); ++i)
    points *= ceilDiv(desc.space[i], tile[i]);
  return points;
}

/// The makespan of equal grid points over the cores.
static double inWaves(double pointSeconds, int64_t points, const HostDevice &device) {
  return pointSeconds * double(ceilDiv(points, device.cores));
}

/// The register tile of the micro-kernel that HostCodegen emits (rows of 6,
/// columns of two 8-lane vectors): edges are rounded up to it.
static constexpr int64_t kMicroRows = 6, kMicroColumns = 16;

static Schedule contraction(const KernelDesc &desc, const HostDevice &device) {
  Schedule best;
  size_t rank = desc.space.size();
  for (int64_t rows : {192, 96, 48, 24, 12, 6})
    for (int64_t columns : {256, 128, 64, 32, 16}) {
      std::vector<int64_t> tile(rank, 1);
      int64_t m = tile[rank - 2] = std::clamp<int64_t>(rows, 1, std::max<int64_t>(desc.space[rank - 2], 1));
      int64_t n = tile[rank - 1] = std::clamp<int64_t>(columns, 1, std::max<int64_t>(desc.space[rank - 1], 1));
      int64_t scratch = scratchBytes(desc, tile);
      if (scratch > device.scratchBytes)
        continue;
      double padded = double(ceilDiv(m, kMicroRows) * kMicroRows) * double(ceilDiv(n, kMicroColumns) * kMicroColumns);
      double multiply = 2 * padded * double(desc.depth) / device.flopsPerCore;
      // Packing reads each panel element once, from the shared memory, and
      // writes and re-reads it in cache; the epilogue streams the tile.
      double perCore = device.bytesPerSecond / double(device.cores);
      double packing = 4.0 * double(m + n) * double(desc.depth) / perCore;
      int64_t points = gridPoints(desc, tile);
      double outside = points ? double(desc.bytes) / double(points) / perCore : 0;
      double seconds = inWaves(multiply + packing + outside, points, device);
      if (best.tile.empty() || seconds < best.seconds)
        best = {tile, scratch, seconds,
                "tile " + std::to_string(m) + "x" + std::to_string(n) + ": " + std::to_string(points) +
                    " points over " + std::to_string(device.cores) + " cores, padded work " +
                    std::to_string(int64_t(100 * padded / double(std::max<int64_t>(1, m * n)) + 0.5)) + "%"};
    }
  if (best.tile.empty()) { // nothing fits: the smallest tile needs the least
    best.tile.assign(rank, 1);
    best.scratchBytes = scratchBytes(desc, best.tile);
    best.reason = "scratch of every tile exceeds the budget; smallest taken";
  }
  return best;
}

/// Grow the tile from the last dimension until a grid point has enough work to
/// hide its start and the scratch still fits.
static Schedule streaming(const KernelDesc &desc, const HostDevice &device) {
  // 64 KB of work per point: about 1 us of bandwidth, a hundred times the cost
  // of a grid point's index arithmetic.
  const int64_t enough = std::max<int64_t>(1, (64 << 10) / 4 / std::max<int64_t>(1, desc.localElements));
  Schedule schedule;
  schedule.tile.assign(desc.space.size(), 1);
  int64_t product = 1;
  for (size_t i = desc.space.size(); i-- > 0;) {
    int64_t room = std::max<int64_t>(1, enough / std::max<int64_t>(1, product));
    int64_t tile = std::clamp<int64_t>(desc.space[i], 1, room);
    // Equal parts, in whole vectors: 8193 = 2 x 4104 rather than 8192 + 1.
    int64_t parts = std::max<int64_t>(1, ceilDiv(desc.space[i], tile));
    int64_t even = ceilDiv(desc.space[i], parts);
    if (i + 1 == desc.space.size())
      even = std::min(std::max<int64_t>(desc.space[i], 1), (even + 7) / 8 * 8);
    schedule.tile[i] = std::max<int64_t>(1, even);
    while (schedule.tile[i] > 1 && scratchBytes(desc, schedule.tile) > device.scratchBytes)
      schedule.tile[i] = ceilDiv(schedule.tile[i], 2);
    product *= schedule.tile[i];
    if (schedule.tile[i] < desc.space[i])
      break;
  }
  schedule.scratchBytes = scratchBytes(desc, schedule.tile);
  int64_t points = gridPoints(desc, schedule.tile);
  double point = points ? std::max(double(desc.bytes) / (device.bytesPerSecond / double(device.cores)),
                                   double(desc.flops) / device.flopsPerCore) / double(points)
                        : 0;
  schedule.seconds = inWaves(point, points, device);
  schedule.reason = std::to_string(product * desc.localElements) + " elements a point, " +
                    std::to_string(points) + " points";
  return schedule;
}

Schedule nova::config::configureHost(const KernelDesc &desc, const HostDevice &device) {
  if (desc.kind == KernelClass::Contraction && desc.space.size() >= 2)
    return contraction(desc, device);
  return streaming(desc, device);
}
