//===- KernelProgress.h - Kernels compiled side by side -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_PIPELINES_KERNELPROGRESS_H
#define NOVA_PIPELINES_KERNELPROGRESS_H

#include <cstddef>
#include <functional>
#include <string>

namespace nova {

/// Called as each kernel is done, under a lock, in any order: how many are, of
/// how many, and what this one cost.
struct KernelDone {
  size_t done = 0, total = 0;
  std::string kernel;
  double seconds = 0;
  size_t objectBytes = 0;
};
using KernelProgress = std::function<void(const KernelDone &)>;

} // namespace nova

#endif // NOVA_PIPELINES_KERNELPROGRESS_H
