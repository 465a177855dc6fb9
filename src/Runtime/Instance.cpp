//===- Instance.cpp - A program with an arena, bound to buffers -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Instance.h"

#include "Elements.h"

#include <algorithm>
#include <cstdio>
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

Error usage(std::string message, std::string hint = {}) {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

unsigned usableCpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<unsigned>(online) : 1;
}

std::string addressText(const void *address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

} // namespace

Expected<std::unique_ptr<Instance>>
Instance::create(std::shared_ptr<const Program> program, unsigned threads) {
  if (threads > ThreadPool::kMaxThreads)
    return usage("threads: " + std::to_string(threads) + ", expected at most " +
                 std::to_string(ThreadPool::kMaxThreads));
  std::unique_ptr<Instance> instance(new Instance);
  instance->program = std::move(program);
  const Arena &arena = instance->program->target->arena;
  Expected<Memory> memory = allocate(arena.size, arena.alignment, "the arena");
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
  return instance;
}

void Instance::resolve() {
  const Manifest &manifest = program->bundle->manifest;
  for (const TensorDesc &tensor : manifest.inputs)
    inputs.emplace_back().tensor = &tensor;
  for (const OutputDesc &tensor : manifest.outputs) {
    outputs.emplace_back().tensor = &tensor;
    outputs.back().written = true;
    if (tensor.updates)
      inputs[*tensor.updates].written = true;
  }
  for (const Launch &launch : program->target->launches) {
    Step step;
    step.kind = launch.kind;
    step.first = arguments.size();
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

void Instance::resolveArgument(const LaunchArg &arg) {
  size_t slot = arguments.size();
  arguments.push_back(nullptr);
  if (const auto *b = std::get_if<BufferRef>(&arg)) {
    arguments[slot] = static_cast<char *>(arena.get()) +
                      program->target->arena.buffers[b->buffer].offset +
                      b->offset;
  } else if (const auto *i = std::get_if<InputRef>(&arg)) {
    inputs[i->input].uses.push_back({slot, i->offset});
  } else if (const auto *o = std::get_if<OutputRef>(&arg)) {
    const OutputDesc &output = program->bundle->manifest.outputs[o->output];
    Binding &binding =
        output.updates ? inputs[*output.updates] : outputs[o->output];
    binding.uses.push_back({slot, o->offset});
  } else if (const auto *c = std::get_if<ConstantRef>(&arg)) {
    arguments[slot] =
        static_cast<char *>(program->constants[c->constant].get()) + c->offset;
  } else if (const auto *value = std::get_if<Immediate>(&arg)) {
    immediates.push_back(std::make_unique<uint64_t>(value->bits));
    arguments[slot] = immediates.back().get();
  }
}

Status Instance::bind(Binding &binding, const char *what, uint32_t index,
                      void *address) {
  if (binding.bound && binding.address == address)
    return Status::ok();
  auto name = [&] {
    return std::string(what) + " " + std::to_string(index) + " (\"" +
           binding.tensor->name + "\")";
  };
  if (!address && binding.tensor->bytes)
    return usage(name() + ": a null address, expected " +
                 std::to_string(binding.tensor->bytes) + " bytes");
  uint64_t alignment = binding.tensor->alignment;
  if (reinterpret_cast<uintptr_t>(address) % alignment)
    return usage(name() + ": address " + addressText(address) +
                     ", expected a multiple of " + std::to_string(alignment) +
                     " bytes",
                 "allocate it with aligned_alloc or posix_memalign");
  binding.address = address;
  binding.bound = true;
  bindingsChanged = true;
  for (const Binding::Use &use : binding.uses)
    arguments[use.argument] = static_cast<char *>(address) + use.offset;
  return Status::ok();
}

Status Instance::bindInput(uint32_t index, void *address) {
  if (index >= inputs.size())
    return usage("input " + std::to_string(index) + ", the bundle has " +
                 std::to_string(inputs.size()));
  std::lock_guard<std::mutex> lock(mutex);
  return bind(inputs[index], "input", index, address);
}

Status Instance::bindOutput(uint32_t index, void *address) {
  const std::vector<OutputDesc> &descriptions =
      program->bundle->manifest.outputs;
  if (index >= outputs.size())
    return usage("output " + std::to_string(index) + ", the bundle has " +
                 std::to_string(outputs.size()));
  if (descriptions[index].updates)
    return usage("output " + std::to_string(index) + " (\"" +
                     descriptions[index].name +
                     "\") has no buffer of its own, it is written into that "
                     "of input " +
                     std::to_string(*descriptions[index].updates),
                 "bind that input");
  std::lock_guard<std::mutex> lock(mutex);
  return bind(outputs[index], "output", index, address);
}

/// Everything is bound, and what is written overlaps nothing else: kernels are
/// compiled for that.
Status Instance::checkBindings() {
  struct Range {
    const char *begin, *end;
    bool written;
    std::string name;
  };
  std::vector<Range> ranges;
  const std::vector<OutputDesc> &descriptions =
      program->bundle->manifest.outputs;
  for (bool isInput : {true, false}) {
    const std::vector<Binding> &bindings = isInput ? inputs : outputs;
    for (size_t i = 0; i < bindings.size(); ++i) {
      const Binding &b = bindings[i];
      if (!isInput && descriptions[i].updates)
        continue;
      std::string name = std::string(isInput ? "input " : "output ") +
                         std::to_string(i) + " (\"" + b.tensor->name + "\")";
      if (!b.bound && b.tensor->bytes)
        return usage(name + " is not bound",
                     isInput ? "call nova_rt_instance_bind_input"
                             : "call nova_rt_instance_bind_output");
      const char *begin = static_cast<const char *>(b.address);
      if (b.tensor->bytes)
        ranges.push_back({begin, begin + b.tensor->bytes, b.written, name});
    }
  }
  std::stable_sort(
      ranges.begin(), ranges.end(),
      [](const Range &a, const Range &b) { return a.begin < b.begin; });
  // Of the ranges so far: the one that reaches farthest, and the written one
  // that does.
  const Range *farthest = nullptr, *farthestWritten = nullptr;
  for (const Range &range : ranges) {
    const Range *other = range.written ? farthest : farthestWritten;
    if (other && range.begin < other->end)
      return usage("the buffers of " + other->name + " and " + range.name +
                       " overlap, and one of them is written",
                   "give each its own memory");
    if (!farthest || range.end > farthest->end)
      farthest = &range;
    if (range.written && (!farthestWritten || range.end > farthestWritten->end))
      farthestWritten = &range;
  }
  bindingsChanged = false;
  return Status::ok();
}

Status Instance::launch() {
  std::lock_guard<std::mutex> lock(mutex);
  if (bindingsChanged)
    if (Status s = checkBindings(); !s)
      return s;
  pool->run([this] { runStep(); });
  return Status::ok();
}

/// In the order of the manifest, which is a valid one; each grid in parallel.
void Instance::runStep() {
  for (const Step &step : steps) {
    void *const *args = arguments.data() + step.first;
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

Status Instance::advance() {
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Binding &b = inputs[i];
    if (!b.tensor->advance)
      continue;
    if (!b.bound)
      return usage("input " + std::to_string(i) + " (\"" + b.tensor->name +
                   "\") is not bound");
    // Both were checked when the manifest was read.
    DType dtype = *dtypeOf(b.tensor->dtype);
    double by = *parseHexFloat(*b.tensor->advance);
    if (isFloat(dtype))
      storeElement(dtype, b.address, loadElement(dtype, b.address) + by);
    else
      storeInteger(
          dtype, b.address,
          static_cast<int64_t>(uint64_t(loadInteger(dtype, b.address)) +
                               uint64_t(std::llrint(by))));
  }
  return Status::ok();
}
