//===- Stopwatch.h - Milliseconds of the CPU's clock ----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime/Run.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_STOPWATCH_H
#define NOVA_RUNTIME_RUN_STOPWATCH_H

#include <chrono>

namespace nova::run {

class Stopwatch {
public:
  /// Milliseconds since the last lap, or since the start.
  double lap() {
    Clock::time_point now = Clock::now();
    std::chrono::duration<double, std::milli> passed = now - last;
    last = now;
    return passed.count();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
};

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_STOPWATCH_H
