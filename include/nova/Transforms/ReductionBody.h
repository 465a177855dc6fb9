//===- ReductionBody.h - What a generic's body accumulates -----*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_REDUCTIONBODY_H
#define NOVA_TRANSFORMS_REDUCTIONBODY_H

#include "nova/Transforms/KernelAxes.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace nova::tiling {

/// accumulator = combiner(accumulator, contribution), where the contribution
/// does not depend on any accumulator and the combiner is associative and
/// commutative.
struct Accumulation {
  mlir::Operation *combiner = nullptr;
  mlir::Value contribution;
  /// combiner(identity, x) = x.
  mlir::TypedAttr identity;
};

/// One for each result; failure if the body is of another form.
mlir::FailureOr<llvm::SmallVector<Accumulation>> accumulations(mlir::linalg::GenericOp op);

/// Every accumulator becomes its element of the iteration where `takes` is true,
/// and else stays: what the body finds is one iteration, as an argument of the
/// maximum. `takes` depends on accumulators, elements and constants only.
struct Selection {
  llvm::SmallVector<mlir::Value> elements;
  mlir::Value takes;
  /// What computes `takes` from those, in order.
  llvm::SmallVector<mlir::Operation *> steps;
};
mlir::FailureOr<Selection> selection(mlir::linalg::GenericOp op);

/// The two factors of a contribution that is a product, less widening casts that
/// both have.
std::optional<std::pair<mlir::Value, mlir::Value>> factors(const Accumulation &accumulation);

/// The axes that a value of `op`'s body depends on.
AxisList axesOf(mlir::Value value, mlir::linalg::GenericOp op, const Axes &axes);

/// Does `value` of `op`'s body depend on an accumulator?
bool dependsOnAccumulator(mlir::Value value, mlir::linalg::GenericOp op);

/// Is `value`, where it hangs over the end of `axis`, zero because its load
/// makes it so?
bool readsZeroOutside(mlir::Value value, AxisId axis, mlir::linalg::GenericOp op, const Axes &axes);

} // namespace nova::tiling

#endif // NOVA_TRANSFORMS_REDUCTIONBODY_H
