//===- Target.h - The devices novac knows ---------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of plain data. A target named on the command line is a device
// ("h200"), an architecture ("sm_90a", which stands for its canonical device),
// or "host". Nothing here asks the machine it runs on.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TARGET_TARGET_H
#define NOVA_TARGET_TARGET_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nova::target {

enum class DeviceKind : uint8_t { Gpu, Cpu };

/// Peak dense rates, in floating-point operations per second (a fused
/// multiply-add is two), products accumulated in float32. 0: no such unit.
struct Throughput {
  double f32 = 0;  ///< Ordinary lanes.
  double tf32 = 0; ///< Tensor units, as all that follow.
  double bf16 = 0;
  double f16 = 0;
  double f8 = 0;
};

struct Device {
  std::string_view name;    ///< "h200"; for the CPU its instruction set.
  std::string_view product; ///< As its maker calls it.
  DeviceKind kind = DeviceKind::Gpu;
  std::string_view arch; ///< "sm_90a"; "host" for the CPU.
  /// The device its architecture stands for.
  bool canonical = false;
  int64_t smCount = 0; ///< Multiprocessors; cores of a CPU.
  int64_t lanesPerSm = 0; ///< Multiply-adds of float32 a clock.
  /// What mma.sync reaches of the tensor units' rates below; another instruction
  /// reaches them where this is less than 1.
  double mmaSyncShare = 1;
  /// Bytes one block may use (the opt-in limit), and one multiprocessor has.
  int64_t sharedBytesPerBlock = 0;
  int64_t sharedBytesPerSm = 0;
  int64_t registersPerSm = 0; ///< Of 32 bits.
  int64_t threadsPerSm = 0;   ///< Resident at once.
  int64_t blocksPerSm = 0;    ///< Resident at once.
  int64_t l2Bytes = 0;        ///< Of one core for a CPU, of the device else.
  double dramBytesPerSecond = 0;
  Throughput flops;
  /// Copies by tensor maps and multiplies by whole warpgroups (wgmma).
  bool warpgroups = false;
};

/// The table, in the order in which people are shown it.
std::span<const Device> devices();

/// The row a target name stands for: a device name, an architecture (its
/// canonical row), "host". Null for any other name.
const Device *findTarget(std::string_view name);

/// The GPU's row of that very name ("h200"), which is no architecture's; null for
/// any other.
const Device *findGpu(std::string_view name);
/// The names of all GPUs, in the table's order, with blanks between.
std::string gpuNames();

/// Every name findTarget() accepts: architectures, devices, "host".
std::vector<std::string_view> targetNames();

/// Whether a product is what the row of this name ("h200") is about: the words
/// of the name stand in the product's ("NVIDIA H200"), and no word after them
/// makes it another product ("Ti", "Laptop").
bool isProduct(std::string_view row, std::string_view product);

/// The row for a GPU of that architecture: its product's own, else the
/// canonical one. Null when no row is of the architecture.
const Device *deviceOf(std::string_view arch, std::string_view product);

} // namespace nova::target

#endif // NOVA_TARGET_TARGET_H
