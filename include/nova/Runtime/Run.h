//===- Run.h - The commands `run` and `verify` of a bundle ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one implementation behind `novac run`, `novac verify` and nova-run, on
// top of the C ABI of libnova_rt. No LLVM here, no flags: callers parse.
//
// Data files are safetensors: `in/<input name>` for every input, `out/<i>` for
// output i, contiguous in their logical shape whatever the strides.
//
// Random inputs (`seed`). Element j of the input named n is drawn from
//   h = mix(mix(seed + 0x9e3779b97f4a7c15 * (1 + fnv1a64(n))) +
//           0x9e3779b97f4a7c15 * (1 + j))
// with mix the finaliser of SplitMix64; so it depends on nothing but the seed,
// the name and its row-major position. U = (h >> 11) / 2^53 is uniform in
// [0,1); N = sqrt(3) * (sum of the four 16-bit fields of h / 65536 - 2 +
// 2/65536) has mean 0 and variance 1. Then, by role and dtype:
//   parameter  rank 0 or 1: 0.5 + 0.1 N (scales and biases of either kind);
//              higher rank: 0.02 N
//   state      rank 0: 1; else 0.001 + 0.009 U, so second moments are positive
//   scalar     with `advance`: 1 (a count); else floating 0.001, integer 1
//   buffer, input, floating: N
//   integers of every other role: h modulo the smallest extent above 1 of any
//              parameter, buffer or input of the bundle (2 if there is none, at
//              most 127): an index into whichever of them it is meant for
//   bool       h modulo 2
//
// The rule of rightness, for output i with reference `ref`, `ours`, and for an
// update `in`, the value it replaces. d = ref - in for an update and ref
// otherwise, over finite elements; e = ours - ref; ulp that of the dtype:
//   1. every element: |e| <= 2 ulp(ref) + tau * max|d|
//   2. as a whole: norm2(max(|e| - 2 ulp(ref), 0)) <= tau2 * norm2(d)
//   3. loss: |e| <= tau_loss * |ref|; integers and bool: equal; NaN where the
//      reference has NaN, inf where it has the same inf, and nowhere else
// Columns (tau, tau2, tau_loss): f32 1e-5 1e-5 2e-6; tf32 1e-2 5e-3 2e-5;
// bf16 5e-2 2e-2 2e-3. bf16 where numerics.matmul is bf16 or the graph itself
// multiplies 16-bit tensors; else f32 for the host target (it multiplies in
// float32 for f32 and tf32); else what numerics.matmul says. An output that
// zeros, or for an update `in`, would pass too is untested. Verification fails
// when an output fails, or when no update and no gradient is tested.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_H
#define NOVA_RUNTIME_RUN_H

#include "nova/Support/Error.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace nova::run {

struct RunOptions {
  /// Folder of the bundle.
  std::string bundle;
  /// Inputs from this file, or random from `seed` (0 when neither is given).
  std::optional<std::string> data;
  std::optional<uint64_t> seed;
  uint64_t steps = 1;
  /// "NAME=VALUE": a scalar input, by name or path, before the first step.
  std::vector<std::string> set;
  /// Where to write `out/<i>` and the final `in/<name>`.
  std::optional<std::string> out;
  /// "host", the ordinal of a GPU, or "": host where the bundle has that
  /// target, else GPU 0.
  std::string device;
  /// Host: 0 is one per usable CPU.
  unsigned threads = 0;
  /// PTX may go to the driver's compiler; said on `log` where it does.
  bool allowJit = false;
  /// How launches get onto a GPU: "graph", "chain" (a graph, one launch after
  /// the other), "plain" (one call per launch), or "" for graph.
  std::string launch;
  bool time = false;
  bool json = false;
};

/// Runs `steps` steps. On `out`, one line per step: "step K  loss X" (all loss
/// outputs); with `json` one object at the end instead. Timing goes to `log`.
///
/// With `time`, steps run back to back and only the last one's losses are read;
/// then come the times, with `json` as the object `timing`:
///   open_ms                   of the wall clock, by part: manifest (meanwhile
///                             the driver of the GPU that was asked for
///                             starts), choose (the rest of that), load
///                             (context, modules, constants), arena, buffers
///   first_launch_ms           of the CPU: it builds the graph
///   open_to_first_launch_ms   the sum of the above
///   step_ms                   of the device, by events around each step but
///                             the first; what advances scalars is not in it
///   launch_us                 of the CPU, the same steps
///   bind_launch_us            of the CPU, step after step: bind all buffers
///                             and launch, where since the launch before
///                             nothing has changed (unchanged), two sets of
///                             buffers take turns (alternating), or 1, 16 or
///                             all have addresses that were never bound before
///                             (1_new, 16_new, all_new)
///   bind_launch_idle_us       the same, each after a wait for the step before;
///                             both null for host, or without memory for a
///                             second set
///   graph_nodes, graph_builds
/// each of several values as count, min, median, mean, max.
Status run(const RunOptions &options, std::ostream &out, std::ostream &log);

struct VerifyOptions {
  std::string bundle;
  /// Compare one step with this file's `out/<i>`.
  std::optional<std::string> data;
  /// Or, on random inputs, with the host target of `reference`; when that is
  /// empty, every other target of the bundle that runs here with the bundle's
  /// own host target.
  std::optional<uint64_t> seed;
  std::string reference;
  /// Instead of the column's three numbers: "not the standard rule".
  std::optional<double> tolerance;
  /// GPU targets are executed on the CPU from their PTX (nova/Simulator): those
  /// named here, by architecture or device, or all. Compared with `data`, or on
  /// random inputs (seed 0 when there is none) with the bundle's host target.
  bool simulate = false;
  std::vector<std::string> simulateTargets;
  /// Orders of warps that are tried; results must have the same bits.
  uint64_t interleavings = 1;
  /// As in RunOptions. With a seed and no `reference`, "" is every target that
  /// runs on GPU 0.
  std::string device;
  unsigned threads = 0;
  bool allowJit = false;
  std::string launch;
  bool json = false;
};

/// With neither data nor seed, checks manifest and digests and says that it
/// compared no numbers. Otherwise prints the column and per output the largest
/// used fraction of each bound. ErrorCode::Verification when it fails.
Status verify(const VerifyOptions &options, std::ostream &out,
              std::ostream &log);

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_H
