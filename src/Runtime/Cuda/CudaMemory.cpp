//===- CudaMemory.cpp - Buffers, streams and timers of a GPU program ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For callers that have no CUDA library of their own.
//
//===----------------------------------------------------------------------===//

#include "CudaProgram.h"

#include <algorithm>

using namespace nova;
using namespace nova::rt;
using namespace nova::rt::cuda;

namespace {

std::string bytesText(uint64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

DevicePtr devicePtr(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

class CudaTimer final : public Timer {
public:
  explicit CudaTimer(std::shared_ptr<const DeviceContext> context)
      : context(std::move(context)) {}
  ~CudaTimer() override {
    Current current(*context);
    for (Event event : {begin, end})
      if (event && current)
        context->driver.api().eventDestroy(event);
  }
  Status create() {
    Current current(*context);
    if (!current)
      return current.error();
    NOVA_CUDA_TRY(context->driver, eventCreate, "a timer", &begin, 0);
    NOVA_CUDA_TRY(context->driver, eventCreate, "a timer", &end, 0);
    return Status::ok();
  }
  Status start(void *stream) override { return record(begin, stream); }
  Status stop(void *stream) override { return record(end, stream); }
  Expected<double> milliseconds() override {
    Current current(*context);
    if (!current)
      return current.error();
    NOVA_CUDA_TRY(context->driver, eventSynchronize, "a timer", end);
    float elapsed = 0;
    NOVA_CUDA_TRY(context->driver, eventElapsedTime, "a timer", &elapsed, begin,
                  end);
    return static_cast<double>(elapsed);
  }

private:
  Status record(Event event, void *stream) {
    Current current(*context);
    if (!current)
      return current.error();
    NOVA_CUDA_TRY(context->driver, eventRecord, "a timer", event,
                  static_cast<Stream>(stream));
    return Status::ok();
  }

  std::shared_ptr<const DeviceContext> context;
  Event begin = nullptr, end = nullptr;
};

} // namespace

Expected<void *> CudaProgram::allocate(uint64_t bytes) const {
  Current current(*context);
  if (!current)
    return current.error();
  DevicePtr address = 0;
  NOVA_CUDA_TRY(driver(), memAlloc,
                "cannot allocate a buffer of " + bytesText(bytes) + " on " +
                    where(),
                &address, std::max<uint64_t>(bytes, 1));
  return reinterpret_cast<void *>(address);
}

Status CudaProgram::release(void *address) const {
  Current current(*context);
  if (!current)
    return current.error();
  NOVA_CUDA_TRY(driver(), memFree, where(), devicePtr(address));
  return Status::ok();
}

Status CudaProgram::write(void *to, const void *from, uint64_t bytes,
                          void *stream) const {
  if (!bytes)
    return Status::ok();
  Current current(*context);
  if (!current)
    return current.error();
  NOVA_CUDA_TRY(driver(), memcpyHtoDAsync, bytesText(bytes) + " to " + where(),
                devicePtr(to), from, bytes, static_cast<Stream>(stream));
  return synchronize(stream);
}

Status CudaProgram::read(void *to, const void *from, uint64_t bytes,
                         void *stream) const {
  if (!bytes)
    return Status::ok();
  Current current(*context);
  if (!current)
    return current.error();
  NOVA_CUDA_TRY(driver(), memcpyDtoHAsync,
                bytesText(bytes) + " from " + where(), to, devicePtr(from),
                bytes, static_cast<Stream>(stream));
  return synchronize(stream);
}

Expected<void *> CudaProgram::createStream() const {
  Current current(*context);
  if (!current)
    return current.error();
  Stream stream = nullptr;
  NOVA_CUDA_TRY(driver(), streamCreate, where(), &stream, kStreamNonBlocking);
  return static_cast<void *>(stream);
}

Status CudaProgram::destroyStream(void *stream) const {
  Current current(*context);
  if (!current)
    return current.error();
  NOVA_CUDA_TRY(driver(), streamDestroy, where(), static_cast<Stream>(stream));
  return Status::ok();
}

Status CudaProgram::synchronize(void *stream) const {
  Current current(*context);
  if (!current)
    return current.error();
  NOVA_CUDA_TRY(driver(), streamSynchronize, where(),
                static_cast<Stream>(stream));
  return Status::ok();
}

Expected<std::unique_ptr<Timer>> CudaProgram::createTimer() const {
  auto timer = std::make_unique<CudaTimer>(context);
  if (Status s = timer->create(); !s)
    return s.error();
  return std::unique_ptr<Timer>(std::move(timer));
}
