//===- CudaDriver.cpp - The driver library, opened at run time ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include <dlfcn.h>

using namespace nova;
using namespace nova::rt::cuda;

namespace {

Error missing(std::string message, std::string hint) {
  return {ErrorCode::Missing, std::move(message), std::move(hint)};
}

std::string libraryPath() {
  // Not for programs that run with more rights than their caller.
  const char *given = ::secure_getenv(kDriverVariable);
  return given && *given ? given : kDriverLibrary;
}

} // namespace

std::string nova::rt::cuda::versionText(uint64_t version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

Expected<const Driver *> Driver::open() {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Driver>> drivers;
  std::string path = libraryPath();
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Driver> &slot = drivers[path];
  if (!slot) {
    auto driver = std::make_unique<Driver>();
    if (Status s = driver->load(path); !s)
      return s.error();
    slot = std::move(driver);
  }
  return slot.get();
}

Status Driver::load(const std::string &path) {
  void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = ::dlerror();
    return missing(std::string("there is no CUDA driver here: ") +
                       (reason ? reason : path),
                   "install NVIDIA's driver, or name its libcuda.so.1 in " +
                       std::string(kDriverVariable));
  }
  std::string absent;
  auto find = [&](auto &member, const char *symbol, bool required) {
    void *address = ::dlsym(handle, symbol);
    member = reinterpret_cast<std::decay_t<decltype(member)>>(address);
    if (!address && required && absent.empty())
      absent = symbol;
  };
#define NOVA_CUDA_FIND(member, symbol, ...)                                    \
  find(functions.member, #symbol, true);
  NOVA_CUDA_REQUIRED(NOVA_CUDA_FIND)
#undef NOVA_CUDA_FIND
#define NOVA_CUDA_FIND(member, symbol, ...)                                    \
  find(functions.member, #symbol, false);
  NOVA_CUDA_OPTIONAL(NOVA_CUDA_FIND)
#undef NOVA_CUDA_FIND
  if (!absent.empty()) {
    std::string has;
    if (functions.driverGetVersion && !functions.driverGetVersion(&cudaVersion))
      has = " (it is of CUDA " + versionText(cudaVersion) + ")";
    ::dlclose(handle);
    return missing("the CUDA driver '" + path + "' has no " + absent + has +
                       ", expected a driver of CUDA 12.0 or later",
                   "update NVIDIA's driver");
  }
  if (Result result = functions.init(0))
    return error(names::init, result, "");
  NOVA_CUDA_TRY(*this, driverGetVersion, "", &cudaVersion);
  return Status::ok();
}

Error Driver::error(const char *call, Result result,
                    const std::string &what) const {
  const char *name = nullptr, *text = nullptr;
  if (functions.getErrorName(result, &name) || !name)
    name = "unknown result";
  if (functions.getErrorString(result, &text))
    text = nullptr;
  std::string message =
      call + std::string(": ") + name + " (" + std::to_string(result) + ")";
  if (text && *text)
    message += std::string(", ") + text;
  if (!what.empty())
    message = what + ": " + message;

  switch (result) {
  case kOutOfMemory:
    return missing(message, "free memory on the GPU, or use one with more");
  case kNoDevice:
  case kInvalidDevice:
    return missing(message, "check nvidia-smi and CUDA_VISIBLE_DEVICES");
  case kDeviceUnavailable:
    return missing(message, "another process has the GPU for itself");
  case kInsufficientDriver:
  case kSystemDriverMismatch:
  case kCompatNotSupported:
  case kUnsupportedPtxVersion:
    return missing(message, "update NVIDIA's driver");
  case kJitCompilerNotFound:
  case kJitCompilationDisabled:
    return missing(message, "the driver cannot compile PTX here: use a bundle "
                            "with a cubin for this GPU");
  case kInvalidImage:
  case kNoBinaryForGpu:
  case kInvalidPtx:
  case kInvalidSource:
  case kNotFound:
    return badInput(message,
                    "the bundle is not for this GPU, or was not written by "
                    "novac: compile it again");
  case kInvalidContext:
    return {ErrorCode::Usage, message,
            "the CUDA context was destroyed, or is not the caller's"};
  default:
    break;
  }
  // From here on the driver refuses everything else in this process.
  if (result >= kIllegalAddress && result <= kLaunchFailed)
    return {ErrorCode::Internal, message,
            "it may come from an earlier launch; the process cannot use this "
            "GPU any more; compute-sanitizer finds the kernel"};
  return {ErrorCode::Internal, message, {}};
}
