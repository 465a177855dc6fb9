//===- HostCodegen.h - Kernel functions to machine code for the CPU
//--------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `host` back end. A kernel function (attribute nova.kernel, see
// nova-lower-kernels-to-loops) becomes an ELF object that exports
//
//   void symbol(void *const *args, int64_t first, int64_t last)
//
// `args` holds the addresses of the kernel's arguments in order, then of its
// results in order: each that of element 0 of its view. The call computes grid
// points first (in) to last (out). Calls may run in parallel on disjoint ranges
// of grid points, and results do not depend on the ranges. Nothing is imported:
// no libc, no libm, no globals that are written.
//
// The same kernel, symbol and options give the same bytes, on any machine and
// in any thread.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_HOSTCODEGEN_HOSTCODEGEN_H
#define NOVA_HOSTCODEGEN_HOSTCODEGEN_H

#include "nova/Support/Error.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace nova {

/// Everything that decides the bytes, besides the kernel and its symbol.
struct HostCodegenOptions {
  /// The processor, as LLVM names it. All code of a bundle is for this one.
  std::string cpu = "x86-64-v3";
  /// LLVM's optimisation level, 0 to 3.
  unsigned optLevel = 3;
  /// Bytes of stack a kernel may use for the values inside it.
  int64_t scratchLimit = int64_t{4} << 20;
};

/// Registers what compileKernel needs. Append it to the registry of a context,
/// and load everything (loadAllAvailableDialects) before threads share it.
void registerHostCodegenDialects(mlir::DialectRegistry &registry);

/// Loads what compileKernel needs into `context`; call it once, before
/// compileKernel is called from several threads.
void loadHostCodegenDialects(mlir::MLIRContext &context);

/// Compiles `kernel` (left unchanged) to a relocatable ELF object that exports
/// `symbol`. Thread-safe for different kernels of one context, after
/// loadHostCodegenDialects. Errors: BadInput for a kernel outside the contract
/// (the message holds the diagnostics, each with kernel, op and location),
/// Internal if the code needs a symbol that nothing defines.
Expected<std::string> compileKernel(mlir::func::FuncOp kernel,
                                    llvm::StringRef symbol,
                                    const HostCodegenOptions &options = {});

/// Links relocatable objects, in the order given, into one ELF shared object
/// that imports nothing and exports their kernels. In process, one call at a
/// time; temporary files are removed. Errors: Missing if a temporary file
/// cannot be written, Internal with the linker's words otherwise.
Expected<std::string> linkSharedObject(llvm::ArrayRef<std::string> objects);

/// Grid points of a kernel function: what `last` counts up to.
int64_t kernelGridPoints(mlir::func::FuncOp kernel);

} // namespace nova

#endif // NOVA_HOSTCODEGEN_HOSTCODEGEN_H
