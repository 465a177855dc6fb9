//===- HostBackend.cpp - A planned step to machine code for the CPU -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Pipelines/HostBackend.h"

#include "nova/HostCodegen/HostCodegen.h"
#include "nova/Pipelines/PlanToManifest.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>

using namespace mlir;
using namespace nova;

static Expected<std::string> compileSafely(func::FuncOp kernel) {
  std::optional<Expected<std::string>> object;
  llvm::CrashRecoveryContext recovery;
  if (recovery.RunSafely(
          [&] { object = compileKernel(kernel, kernel.getSymName()); }) &&
      object)
    return std::move(*object);
  return Error{ErrorCode::Internal,
               "kernel '" + kernel.getSymName().str() +
                   "': the code generator crashed",
               {}};
}

/// A guess at the cost of compiling: operations, of which each inner one is a
/// loop or an arithmetic instruction.
static size_t operationCount(func::FuncOp kernel) {
  size_t count = 0;
  kernel.walk([&](Operation *) { ++count; });
  return count;
}

Expected<std::string> nova::compileForHost(ModuleOp planned,
                                           llvm::ThreadPoolInterface &pool,
                                           const KernelProgress &progress) {
  loadHostCodegenDialects(*planned.getContext());
  llvm::CrashRecoveryContext::Enable();

  std::vector<func::FuncOp> kernels = launchedKernels(planned);
  std::vector<std::optional<Expected<std::string>>> results(kernels.size());
  // The largest first, so that the last thread to finish is not alone for long;
  // results keep their place.
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<size_t> costs;
  for (func::FuncOp kernel : kernels)
    costs.push_back(operationCount(kernel));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a] > costs[b]; });

  std::mutex mutex;
  size_t done = 0;
  llvm::ThreadPoolTaskGroup group(pool);
  for (size_t index : order)
    group.async([&, index] {
      auto start = std::chrono::steady_clock::now();
      results[index] = compileSafely(kernels[index]);
      if (!progress)
        return;
      std::chrono::duration<double> taken =
          std::chrono::steady_clock::now() - start;
      std::lock_guard lock(mutex);
      const Expected<std::string> &result = *results[index];
      progress({++done, kernels.size(), kernels[index].getSymName().str(),
                taken.count(), result ? result->size() : 0});
    });
  group.wait();

  std::vector<std::string> objects;
  for (std::optional<Expected<std::string>> &result : results) {
    if (!*result)
      return result->error();
    objects.push_back(std::move(**result));
  }
  return linkSharedObject(objects);
}
