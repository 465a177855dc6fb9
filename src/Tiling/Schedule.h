//===- Schedule.h - Which reductions share a loop --------------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILING_SCHEDULE_H
#define NOVA_SRC_TILING_SCHEDULE_H

#include "nova/Transforms/KernelAxes.h"

namespace nova::tiling {

/// The order of loops, outermost first. What a running sum carries from chunk to
/// chunk must not change in loops further in.
void sortLoops(llvm::SmallVectorImpl<AxisId> &list, const Axes &axes);

/// The streamed axes along which `op` reduces, in the order of loops; empty for an op that
/// reduces along none.
AxisList streamedAxes(mlir::Operation *op, const Axes &axes);

/// The reductions that share a loop with `op`, itself included, in program order:
/// they reduce along the same streamed axes, their results have the same streamed
/// axes, `targets` need them, and none needs another. `above` 1: those of the
/// level above, which may need them.
llvm::SmallVector<mlir::Operation *> loopMates(mlir::Operation *op, mlir::func::FuncOp kernel, const Axes &axes,
                                               llvm::ArrayRef<mlir::Operation *> targets, unsigned above = 0);

/// The reductions that can share the loop of the maximum `op` because what they
/// sum is relative to it; none if `op` is no maximum.
llvm::SmallVector<mlir::Operation *> followers(mlir::Operation *op, mlir::func::FuncOp kernel, const Axes &axes,
                                               llvm::ArrayRef<mlir::Operation *> targets);

} // namespace nova::tiling

#endif // NOVA_SRC_TILING_SCHEDULE_H
