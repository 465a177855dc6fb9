//===- CudaContext.cpp - The context a program lives in, and its memory ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaContext.h"

#include <algorithm>

using namespace nova;
using namespace nova::rt::cuda;

Current::Current(const Driver &driver, Context context) : driver(driver) {
  Context now = nullptr;
  if (!driver.api().ctxGetCurrent(&now) && now == context)
    return;
  if (Result result = driver.api().ctxPushCurrent(context))
    status = driver.error(names::ctxPushCurrent, result, "");
  else
    pushed = true;
}

Current::~Current() {
  Context popped;
  if (pushed)
    driver.api().ctxPopCurrent(&popped);
}

Expected<int> DeviceContext::ordinalOf(const Driver &driver, Context context) {
  Current current(driver, context);
  if (!current)
    return current.error();
  Device device = 0;
  NOVA_CUDA_TRY(driver, ctxGetDevice, "the CUDA context", &device);
  int count = 0;
  NOVA_CUDA_TRY(driver, deviceGetCount, "", &count);
  for (int i = 0; i < count; ++i) {
    Device candidate = 0;
    if (!driver.api().deviceGet(&candidate, i) && candidate == device)
      return i;
  }
  return Error{ErrorCode::Usage,
               "the CUDA context is of a device that this process does not see",
               "check CUDA_VISIBLE_DEVICES"};
}

Expected<std::shared_ptr<const DeviceContext>>
DeviceContext::ofDevice(const Driver &driver, int ordinal) {
  Context now = nullptr;
  if (!driver.api().ctxGetCurrent(&now) && now) {
    Expected<int> of = ordinalOf(driver, now);
    if (!of)
      return of.error();
    if (*of == ordinal)
      return given(driver, ordinal, now);
  }
  std::string what = "GPU " + std::to_string(ordinal);
  Device device = 0;
  NOVA_CUDA_TRY(driver, deviceGet, what, &device, ordinal);
  Context primary = nullptr;
  NOVA_CUDA_TRY(driver, primaryCtxRetain, what, &primary, device);
  return std::shared_ptr<const DeviceContext>(
      new DeviceContext(driver, ordinal, primary, true, device));
}

std::shared_ptr<const DeviceContext>
DeviceContext::given(const Driver &driver, int ordinal, Context context) {
  return std::shared_ptr<const DeviceContext>(
      new DeviceContext(driver, ordinal, context, false, 0));
}

DeviceContext::~DeviceContext() {
  if (retained)
    driver.api().primaryCtxRelease(device);
}

Expected<DeviceMemory>
DeviceMemory::allocate(std::shared_ptr<const DeviceContext> context,
                       uint64_t bytes, const std::string &what) {
  Current current(*context);
  if (!current)
    return current.error();
  DeviceMemory memory;
  NOVA_CUDA_TRY(context->driver, memAlloc,
                "cannot allocate " + std::to_string(bytes) + " bytes for " +
                    what + " on GPU " + std::to_string(context->ordinal),
                &memory.pointer, std::max<uint64_t>(bytes, 1));
  memory.context = std::move(context);
  return memory;
}

DeviceMemory::~DeviceMemory() {
  // A failure here is that of an earlier launch, which has been reported, or of
  // a context that is gone with its memory.
  if (!pointer)
    return;
  if (Current current(*context); current)
    context->driver.api().memFree(pointer);
}
