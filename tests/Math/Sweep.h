//===- Sweep.h - Largest error of a kernel over many inputs ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_MATH_SWEEP_H
#define NOVA_TESTS_MATH_SWEEP_H

#include "Jit.h"
#include "Ulp.h"

#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

namespace nova::test {

/// Set by --exhaustive: every float32 instead of a sample.
extern bool exhaustive;
/// Set by --cost: print the time per element of each function.
extern bool showCost;
/// Set by --asm: the same and the assembly.
extern bool showAssembly;

/// The largest error met, and where.
struct Worst {
  double ulp = -1;
  double a = 0, b = 0, got = 0, want = 0;
  uint64_t count = 0;

  void merge(const Worst &other) {
    uint64_t sum = count + other.count;
    if (other.ulp > ulp)
      *this = other;
    count = sum;
  }
};

/// Runs `kernel` on `total` inputs, made by `input(i, a, b)`, in blocks over
/// two threads, and measures it against `reference(a, b)`. T is float or
/// double, R the wider type of the reference.
template <typename T, typename R, typename Input, typename Reference>
Worst sweep(const JitKernel &kernel, uint64_t total, Input input,
            Reference reference) {
  Worst worst;
  std::mutex mutex;
  auto work = [&](uint64_t thread, uint64_t threads) {
    alignas(64) T a[kBlock], b[kBlock], out[kBlock];
    Worst mine;
    for (uint64_t first = thread * kBlock; first < total;
         first += threads * kBlock) {
      for (uint64_t i = 0; i < kBlock; ++i)
        input(std::min(first + i, total - 1), a[i], b[i]);
      kernel(a, b, out);
      for (uint64_t i = 0; i < kBlock; ++i) {
        R want = reference(a[i], b[i]);
        double ulp = ulpError(out[i], want);
        if (ulp > mine.ulp)
          mine = {ulp,          double(a[i]), double(b[i]), double(out[i]),
                  double(want), mine.count};
      }
      mine.count += std::min<uint64_t>(kBlock, total - first);
    }
    std::lock_guard<std::mutex> lock(mutex);
    worst.merge(mine);
  };
  std::thread second(work, 1, 2);
  work(0, 2);
  second.join();
  return worst;
}

/// Prints the best time of many and the length of the loop, on inputs in
/// [low, high), where --cost or --asm asks for it.
template <typename T>
void showCostOf(const char *name, const JitKernel &kernel, double low,
                double high) {
  alignas(64) T a[kBlock], b[kBlock], out[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    a[i] = T(low + (high - low) * double(i) / kBlock);
    b[i] = T(high - (high - low) * double(i) / kBlock);
  }
  double best = 1e9;
  for (int round = 0; round < 200; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i)
      kernel(a, b, out);
    std::chrono::duration<double, std::nano> time =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / (20.0 * kBlock));
  }
  std::printf("cost f%zu %-6s %.3f ns/element, %u instructions for each store "
              "of 32 bytes\n",
              8 * sizeof(T), name, best, kernel.loopInstructions());
  if (showAssembly)
    std::printf("%s\n", kernel.assembly().c_str());
}

} // namespace nova::test

#endif // NOVA_TESTS_MATH_SWEEP_H
