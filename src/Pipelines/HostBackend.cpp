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
                                           const KernelProgress &progress) {
  loadHostCodegenDialects(*planned.getContext());
  Expected<std::vector<std::string>> objects = forEachKernel<std::string>(
      launchedKernels(planned), pool, progress,
      [](func::FuncOp kernel) {
        return compileKernel(kernel, kernel.getSymName());
      },
      [](const std::string &object) { return object.size(); });
  if (!objects)
    return objects.error();
  return linkSharedObject(*objects);
}
