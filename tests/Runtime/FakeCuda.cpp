//===- FakeCuda.cpp - A CUDA driver that is not one -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCudaState.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

extern "C" {
// The kernels of sample_kernels.c.
void predict(void *const *, int64_t, int64_t);
void residual(void *const *, int64_t, int64_t);
void gradient(void *const *, int64_t, int64_t);
void momentum(void *const *, int64_t, int64_t);
}

namespace nova::test::driver {
std::recursive_mutex mutex;
FakeCuda state;
std::set<void *> handles;
std::map<int, std::pair<Context, int>> primaries; // with their count
thread_local std::vector<Context> current;

Result enter(const char *function) {
  ++state.totalCalls;
  state.sequence.push_back(function);
  int call = ++state.calls[function];
  if (state.failCall == 0 ||
      (!state.failFunction.empty() && state.failFunction != function))
    return kSuccess;
  if (state.failCall != (state.failFunction.empty() ? state.totalCalls : call))
    return kSuccess;
  state.failed = function;
  return state.failResult;
}

bool known(void *handle) { return handles.count(handle) != 0; }

Context now() { return current.empty() ? nullptr : current.back(); }
Context contextOf(Stream stream) { return stream ? stream->context : now(); }

/// Does [address, address+bytes) lie in one allocation of the context?
bool holds(Context context, DevicePtr address, size_t bytes) {
  auto it = context->allocations.upper_bound(address);
  if (it == context->allocations.begin())
    return false;
  --it;
  return address + bytes <= it->first + it->second;
}

void *pointer(DevicePtr address) { return reinterpret_cast<void *>(address); }

Result execute(const Work &work, Context context) {
  if (work.node.kind == "empty")
    return kSuccess;
  if (work.context != context)
    return kInvalidHandle;
  state.launched.push_back(work.node);
  if (work.node.kind == "copy") {
    if (!holds(context, work.to, work.bytes) ||
        !holds(context, work.from, work.bytes))
      return kIllegalAddress;
    std::memcpy(pointer(work.to), pointer(work.from), work.bytes);
    return kSuccess;
  }
  if (work.node.kind == "memset") {
    if (!holds(context, work.to, work.bytes))
      return kIllegalAddress;
    for (size_t i = 0; i < work.bytes; ++i)
      static_cast<unsigned char *>(pointer(work.to))[i] =
          static_cast<unsigned char>(work.value >> 8 * (i % work.elementSize));
    return kSuccess;
  }
  if (work.node.sharedBytes > work.function->mostShared)
    return kInvalidValue;
  // As a host kernel wants them: pointers as they are, those of a table one by
  // one, a tensor map as a pointer to its memory, others by address.
  std::vector<void *> arguments;
  for (const std::string &value : work.node.values) {
    void *argument = const_cast<char *>(value.data());
    if (value.size() == sizeof(TensorMapBits)) {
      FakeTensorMap map;
      std::memcpy(&map, value.data(), sizeof map);
      argument = pointer(map.address);
      if (!map.rank || !holds(context, map.address, 1))
        return kIllegalAddress;
    } else if (value.size() % 8 == 0) {
      for (size_t at = 0; at < value.size(); at += 8) {
        std::memcpy(&argument, value.data() + at, 8);
        if (!holds(context, reinterpret_cast<DevicePtr>(argument), 1))
          return kIllegalAddress;
        if (at + 8 < value.size())
          arguments.push_back(argument);
      }
    }
    arguments.push_back(argument);
  }
  int64_t points = work.node.grid[0];
  const std::string &name = work.function->name;
  if (name == "predict")
    predict(arguments.data(), 0, points);
  else if (name == "residual")
    residual(arguments.data(), 0, points);
  else if (name == "gradient")
    gradient(arguments.data(), 0, points);
  else if (name == "momentum")
    momentum(arguments.data(), 0, points);
  return kSuccess;
}

std::vector<std::string> valuesOf(Function function, void **parameters) {
  std::vector<std::string> values;
  for (size_t i = 0; i < function->sizes.size(); ++i)
    values.emplace_back(static_cast<char *>(parameters[i]), function->sizes[i]);
  return values;
}

Work kernelWork(const KernelNodeParams &p) {
  Work work;
  work.node.kind = "kernel";
  work.node.symbol = p.func->name;
  work.node.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  work.node.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  work.node.sharedBytes = p.sharedMemBytes;
  work.node.values = valuesOf(p.func, p.kernelParams);
  work.function = p.func;
  work.context = p.func->context;
  return work;
}

Work memsetWork(const MemsetNodeParams &p, Context context) {
  Work work;
  work.node.kind = "memset";
  work.context = context;
  work.to = p.dst;
  work.bytes = p.width * p.elementSize * p.height;
  work.value = p.value;
  work.elementSize = p.elementSize;
  return work;
}

Work copyWork(const Memcpy3D &p, Context context) {
  Work work;
  work.node.kind = "copy";
  work.context = context;
  work.to = p.dstDevice;
  work.from = p.srcDevice;
  work.bytes = p.widthInBytes * p.height * p.depth;
  return work;
}

} // namespace nova::test::driver

extern "C" {

__attribute__((visibility("default"))) FakeCuda *fakeCuda() { return &state; }
__attribute__((visibility("default"))) void fakeCudaReset() {
  FakeLive live = state.live;
  state = FakeCuda();
  state.live = live;
}
__attribute__((visibility("default"))) void *fakeCudaContext(int device) {
  return new ContextHandle{device, {}};
}
__attribute__((visibility("default"))) void fakeCudaDropContext(void *context) {
  delete static_cast<Context>(context);
}

Result cuInit(unsigned) {
  ENTER(cuInit);
  if (const char *devices = std::getenv("FAKE_CUDA_DEVICES")) {
    state.devices.clear();
    std::istringstream list(devices);
    for (std::string one; std::getline(list, one, ',');) {
      FakeDevice &device = state.devices.emplace_back();
      std::sscanf(one.c_str(), "%d.%d", &device.major, &device.minor);
    }
  }
  if (const char *fail = std::getenv("FAKE_CUDA_FAIL")) {
    char function[64] = {};
    std::sscanf(fail, "%63[^:]:%d:%d", function, &state.failCall,
                &state.failResult);
    state.failFunction = function;
  }
  return state.devices.empty() ? kNoDevice : kSuccess;
}
Result cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion);
  *version = state.driverVersion;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char **name) {
  *name = result == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == kNoBinaryForGpu ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : result == kInvalidPtx     ? "CUDA_ERROR_INVALID_PTX"
          : result == kNotFound       ? "CUDA_ERROR_NOT_FOUND"
          : result == kNoDevice       ? "CUDA_ERROR_NO_DEVICE"
          : result == kInvalidValue   ? "CUDA_ERROR_INVALID_VALUE"
                                      : nullptr;
  return *name ? kSuccess : kInvalidValue;
}
Result cuGetErrorString(Result result, const char **text) {
  *text = result == kOutOfMemory      ? "out of memory"
          : result == kIllegalAddress ? "an illegal memory access was "
                                        "encountered"
                                      : nullptr;
  return *text ? kSuccess : kInvalidValue;
}

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

Result cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount);
  *count = static_cast<int>(state.devices.size());
  return kSuccess;
}
Result cuDeviceGet(Device *device, int ordinal) {
  ENTER(cuDeviceGet);
  *device = ordinal + 100; // no ordinal, as far as anyone may know
  return kSuccess;
}
Result cuDeviceGetName(char *name, int size, Device device) {
  ENTER(cuDeviceGetName);
  std::snprintf(name, static_cast<size_t>(size), "%s",
                state.devices[size_t(device - 100)].name.c_str());
  return kSuccess;
}
Result cuDeviceGetAttribute(int *value, int attribute, Device device) {
  ENTER(cuDeviceGetAttribute);
  const FakeDevice &d = state.devices[size_t(device - 100)];
  switch (attribute) {
  case kMaxThreadsPerBlock:
    *value = d.threadsPerBlock;
    break;
  case kComputeCapabilityMajor:
    *value = d.major;
    break;
  case kComputeCapabilityMinor:
    *value = d.minor;
    break;
  case kMaxSharedMemoryPerBlockOptin:
    *value = d.sharedBytesPerBlock;
    break;
  case kClusterLaunch:
    *value = d.clusters;
    break;
  default:
    if (attribute >= kMaxBlockDimX && attribute < kMaxBlockDimX + 3)
      *value = d.block[size_t(attribute - kMaxBlockDimX)];
    else if (attribute >= kMaxGridDimX && attribute < kMaxGridDimX + 3)
      *value = d.grid[size_t(attribute - kMaxGridDimX)];
    else
      return kInvalidValue;
  }
  return kSuccess;
}
Result cuDeviceTotalMem_v2(size_t *bytes, Device device) {
  ENTER(cuDeviceTotalMem_v2);
  *bytes = state.devices[size_t(device - 100)].totalBytes;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context *context, Device device) {
  ENTER(cuDevicePrimaryCtxRetain);
  auto &[primary, count] = primaries[device];
  if (!primary)
    primary = new ContextHandle{device - 100, {}};
  ++count;
  ++state.live.retained;
  *context = primary;
  return kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(Device device) {
  ENTER_ANYWAY(cuDevicePrimaryCtxRelease_v2);
  --primaries[device].second;
  --state.live.retained;
  return failure;
}
Result cuCtxGetCurrent(Context *context) {
  ENTER(cuCtxGetCurrent);
  *context = now();
  return kSuccess;
}
Result cuCtxGetDevice(Device *device) {
  ENTER(cuCtxGetDevice);
  if (!now())
    return kInvalidContext;
  *device = now()->device + 100;
  return kSuccess;
}
Result cuCtxPushCurrent_v2(Context context) {
  ENTER(cuCtxPushCurrent_v2);
  current.push_back(context);
  return kSuccess;
}
Result cuCtxPopCurrent_v2(Context *context) {
  ENTER_ANYWAY(cuCtxPopCurrent_v2);
  *context = now();
  current.pop_back();
  return failure;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER(cuMemGetInfo_v2);
  if (!now())
    return kInvalidContext;
  const FakeDevice &d = state.devices[size_t(now()->device)];
  *free = d.freeBytes;
  *total = d.totalBytes;
  return kSuccess;
}
Result cuMemAlloc_v2(DevicePtr *address, size_t bytes) {
  ENTER(cuMemAlloc_v2);
  if (!now())
    return kInvalidContext;
  void *p =
      bytes ? std::aligned_alloc(256, (bytes + 255) / 256 * 256) : nullptr;
  if (!p)
    return kOutOfMemory;
  std::memset(p, 0xcd, bytes);
  *address = reinterpret_cast<DevicePtr>(p);
  now()->allocations[*address] = bytes;
  ++state.live.allocations;
  return kSuccess;
}
Result cuMemFree_v2(DevicePtr address) {
  ENTER_ANYWAY(cuMemFree_v2);
  if (!now() || !now()->allocations.erase(address))
    return kInvalidValue;
  std::free(pointer(address));
  --state.live.allocations;
  return failure;
}
Result cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  ENTER(cuMemHostAlloc);
  *address = make(std::malloc(bytes), state.live.pinned);
  return kSuccess;
}
Result cuMemFreeHost(void *address) {
  ENTER_ANYWAY(cuMemFreeHost);
  if (!drop(address, state.live.pinned))
    return kInvalidValue;
  std::free(address);
  return failure;
}
Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void *from, size_t bytes,
                            Stream stream) {
  ENTER(cuMemcpyHtoDAsync_v2);
  if (!contextOf(stream) || !holds(contextOf(stream), to, bytes))
    return kInvalidValue;
  std::memcpy(pointer(to), from, bytes);
  return kSuccess;
}
Result cuMemcpyDtoHAsync_v2(void *to, DevicePtr from, size_t bytes,
                            Stream stream) {
  ENTER(cuMemcpyDtoHAsync_v2);
  if (!contextOf(stream) || !holds(contextOf(stream), from, bytes))
    return kInvalidValue;
  std::memcpy(to, pointer(from), bytes);
  return kSuccess;
}
Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, size_t bytes,
                            Stream stream) {
  ENTER(cuMemcpyDtoDAsync_v2);
  Memcpy3D p{};
  p.dstDevice = to;
  p.srcDevice = from;
  p.widthInBytes = bytes;
  p.height = p.depth = 1;
  return execute(copyWork(p, contextOf(stream)), contextOf(stream));
}
Result cuMemsetD8Async(DevicePtr to, unsigned char value, size_t count,
                       Stream stream) {
  ENTER(cuMemsetD8Async);
  MemsetNodeParams p{to, 0, value, 1, count, 1};
  return execute(memsetWork(p, contextOf(stream)), contextOf(stream));
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Result cuModuleLoadDataEx(Module *module, const void *image, unsigned count,
                          int *options, void **values) {
  ENTER(cuModuleLoadDataEx);
  if (!now())
    return kInvalidContext;
  std::istringstream text(static_cast<const char *>(image));
  std::string kind, line;
  int major = 0, minor = 0;
  char dot = 0;
  text >> kind >> major >> dot >> minor;
  std::getline(text, line);
  const FakeDevice &device = state.devices[size_t(now()->device)];
  bool ptx = kind == "fake-ptx";
  if (!ptx && kind != "fake-cubin")
    return kInvalidImage;
  if (ptx && line == " broken") {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kJitErrorLogBuffer)
        std::strcpy(static_cast<char *>(values[i]), "ptxas fatal: line 3");
    return kInvalidPtx;
  }
  if (!ptx && (major != device.major || minor > device.minor))
    return kNoBinaryForGpu;
  auto *made = new ModuleHandle{now(), ptx, {}};
  while (std::getline(text, line)) {
    std::istringstream words(line);
    auto *function = new FunctionHandle{now(), {}, {}};
    words >> function->name;
    for (size_t size; words >> size;)
      function->sizes.push_back(size);
    made->functions[function->name] = function;
  }
  *module = make(made, state.live.modules);
  return kSuccess;
}
Result cuModuleUnload(Module module) {
  ENTER_ANYWAY(cuModuleUnload);
  if (!drop(module, state.live.modules))
    return kInvalidHandle;
  for (auto &[name, function] : module->functions)
    delete function;
  delete module;
  return failure;
}
Result cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  ENTER(cuModuleGetFunction);
  auto it = module->functions.find(name);
  if (it == module->functions.end())
    return kNotFound;
  *function = it->second;
  return kSuccess;
}
Result cuFuncSetAttribute(Function function, int attribute, int value) {
  ENTER(cuFuncSetAttribute);
  state.functionAttributes[function->name + ":" + std::to_string(attribute)] =
      value;
  if (attribute == kFunctionMaxDynamicSharedSizeBytes)
    function->mostShared = static_cast<unsigned>(value);
  return kSuccess;
}
Result cuFuncGetAttribute(int *value, int, Function) {
  ENTER(cuFuncGetAttribute);
  *value = 0;
  return kSuccess;
}
Result cuFuncLoad(Function) {
  ENTER(cuFuncLoad);
  return kSuccess;
}
Result cuFuncGetParamInfo(Function function, size_t index, size_t *offset,
                          size_t *size) {
  ENTER(cuFuncGetParamInfo);
  if (index >= function->sizes.size())
    return kInvalidValue;
  *offset = 8 * index;
  *size = function->sizes[index];
  return kSuccess;
}
Result cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes, Stream stream,
                      void **parameters, void **) {
  ENTER(cuLaunchKernel);
  KernelNodeParams p{function,   gridX,   gridY,   gridZ,
                     blockX,     blockY,  blockZ,  sharedBytes,
                     parameters, nullptr, nullptr, nullptr};
  return execute(kernelWork(p), contextOf(stream));
}
Result cuLaunchKernelEx(const LaunchConfig *config, Function function,
                        void **parameters, void **) {
  ENTER(cuLaunchKernelEx);
  KernelNodeParams p{function,          config->gridDimX,
                     config->gridDimY,  config->gridDimZ,
                     config->blockDimX, config->blockDimY,
                     config->blockDimZ, config->sharedMemBytes,
                     parameters,        nullptr,
                     nullptr,           nullptr};
  Work work = kernelWork(p);
  const auto &cluster = config->attrs[0].value.clusterDim;
  if (config->numAttrs != 1 ||
      config->attrs[0].id != kAttributeClusterDimension)
    return kInvalidValue;
  work.node.cluster = {cluster.x, cluster.y, cluster.z};
  return execute(work, contextOf(config->stream));
}
Result cuLaunchHostFunc(Stream, HostFunction function, void *data) {
  ENTER(cuLaunchHostFunc);
  function(data);
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

Result cuStreamCreate(Stream *stream, unsigned) {
  ENTER(cuStreamCreate);
  if (!now())
    return kInvalidContext;
  *stream = make(new StreamHandle{now()}, state.live.streams);
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream stream) {
  ENTER_ANYWAY(cuStreamDestroy_v2);
  if (!drop(stream, state.live.streams))
    return kInvalidHandle;
  delete stream;
  return failure;
}
Result cuStreamSynchronize(Stream stream) {
  ENTER(cuStreamSynchronize);
  return stream && !known(stream) ? kInvalidHandle : kSuccess;
}
Result cuStreamGetCtx(Stream stream, Context *context) {
  ENTER(cuStreamGetCtx);
  *context = stream->context;
  return kSuccess;
}
Result cuEventCreate(Event *event, unsigned) {
  ENTER(cuEventCreate);
  *event = make(new EventHandle(), state.live.events);
  return kSuccess;
}
Result cuEventDestroy_v2(Event event) {
  ENTER_ANYWAY(cuEventDestroy_v2);
  if (!drop(event, state.live.events))
    return kInvalidHandle;
  delete event;
  return failure;
}
Result cuEventRecord(Event event, Stream) {
  ENTER(cuEventRecord);
  event->time = std::chrono::steady_clock::now();
  return kSuccess;
}
Result cuEventSynchronize(Event) {
  ENTER(cuEventSynchronize);
  return kSuccess;
}
Result cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  ENTER(cuEventElapsedTime);
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return kSuccess;
}

} // extern "C"
