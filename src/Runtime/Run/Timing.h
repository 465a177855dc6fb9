//===- Timing.h - How long steps take -------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime/Run. What `run --time` measures; Run.h says what the
// numbers are.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_TIMING_H
#define NOVA_RUNTIME_RUN_TIMING_H

#include "Session.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <vector>

namespace nova::run {

struct Timings {
  double firstLaunch = 0;     ///< Milliseconds of the CPU.
  std::vector<double> step;   ///< Milliseconds of the device, per step.
  std::vector<double> launch; ///< Microseconds of the CPU, per step.
  /// Microseconds of the CPU to bind all and launch, by what has changed since
  /// the launch before.
  struct Binding {
    std::vector<double> unchanged;
    std::vector<double> alternating; ///< Two sets of buffers in turn.
    /// Addresses that were never bound before: of one buffer, of sixteen, of
    /// all.
    std::vector<double> one, sixteen, all;
  };
  /// Step after step, as a training loop does; and each after a wait for the
  /// one before, which leaves the CPU's caches cold. Not measured for host, nor
  /// where there is no memory for a second set of buffers.
  std::optional<Binding> loop, idle;
};

/// Runs `steps` steps back to back, advancing between them, and waits for the
/// last.
Expected<Timings> timeSteps(Session &session, uint64_t steps);

/// Further steps that bind: last of all, for they change the results.
Status timeBinding(Session &session, Timings &timings);

nlohmann::json toJson(const Timings &timings, const Session &session);

/// "median 1.234 (min 1.2, max 2)".
std::string summary(std::vector<double> values);

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_TIMING_H
