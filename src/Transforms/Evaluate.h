//===- Evaluate.h - Operations on constant tensors
//-------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_EVALUATE_H
#define NOVA_SRC_TRANSFORMS_EVALUATE_H

#include "ConstantTensor.h"

namespace nova {

/// The one result of `op` on the given operands, by the same rules as in a
/// kernel. Nothing where the operation is not evaluated: it is none of those
/// that nova-evaluate-constants names, more than `maxElements` elements would
/// have to be computed, or the value is not defined (a float outside the
/// integer type it is cast to).
std::optional<ConstantTensor> evaluate(mlir::Operation *op,
                                       llvm::ArrayRef<ConstantTensor> operands,
                                       int64_t maxElements);

/// Its parts: operations with the trait Pointwise; all others.
std::optional<ConstantTensor>
evaluateElementwise(mlir::Operation *op,
                    llvm::ArrayRef<ConstantTensor> operands,
                    int64_t maxElements);
std::optional<ConstantTensor>
evaluateRearranging(mlir::Operation *op,
                    llvm::ArrayRef<ConstantTensor> operands,
                    int64_t maxElements);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_EVALUATE_H
