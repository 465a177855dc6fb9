//===- Passes.h - Passes on tile programs ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILELOWERING_PASSES_H
#define NOVA_TILELOWERING_PASSES_H

#include "nova/Tile/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace nova {

/// i64 of a lowered kernel: bytes of dynamic shared memory.
inline constexpr llvm::StringLiteral kSharedBytesAttr = "nova.shared_bytes";

/// Of a lowered kernel, one dictionary for each tensor map: its last parameters, 128
/// bytes by value each, in this order. `argument`: the number of the pointer whose
/// memory it describes; `element`: float32, tfloat32, bfloat16 or float16; `sizes`,
/// `strides` (bytes, without the innermost) and `box` as cuTensorMapEncodeTiled
/// takes them, innermost first. Swizzled by 128 bytes, zeros outside.
inline constexpr llvm::StringLiteral kTensorMapsAttr = "nova.tensor_maps";
/// Of a tensor map.
inline constexpr int64_t kTensorMapBytes = 128, kTensorMapAlignment = 64;

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "nova/TileLowering/Passes.h.inc"

/// The steps from tile programs to the LLVM and NVVM dialects, by the stage that
/// each completes: layouts (`tiled`), rings (`pipelined`), threads, elementary
/// functions and conversions (`nvvm`).
void buildTiled(mlir::OpPassManager &manager);
void buildPipelined(mlir::OpPassManager &manager);
void buildThreads(mlir::OpPassManager &manager);
/// All of them.
void buildTileLowering(mlir::OpPassManager &manager);

} // namespace nova

#endif // NOVA_TILELOWERING_PASSES_H
