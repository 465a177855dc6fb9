//===- ExpandMath.h - Elementary functions as arithmetic ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_MATH_EXPANDMATH_H
#define NOVA_MATH_EXPANDMATH_H

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace nova {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "nova/Math/Passes.h.inc"

/// Adds the patterns that replace elementary functions of the math dialect on
/// scalars and vectors. They create only arith ops and inline math ops
/// (fma, sqrt, absf, copysign, floor), so one walk over the IR is enough; an op
/// that they do not know (see `isInlineMathOp`) is left as it is.
void populateExpandMathPatterns(mlir::RewritePatternSet &patterns);

/// Whether `op`, of the math dialect, becomes an instruction or a short inline
/// sequence on a target with FMA and SSE4.1 (or on any GPU), not a call.
bool isInlineMathOp(mlir::Operation *op);

} // namespace nova

#endif // NOVA_MATH_EXPANDMATH_H
