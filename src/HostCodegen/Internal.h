//===- Internal.h - The steps of compileKernel ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_HOSTCODEGEN_INTERNAL_H
#define NOVA_LIB_HOSTCODEGEN_INTERNAL_H

#include "nova/HostCodegen/HostCodegen.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/IR/Module.h"

namespace nova::host {

/// Converts the loops of nova-lower-kernels-to-loops to the LLVM dialect:
/// memrefs become bare pointers, transcendental functions and bfloat16 become
/// instructions. Errors are diagnostics.
mlir::LogicalResult convertLoopsToLLVM(mlir::ModuleOp module);

/// Optimises `module`, whose function `<symbol>.body` takes `numBuffers`
/// pointers and two i64, adds the exported entry `symbol`, and emits an ELF
/// object. `kernel` is for messages.
Expected<std::string> emitObject(llvm::Module &module, llvm::StringRef kernel,
                                 llvm::StringRef symbol,
                                 const HostCodegenOptions &options);

} // namespace nova::host

#endif // NOVA_LIB_HOSTCODEGEN_INTERNAL_H
