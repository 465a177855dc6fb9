//===- Passes.td - Host code generation passes ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_HOSTCODEGEN_PASSES_TD
#define NOVA_HOSTCODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerKernelsToLoops : Pass<"nova-lower-kernels-to-loops", "mlir::ModuleOp"> {
  let summary = "turns kernel functions on tensors into loops over memory";
  let description = [{
    Replaces every function marked `nova.kernel` by `@<name>.body` on flat
    memrefs: the arguments, then the results, then the grid points `first` (in)
    to `last` (out) to compute. The body loops over grid points, finds the tile of each, and computes
    the ops of the kernel in program order on that tile, with `scf`, `memref`,
    `arith` and `vector` only.

    Each tensor becomes the memory behind it: a kernel argument or result
    (`memref` of one dimension that spans its strides; `i1` is stored as one
    byte) or a stack buffer of one tile. Values that are results are computed
    in the result's memory; values with disjoint lives share stack. Where an
    in-place pair (`nova.inplace`) would let a write overtake a read, the
    result is staged on the stack and copied at the end of the grid point; where
    even that would be wrong between grid points, it is an error.

    `linalg.generic` is vectorised by 8 along the loop where that costs least:
    unit strides become vector loads and stores, stride 0 a splat, other strides
    and computed indices one scalar access per lane. Sums, products, minima and
    maxima may be vectorised along the reduction (several accumulators, a fixed
    final order); any other combiner is kept in order. Float32 contractions of
    matrices large enough use packed panels and a register-tiled product.

    Precondition: bodies hold `linalg.generic`, `linalg.fill`, `tensor.empty`,
    `tensor.concat`, `arith.constant` (splat), `nova.cumsum`, `nova.scatter` and
    `nova.index_put` on static shapes; other ops, readers that disagree about
    how a value is tiled, and stack use over the limit are errors.
  }];
  let options = [
    Option<"scratchLimit", "scratch-limit", "int64_t", "4194304",
           "Bytes of stack a kernel may use for values inside it">,
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::func::FuncDialect", "mlir::math::MathDialect",
    "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect", "mlir::vector::VectorDialect",
  ];
}

#endif // NOVA_HOSTCODEGEN_PASSES_TD
