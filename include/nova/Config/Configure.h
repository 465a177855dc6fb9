//===- Configure.h - Schedules derived from the problem and the device -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pure library: no MLIR, no globals. In: what a kernel asks for, and a
// device. Out: the tile of its parallel space, the predicted time, and why.
// Candidates are enumerated, illegal ones dropped with a reason, the rest scored
// on a model; ties go to the first enumerated. The same input gives the same
// schedule on every machine. GPUs: nova/Config/Tiles.h.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_CONFIG_CONFIGURE_H
#define NOVA_CONFIG_CONFIGURE_H

#include "nova/Target/Target.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nova::config {

/// The CPU a `host` schedule is made for.
struct HostDevice {
  std::string name = "x86-64-v3";
  /// Cores that share a step. Schedules may not depend on the machine that
  /// compiles, so this is a typical server slice, not what is present.
  int64_t cores = 8;
  /// Single precision: 2 FMA units of 8 lanes at 3 GHz.
  double flopsPerCore = 96e9;
  /// Sustained memory bandwidth of the whole device, bytes per second.
  double bytesPerSecond = 100e9;
  /// Second-level cache of one core (Intel Xeon, since Ice Lake: 1.25 to 2 MB).
  int64_t cacheBytes = 1 << 20;
  /// Stack that one grid point may use for values inside a kernel.
  int64_t scratchBytes = 1 << 20;
};

/// A value that lives in scratch memory while a grid point runs: `bytes` for
/// its local part, times the tile along each of `dims` (space dimensions).
struct ScratchValue {
  int64_t bytes = 0;
  std::vector<unsigned> dims;
};

enum class KernelClass { Contraction, Rows, Elements };

/// What a kernel asks for.
struct KernelDesc {
  KernelClass kind = KernelClass::Elements;
  /// Extents of the parallel space. A contraction's last two are M and N.
  std::vector<int64_t> space;
  /// Elements that one position of the space computes (a row's length).
  int64_t localElements = 1;
  /// Contractions: length of the summed dimension.
  int64_t depth = 0;
  int64_t flops = 0; ///< Whole kernel.
  int64_t bytes = 0; ///< Whole kernel: arguments and results, each once.
  std::vector<ScratchValue> scratch;
};

struct Schedule {
  std::vector<int64_t> tile; ///< One entry per space dimension, each >= 1.
  int64_t scratchBytes = 0;
  double seconds = 0;
  std::string reason; ///< One line for people.
};

int64_t scratchBytes(const KernelDesc &desc, const std::vector<int64_t> &tile);
Schedule configureHost(const KernelDesc &desc, const HostDevice &device);

} // namespace nova::config

#endif // NOVA_CONFIG_CONFIGURE_H
