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

#include "Instance.h"
#include "nova/Bundle/Bundle.h"

#include <map>
#include <memory>
#include <string>

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
  Expected<uint32_t> choose(int device, bool allowJit) const;
  /// Whether that target runs on that device; the reason when it does not.
  Status check(uint32_t target, int device, bool allowJit) const;
};

/// Each blob is read and verified once, however many kernels it holds.
class BlobReader {
public:
  explicit BlobReader(const OpenedBundle &bundle) : bundle(bundle) {}
  Expected<const std::string *> read(uint32_t index);

private:
  const OpenedBundle &bundle;
  std::map<uint32_t, std::string> bytes;
};

/// See nova_rt_load_options_t.
struct LoadOptions {
  bool allowJit = false;
  void *context = nullptr;
  int device = 0;
  uint64_t callerBytes = 0;
};

/// See nova_rt_instance_options_t.
struct InstanceOptions {
  unsigned threads = 0;
  LaunchMode mode = LaunchMode::Graph;
};

/// Time between two points of a stream. See nova_rt_timer_start.
class Timer {
public:
  virtual ~Timer() = default;
  virtual Status start(void *stream) = 0;
  virtual Status stop(void *stream) = 0;
  virtual Expected<double> milliseconds() = 0;
};

/// The code and constants of a target, and the memory of its device for callers
/// that have no library of their own to reach it.
class Program : public std::enable_shared_from_this<Program> {
public:
  virtual ~Program() = default;
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  static Expected<std::shared_ptr<const Program>>
  load(std::shared_ptr<const OpenedBundle> bundle, uint32_t target,
       const LoadOptions &options);

  virtual Expected<std::unique_ptr<Instance>>
  instantiate(const InstanceOptions &options) const = 0;

  /// -1 for the CPU.
  virtual int device() const = 0;
  /// Lives as long as the program.
  virtual const std::string &deviceName() const = 0;
  /// Whether the driver compiled the code from PTX.
  virtual bool jit() const { return false; }

  virtual Expected<void *> allocate(uint64_t bytes) const = 0;
  virtual Status release(void *address) const = 0;
  virtual Status write(void *to, const void *from, uint64_t bytes,
                       void *stream) const = 0;
  virtual Status read(void *to, const void *from, uint64_t bytes,
                      void *stream) const = 0;
  virtual Expected<void *> createStream() const = 0;
  virtual Status destroyStream(void *stream) const = 0;
  virtual Status synchronize(void *stream) const = 0;
  virtual Expected<std::unique_ptr<Timer>> createTimer() const = 0;

  std::shared_ptr<const OpenedBundle> bundle;
  const bundle::Target *target = nullptr;

protected:
  Program() = default;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_PROGRAM_H
