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

#include <functional>
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

/// Runs `kernel` on `total` inputs, made by `input(i, a, b)`, in blocks over two
/// threads, and measures it against `reference(a, b)`. T is float or double, R
/// the wider type of the reference.
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
          mine = {ulp, double(a[i]), double(b[i]), double(out[i]),
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

} // namespace nova::test

#endif // NOVA_TESTS_MATH_SWEEP_H
