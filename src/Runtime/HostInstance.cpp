//===- HostInstance.cpp - A step on the CPU -------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostInstance.h"

#include "Elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <sched.h>
#include <unistd.h>

using namespace nova;
using namespace nova::rt;
using namespace nova::bundle;

namespace {

/// Below this many bytes moved and operations done, one thread is done before
/// another has woken up.
constexpr uint64_t kSerialWork = 16384;

unsigned usableCpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<unsigned>(online) : 1;
}

Status noStream(const char *function, void *stream) {
  if (!stream)
    return Status::ok();
  return Error{ErrorCode::Usage,
               std::string(function) +
                   ": a stream, expected NULL for a host target",
               {}};
}

} // namespace

HostInstance::HostInstance(std::shared_ptr<const HostProgram> given)
    : Instance(given->bundle->manifest), program(std::move(given)) {}

Expected<std::unique_ptr<Instance>>
HostInstance::create(std::shared_ptr<const HostProgram> program,
                     unsigned threads) {
  if (threads > ThreadPool::kMaxThreads)
    return Error{ErrorCode::Usage,
                 "threads: " + std::to_string(threads) + ", expected at most " +
                     std::to_string(ThreadPool::kMaxThreads),
                 {}};
  std::unique_ptr<HostInstance> instance(new HostInstance(std::move(program)));
  const Arena &arena = instance->program->target->arena;
  Expected<Memory> memory =
      rt::allocate(arena.size, arena.alignment, "the arena");
  if (!memory)
    return memory.error();
  instance->arena = std::move(*memory);
  if (threads == 0)
    threads = std::min(usableCpus(), ThreadPool::kMaxThreads);
  Expected<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  if (!pool)
    return pool.error();
  instance->pool = std::move(*pool);
  instance->resolve();
  return std::unique_ptr<Instance>(std::move(instance));
}

void HostInstance::resolve() {
  for (const Launch &launch : program->target->launches) {
    Step step;
    step.kind = launch.kind;
    step.first = slots.size();
    for (const LaunchArg &arg : launch.args)
      resolveArgument(arg);
    if (launch.kind == LaunchKind::Kernel) {
      const Kernel &kernel = program->target->kernels[*launch.kernel];
      step.function = program->functions[*launch.kernel];
      step.points = static_cast<int64_t>(kernel.grid[0]);
      uint64_t work = kernel.bytes + kernel.flops; // each below 2^63
      step.serial = work > 0 && work < kSerialWork;
    } else {
      step.count = std::get<Immediate>(launch.args[2]).bits;
      if (launch.kind == LaunchKind::Memset)
        step.value = static_cast<int>(std::get<Immediate>(launch.args[1]).bits);
    }
    steps.push_back(step);
  }
}

void HostInstance::resolveArgument(const LaunchArg &arg) {
  size_t slot = addSlot(arg);
  if (const auto *b = std::get_if<BufferRef>(&arg)) {
    slots[slot] = static_cast<char *>(arena.get()) +
                  program->target->arena.buffers[b->buffer].offset + b->offset;
  } else if (const auto *c = std::get_if<ConstantRef>(&arg)) {
    slots[slot] =
        static_cast<char *>(program->constants[c->constant].get()) + c->offset;
  } else if (const auto *value = std::get_if<Immediate>(&arg)) {
    immediates.push_back(std::make_unique<uint64_t>(value->bits));
    slots[slot] = immediates.back().get();
  }
}

Status HostInstance::runStep(void *stream) {
  if (Status s = noStream("nova_rt_instance_launch", stream); !s)
    return s;
  fillSlots();
  pool->run([this] { runLaunches(); });
  return Status::ok();
}

/// In the order of the manifest, which is a valid one; each grid in parallel.
void HostInstance::runLaunches() {
  for (const Step &step : steps) {
    void *const *args = slots.data() + step.first;
    switch (step.kind) {
    case LaunchKind::Kernel:
      if (step.serial)
        step.function(args, 0, step.points);
      else
        pool->parallel(step.function, args, step.points);
      break;
    case LaunchKind::Memset:
      if (step.count)
        std::memset(args[0], step.value, step.count);
      break;
    case LaunchKind::Copy:
      // A caller's buffer may be copied within itself.
      if (step.count)
        std::memmove(args[0], args[1], step.count);
      break;
    }
  }
}

Status HostInstance::runAdvance(void *stream) {
  if (Status s = noStream("nova_rt_instance_advance", stream); !s)
    return s;
  for (const Scalar &scalar : advancing())
    advanceElement(*dtypeOf(scalar.tensor->dtype), inputAddress(scalar.input),
                   scalar.by);
  return Status::ok();
}
