//===- Decompose.h - Parts of nova-decompose-composites
//--------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function writes the parts of one composite before it and returns what
// replaces its results, in order; null where the result has no user (and its
// parts were not written). Values are in the result's element type.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_DECOMPOSE_H
#define NOVA_SRC_TRANSFORMS_DECOMPOSE_H

#include "TensorEmitter.h"

namespace nova {
using Replacements = llvm::SmallVector<mlir::Value, 3>;

Replacements decompose(SoftmaxOp op);
Replacements decompose(LogSoftmaxOp op);
Replacements decompose(SoftmaxBackwardOp op);
Replacements decompose(LogSoftmaxBackwardOp op);
Replacements decompose(LayerNormOp op);
Replacements decompose(LayerNormBackwardOp op);
Replacements decompose(NllLossOp op);
Replacements decompose(NllLossBackwardOp op);
Replacements decompose(SceOp op);
Replacements decompose(SceBackwardOp op);
Replacements decompose(AttentionBackwardOp op);
/// Null where nothing is to be done: the positions reach as far as the result.
Replacements decompose(ScatterOp op);
} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_DECOMPOSE_H
