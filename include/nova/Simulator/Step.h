//===- Step.h - The launch list of a bundle's target, simulated -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_STEP_H
#define NOVA_SIMULATOR_STEP_H

#include "nova/Bundle/Manifest.h"
#include "nova/Simulator/Simulator.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nova::sim {

/// What one launch did.
struct LaunchRecord {
  uint32_t launch = 0;
  std::string kernel;
  Counts counts;
  double seconds = 0; ///< Of wall-clock time.
};

struct StepOutcome {
  std::vector<LaunchRecord> launches;
  Counts counts;      ///< Their sum.
  double seconds = 0; ///< Of wall-clock time.
  /// The step ends at the first launch with one.
  std::optional<Fault> fault;
};

/// The launch list of one GPU target, on buffers of the caller.
///
/// A launch may write what it is said to (bundle::writesArgument).
/// Arena memory is unwritten when its buffer's life begins, outputs at the
/// start.
class Step {
public:
  /// Reads the PTX of every kernel and the constants of target `index`. Missing
  /// for a target without PTX or an instruction that is not known; Verification
  /// for a wrong digest.
  static Expected<Step> open(const std::string &dir,
                             const bundle::Manifest &manifest, uint32_t index);

  /// As open(), from bytes instead of files: blobs[i] is manifest.blobs[i].
  static Expected<Step> make(const bundle::Manifest &manifest, uint32_t index,
                             const std::vector<std::string> &blobs);

  /// One step. `inputs` and `outputs` are the buffers of the signature, in its
  /// order; those of outputs that update an input are not looked at.
  Expected<StepOutcome> run(const std::vector<void *> &inputs,
                            const std::vector<void *> &outputs,
                            const Options &options);

  const bundle::Target &target() const { return *described; }

private:
  Argument argument(uint32_t launch, size_t position,
                    const std::vector<void *> &inputs,
                    const std::vector<void *> &outputs);
  Argument argument(uint32_t launch, size_t position,
                    const bundle::LaunchArg &arg,
                    const std::vector<void *> &inputs,
                    const std::vector<void *> &outputs);
  Expected<bool> transfer(uint32_t launch, const std::vector<void *> &inputs,
                          const std::vector<void *> &outputs,
                          StepOutcome &outcome);

  std::shared_ptr<const bundle::Manifest> manifest;
  const bundle::Target *described = nullptr;
  std::vector<Kernel> kernels;
  std::vector<std::string> constants;
  std::vector<uint8_t> arena, arenaWritten;
  std::vector<std::vector<uint8_t>> outputWritten;
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_STEP_H
