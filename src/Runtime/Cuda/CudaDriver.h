//===- CudaDriver.h - The driver library, opened at run time --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDADRIVER_H
#define NOVA_RUNTIME_CUDA_CUDADRIVER_H

#include "CudaApi.h"
#include "nova/Support/Error.h"

#include <string>

namespace nova::rt::cuda {

/// What is opened, unless the environment names another file. For tests, and
/// for a driver that the dynamic linker does not find.
inline constexpr const char *kDriverLibrary = "libcuda.so.1";
inline constexpr const char *kDriverVariable = "NOVA_RT_LIBCUDA";

/// The driver, initialised. One per library file, for the life of the process:
/// a driver cannot be closed safely while other libraries use it.
class Driver {
public:
  /// Missing when there is no driver, no GPU, or a driver that is too old to
  /// have every function; asked again the next time, so that a process which
  /// starts before its driver is not lost.
  static Expected<const Driver *> open();

  const Api &api() const { return functions; }
  /// CUDA version, 1000 major + 10 minor, as cuDriverGetVersion gives it.
  int version() const { return cudaVersion; }

  /// An error for a call that returned `result`: the call, the result's name,
  /// number and text, and `what` it was for ("" for nothing to add). What can
  /// be mended is Missing or BadInput with a hint, the rest is Internal.
  Error error(const char *call, Result result, const std::string &what) const;

private:
  Status load(const std::string &path);

  Api functions;
  int cudaVersion = 0;
};

/// "12.4" for 12040.
std::string versionText(uint64_t version);

} // namespace nova::rt::cuda

/// Calls a driver function and returns from the enclosing function with its
/// error when it fails: NOVA_CUDA_TRY(driver, graphLaunch, what, exec, stream).
/// The text says the function's exported name.
#define NOVA_CUDA_TRY(driver, member, what, ...)                               \
  do {                                                                         \
    if (::nova::rt::cuda::Result result_ = (driver).api().member(__VA_ARGS__)) \
      return (driver).error(::nova::rt::cuda::names::member, result_, what);   \
  } while (0)

namespace nova::rt::cuda::names {
#define NOVA_CUDA_NAME(member, symbol, ...)                                    \
  inline constexpr const char *member = #symbol;
NOVA_CUDA_REQUIRED(NOVA_CUDA_NAME)
NOVA_CUDA_OPTIONAL(NOVA_CUDA_NAME)
#undef NOVA_CUDA_NAME
} // namespace nova::rt::cuda::names

#endif // NOVA_RUNTIME_CUDA_CUDADRIVER_H
