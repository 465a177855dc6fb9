//===- DecomposeComposites.cpp - Composites into the vocabulary of fusion
//--===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decompose.h"

#include "nova/Transforms/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

namespace nova {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

Replacements nova::decompose(AttentionBackwardOp op) {
  TensorEmitter b(op);
  Value dQuery, dKey, dValue, delta;
  bool needKeyValue = !op.getDKey().use_empty() || !op.getDValue().use_empty();
  if (!op.getDQuery().use_empty()) {
    auto half = AttentionBackwardQueryOp::create(
        b, op.getGrad(), op.getQuery(), op.getKey(), op.getValue(),
        op.getBias(), op.getOut(), op.getLse(), op.getScaleAttr(),
        op.getCausalAttr());
    dQuery = half.getDQuery();
    delta = half.getDelta();
  } else if (needKeyValue) {
    Value grad = b.wide(op.getGrad()), out = b.wide(op.getOut());
    delta = b.cast(b.sum(b.mul(grad, out), {3}), elementType(op.getLse()));
  }
  if (needKeyValue) {
    auto half = AttentionBackwardKeyValueOp::create(
        b, op.getGrad(), op.getQuery(), op.getKey(), op.getValue(),
        op.getBias(), op.getLse(), delta, op.getScaleAttr(),
        op.getCausalAttr());
    dKey = half.getDKey();
    dValue = half.getDValue();
  }
  return {dQuery, dKey, dValue};
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct DecomposeComposites
    : nova::impl::DecomposeCompositesBase<DecomposeComposites> {
  void runOnOperation() override {
    SmallVector<Operation *> dead;
    getOperation().walk([&](Operation *op) {
      auto replacements =
          llvm::TypeSwitch<Operation *, std::optional<Replacements>>(op)
              .Case<SoftmaxOp, LogSoftmaxOp, SoftmaxBackwardOp,
                    LogSoftmaxBackwardOp, LayerNormOp, LayerNormBackwardOp,
                    NllLossOp, NllLossBackwardOp, SceOp, SceBackwardOp,
                    AttentionBackwardOp>(
                  [](auto composite) { return decompose(composite); })
              .Default([](Operation *) { return std::nullopt; });
      if (!replacements)
        return;
      for (auto [result, value] :
           llvm::zip_equal(op->getResults(), *replacements))
        if (value)
          result.replaceAllUsesWith(value);
      dead.push_back(op);
    });
    for (Operation *op : llvm::reverse(dead))
      op->erase();
  }
};
} // namespace
