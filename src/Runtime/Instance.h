//===- Instance.h - A program with an arena, bound to buffers -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime. What stands behind nova_rt_instance_t: the caller's
// buffers and where their addresses go. How a step runs is HostInstance's and
// CudaInstance's.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_INSTANCE_H
#define NOVA_RUNTIME_INSTANCE_H

#include "nova/Bundle/Manifest.h"
#include "nova/Support/Error.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace nova::rt {

/// How the launches of a step get onto a GPU.
enum class LaunchMode {
  Graph = 0, ///< One graph with the dependencies of the launch list.
  Chain = 1, ///< One graph, each launch after the one before it.
  Plain = 2, ///< One call per launch.
};

/// What an instance has done so far; see nova_rt_instance_info_t.
struct InstanceCounts {
  uint64_t launches = 0;
  uint64_t graphBuilds = 0;
  uint64_t graphNodes = 0;
  uint64_t nodeUpdates = 0;
};

class Instance {
public:
  virtual ~Instance() = default;
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  Status bindInput(uint32_t index, void *address);
  Status bindOutput(uint32_t index, void *address);
  /// All at once; entries of outputs that update an input are ignored. One
  /// comparison when nothing has changed.
  Status bindAll(void *const *inputs, size_t inputCount, void *const *outputs,
                 size_t outputCount);
  Status launch(void *stream);
  Status advance(void *stream);

  virtual unsigned threads() const { return 0; }
  virtual LaunchMode mode() const { return LaunchMode::Plain; }
  InstanceCounts counts() const;

protected:
  /// `manifest` outlives this.
  explicit Instance(const bundle::Manifest &manifest);

  /// Adds a slot for an argument that is an input or an output, or for any
  /// other: those the derived class fills. Returns its index in `slots`.
  size_t addSlot(const bundle::LaunchArg &arg);
  /// Another address has gone into this slot.
  virtual void slotChanged(size_t) {}
  /// Whether these very addresses have passed the checks of a launch before.
  virtual bool bindingsKnown() { return false; }
  /// With everything bound and checked, under the lock.
  virtual Status runStep(void *stream) = 0;
  /// Adds `advance` to the bound scalars that have one; see scalars().
  virtual Status runAdvance(void *stream) = 0;

  struct Scalar {
    const bundle::TensorDesc *tensor;
    uint32_t input;
    double by;
  };
  /// The inputs that advance().
  const std::vector<Scalar> &advancing() const { return scalars; }
  void *inputAddress(uint32_t index) const { return addresses[index]; }

  /// What is bound: inputs, then outputs. The number changes with them.
  const std::vector<void *> &boundAddresses() const { return addresses; }
  uint64_t bindingNumber() const { return changes; }
  /// How many arguments of launches would have other values, had `other` been
  /// bound.
  size_t differences(const std::vector<void *> &other) const {
    size_t sum = 0;
    for (size_t i = 0; i < addresses.size(); ++i)
      if (addresses[i] != other[i])
        sum += rules[i].uses;
    return sum;
  }
  /// Calls f(slot) for each of them.
  template <typename F>
  void forEachDifference(const std::vector<void *> &other, F f) const {
    for (size_t i = 0; i < addresses.size(); ++i)
      if (addresses[i] != other[i])
        for (const Binding::Use &use : bindings[i].uses)
          f(use.slot);
  }
  /// Puts the addresses into `slots`. Not done when they are bound: a step that
  /// finds them in a graph already has no need of it.
  void fillSlots();

  /// The values of all launch arguments, launch after launch: eight bytes each.
  std::vector<void *> slots;
  InstanceCounts done;

private:
  /// A buffer that the caller gives, and where its address goes.
  struct Binding {
    const bundle::TensorDesc *tensor = nullptr;
    bool isInput = false;
    uint32_t index = 0; ///< Of the input or output.
    bool owned = true;  ///< False for outputs that update an input.
    bool written = false;
    struct Use {
      size_t slot;
      uint64_t offset; ///< Bytes.
    };
    std::vector<Use> uses;
  };
  /// What a bind needs of a Binding, close together: all of them are walked
  /// through, with caches that may be cold.
  struct Rule {
    uint64_t alignment = 1; ///< Of the address.
    uint32_t uses = 0;
    bool sized = false; ///< It has bytes.
    bool bound = false;
  };
  Status bind(size_t at, void *address);
  Error refuse(size_t at, const void *address) const;
  Status checkBindings();
  static std::string nameOf(const Binding &binding);

  const bundle::Manifest &manifest;
  /// Inputs, then outputs; `addresses` beside it, so that it can be compared
  /// with the caller's at once.
  std::vector<Binding> bindings;
  std::vector<void *> addresses;
  std::vector<void *> inSlots; ///< The addresses that `slots` has.
  std::vector<Rule> rules;     ///< Per binding.
  uint64_t changes = 0;        ///< Of `addresses`.
  size_t unbound = 0; ///< Owned buffers of some bytes that have no address.
  std::vector<Scalar> scalars;
  struct Range {
    uintptr_t begin, end;
    uint64_t bytes;
    uint32_t binding;
    bool written;
  };
  std::vector<Range> ranges; ///< Of checkBindings(): memory that is kept.
  bool bindingsChanged = true;
  mutable std::mutex mutex;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_INSTANCE_H
