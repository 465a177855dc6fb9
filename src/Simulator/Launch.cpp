//===- Launch.cpp - The blocks of a grid over the cores
//--------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"
#include "nova/Simulator/Simulator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include <time.h>

using namespace nova;
using namespace nova::sim;

namespace {

constexpr uint64_t kTensorMapBytes = 128;

Fault limitFault(const Code &code, std::string what) {
  Fault fault;
  fault.kind = FaultKind::Limit;
  fault.kernel = code.name;
  fault.what = std::move(what);
  return fault;
}

std::string extents(const auto &e) {
  return std::to_string(e[0]) + " x " + std::to_string(e[1]) + " x " +
         std::to_string(e[2]);
}

/// What the driver would refuse (ISA 4.1 and the table of devices).
std::optional<Fault> checkLimits(const Code &code, const Shape &shape,
                                 uint64_t threads, uint64_t sharedBytes,
                                 const Options &options) {
  if (threads == 0 || threads > kMaxWarps * kLanes)
    return limitFault(code, "a block of " + extents(shape.block) +
                                " threads, the limit is 1024");
  if (shape.block[2] > 64)
    return limitFault(code, "a block of " + extents(shape.block) +
                                " threads, the limit of the third is 64");
  if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0 ||
      shape.grid[0] > 0x7fffffff || shape.grid[1] > 65535 ||
      shape.grid[2] > 65535)
    return limitFault(code, "a grid of " + extents(shape.grid) +
                                ", the limits are 2147483647 x 65535 x 65535");
  if (!code.requiredThreads.empty()) {
    std::array<uint32_t, 3> required{1, 1, 1};
    std::copy_n(code.requiredThreads.begin(),
                std::min<size_t>(3, code.requiredThreads.size()),
                required.begin());
    if (required != shape.block)
      return limitFault(code, "a block of " + extents(shape.block) +
                                  " threads, its .reqntid is " +
                                  extents(required));
  }
  uint64_t most = 1;
  for (uint32_t n : code.maxThreads)
    most *= n;
  if (!code.maxThreads.empty() && threads > most)
    return limitFault(code, "a block of " + std::to_string(threads) +
                                " threads, its .maxntid is " +
                                std::to_string(most));
  if (options.device && options.device->sharedBytesPerBlock &&
      sharedBytes > static_cast<uint64_t>(options.device->sharedBytesPerBlock))
    return limitFault(code,
                      std::to_string(sharedBytes) +
                          " bytes of shared memory, a block of " +
                          std::string(options.device->name) + " has " +
                          std::to_string(options.device->sharedBytesPerBlock));
  // ISA 4.1 has no limit; sixteen is the largest of any device, eight of all.
  if (uint64_t(shape.cluster[0]) * shape.cluster[1] * shape.cluster[2] > 16)
    return limitFault(code, "clusters of " + extents(shape.cluster) +
                                " blocks, the limit is 16");
  for (unsigned k = 0; k < 3; ++k)
    if (shape.cluster[k] == 0 || shape.grid[k] % shape.cluster[k])
      return limitFault(code, "a grid of " + extents(shape.grid) +
                                  " in clusters of " + extents(shape.cluster));
  return std::nullopt;
}

/// Gives the arguments to the parameters in turn: one to each, and to one of several
/// pointers' size as many pointers.
Status placeArguments(const Code &code, const std::vector<Argument> &arguments,
                      LaunchContext &context) {
  auto about = [&](size_t k, const std::string &what) {
    return badInput("kernel '" + code.name + "': parameter " +
                    std::to_string(k) + " has " +
                    std::to_string(code.parameters[k].bytes) + " bytes, " +
                    what);
  };
  size_t next = 0;
  size_t k = 0;
  for (; k < code.parameters.size() && next < arguments.size(); ++k) {
    const Parameter &p = code.parameters[k];
    char *to = context.parameters.data() + p.offset;
    uint64_t filled = 0;
    do {
      const Argument &a = arguments[next++];
      // Every argument has a window, also those that are no pointers.
      context.memories.push_back(a.map ? a.map->memory
                                       : a.memory.value_or(Memory()));
      if (a.map && filled == 0) {
        if (p.bytes != kTensorMapBytes)
          return about(k, "expected a tensor map's " +
                              std::to_string(kTensorMapBytes));
        context.maps.push_back({p.offset, &*a.map});
        filled = p.bytes;
        break;
      }
      if (!a.memory && filled == 0) {
        if (a.value.size() < p.bytes)
          return about(k, "the launch gives " + std::to_string(a.value.size()));
        std::memcpy(to, a.value.data(), p.bytes);
        filled = p.bytes;
        break;
      }
      uint64_t address =
          (uint64_t(context.memories.size()) << kWindowShift) + a.offset;
      if (!a.memory || p.bytes % sizeof address)
        return about(k, a.memory ? "expected a pointer" : "expected pointers");
      std::memcpy(to + filled, &address, sizeof address);
      filled += sizeof address;
    } while (filled < p.bytes && next < arguments.size());
    if (filled < p.bytes)
      return about(k, "the launch gives " + std::to_string(filled));
  }
  if (k == code.parameters.size() && next == arguments.size())
    return Status::ok();
  return badInput("kernel '" + code.name + "' has " +
                  std::to_string(code.parameters.size()) +
                  " parameters, expected the " +
                  std::to_string(arguments.size()) + " of the launch");
}

/// Of this thread: the rate that is reported should not depend on what else
/// the machine does.
double cpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Compiled for x86-64-v3, as the instruction families are.
bool machineCan() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}

} // namespace

Expected<Outcome> Kernel::launch(const Shape &shape,
                                 const std::vector<Argument> &arguments,
                                 const Options &options) const {
  if (!machineCan())
    return Error{ErrorCode::Missing,
                 "this CPU has no AVX2 and FMA, which the simulator needs",
                 {}};
  LaunchContext context;
  context.code = code.get();
  context.shape = shape;
  context.options = &options;
  context.parameters.assign(code->parameterBytes, '\0');
  std::vector<std::string> globals;
  for (const GlobalVariable &v : code->globals)
    globals.push_back(v.bytes);
  for (size_t k = 0; k < globals.size(); ++k)
    context.memories.push_back({"variable '" + code->globals[k].name + "'",
                                reinterpret_cast<uint8_t *>(globals[k].data()),
                                nullptr, globals[k].size(),
                                code->globals[k].writable});
  if (Status s = placeArguments(*code, arguments, context); !s)
    return s.error();
  uint64_t threads = uint64_t(shape.block[0]) * shape.block[1] * shape.block[2];
  context.sharedBytes = code->staticShared + shape.dynamicShared;
  Outcome outcome;
  outcome.fault =
      checkLimits(*code, shape, threads, context.sharedBytes, options);
  if (outcome.fault)
    return outcome;
  context.threads = static_cast<uint32_t>(threads);

  // Clusters, in the order of the grid.
  std::array<uint64_t, 3> clusters;
  for (unsigned k = 0; k < 3; ++k)
    clusters[k] = shape.grid[k] / shape.cluster[k];
  uint64_t blocks = clusters[0] * clusters[1] * clusters[2];
  unsigned workers = options.threads
                         ? options.threads
                         : std::max(1u, std::thread::hardware_concurrency());
  workers = static_cast<unsigned>(std::min<uint64_t>(workers, blocks));
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  uint64_t faulty = blocks; // The first block with a fault.
  auto work = [&] {
    double start = cpuSeconds();
    Cluster cluster(context);
    for (;;) {
      uint64_t b = next.fetch_add(1);
      if (b >= blocks)
        break;
      std::array<uint32_t, 3> id{
          static_cast<uint32_t>(b % clusters[0]) * shape.cluster[0],
          static_cast<uint32_t>(b / clusters[0] % clusters[1]) *
              shape.cluster[1],
          static_cast<uint32_t>(b / clusters[0] / clusters[1]) *
              shape.cluster[2]};
      if (std::optional<Fault> fault = cluster.run(id, options.seed)) {
        std::lock_guard lock(mutex);
        if (b < faulty) {
          faulty = b;
          outcome.fault = std::move(fault);
        }
        // Blocks after it need not run; those before it have been handed out.
        next = blocks;
        break;
      }
    }
    cluster.counts.coreSeconds = cpuSeconds() - start;
    std::lock_guard lock(mutex);
    outcome.counts += cluster.counts;
  };
  if (workers <= 1) {
    work();
  } else {
    std::vector<std::thread> pool;
    for (unsigned k = 1; k < workers; ++k)
      pool.emplace_back(work);
    work();
    for (std::thread &t : pool)
      t.join();
  }
  return outcome;
}
