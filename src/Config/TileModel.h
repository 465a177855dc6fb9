//===- TileModel.h - The time of a tile program on a GPU -------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_CONFIG_TILEMODEL_H
#define NOVA_SRC_CONFIG_TILEMODEL_H

#include "nova/Config/Tiles.h"

namespace nova::config {

/// A product's tile and the part of it that one warp has.
struct Fragment {
  ProductUnit unit = ProductUnit::Fma;
  int64_t m = 1, n = 1, k = 1;
  int64_t warpRows = 1, warpColumns = 1;
  int64_t accumulators = 1; ///< Of a thread.
};

/// Seconds that one block needs of each resource of its multiprocessor.
struct Demand {
  double products = 0, arithmetic = 0, shared = 0, l2 = 0;
};

/// Shared memory of a multiprocessor moves this in a clock: 32 banks of 4 bytes (CUDA
/// C++ Programming Guide, "Shared Memory").
inline constexpr double kSharedBytesPerClock = 128;
inline constexpr int64_t kRegisterGranule = 8;
/// Registers of a left operand of wgmma, one step of 128 bytes.
inline constexpr int64_t kLeftOperand = 16;

/// Shared memory that the driver takes for itself, for each block.
inline constexpr int64_t kReservedSharedBytes = 1024;

/// Registers that a thread which multiplies has in a schedule for warpgroups: what
/// roles of their own leave (src/TileLowering/Channels.cpp divides them).
int64_t warpgroupRegisters(const TileProblem &problem, const TileSchedule &schedule, const target::Device &device);

/// Rows of tiles of a lone product that are best gone through together: see
/// TileSchedule::rasterRows.
int64_t rasterRows(const TileProblem &problem, const TileSchedule &schedule, const target::Device &device);

class TileModel {
public:
  TileModel(const TileProblem &problem, const TileSchedule &schedule, const target::Device &device);
  Prediction predict() const;

private:
  int64_t chunks(unsigned axis) const;
  /// Taken in chunks, by a loop.
  bool streamed(unsigned axis) const;
  int64_t tileElements(const AxisSet &axes) const;
  /// Points along `axes` of one block; padded: as many as it computes.
  double volume(const AxisSet &axes, bool padded) const;
  Fragment fragment(const ContractionDesc &contraction) const;
  /// Of one multiprocessor, in FLOP/s.
  double productRate(ProductUnit unit) const;
  void addProducts(Demand &demand) const;
  void addWarpgroupProduct(const ContractionDesc &contraction, Demand &demand) const;
  int64_t warpgroupSharedBytes() const;
  int64_t warpgroupProductRegisters() const;
  int64_t registers() const;
  int64_t sharedBytes() const;
  int64_t unrolledFmas() const;
  int64_t unrolledOperations() const;
  int64_t blocks() const;
  int64_t resident(int64_t registers, int64_t sharedBytes) const;
  int64_t steps() const;
  double warpgroupSeconds(const Demand &demand, int64_t count, Prediction &p) const;
  double dramBytes(int64_t blocks, int64_t resident) const;

  const TileProblem &problem;
  const TileSchedule &schedule;
  const target::Device &device;
  int64_t threads;
  double clock; ///< Hertz: of the table's rate for float32.
};

} // namespace nova::config

#endif // NOVA_SRC_CONFIG_TILEMODEL_H
