//===- HostInstance.h - A step on the CPU ---------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_HOSTINSTANCE_H
#define NOVA_RUNTIME_HOSTINSTANCE_H

#include "HostProgram.h"
#include "Instance.h"
#include "ThreadPool.h"

#include <memory>
#include <vector>

namespace nova::rt {

class HostInstance final : public Instance {
public:
  /// `threads` 0: one per CPU that this process may use.
  static Expected<std::unique_ptr<Instance>>
  create(std::shared_ptr<const HostProgram> program, unsigned threads);

  unsigned threads() const override { return pool->size(); }

private:
  /// A launch, resolved: everything a step needs without a look at the
  /// manifest. `first` is its first argument in `slots`.
  struct Step {
    bundle::LaunchKind kind;
    size_t first;
    KernelFunction function = nullptr;
    int64_t points = 0;
    bool serial = false; ///< Too little work to be worth waking threads.
    uint64_t count = 0;  ///< Memset, copy: bytes.
    int value = 0;       ///< Memset.
  };

  explicit HostInstance(std::shared_ptr<const HostProgram> program);
  void resolve();
  void resolveArgument(const bundle::LaunchArg &arg);
  void runLaunches();
  Status runStep(void *stream) override;
  Status runAdvance(void *stream) override;

  std::shared_ptr<const HostProgram> program;
  Memory arena;
  std::unique_ptr<ThreadPool> pool;
  std::vector<Step> steps;
  std::vector<std::unique_ptr<uint64_t>> immediates;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_HOSTINSTANCE_H
