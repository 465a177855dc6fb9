//===- CudaDevice.cpp - A GPU's limits, and which targets run on it -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

#include "nova/Target/Target.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <tuple>
#include <vector>

using namespace nova;
using namespace nova::rt::cuda;
using bundle::Kernel;
using bundle::Target;

namespace {

/// The first major compute capability whose GPUs copy by tensor maps.
constexpr int kTensorMapCapability = 9;

Error missing(std::string message, std::string hint) {
  return {ErrorCode::Missing, std::move(message), std::move(hint)};
}

std::string capability(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string extents(const std::array<uint64_t, 3> &v) {
  return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" +
         std::to_string(v[2]);
}

uint64_t constantBytes(const Target &target) {
  uint64_t sum = 0; // of ranges in files: far below 2^64
  for (const bundle::Constant &c : target.constants)
    sum += c.size;
  return sum;
}

Status checkKernel(const Target &target, const Kernel &k,
                   const DeviceFacts &device) {
  auto refuse = [&](const std::string &wanted, const std::string &limit) {
    return missing("kernel \"" + k.name + "\" of target " + describe(target) +
                       " expects " + wanted + ", got " + describe(device) +
                       " with at most " + limit,
                   "compile the graph for this device");
  };
  uint64_t shared = k.staticSharedBytes + k.dynamicSharedBytes;
  if (shared < k.staticSharedBytes || shared > device.sharedBytesPerBlock)
    return refuse(std::to_string(k.staticSharedBytes) + " static and " +
                      std::to_string(k.dynamicSharedBytes) +
                      " dynamic bytes of shared memory per block",
                  std::to_string(device.sharedBytesPerBlock));
  uint64_t threads = k.block[0] * k.block[1] * k.block[2]; // at most 1024 each
  if (threads > device.threadsPerBlock)
    return refuse(std::to_string(threads) + " threads per block",
                  std::to_string(device.threadsPerBlock));
  for (int i = 0; i < 3; ++i) {
    if (k.block[i] > device.block[i])
      return refuse("a block of " + extents(k.block), extents(device.block));
    if (k.grid[i] > device.grid[i])
      return refuse("a grid of " + extents(k.grid), extents(device.grid));
  }
  for (int i = 0; i < 3; ++i)
    if (k.grid[i] % k.cluster[i])
      return badInput("kernel \"" + k.name + "\" of target " +
                          describe(target) + " has a grid of " +
                          extents(k.grid) + " in clusters of " +
                          extents(k.cluster) + ", expected multiples",
                      "the bundle was not written by novac: compile it again");
  if (k.cluster[0] * k.cluster[1] * k.cluster[2] > 1 && !device.clusters)
    return refuse("a cluster of " + extents(k.cluster) + " blocks",
                  "single blocks");
  return Status::ok();
}

/// What the format allows and this loader or device cannot take.
Status checkArguments(const Target &target, const DeviceFacts &device) {
  for (size_t i = 0; i < target.launches.size(); ++i) {
    const bundle::Launch &launch = target.launches[i];
    for (size_t j = 0; j < launch.args.size(); ++j) {
      auto where = [&] {
        return "argument " + std::to_string(j) + " of launch " +
               std::to_string(i) + " of target " + describe(target);
      };
      if (std::holds_alternative<bundle::TensorMap>(launch.args[j]) &&
          device.major < kTensorMapCapability)
        return missing(where() +
                           " is a tensormap, expected a GPU of compute "
                           "capability " +
                           capability(kTensorMapCapability, 0) +
                           " or later, got " + describe(device),
                       "compile the graph for this device");
    }
    if (launch.kind != bundle::LaunchKind::Kernel)
      continue;
    size_t j = 0;
    for (const bundle::Param &param : target.kernels[*launch.kernel].params) {
      if (param.kind == bundle::ParamKind::Scalar && param.size > 8)
        return badInput("argument " + std::to_string(j) + " of launch " +
                            std::to_string(i) + " of target " +
                            describe(target) + " is a scalar of " +
                            std::to_string(param.size) +
                            " bytes, expected at most 8",
                        "the bundle was not written by novac: compile it "
                        "again");
      j += param.arguments();
    }
  }
  return Status::ok();
}

} // namespace

std::string nova::rt::cuda::describe(const Target &target) {
  return target.name + " (" + target.device + ")";
}

std::string nova::rt::cuda::describe(const DeviceFacts &device) {
  return "GPU " + std::to_string(device.ordinal) + " (" + device.name +
         ", compute capability " + capability(device.major, device.minor) + ")";
}

Expected<DeviceFacts> nova::rt::cuda::deviceFacts(const Driver &driver,
                                                  int ordinal) {
  std::string what = "GPU " + std::to_string(ordinal);
  int count = 0;
  NOVA_CUDA_TRY(driver, deviceGetCount, what, &count);
  if (ordinal >= count)
    return missing(what + " was asked for, this machine has " +
                       (count == 0   ? std::string("none")
                        : count == 1 ? std::string("one, GPU 0")
                                     : std::to_string(count) + ", GPU 0 to " +
                                           std::to_string(count - 1)),
                   "check nvidia-smi and CUDA_VISIBLE_DEVICES");
  Device device = 0;
  NOVA_CUDA_TRY(driver, deviceGet, what, &device, ordinal);
  DeviceFacts facts;
  facts.ordinal = ordinal;
  facts.driverVersion = driver.version();
  facts.devices = count;
  char name[256] = {};
  NOVA_CUDA_TRY(driver, deviceGetName, what, name, sizeof name, device);
  name[sizeof name - 1] = 0;
  facts.name = name;
  size_t total = 0;
  NOVA_CUDA_TRY(driver, deviceTotalMem, what, &total, device);
  facts.totalBytes = total;
  int values[11] = {};
  constexpr int attributes[11] = {kComputeCapabilityMajor,
                                  kComputeCapabilityMinor,
                                  kMaxSharedMemoryPerBlockOptin,
                                  kMaxThreadsPerBlock,
                                  kMaxBlockDimX,
                                  kMaxBlockDimX + 1,
                                  kMaxBlockDimX + 2,
                                  kMaxGridDimX,
                                  kMaxGridDimX + 1,
                                  kMaxGridDimX + 2,
                                  kClusterLaunch};
  for (int i = 0; i < 11; ++i)
    NOVA_CUDA_TRY(driver, deviceGetAttribute, what, &values[i], attributes[i],
                  device);
  facts.major = values[0];
  facts.minor = values[1];
  facts.sharedBytesPerBlock = static_cast<uint64_t>(values[2]);
  facts.threadsPerBlock = static_cast<uint64_t>(values[3]);
  for (int i = 0; i < 3; ++i) {
    facts.block[i] = static_cast<uint64_t>(values[4 + i]);
    facts.grid[i] = static_cast<uint64_t>(values[7 + i]);
  }
  facts.clusters = values[10] != 0;
  return facts;
}

Expected<DeviceFacts> nova::rt::cuda::openDevice(int ordinal) {
  Expected<const Driver *> driver = Driver::open();
  if (!driver)
    return driver.error();
  return deviceFacts(**driver, ordinal);
}

std::optional<Architecture>
nova::rt::cuda::architectureOf(const std::string &name) {
  if (name.rfind("sm_", 0) != 0)
    return std::nullopt;
  const char *begin = name.data() + 3, *end = name.data() + name.size();
  Architecture arch;
  if (end > begin && end[-1] == 'a') {
    arch.exact = true;
    --end;
  }
  int number = 0;
  auto parsed = std::from_chars(begin, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 10 ||
      number > 9999)
    return std::nullopt;
  arch.major = number / 10;
  arch.minor = number % 10;
  return arch;
}

Fit nova::rt::cuda::fitOf(const Target &target, const DeviceFacts &device,
                          bool allowJit) {
  std::optional<Architecture> arch = architectureOf(target.name);
  if (!arch)
    return Fit::No;
  bool equal = arch->major == device.major && arch->minor == device.minor;
  if (arch->exact)
    return equal ? Fit::Cubin : Fit::No; // its PTX runs nowhere else either
  if (arch->major == device.major && arch->minor <= device.minor)
    return Fit::Cubin;
  bool below = arch->major < device.major;
  bool ptx = std::all_of(target.kernels.begin(), target.kernels.end(),
                         [](const Kernel &k) { return k.ptxBlob.has_value(); });
  return allowJit && below && ptx ? Fit::Jit : Fit::No;
}

Status nova::rt::cuda::checkTarget(const Target &target,
                                   const DeviceFacts &device, bool allowJit) {
  std::optional<Architecture> arch = architectureOf(target.name);
  if (!arch)
    return missing("target " + describe(target) +
                       " is for no GPU that this loader knows, expected sm_ "
                       "and a compute capability",
                   "use a newer loader");
  if (fitOf(target, device, allowJit) == Fit::No) {
    std::string expected =
        arch->exact
            ? "compute capability " + capability(arch->major, arch->minor) +
                  " exactly"
            : "compute capability " + capability(arch->major, arch->minor) +
                  " to " + std::to_string(arch->major) + ".x";
    bool jit = !allowJit && fitOf(target, device, true) == Fit::Jit;
    return missing("target " + describe(target) + " expects " + expected +
                       ", got " + describe(device),
                   jit ? "the driver can compile its PTX: give --allow-jit, or "
                         "compile the graph for this device"
                       : "compile the graph for this device");
  }
  if (target.minDriver > static_cast<uint64_t>(device.driverVersion))
    return missing("target " + describe(target) + " expects a driver of CUDA " +
                       versionText(target.minDriver) +
                       " or later, got one of "
                       "CUDA " +
                       versionText(static_cast<uint64_t>(device.driverVersion)),
                   "update NVIDIA's driver");
  for (const Kernel &kernel : target.kernels)
    if (Status s = checkKernel(target, kernel, device); !s)
      return s;
  if (Status s = checkArguments(target, device); !s)
    return s;
  uint64_t needed = 0;
  if (__builtin_add_overflow(target.arena.size, constantBytes(target),
                             &needed) ||
      needed > device.totalBytes)
    return missing(
        "target " + describe(target) + " expects " +
            std::to_string(target.arena.size) + " bytes for the arena and " +
            std::to_string(constantBytes(target)) + " for constants, got " +
            describe(device) + " with " + std::to_string(device.totalBytes),
        "use a GPU with more memory, or a smaller batch");
  return Status::ok();
}

Expected<uint32_t>
nova::rt::cuda::chooseTarget(const bundle::Manifest &manifest,
                             const DeviceFacts &device, bool allowJit) {
  // In the order of preference: cubin, exact device, architecture, canonical
  // device; then the order of the manifest.
  using Rank = std::tuple<bool, bool, int, int, bool, bool>;
  std::optional<Rank> best;
  uint32_t chosen = 0;
  std::string refusals, hint;
  std::optional<ErrorCode> code; // BadInput where all are
  for (size_t i = 0; i < manifest.targets.size(); ++i) {
    const Target &target = manifest.targets[i];
    std::optional<Architecture> arch = architectureOf(target.name);
    if (!arch)
      continue;
    if (Status s = checkTarget(target, device, allowJit); !s) {
      refusals += (refusals.empty() ? "" : "; ") + s.error().message;
      // The compiler of the driver may help one target and not another.
      if (hint.empty() || s.error().hint.find("--allow-jit") != hint.npos)
        hint = s.error().hint;
      code = code.value_or(s.error().code) == s.error().code
                 ? s.error().code
                 : ErrorCode::Missing;
      continue;
    }
    const target::Device *canonical = target::findTarget(target.name);
    Rank rank{fitOf(target, device, allowJit) == Fit::Cubin,
              target::isProduct(target.device, device.name),
              arch->major,
              arch->minor,
              arch->exact,
              canonical && canonical->name == target.device};
    if (!best || rank > *best) {
      best = rank;
      chosen = static_cast<uint32_t>(i);
    }
  }
  if (best)
    return chosen;
  return Error{code.value_or(ErrorCode::Missing), refusals, hint};
}
