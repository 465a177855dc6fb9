//===- ThreadPool.cpp - The threads that run host kernels -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPool.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace nova;
using namespace nova::rt;

namespace {

/// About 50 microseconds: longer than the serial stretches between most grids
/// of a step, shorter than what anyone would notice when a step has ended.
constexpr int kSpins = 1000;
/// Per thread: enough to even out threads of different speed.
constexpr int64_t kChunksPerThread = 8;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// A new thread inherits its creator's modes; results must not.
void defaultFloatingPoint() {
#if defined(__x86_64__)
  _mm_setcsr(0x1f80);
#endif
}

uint32_t chunksOf(uint64_t ticket) { return (ticket >> 16) & 0xffff; }
uint32_t nextOf(uint64_t ticket) { return ticket & 0xffff; }

/// The ticket that tells helpers to leave: no epoch has chunks < next.
constexpr uint64_t kStop = 1;

} // namespace

Expected<std::unique_ptr<ThreadPool>> ThreadPool::create(unsigned count) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // The program's signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = 0;
  for (unsigned i = 0; i < count && !failure; ++i) {
    pthread_t thread;
    failure = pthread_create(&thread, &attributes,
                             i ? enterHelper : enterLeader, pool.get());
    if (!failure)
      pool->threads.push_back(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (failure)
    return Error{ErrorCode::Missing,
                 "cannot start thread " + std::to_string(pool->size() + 1) +
                     " of " + std::to_string(count) + ": " +
                     std::strerror(failure),
                 "ask for fewer threads"};
  return pool;
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  ticket.store(kStop, std::memory_order_release);
  ticket.notify_all();
  for (pthread_t thread : threads)
    pthread_join(thread, nullptr);
}

void *ThreadPool::enterLeader(void *self) {
  defaultFloatingPoint();
  static_cast<ThreadPool *>(self)->lead();
  return nullptr;
}

void *ThreadPool::enterHelper(void *self) {
  defaultFloatingPoint();
  static_cast<ThreadPool *>(self)->help();
  return nullptr;
}

void ThreadPool::run(const std::function<void()> &body) {
  std::unique_lock<std::mutex> lock(mutex);
  step = &body;
  wake.notify_one();
  finished.wait(lock, [&] { return step == nullptr; });
}

void ThreadPool::lead() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return stopping || step; });
    if (!step)
      return;
    const std::function<void()> *body = step;
    lock.unlock();
    (*body)();
    lock.lock();
    step = nullptr;
    finished.notify_one();
  }
}

void ThreadPool::help() {
  uint64_t seen = ticket.load(std::memory_order_acquire);
  for (;;) {
    if (seen == kStop)
      return;
    if (nextOf(seen) < chunksOf(seen)) {
      claimAndRun(seen);
      seen = ticket.load(std::memory_order_acquire);
      continue;
    }
    uint64_t now = seen;
    for (int i = 0; i < kSpins && now == seen; ++i) {
      relax();
      now = ticket.load(std::memory_order_acquire);
    }
    if (now == seen)
      ticket.wait(seen, std::memory_order_acquire);
    seen = ticket.load(std::memory_order_acquire);
  }
}

/// Takes the next chunk if the grid of `seen` still has it. The caller has
/// checked that `seen` has one.
bool ThreadPool::claimAndRun(uint64_t seen) {
  if (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                    std::memory_order_relaxed))
    return false;
  __int128 chunks = chunksOf(seen), chunk = nextOf(seen);
  auto bound = [&](__int128 c) {
    return static_cast<int64_t>(points * c / chunks);
  };
  function(args, bound(chunk), bound(chunk + 1));
  if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == chunksOf(seen))
    done.notify_one();
  return true;
}

void ThreadPool::parallel(KernelFunction kernel, void *const *arguments,
                          int64_t count) {
  if (count <= 0)
    return;
  if (count == 1 || size() == 1)
    return kernel(arguments, 0, count);
  uint64_t chunks = static_cast<uint64_t>(
      std::min({count, kChunksPerThread * size(), int64_t(0xffff)}));
  function = kernel;
  args = arguments;
  points = count;
  done.store(0, std::memory_order_relaxed);
  uint64_t epoch = (ticket.load(std::memory_order_relaxed) >> 32) + 1;
  uint64_t seen = epoch << 32 | chunks << 16;
  ticket.store(seen, std::memory_order_release);
  ticket.notify_all();
  while (nextOf(seen) < chunksOf(seen)) {
    claimAndRun(seen);
    seen = ticket.load(std::memory_order_acquire);
  }
  uint32_t finishedChunks = done.load(std::memory_order_acquire);
  for (int i = 0; i < kSpins && finishedChunks != chunks; ++i) {
    relax();
    finishedChunks = done.load(std::memory_order_acquire);
  }
  while (finishedChunks != chunks) {
    done.wait(finishedChunks, std::memory_order_acquire);
    finishedChunks = done.load(std::memory_order_acquire);
  }
}
