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
// Scatters
//===----------------------------------------------------------------------===//

/// Where the positions end before the result does along other dimensions, what
/// they reach is scattered into, and the rest stands beside it as it is.
Replacements nova::decompose(ScatterOp op) {
  auto type = cast<RankedTensorType>(op.getInit().getType());
  ArrayRef<int64_t> full = type.getShape(),
                    index = cast<RankedTensorType>(op.getIndex().getType()).getShape();
  if (llvm::is_contained(index, 0))
    return {op.getInit()};
  SmallVector<int64_t> reached(full);
  for (auto [d, extent] : llvm::enumerate(index))
    if (d != op.getDim())
      reached[d] = extent;
  if (ArrayRef<int64_t>(reached) == full)
    return {Value()};
  TensorEmitter b(op);
  SmallVector<int64_t> ones(full.size(), 1);
  auto part = [&](ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
    return SliceOp::create(b, op.getInit(), offsets, sizes, ones).getResult();
  };
  SmallVector<int64_t> offsets(full.size(), 0), sizes(reached);
  Value result =
      ScatterOp::create(b, part(offsets, sizes), op.getIndex(), op.getUpdates(),
                        op.getDimAttr(), op.getAccumulateAttr());
  for (size_t d = 0; d < full.size(); ++d) {
    if (reached[d] == full[d])
      continue;
    offsets[d] = reached[d];
    sizes[d] = full[d] - reached[d];
    Value rest = part(offsets, sizes);
    result = ConcatOp::create(b, ValueRange{result, rest}, (int64_t)d);
    offsets[d] = 0;
    sizes[d] = full[d];
  }
  return {result};
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
                    AttentionBackwardOp, ScatterOp>(
                  [](auto composite) { return decompose(composite); })
              .Default([](Operation *) { return std::nullopt; });
      if (!replacements || llvm::none_of(*replacements, [](Value v) { return (bool)v; }))
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
