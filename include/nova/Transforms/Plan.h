//===- Plan.h - The memory plan on a step ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After nova-plan-memory the operations nova.launch and nova.transfer of the
// step, in order, are the launch list. Each carries
//
//   nova.places   one #nova.place per operand, then one per result (launches)
//   nova.after    array<i64>: indices of the operations it must follow
//
// and the step function carries
//
//   nova.arena    {size, lower_bound, buffers = [#nova.buffer, ...]} in bytes
//
// A kernel's arguments and results whose addresses are not multiples of 16 bytes in
// every launch carry nova.alignment.
//
// Input and output indices are those of the step's arguments and results; a
// constant's index is its order among the step's nova.constant operations.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_PLAN_H
#define NOVA_TRANSFORMS_PLAN_H

#include <cstdint>
#include <vector>

namespace nova {

/// Arena buffers start at multiples of this many bytes.
inline constexpr int64_t kArenaAlignment = 256;

/// A piece of memory needed by the operations first to last, both included.
struct Lifetime {
  int64_t size = 0; ///< Bytes.
  int64_t first = 0, last = 0;
  int64_t offset = -1; ///< Chosen by packArena.
};

/// Gives every lifetime an offset such that no two that overlap in time overlap
/// in memory: largest first, each as low as it fits. Returns the arena's size.
int64_t packArena(std::vector<Lifetime> &lifetimes);

/// The most bytes alive at one time: no arena is smaller.
int64_t peakLiveBytes(const std::vector<Lifetime> &lifetimes);

} // namespace nova

#endif // NOVA_TRANSFORMS_PLAN_H
