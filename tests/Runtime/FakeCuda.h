//===- FakeCuda.h - A CUDA driver that is not one -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shared library with the entry points that the loader uses, in the memory of
// the process: it records, checks what a driver would crash on, and fails when
// told to. Tests reach its state by fakeCuda(); a program that is started with
// it, by the environment: FAKE_CUDA_FAIL=FUNCTION:CALL:RESULT,
// FAKE_CUDA_DEVICES=MAJOR.MINOR,... (H200s of that compute capability).
//
// A module's image is text:
//   fake-cubin 9.0          or: fake-ptx 8.0
//   symbol 8 8 4            a kernel and the sizes of its parameters, in bytes
// The kernels of the sample bundle compute; others do nothing.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_RUNTIME_FAKECUDA_H
#define NOVA_TESTS_RUNTIME_FAKECUDA_H

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nova::test {

struct FakeDevice {
  std::string name = "NVIDIA H200";
  int major = 9, minor = 0;
  uint64_t totalBytes = uint64_t(1) << 37, freeBytes = uint64_t(1) << 37;
  int sharedBytesPerBlock = 232448, threadsPerBlock = 1024;
  std::array<int, 3> block{1024, 1024, 64}, grid{2147483647, 65535, 65535};
  int clusters = 1;
};

/// A node of the last graph that was instantiated, or a launch that ran.
struct FakeNode {
  std::string kind; ///< "kernel", "memset", "copy", "empty".
  std::string symbol;
  std::array<unsigned, 3> grid{}, block{}, cluster{};
  unsigned sharedBytes = 0;
  std::vector<std::string> values; ///< Bytes of each parameter.
  std::vector<size_t> after;       ///< Nodes of the graph.
};

/// What is in the 128 bytes of a tensor map here.
struct FakeTensorMap {
  uint64_t address;
  uint64_t sizes[5], strides[4];
  uint16_t box[5];
  uint8_t elementStrides[5];
  uint8_t elementType, rank, interleave, swizzle, l2Promotion, fill;
};
static_assert(sizeof(FakeTensorMap) <= 128);

/// Handles that were made and not destroyed.
struct FakeLive {
  size_t allocations = 0, pinned = 0, modules = 0, graphs = 0, execs = 0,
         streams = 0, events = 0, retained = 0;
  size_t total() const {
    return allocations + pinned + modules + graphs + execs + streams + events +
           retained;
  }
};

struct FakeCuda {
  // What it is told.
  std::vector<FakeDevice> devices{FakeDevice()};
  int driverVersion = 13000;
  /// The call that fails, counted from 1: of this function, or "" for any.
  std::string failFunction;
  int failCall = 0;
  int failResult = 0;
  std::string failed; ///< The function that did.

  // What it has seen.
  std::map<std::string, int> calls;
  int totalCalls = 0;
  std::vector<std::string> sequence; ///< The functions, call by call.
  FakeLive live;
  std::vector<FakeNode> graph;                   ///< As instantiated last.
  std::vector<FakeNode> launched;                ///< In the order of running.
  std::map<std::string, int> functionAttributes; ///< "symbol:attribute".
};

} // namespace nova::test

extern "C" {
nova::test::FakeCuda *fakeCuda();
/// As at the start, but for handles that are still live.
void fakeCudaReset();
/// A context of a device that is not its primary one, and back.
void *fakeCudaContext(int device);
void fakeCudaDropContext(void *context);
}

#endif // NOVA_TESTS_RUNTIME_FAKECUDA_H
