//===- PtxEmitter.h - A kernel in the LLVM dialect to PTX -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX is the text that NVIDIA's assembler and drivers read. It is made by LLVM
// in process; no CUDA toolkit is needed for it.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_GPUCODEGEN_PTXEMITTER_H
#define NOVA_GPUCODEGEN_PTXEMITTER_H

#include "nova/Support/Error.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace nova {

/// An architecture that PTX is made for.
struct PtxTarget {
  std::string_view arch; ///< "sm_90a", as LLVM's -mcpu and ptxas's -arch.
  /// PTX version in tenths (80 is 8.0): the lowest that has every instruction
  /// the lowering may use, so that the oldest drivers can still read it.
  unsigned ptxVersion;
};

/// All of them, in the order of their compute capability.
std::span<const PtxTarget> ptxTargets();
/// Null for an architecture that PTX is not made for.
const PtxTarget *findPtxTarget(std::string_view arch);

/// The CUDA version whose driver is the first to read that version of PTX, as
/// cuDriverGetVersion() counts: 1000 * major + 10 * minor. 0 for a version that
/// no architecture here uses.
unsigned cudaOfPtx(unsigned ptxVersion);

/// Bytes of parameters that a kernel in that version of PTX may have. More than 4096
/// need PTX 8.1, a compute capability of 7.0 and with it a driver of CUDA 12.1 (CUDA
/// C++ Programming Guide, "Kernel parameters").
int64_t parameterBytesOfPtx(unsigned ptxVersion);

/// Translates a module in the LLVM and NVVM dialects, left unchanged, to PTX
/// for `arch`: LLVM at O3, products and sums fused where that saves a rounding
/// (and nothing else of fast-math), no library of device functions.
///
/// The module holds one kernel (an llvm.func with `nvvm.kernel`). Other symbols
/// of it get the kernel's name as prefix, so that joinPtx() cannot mix up those
/// of two kernels. The same module and architecture give the same bytes, in any
/// thread; the bytes name no file and no machine.
///
/// With a `listing` (GpuKernelModule::listing) the PTX says where it comes from:
/// .loc directives name lines of the listing, which follows the code as
/// comments, "//tiles LINE TEXT", those lines that are named.
///
/// Errors, all Internal but the first, each naming the kernel: Usage for an
/// unknown architecture; a module without a kernel or with two, or that is not
/// valid LLVM IR; an instruction that the architecture has not; a symbol that
/// nothing defines.
Expected<std::string> emitPtx(mlir::ModuleOp module, llvm::StringRef arch,
                              llvm::StringRef listing = {});

/// The same without lines: of these the assembler would put sections of debug
/// information, the PTX itself among them, into the machine code.
std::string withoutLines(llvm::StringRef ptx);

/// One PTX text out of several of one architecture, kernels in that order.
std::string joinPtx(llvm::ArrayRef<std::string> texts);

} // namespace nova

#endif // NOVA_GPUCODEGEN_PTXEMITTER_H
