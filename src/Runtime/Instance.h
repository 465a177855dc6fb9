//===- Instance.h - A program with an arena, bound to buffers -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime. What stands behind nova_rt_instance_t.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_INSTANCE_H
#define NOVA_RUNTIME_INSTANCE_H

#include "Program.h"
#include "ThreadPool.h"

#include <memory>
#include <mutex>
#include <vector>

namespace nova::rt {

class Instance {
public:
  /// `threads` 0: one per CPU that this process may use.
  static Expected<std::unique_ptr<Instance>>
  create(std::shared_ptr<const Program> program, unsigned threads);

  Status bindInput(uint32_t index, void *address);
  Status bindOutput(uint32_t index, void *address);
  Status launch();
  Status advance();
  unsigned threads() const { return pool->size(); }

private:
  /// A buffer that the caller gives, and where its address goes.
  struct Binding {
    const bundle::TensorDesc *tensor = nullptr;
    bool written = false;
    void *address = nullptr;
    bool bound = false;
    struct Use {
      size_t argument; ///< Index of `arguments`.
      uint64_t offset; ///< Bytes.
    };
    std::vector<Use> uses;
  };
  /// A launch, resolved: everything a step needs without a look at the
  /// manifest. `first` is its first argument in `arguments`.
  struct Step {
    bundle::LaunchKind kind;
    size_t first;
    KernelFunction function = nullptr;
    int64_t points = 0;
    bool serial = false; ///< Too little work to be worth waking threads.
    uint64_t count = 0;  ///< Memset, copy: bytes.
    int value = 0;       ///< Memset.
  };

  Instance() = default;
  void resolve();
  void resolveArgument(const bundle::LaunchArg &arg);
  Status bind(Binding &binding, const char *what, uint32_t index,
              void *address);
  Status checkBindings();
  void runStep();

  std::shared_ptr<const Program> program;
  Memory arena;
  std::unique_ptr<ThreadPool> pool;
  std::vector<Step> steps;
  std::vector<void *> arguments;
  std::vector<std::unique_ptr<uint64_t>> immediates;
  std::vector<Binding> inputs, outputs;
  std::mutex mutex;
  bool bindingsChanged = true;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_INSTANCE_H
