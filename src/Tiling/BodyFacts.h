//===- BodyFacts.h - What is known of values of bodies ---------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts about a value of a generic's body, followed through the elementwise
// generics that made its operands.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILING_BODYFACTS_H
#define NOVA_SRC_TILING_BODYFACTS_H

#include "nova/Transforms/KernelAxes.h"
#include "nova/Transforms/ReductionBody.h"

namespace nova::tiling {

/// The positions at which a - b >= c.
struct HalfPlane {
  AxisId a, b;
  int64_t c;
  bool operator==(const HalfPlane &) const = default;
};

/// Half planes in each of which an accumulation's contribution is the identity.
/// A factor that is zero makes a product zero: what a mask hides does not count,
/// be it infinite.
llvm::SmallVector<HalfPlane> idleRegions(const Accumulation &part, mlir::linalg::GenericOp op, const Axes &axes);

/// How `value` depends on `maximum`, the result of another op.
enum class Dependence {
  None,
  /// value = exp(x - maximum) * y, where x and y do not depend on it.
  Scaled,
  /// The same, but what is subtracted is 0 where the maximum is minus infinity.
  Guarded,
  Other
};
Dependence dependence(mlir::Value value, mlir::linalg::GenericOp op, mlir::Value maximum);

/// Does computing `value`, a tensor of the kernel, need `other`?
bool needs(mlir::Value value, mlir::Value other);

} // namespace nova::tiling

#endif // NOVA_SRC_TILING_BODYFACTS_H
