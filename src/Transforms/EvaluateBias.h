//===- EvaluateBias.h - What a constant bias of attention says
//-------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_EVALUATEBIAS_H
#define NOVA_SRC_TRANSFORMS_EVALUATEBIAS_H

#include "ConstantTensor.h"

#include <string>

namespace nova {

/// What adding a bias to the scores [B, H, T, S] amounts to.
struct BiasMeaning {
  /// 0 wherever key j <= query i. Nothing else holds without this.
  bool lowerIsZero = false;
  bool upperIsZero = false;   // 0 where j > i as well
  bool upperIsMasked = false; // minus infinity (or as good as) where j > i
  /// Where it stopped being any of these: "bias[0, 0, 3, 1] is -0.5".
  std::string witness;
};

/// Reads only what differs between batches and heads. A finite value masks when
/// it is at most -65504, the lowest of f16: PyTorch writes just that for a
/// masked key when it hands a boolean mask to cuDNN, whatever the type, and the
/// lowest of the type elsewhere. In every row key 0 stays visible, and e^-65504
/// of what it weighs is exactly 0 in float32.
BiasMeaning readBias(const ConstantTensor &bias,
                     llvm::ArrayRef<int64_t> scores);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_EVALUATEBIAS_H
