//===- DecomposeLosses.cpp - Likelihood and cross entropy as row parts
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows are kept as [N, 1] throughout, the shape row statistics have, so that
// everything of one row is in one parallel space. A row whose label is the
// ignored one reads class 0, and what it read is then selected away.
//
//===----------------------------------------------------------------------===//
#include "Decompose.h"

using namespace mlir;
using namespace nova;

namespace {
/// The labels of a loss over [N, C], as the rewrites read them.
struct Rows {
  Rows(TensorEmitter &b, Value classes, Value labelsIn, int64_t ignoreIndex)
      : b(b), shape(tensorType(classes).getShape()),
        compute(b.computeType(elementType(classes))) {
    Value wide = labelsIn;
    // Truncating an ignored label that the labels' type cannot hold would
    // ignore rows that count.
    if (elementType(labelsIn).isInteger(32) && !llvm::isInt<32>(ignoreIndex))
      wide = b.cast(labelsIn, b.getI64Type());
    index = elementType(wide);
    labels = b.reshape(wide, {shape[0], 1});
    counts =
        b.compare(ComparePredicate::ne, labels, b.integer(ignoreIndex, index));
    safe = b.select(counts, labels, b.integer(0, index));
  }
  Value zero() { return b.constant(0, compute); }
  /// [N, 1]: `value` in rows that count, 0 in the others.
  Value whereCounted(Value value) { return b.select(counts, value, zero()); }
  /// [N, 1]: values[row, label].
  Value pick(Value values) {
    return b.cast(GatherOp::create(b, values, safe, 1), compute);
  }
  /// [N, 1]: weight[label].
  Value weightOf(Value weight) {
    return b.cast(
        IndexOp::create(b, weight, ValueRange{safe}, ArrayRef<int64_t>{0}),
        compute);
  }
  /// [N, C]: whether the column is the row's label.
  Value isLabel() {
    return b.compare(ComparePredicate::eq, b.positions(shape[1], 1, 2, index),
                     safe);
  }
  /// [N, 1]: a per-row gradient [N] (reduction none), or the 0-d one as it is.
  Value perRow(Value grad) {
    grad = b.cast(grad, compute);
    return tensorType(grad).getRank() == 1 ? b.reshape(grad, {shape[0], 1})
                                           : grad;
  }

  TensorEmitter &b;
  ArrayRef<int64_t> shape;
  Type compute, index;
  Value labels, counts, safe;
};
} // namespace

/// The sum of a column [N, 1], as 0-d.
static Value sumColumn(TensorEmitter &b, Value column) {
  return b.sum(column, {0, 1});
}

/// A loss per row [N, 1] reduced as asked; `total` is what a mean divides by.
static Value reduceLoss(TensorEmitter &b, Value rows, LossReduction reduction,
                        Value total) {
  switch (reduction) {
  case LossReduction::none:
    return b.reshape(rows, {tensorType(rows).getDimSize(0)});
  case LossReduction::sum:
    return sumColumn(b, rows);
  case LossReduction::mean:
    return b.div(sumColumn(b, rows), total);
  }
  llvm_unreachable("every reduction is handled");
}

//===----------------------------------------------------------------------===//
// Negative log likelihood
//===----------------------------------------------------------------------===//

Replacements nova::decompose(NllLossOp op) {
  bool needLoss = !op.getLoss().use_empty(),
       needTotal = !op.getTotalWeight().use_empty();
  if (!needLoss && !needTotal)
    return {Value(), Value()};
  TensorEmitter b(op);
  LossReduction reduction = op.getReduction();
  Type element = elementType(op.getLogProbs());
  Rows rows(b, op.getLogProbs(), op.getLabels(), op.getIgnoreIndex());
  Value weight = op.getWeight() ? rows.weightOf(op.getWeight()) : Value();
  Value loss, total;
  if (reduction == LossReduction::mean ||
      (needTotal && reduction == LossReduction::sum))
    total = sumColumn(b, weight ? rows.whereCounted(weight)
                                : b.cast(rows.counts, rows.compute));
  else if (needTotal)
    total = rows.zero();
  if (needLoss) {
    Value row = b.neg(rows.pick(op.getLogProbs()));
    if (weight)
      row = b.mul(row, weight);
    loss = b.cast(reduceLoss(b, rows.whereCounted(row), reduction, total),
                  element);
  }
  return {loss, needTotal ? b.cast(total, element) : Value()};
}

Replacements nova::decompose(NllLossBackwardOp op) {
  if (op.use_empty())
    return {Value()};
  TensorEmitter b(op);
  Rows rows(b, op.getLogProbs(), op.getLabels(), op.getIgnoreIndex());
  Value scale = rows.perRow(op.getGrad());
  if (op.getReduction() == LossReduction::mean)
    scale = b.div(scale, b.cast(op.getTotalWeight(), rows.compute));
  scale = b.neg(scale);
  if (op.getWeight())
    scale = b.mul(rows.weightOf(op.getWeight()), scale);
  scale = rows.whereCounted(scale);
  Value isLabel = rows.isLabel();
  Value result = b.select(isLabel, scale, rows.zero());
  return {b.cast(result, elementType(op.getResult()))};
}

//===----------------------------------------------------------------------===//
// Softmax cross entropy
//===----------------------------------------------------------------------===//

Replacements nova::decompose(SceOp op) {
  bool needLoss = !op.getLoss().use_empty(), needLse = !op.getLse().use_empty();
  bool needCount = !op.getCount().use_empty();
  if (!needLoss && !needLse && !needCount)
    return {Value(), Value(), Value()};
  TensorEmitter b(op);
  Type element = elementType(op.getLogits());
  Rows rows(b, op.getLogits(), op.getLabels(), op.getIgnoreIndex());
  Value loss, lse, count;
  if (needLoss || needLse) {
    Value x = b.wide(op.getLogits());
    Value most = b.maxKeep(x, {1});
    lse = b.add(most, b.log(b.sumKeep(b.exp(b.sub(x, most)), {1})));
  }
  if (needCount || (needLoss && op.getReduction() == LossReduction::mean))
    count = sumColumn(b, b.cast(rows.counts, rows.compute));
  if (needLoss) {
    Value row = rows.whereCounted(b.sub(lse, rows.pick(op.getLogits())));
    loss = b.cast(reduceLoss(b, row, op.getReduction(), count), element);
  }
  return {loss,
          needLse ? b.cast(b.reshape(lse, {rows.shape[0]}), element) : Value(),
          needCount ? b.cast(count, element) : Value()};
}

Replacements nova::decompose(SceBackwardOp op) {
  if (op.use_empty())
    return {Value()};
  TensorEmitter b(op);
  Rows rows(b, op.getLogits(), op.getLabels(), op.getIgnoreIndex());
  Value scale = rows.perRow(op.getGrad());
  if (op.getReduction() == LossReduction::mean)
    scale = b.div(scale, b.cast(op.getCount(), rows.compute));
  scale = rows.whereCounted(scale);
  Value lse = b.reshape(b.wide(op.getLse()), {rows.shape[0], 1});
  Value probability = b.exp(b.sub(b.wide(op.getLogits()), lse));
  Value result =
      b.mul(scale, b.sub(probability, b.cast(rows.isLabel(), rows.compute)));
  return {b.cast(result, elementType(op.getResult()))};
}
