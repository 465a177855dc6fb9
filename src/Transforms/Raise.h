//===- Raise.h - Parts of nova-raise-composites
//----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_RAISE_H
#define NOVA_SRC_TRANSFORMS_RAISE_H

#include "mlir/IR/PatternMatch.h"

namespace nova {

/// log_softmax with the losses and backwards that read it -> nova.sce,
/// nova.sce_backward; a scatter of one value per row -> a select on positions.
void populateRaiseLossPatterns(mlir::RewritePatternSet &patterns);

/// Contractions applied to the activation as it is; unit dimensions joined to
/// reductions; broadcasts left to their elementwise reader; reshapes moved
/// below elementwise operations.
void populateRaiseShapePatterns(mlir::RewritePatternSet &patterns);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_RAISE_H
