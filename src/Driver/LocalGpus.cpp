//===- LocalGpus.cpp - The GPUs of this machine ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LocalGpus.h"

#include <dlfcn.h>

using namespace nova;
using namespace nova::driver;

// The CUDA driver API as its manual gives it; no header of CUDA is needed.
static constexpr int kSuccess = 0;
static constexpr int kComputeCapabilityMajor = 75; // CU_DEVICE_ATTRIBUTE_...
static constexpr int kComputeCapabilityMinor = 76;

namespace {
/// The driver's functions, null where it has none.
struct CudaDriver {
  template <typename Function>
  static Function *find(void *library, const char *name) {
    return reinterpret_cast<Function *>(::dlsym(library, name));
  }
  explicit CudaDriver(void *library)
      : init(find<int(unsigned)>(library, "cuInit")),
        count(find<int(int *)>(library, "cuDeviceGetCount")),
        name(find<int(char *, int, int)>(library, "cuDeviceGetName")),
        attribute(find<int(int *, int, int)>(library, "cuDeviceGetAttribute")) {
  }
  int (*init)(unsigned);
  int (*count)(int *);
  int (*name)(char *, int, int);
  int (*attribute)(int *, int, int);
};
} // namespace

/// "sm_90a" where the table has that, else "sm_90".
static std::string archOf(int major, int minor) {
  std::string arch = "sm_" + std::to_string(10 * major + minor);
  bool accelerated = !target::findTarget(arch) && target::findTarget(arch + "a");
  return accelerated ? arch + "a" : arch;
}

std::vector<LocalGpu> driver::localGpus() {
  // It stays loaded: a driver that was started is not meant to be unloaded.
  void *library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return {};
  CudaDriver cuda(library);
  int count = 0;
  if (!cuda.init || !cuda.count || !cuda.name || !cuda.attribute ||
      cuda.init(0) != kSuccess || cuda.count(&count) != kSuccess)
    return {};
  std::vector<LocalGpu> gpus;
  // A device's handle is its ordinal.
  for (int device = 0; device < count; ++device) {
    char product[256] = "";
    int major = 0, minor = 0;
    if (cuda.name(product, sizeof product, device) == kSuccess &&
        cuda.attribute(&major, kComputeCapabilityMajor, device) == kSuccess &&
        cuda.attribute(&minor, kComputeCapabilityMinor, device) == kSuccess)
      gpus.push_back({product, archOf(major, minor)});
  }
  return gpus;
}
