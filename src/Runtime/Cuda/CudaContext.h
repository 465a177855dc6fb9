//===- CudaContext.h - The context a program lives in, and its memory -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDACONTEXT_H
#define NOVA_RUNTIME_CUDA_CUDACONTEXT_H

#include "CudaDriver.h"

#include <memory>
#include <string>
#include <utility>

namespace nova::rt::cuda {

/// A context, the caller's or a primary one that this retains.
class DeviceContext {
public:
  /// The ordinal of the GPU of a context.
  static Expected<int> ordinalOf(const Driver &driver, Context context);
  /// The calling thread's current context where it is of that GPU, else the
  /// GPU's primary context.
  static Expected<std::shared_ptr<const DeviceContext>>
  ofDevice(const Driver &driver, int ordinal);
  /// The caller's, which it keeps alive.
  static std::shared_ptr<const DeviceContext>
  given(const Driver &driver, int ordinal, Context context);
  ~DeviceContext();
  DeviceContext(const DeviceContext &) = delete;
  DeviceContext &operator=(const DeviceContext &) = delete;

  const Driver &driver;
  const int ordinal;
  const Context handle;

private:
  DeviceContext(const Driver &driver, int ordinal, Context handle,
                bool retained, Device device)
      : driver(driver), ordinal(ordinal), handle(handle), retained(retained),
        device(device) {}

  bool retained;
  Device device;
};

/// Makes a context current for a scope. Free where it is current already, as
/// it is in the thread of a framework.
class Current {
public:
  Current(const Driver &driver, Context context);
  explicit Current(const DeviceContext &context)
      : Current(context.driver, context.handle) {}
  ~Current();
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

  explicit operator bool() const { return bool(status); }
  const Error &error() const { return status.error(); }

private:
  const Driver &driver;
  bool pushed = false;
  Status status;
};

/// Device memory that frees itself.
class DeviceMemory {
public:
  DeviceMemory() = default;
  /// At least one byte, at a multiple of 256 bytes. `what` names it in errors.
  static Expected<DeviceMemory>
  allocate(std::shared_ptr<const DeviceContext> context, uint64_t bytes,
           const std::string &what);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = std::move(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    std::swap(context, other.context);
    std::swap(pointer, other.pointer);
    return *this;
  }
  ~DeviceMemory();

  char *get() const { return reinterpret_cast<char *>(pointer); }
  DevicePtr address() const { return pointer; }

private:
  std::shared_ptr<const DeviceContext> context;
  DevicePtr pointer = 0;
};

} // namespace nova::rt::cuda

#endif // NOVA_RUNTIME_CUDA_CUDACONTEXT_H
