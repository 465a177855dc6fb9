//===- CudaApi.h - What the loader uses of the CUDA driver API ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime. Declarations of our own, so that no CUDA toolkit is
// needed to build. The driver's binary interface is stable by symbol name: a
// struct or signature that changed has another suffix, so each entry names the
// exact symbol, never the bare name that a header would redirect.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDAAPI_H
#define NOVA_RUNTIME_CUDA_CUDAAPI_H

#include <cstddef>
#include <cstdint>

namespace nova::rt::cuda {

using Result = int; ///< CUresult
using Device = int; ///< CUdevice
using DevicePtr = unsigned long long;
using Context = struct ContextHandle *;
using Module = struct ModuleHandle *;
using Function = struct FunctionHandle *;
using Stream = struct StreamHandle *;
using Event = struct EventHandle *;
using Graph = struct GraphHandle *;
using GraphNode = struct GraphNodeHandle *;
using GraphExec = struct GraphExecHandle *;
using HostFunction = void (*)(void *);

/// Results that the loader tells apart.
enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInsufficientDriver = 35,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kJitCompilationDisabled = 223,
  kInvalidSource = 300,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchFailed = 719,
  kSystemDriverMismatch = 803,
  kCompatNotSupported = 804,
};

/// CUdevice_attribute.
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2, ///< Y is 3, Z is 4.
  kMaxGridDimX = 5,  ///< Y is 6, Z is 7.
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
  kClusterLaunch = 120,
};

/// CUfunction_attribute.
enum FunctionAttribute : int {
  kFunctionSharedSizeBytes = 1,
  kFunctionMaxDynamicSharedSizeBytes = 8,
  kFunctionNonPortableClusterSizeAllowed = 14,
};

/// CUjit_option; a value is passed in the bits of its pointer.
enum JitOption : int { kJitErrorLogBuffer = 5, kJitErrorLogBufferSize = 6 };

constexpr int kMemoryTypeDevice = 2;          ///< CU_MEMORYTYPE_DEVICE
constexpr int kAttributeClusterDimension = 4; ///< CU_LAUNCH_ATTRIBUTE_...
constexpr unsigned kStreamNonBlocking = 1;    ///< CU_STREAM_NON_BLOCKING

/// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNodeParams {
  Function func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void **kernelParams; ///< Addresses of the values, one per parameter.
  void **extra;
  void *kern;
  Context ctx;
};

/// CUDA_MEMSET_NODE_PARAMS_v1
struct MemsetNodeParams {
  DevicePtr dst;
  size_t pitch;
  unsigned value;
  unsigned elementSize; ///< 1, 2 or 4 bytes.
  size_t width;         ///< In elements.
  size_t height;
};

/// CUDA_MEMCPY3D_v2
struct Memcpy3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  int srcMemoryType;
  const void *srcHost;
  DevicePtr srcDevice;
  void *srcArray;
  void *reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  int dstMemoryType;
  void *dstHost;
  DevicePtr dstDevice;
  void *dstArray;
  void *reserved1;
  size_t dstPitch, dstHeight;
  size_t widthInBytes, height, depth;
};

/// CUlaunchAttributeValue, of which the loader uses one member.
union LaunchAttributeValue {
  char pad[64];
  struct {
    unsigned x, y, z;
  } clusterDim;
};

/// CUlaunchAttribute
struct LaunchAttribute {
  int id;
  char pad[4];
  LaunchAttributeValue value;
};

/// CUlaunchConfig
struct LaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  Stream stream;
  LaunchAttribute *attrs;
  unsigned numAttrs;
};

/// CUtensorMap: opaque, and what a kernel takes by value.
struct alignas(64) TensorMapBits {
  uint64_t words[16];
};

} // namespace nova::rt::cuda

/// Every function that must be there: X(member, symbol, parameters...). All are
/// in the driver of CUDA 12.0.
#define NOVA_CUDA_REQUIRED(X)                                                  \
  X(init, cuInit, unsigned flags)                                              \
  X(driverGetVersion, cuDriverGetVersion, int *version)                        \
  X(getErrorName, cuGetErrorName, Result result, const char **name)            \
  X(getErrorString, cuGetErrorString, Result result, const char **text)        \
  X(deviceGetCount, cuDeviceGetCount, int *count)                              \
  X(deviceGet, cuDeviceGet, Device *device, int ordinal)                       \
  X(deviceGetName, cuDeviceGetName, char *name, int size, Device device)       \
  X(deviceGetAttribute, cuDeviceGetAttribute, int *value, int attribute,       \
    Device device)                                                             \
  X(deviceTotalMem, cuDeviceTotalMem_v2, size_t *bytes, Device device)         \
  X(primaryCtxRetain, cuDevicePrimaryCtxRetain, Context *context,              \
    Device device)                                                             \
  X(primaryCtxRelease, cuDevicePrimaryCtxRelease_v2, Device device)            \
  X(ctxGetCurrent, cuCtxGetCurrent, Context *context)                          \
  X(ctxGetDevice, cuCtxGetDevice, Device *device)                              \
  X(ctxPushCurrent, cuCtxPushCurrent_v2, Context context)                      \
  X(ctxPopCurrent, cuCtxPopCurrent_v2, Context *context)                       \
  X(memGetInfo, cuMemGetInfo_v2, size_t *free, size_t *total)                  \
  X(memAlloc, cuMemAlloc_v2, DevicePtr *address, size_t bytes)                 \
  X(memFree, cuMemFree_v2, DevicePtr address)                                  \
  X(memHostAlloc, cuMemHostAlloc, void **address, size_t bytes,                \
    unsigned flags)                                                            \
  X(memFreeHost, cuMemFreeHost, void *address)                                 \
  X(memcpyHtoDAsync, cuMemcpyHtoDAsync_v2, DevicePtr to, const void *from,     \
    size_t bytes, Stream stream)                                               \
  X(memcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void *to, DevicePtr from,           \
    size_t bytes, Stream stream)                                               \
  X(memcpyDtoDAsync, cuMemcpyDtoDAsync_v2, DevicePtr to, DevicePtr from,       \
    size_t bytes, Stream stream)                                               \
  X(memsetD8Async, cuMemsetD8Async, DevicePtr to, unsigned char value,         \
    size_t count, Stream stream)                                               \
  X(moduleLoadDataEx, cuModuleLoadDataEx, Module *module, const void *image,   \
    unsigned count, int *options, void **values)                               \
  X(moduleUnload, cuModuleUnload, Module module)                               \
  X(moduleGetFunction, cuModuleGetFunction, Function *function, Module module, \
    const char *name)                                                          \
  X(funcSetAttribute, cuFuncSetAttribute, Function function, int attribute,    \
    int value)                                                                 \
  X(funcGetAttribute, cuFuncGetAttribute, int *value, int attribute,           \
    Function function)                                                         \
  X(launchKernel, cuLaunchKernel, Function function, unsigned gridX,           \
    unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,          \
    unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters,   \
    void **extra)                                                              \
  X(launchKernelEx, cuLaunchKernelEx, const LaunchConfig *config,              \
    Function function, void **parameters, void **extra)                        \
  X(launchHostFunc, cuLaunchHostFunc, Stream stream, HostFunction function,    \
    void *data)                                                                \
  X(streamCreate, cuStreamCreate, Stream *stream, unsigned flags)              \
  X(streamDestroy, cuStreamDestroy_v2, Stream stream)                          \
  X(streamSynchronize, cuStreamSynchronize, Stream stream)                     \
  X(streamGetCtx, cuStreamGetCtx, Stream stream, Context *context)             \
  X(eventCreate, cuEventCreate, Event *event, unsigned flags)                  \
  X(eventDestroy, cuEventDestroy_v2, Event event)                              \
  X(eventRecord, cuEventRecord, Event event, Stream stream)                    \
  X(eventSynchronize, cuEventSynchronize, Event event)                         \
  X(eventElapsedTime, cuEventElapsedTime, float *milliseconds, Event begin,    \
    Event end)                                                                 \
  X(graphCreate, cuGraphCreate, Graph *graph, unsigned flags)                  \
  X(graphDestroy, cuGraphDestroy, Graph graph)                                 \
  X(graphAddKernelNode, cuGraphAddKernelNode_v2, GraphNode *node, Graph graph, \
    const GraphNode *after, size_t count, const KernelNodeParams *parameters)  \
  X(graphAddMemsetNode, cuGraphAddMemsetNode, GraphNode *node, Graph graph,    \
    const GraphNode *after, size_t count, const MemsetNodeParams *parameters,  \
    Context context)                                                           \
  X(graphAddMemcpyNode, cuGraphAddMemcpyNode, GraphNode *node, Graph graph,    \
    const GraphNode *after, size_t count, const Memcpy3D *parameters,          \
    Context context)                                                           \
  X(graphAddEmptyNode, cuGraphAddEmptyNode, GraphNode *node, Graph graph,      \
    const GraphNode *after, size_t count)                                      \
  X(graphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute,                \
    GraphNode node, int attribute, const LaunchAttributeValue *value)          \
  X(graphInstantiate, cuGraphInstantiateWithFlags, GraphExec *exec,            \
    Graph graph, unsigned long long flags)                                     \
  X(graphExecDestroy, cuGraphExecDestroy, GraphExec exec)                      \
  X(graphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2,           \
    GraphExec exec, GraphNode node, const KernelNodeParams *parameters)        \
  X(graphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams,              \
    GraphExec exec, GraphNode node, const MemsetNodeParams *parameters,        \
    Context context)                                                           \
  X(graphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams,              \
    GraphExec exec, GraphNode node, const Memcpy3D *parameters,                \
    Context context)                                                           \
  X(graphLaunch, cuGraphLaunch, GraphExec exec, Stream stream)                 \
  X(tensorMapEncodeTiled, cuTensorMapEncodeTiled, TensorMapBits *map,          \
    int elementType, unsigned rank, void *address, const uint64_t *sizes,      \
    const uint64_t *strides, const unsigned *box,                              \
    const unsigned *elementStrides, int interleave, int swizzle,               \
    int l2Promotion, int fill)                                                 \
  X(tensorMapReplaceAddress, cuTensorMapReplaceAddress, TensorMapBits *map,    \
    void *address)

/// Functions of newer drivers (12.4); their member is null where they are
/// absent.
#define NOVA_CUDA_OPTIONAL(X)                                                  \
  X(funcLoad, cuFuncLoad, Function function)                                   \
  X(funcGetParamInfo, cuFuncGetParamInfo, Function function, size_t index,     \
    size_t *offset, size_t *size)

namespace nova::rt::cuda {

/// The functions, by pointers that the dynamic linker has found.
struct Api {
#define NOVA_CUDA_MEMBER(member, symbol, ...)                                  \
  Result (*member)(__VA_ARGS__) = nullptr;
  NOVA_CUDA_REQUIRED(NOVA_CUDA_MEMBER)
  NOVA_CUDA_OPTIONAL(NOVA_CUDA_MEMBER)
#undef NOVA_CUDA_MEMBER
};

} // namespace nova::rt::cuda

#endif // NOVA_RUNTIME_CUDA_CUDAAPI_H
