//===- CudaDevice.h - A GPU's limits, and which targets run on it ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime. What decides is pure functions over facts, so that
// every refusal is tested without the GPU that would be refused.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDADEVICE_H
#define NOVA_RUNTIME_CUDA_CUDADEVICE_H

#include "CudaDriver.h"
#include "nova/Bundle/Manifest.h"

#include <array>
#include <optional>
#include <string>

namespace nova::rt::cuda {

/// What the driver says of a GPU.
struct DeviceFacts {
  int ordinal = 0;
  std::string name;         ///< "NVIDIA H200"
  int major = 0, minor = 0; ///< Compute capability.
  uint64_t totalBytes = 0;
  uint64_t sharedBytesPerBlock = 0; ///< The opt-in limit.
  uint64_t threadsPerBlock = 0;
  std::array<uint64_t, 3> block{}, grid{}; ///< Largest extents.
  bool clusters = false;
  int driverVersion = 0; ///< As Driver::version().
  int devices = 0;       ///< That the process sees.
};

/// Missing when there are fewer GPUs than `ordinal` asks for.
Expected<DeviceFacts> deviceFacts(const Driver &driver, int ordinal);

/// Opens the driver, then the above.
Expected<DeviceFacts> openDevice(int ordinal);

/// "GPU 0 (NVIDIA H200, compute capability 9.0)".
std::string describe(const DeviceFacts &device);

/// "sm_90a": compute capability 9.0, and that one only.
struct Architecture {
  int major = 0, minor = 0;
  bool exact = false;
};
/// Nothing for a name that is no GPU architecture.
std::optional<Architecture> architectureOf(const std::string &name);

/// How the code of a target gets onto a device.
enum class Fit { No, Cubin, Jit };
/// Cubins: an `a` target needs equal compute capability, others equal major and
/// no lower minor. PTX of an `a` target needs equal compute capability, other
/// PTX no lower one; only with `allowJit`, and only where every kernel has PTX.
Fit fitOf(const bundle::Target &target, const DeviceFacts &device,
          bool allowJit);

/// Everything that would fail at launch, checked before anything is loaded:
/// driver version, compute capability, limits of every kernel, arguments that
/// this device cannot take, memory of the whole device. Missing or BadInput:
/// what was expected, what this device has, what to do.
Status checkTarget(const bundle::Target &target, const DeviceFacts &device,
                   bool allowJit);

/// The target for a device: of those that run on it from a cubin the one that
/// was made for exactly this device, else of the highest architecture the one
/// for its canonical device; of those that need the driver's compiler likewise.
/// Missing when there is none, with the reason for each.
Expected<uint32_t> chooseTarget(const bundle::Manifest &manifest,
                                const DeviceFacts &device, bool allowJit);

/// "sm_90a (h200)".
std::string describe(const bundle::Target &target);

} // namespace nova::rt::cuda

#endif // NOVA_RUNTIME_CUDA_CUDADEVICE_H
