//===- ThreadPool.h - The threads that run host kernels -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All kernels run on threads of the loader: kernels keep scratch on the stack,
// and the stack of a caller's thread may be of any size; nor does the caller's
// rounding or flush-to-zero mode reach the results. One thread leads a step and
// the others help it with grids that are worth cutting.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_THREADPOOL_H
#define NOVA_RUNTIME_THREADPOOL_H

#include "nova/Support/Error.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <pthread.h>

namespace nova::rt {

/// A compiled host kernel over grid points [first, last).
using KernelFunction = void (*)(void *const *args, int64_t first, int64_t last);

class ThreadPool {
public:
  /// Stack of each thread, in bytes; touched pages only cost memory.
  static constexpr size_t kStackBytes = size_t(64) << 20;
  static constexpr unsigned kMaxThreads = 1024;

  /// `threads` from 1 to kMaxThreads. Missing when the system gives no more.
  static Expected<std::unique_ptr<ThreadPool>> create(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned size() const { return static_cast<unsigned>(threads.size()); }

  /// Runs `step` on the leading thread and returns when it has returned. One
  /// caller at a time.
  void run(const std::function<void()> &step);

  /// Within a step: all of [0, points), cut over the threads.
  void parallel(KernelFunction function, void *const *args, int64_t points);

private:
  ThreadPool() = default;
  static void *enterLeader(void *self);
  static void *enterHelper(void *self);
  void lead();
  void help();
  bool claimAndRun(uint64_t ticket);

  std::vector<pthread_t> threads;

  // Handing a step to the leader: once per step, so plain locks.
  std::mutex mutex;
  std::condition_variable wake, finished;
  const std::function<void()> *step = nullptr;
  bool stopping = false;

  // The grid in progress. The ticket is (epoch << 32 | chunks << 16 | next):
  // taking a chunk is one compare-and-swap that succeeds only while that grid
  // is unfinished, so the plain fields below are stable for whoever holds a
  // chunk, and a helper that comes late finds nothing and delays nobody.
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<uint32_t> done{0};
  KernelFunction function = nullptr;
  void *const *args = nullptr;
  int64_t points = 0;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_THREADPOOL_H
