//===- HostBackend.h - A planned step to machine code for the CPU ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_PIPELINES_HOSTBACKEND_H
#define NOVA_PIPELINES_HOSTBACKEND_H

#include "nova/Pipelines/KernelProgress.h"
#include "nova/Pipelines/KernelStore.h"
#include "nova/Support/Error.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace llvm {
class ThreadPoolInterface;
} // namespace llvm

namespace nova {

/// Compiles every kernel that the planned module launches, each once, on the
/// threads of `pool`, and links them, in the order of their first launch, into
/// the one shared object of the target `host`. The bytes do not depend on the
/// number of threads. Errors are those of compileKernel() and
/// linkSharedObject(): of several kernels that fail, the first by launch; a
/// crash inside one is an Internal error that names it. `store` may be null: then
/// everything is compiled.
Expected<std::string> compileForHost(mlir::ModuleOp planned,
                                     llvm::ThreadPoolInterface &pool,
                                     const KernelProgress &progress = {},
                                     KernelStore *store = nullptr);

} // namespace nova

#endif // NOVA_PIPELINES_HOSTBACKEND_H
