//===- KernelCompiler.h - Kernel functions to machine code for GPUs -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel function (nova/Transforms/KernelContract.h) becomes one entry
//
//   .visible .entry NAME(.param .u64 .ptr .global ...)
//
// with one pointer to global memory for each argument, then each result: that
// of element 0 of its view. The grid is one-dimensional: block x computes grid
// point x, all of it; there are as many blocks as grid points.
//
// Two halves meet here. lowerKernelToNvvm() is the lowering; compileGpuKernel()
// is what is left to do when every kernel is code of one thread: LLVM, ptxas
// and the device's limits.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_GPUCODEGEN_KERNELCOMPILER_H
#define NOVA_GPUCODEGEN_KERNELCOMPILER_H

#include "nova/GpuCodegen/Assembler.h"
#include "nova/Support/Error.h"
#include "nova/Target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nova {

//===----------------------------------------------------------------------===//
// The lowering
//===----------------------------------------------------------------------===//

/// What a lowered kernel holds; named as the stages of the same names.
enum class KernelStage : uint8_t { Tiled, Pipelined, Nvvm };

/// Everything that decides the code, besides kernel and device.
struct GpuLoweringOptions {
  /// How float32 contractions multiply: "tf32", "f32", "bf16".
  std::string matmul = "tf32";
  /// Where to stop; for looking at the stages before Nvvm.
  KernelStage last = KernelStage::Nvvm;
};

/// A kernel lowered to GpuLoweringOptions::last. At Nvvm: a module in the LLVM
/// and NVVM dialects with one llvm.func, of the kernel's name, with attributes
/// nvvm.kernel and nvvm.reqntid or nvvm.maxntid (and nvvm.cluster_dim if it
/// runs in clusters); its parameters are !llvm.ptr<1>, one per argument and
/// then result, and behind them the tensor maps that kTensorMapsAttr
/// (nova/TileLowering/Passes.h) lists.
struct GpuKernelModule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  uint32_t threads = 1;            ///< Per block, 1 to 1024.
  uint64_t blocks = 1;             ///< Of a launch.
  uint64_t dynamicSharedBytes = 0; ///< That the launch must give a block.
  /// The tile program at the stage `pipelined`, as text; the locations of the
  /// code below it are lines of this.
  std::string listing;
};

/// Lowers a configured and planned kernel with the schedule that its attributes
/// say, left unchanged. Thread-safe for different kernels of one context, after
/// loadGpuCodegenDialects(). The error names the kernel: BadInput if its schedule
/// is at fault (no tile program, too much shared memory: another may do), Internal
/// for a defect.
Expected<GpuKernelModule>
lowerKernelToNvvm(mlir::func::FuncOp kernel, const target::Device &device,
                  const GpuLoweringOptions &options = {});

/// The lowering of a kernel without grid points, which every kernel over an
/// empty tensor is: an entry that returns. (A launch needs one block at least.)
GpuKernelModule emptyGpuKernel(mlir::func::FuncOp kernel);

/// Loads what the lowering and compileGpuKernel() need into `context`; call it
/// once, before kernels are compiled in several threads.
void loadGpuCodegenDialects(mlir::MLIRContext &context);

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

/// A parameter behind the pointers, 128 bytes by value: the tensor map of a
/// pointer's memory. Innermost dimension first; strides in bytes, without the
/// innermost; swizzled by 128 bytes, zeros outside.
struct TensorMapParam {
  unsigned argument = 0; ///< Which pointer.
  std::string element;   ///< "float32", "tfloat32", "bfloat16" or "float16".
  std::vector<uint64_t> sizes, strides, box;
};

/// A schedule that was tried in vain.
struct Rejection {
  size_t candidate = 0; ///< Number among those of the kernel.
  std::string why;      ///< "ptxas spills 20 bytes a thread".
};

/// One kernel, compiled.
struct GpuKernelCode {
  size_t candidate = 0; ///< The schedule it has, by number.
  std::vector<Rejection> rejections; ///< In the order in which they were tried.
  /// What is wrong with the one that was taken, for want of a better; empty if
  /// nothing is.
  std::string trouble;
  std::string ptx;
  std::string cubin; ///< Empty without an assembler; then so are the numbers.
  uint32_t threads = 1;
  uint64_t blocks = 1; ///< Of a launch.
  std::array<uint32_t, 3> cluster{1, 1, 1};
  uint64_t registers = 0;  ///< Per thread.
  uint64_t spillBytes = 0; ///< Stored and loaded, per thread; 0: none.
  uint64_t stackBytes = 0;
  uint64_t staticSharedBytes = 0, dynamicSharedBytes = 0;
  std::vector<TensorMapParam> tensorMaps; ///< The last parameters, in order.
  /// In the assembler's order; then what it did not say is wrong but is.
  std::vector<AssemblerWarning> warnings;
};

/// Makes PTX of a lowered kernel and, given an assembler, machine code. Errors
/// name the kernel: those of emitPtx() and Assembler::assemble(); Internal for
/// a block that the device cannot hold (threads, shared memory), with the
/// limit, or that is not of the size that the code is for.
Expected<GpuKernelCode> compileGpuKernel(const GpuKernelModule &lowered,
                                         llvm::StringRef kernel,
                                         const target::Device &device,
                                         const Assembler *assembler);

} // namespace nova

#endif // NOVA_GPUCODEGEN_KERNELCOMPILER_H
