//===- ForEachKernel.h - Kernels compiled side by side --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_PIPELINES_FOREACHKERNEL_H
#define NOVA_LIB_PIPELINES_FOREACHKERNEL_H

#include "RunSafely.h"
#include "nova/Pipelines/KernelProgress.h"
#include "nova/Support/Error.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

namespace nova {

/// A guess at the cost of compiling: operations, of which each inner one is a
/// loop or an arithmetic instruction.
inline size_t operationCount(mlir::func::FuncOp kernel) {
  size_t count = 0;
  kernel.walk([&](mlir::Operation *) { ++count; });
  return count;
}

/// Compiles each kernel with `compile(kernel)` on the threads of `pool`, the
/// results in the order of the kernels. Of several errors the first in that
/// order counts; a crash is an Internal error that names its kernel.
/// `bytes(result)` is what progress reports as the size.
template <typename Result, typename Compile, typename Bytes>
Expected<std::vector<Result>>
forEachKernel(const std::vector<mlir::func::FuncOp> &kernels,
              llvm::ThreadPoolInterface &pool, const KernelProgress &progress,
              Compile compile, Bytes bytes) {
  std::vector<std::optional<Expected<Result>>> results(kernels.size());
  // The largest first, so that the last thread to finish is not alone for long;
  // results keep their place.
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<size_t> costs;
  for (mlir::func::FuncOp kernel : kernels)
    costs.push_back(operationCount(kernel));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return costs[a] > costs[b]; });

  std::mutex mutex;
  size_t done = 0;
  llvm::ThreadPoolTaskGroup group(pool);
  for (size_t index : order)
    group.async([&, index] {
      mlir::func::FuncOp kernel = kernels[index];
      auto start = std::chrono::steady_clock::now();
      std::string why;
      if (!runSafely([&] { results[index] = compile(kernel); }, why)) {
        if (why.empty())
          why = "the code generator crashed";
        // Its first line; the selection graph below is for no user.
        results[index] = Error{ErrorCode::Internal,
                               "kernel '" + kernel.getSymName().str() +
                                   "': " + why.substr(0, why.find('\n')),
                               {}};
      }
      if (!progress)
        return;
      std::chrono::duration<double> taken =
          std::chrono::steady_clock::now() - start;
      std::lock_guard lock(mutex);
      const Expected<Result> &result = *results[index];
      progress({++done, kernels.size(), kernel.getSymName().str(),
                taken.count(), result ? bytes(*result) : 0});
    });
  group.wait();

  std::vector<Result> all;
  for (std::optional<Expected<Result>> &result : results) {
    if (!*result)
      return result->error();
    all.push_back(std::move(**result));
  }
  return all;
}

} // namespace nova

#endif // NOVA_LIB_PIPELINES_FOREACHKERNEL_H
