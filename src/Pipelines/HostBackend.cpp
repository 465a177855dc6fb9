//===- HostBackend.cpp - A planned step to machine code for the CPU -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Pipelines/HostBackend.h"

#include "ForEachKernel.h"
#include "nova/HostCodegen/HostCodegen.h"
#include "nova/Pipelines/PlanToManifest.h"

using namespace mlir;
using namespace nova;

Expected<std::string> nova::compileForHost(ModuleOp planned,
                                           llvm::ThreadPoolInterface &pool,
                                           const KernelProgress &progress,
                                           KernelStore *store) {
  loadHostCodegenDialects(*planned.getContext());
  Expected<std::vector<std::string>> objects = forEachKernel<std::string>(
      launchedKernels(planned), pool, progress,
      [&](func::FuncOp kernel) -> Expected<std::string> {
        if (!store)
          return compileKernel(kernel, kernel.getSymName());
        KeyBuilder key = kernelKey(kernel, "host 1");
        if (auto parts = store->find(key); parts && parts->size() == 1)
          return std::move(parts->front());
        Expected<std::string> object =
            compileKernel(kernel, kernel.getSymName());
        if (object)
          store->put(key, {*object});
        return object;
      },
      [](const std::string &object) { return object.size(); });
  if (!objects)
    return objects.error();
  return linkSharedObject(*objects);
}
