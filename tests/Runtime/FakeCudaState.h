//===- FakeCudaState.h - What the parts of the fake driver share ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_RUNTIME_FAKECUDASTATE_H
#define NOVA_TESTS_RUNTIME_FAKECUDASTATE_H

#include "FakeCuda.h"
#include "Runtime/Cuda/CudaApi.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

using namespace nova::rt::cuda; // a private header of one library
using namespace nova::test;

extern "C" {
// The definitions below have the signatures that the loader calls.
#define NOVA_FAKE_DECLARE(member, symbol, ...)                                 \
  __attribute__((visibility("default"))) Result symbol(__VA_ARGS__);
NOVA_CUDA_REQUIRED(NOVA_FAKE_DECLARE)
NOVA_CUDA_OPTIONAL(NOVA_FAKE_DECLARE)
#undef NOVA_FAKE_DECLARE
}

namespace nova::rt::cuda {
struct ContextHandle {
  int device;
  std::map<DevicePtr, size_t> allocations;
};
struct ModuleHandle {
  Context context;
  bool ptx;
  std::map<std::string, FunctionHandle *> functions;
};
struct FunctionHandle {
  Context context;
  std::string name;
  std::vector<size_t> sizes;
  unsigned mostShared = 48 << 10;
};
struct StreamHandle {
  Context context;
};
struct EventHandle {
  std::chrono::steady_clock::time_point time;
};
struct GraphNodeHandle {
  Graph graph;
  size_t index;
};
/// A node with what it does.
struct Work {
  FakeNode node;
  Function function = nullptr;
  Context context = nullptr;
  DevicePtr to = 0, from = 0;
  size_t bytes = 0;
  unsigned value = 0, elementSize = 1;
};
struct GraphHandle {
  std::vector<Work> works;
  std::vector<std::unique_ptr<GraphNodeHandle>> nodes;
};
struct GraphExecHandle {
  std::vector<Work> works;
};
} // namespace nova::rt::cuda

namespace nova::test::driver {

inline constexpr Result kInvalidHandle = 400;

extern std::recursive_mutex mutex;
extern FakeCuda state;
extern std::set<void *> handles;

/// Counts a call, and tells whether it is the one that fails.
Result enter(const char *function);
/// The current context of this thread; that of a stream.
Context now();
Context contextOf(Stream stream);

/// Runs what a node or a call does, in the memory of the process.
Result execute(const Work &work, Context context);
Work kernelWork(const KernelNodeParams &p);
Work memsetWork(const MemsetNodeParams &p, Context context);
Work copyWork(const Memcpy3D &p, Context context);

template <typename T> T *make(T *handle, size_t &count) {
  handles.insert(handle);
  ++count;
  return handle;
}
template <typename T> bool drop(T *handle, size_t &count) {
  if (!handles.erase(handle))
    return false;
  --count;
  return true;
}

} // namespace nova::test::driver

using namespace nova::test::driver;

#define ENTER(function)                                                        \
  std::lock_guard<std::recursive_mutex> lock(mutex);                           \
  if (Result failure = enter(#function))                                       \
  return failure
/// What destroys does so even when it reports the failure of something earlier.
#define ENTER_ANYWAY(function)                                                 \
  std::lock_guard<std::recursive_mutex> lock(mutex);                           \
  const Result failure = enter(#function)

#endif // NOVA_TESTS_RUNTIME_FAKECUDASTATE_H
