//===- KernelContract.h - What a kernel function looks like ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From `fused` on, a kernel is a private function on static-shape tensors:
//
//   func.func private @rowwise_3f9c21ab(
//       %x: tensor<3x40x48xf32> {nova.strides = array<i64: 5760, 144, 1>},
//       %w: tensor<48xf32>)
//     -> (tensor<3x40x48xf32> {nova.map = array<i64: 0, 1, -1>},
//         tensor<3x40x1xf32>  {nova.map = array<i64: 0, 1, -1>})
//     attributes {nova.kernel, nova.space = array<i64: 3, 40>,
//                 nova.tile = array<i64: 1, 8>,
//                 nova.inplace = [array<i64: 0, 0>]}
//
// - `nova.strides` of an argument: element strides of the memory behind it;
//   absent means contiguous row-major; 0 repeats (a broadcast).
// - `nova.space`: extents of the parallel space. Every result's `nova.map` binds
//   each of its dimensions to one dimension of the space, or to none (-1: local).
// - `nova.tile` (from `configured` on): tile per space dimension. The grid has
//   prod ceil(space / tile) points, row-major, the last dimension fastest. One
//   point computes, of every result, the region in which each bound dimension
//   lies in its tile; local dimensions are computed whole. Bindings propagate
//   backwards through indexing maps to all values of the body.
// - `nova.inplace`: pairs [argument, result] that may share one buffer, because
//   every element of the argument is read, at its own position only, before the
//   result is written there.
// - `nova.group`: the kernel is several in one launch (KernelGroups.h); space, tile
//   and grid are those of its members then.
// - Results are contiguous row-major. Arguments in order, then results in order,
//   are the parameters of the machine code.
//
// After `nova-lower-kernels-to-linalg` the body holds tensor.empty, linalg.fill,
// linalg.generic (with linalg.index; tensor.extract of kernel arguments),
// arith.constant (scalars and splats), tensor.concat, nova.cumsum, nova.scatter
// and nova.index_put. Before it, operations of the nova dialect.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_KERNELCONTRACT_H
#define NOVA_TRANSFORMS_KERNELCONTRACT_H

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace nova {

inline bool isKernel(mlir::func::FuncOp func) {
  return func->hasAttr(attr::kernel);
}

/// The function of the module that is the step (the one with `nova.graph`).
mlir::func::FuncOp findStep(mlir::ModuleOp module);

/// Number of grid points of a configured kernel.
int64_t gridSize(mlir::func::FuncOp kernel);
/// The same of each member of a configured group; of any other kernel, its own.
llvm::SmallVector<int64_t> memberGridSizes(mlir::func::FuncOp kernel);

/// Element strides of kernel argument `index`.
llvm::SmallVector<int64_t> argumentStrides(mlir::func::FuncOp kernel, unsigned index);

} // namespace nova

#endif // NOVA_TRANSFORMS_KERNELCONTRACT_H
