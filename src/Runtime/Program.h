//===- Program.h - An opened bundle, and one of its targets loaded --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime. What stands behind nova_rt_bundle_t and
// nova_rt_program_t; immutable once made, so shared without locks.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_PROGRAM_H
#define NOVA_RUNTIME_PROGRAM_H

#include "HostModule.h"
#include "Memory.h"
#include "ThreadPool.h"
#include "nova/Bundle/Bundle.h"

#include <memory>
#include <string>
#include <vector>

namespace nova::rt {

/// The manifest of a bundle folder, checked; blobs are read when needed.
struct OpenedBundle {
  std::string dir;
  bundle::Manifest manifest;

  static Expected<std::shared_ptr<const OpenedBundle>>
  open(const std::string &dir);

  /// Every blob against its size and digest.
  Status verify() const;
  /// The target for a device: -1 is the CPU, else a GPU's ordinal. See
  /// nova_rt_bundle_choose.
  Expected<uint32_t> choose(int device) const;
};

/// The code and constants of a host target.
struct Program {
  std::shared_ptr<const OpenedBundle> bundle;
  const bundle::Target *target = nullptr;
  std::vector<std::shared_ptr<HostModule>> modules;
  std::vector<KernelFunction> functions; ///< Per kernel of the target.
  std::vector<Memory> constants;         ///< Per constant of the target.

  static Expected<std::shared_ptr<const Program>>
  load(std::shared_ptr<const OpenedBundle> bundle, uint32_t target);
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_PROGRAM_H
