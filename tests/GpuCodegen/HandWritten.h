//===- HandWritten.h - Kernels in the LLVM dialect, and an assembler ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_GPUCODEGEN_HANDWRITTEN_H
#define NOVA_TESTS_GPUCODEGEN_HANDWRITTEN_H

#include "nova/GpuCodegen/Assembler.h"
#include "nova/GpuCodegen/KernelCompiler.h"

#include "mlir/IR/MLIRContext.h"

#include <string>

namespace nova::test {

/// z[i] = x[i] + y[i] * y[i], 256 threads a block.
extern const char *const kVectorAdd;
/// Reverses each block of 128 elements through static shared memory, and adds
/// what the neighbour left in dynamic shared memory.
extern const char *const kShared;
/// One warp: ldmatrix from shared memory, one bf16 mma.
extern const char *const kMma;
/// sm_90a and later: mbarriers, an elected thread, setmaxnreg.
extern const char *const kHopper;

/// A context with what GPU code needs.
struct Context {
  Context() { loadGpuCodegenDialects(context); }
  /// Parses; a failed expectation and a null module if that fails.
  GpuKernelModule parse(const char *text, uint32_t threads = 128,
                        uint64_t dynamicSharedBytes = 0);
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
};

/// The machine's ptxas; a failed expectation where there is none.
const Assembler *assembler();

} // namespace nova::test

#endif // NOVA_TESTS_GPUCODEGEN_HANDWRITTEN_H
