//===- ImportLosses.cpp - Negative log likelihood -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

static FailureOr<LossReduction> lossReduction(Call &call) {
  int64_t code = call.integer("reduction");
  // PyTorch's at::Reduction: 0 none, 1 mean, 2 sum, as the dialect's.
  if (code < 0 || code > 2)
    return call.failAt("reduction", "got " + Twine(code) +
                                        ", expected 0 (none), 1 (mean) or 2 "
                                        "(sum)");
  return static_cast<LossReduction>(code);
}

static SmallVector<NamedAttribute> lossAttributes(Call &call,
                                                  LossReduction reduction) {
  return {call.namedAttr("reduction",
                         LossReductionAttr::get(call.context(), reduction)),
          call.intAttr("ignore_index", call.integer("ignore_index"))};
}

namespace {
/// Log-probabilities [N, C], labels [N], weight [C] or none, for computing.
struct Rows {
  mlir::Value logProbs, labels, weight;
  DType type = DType::Float32, math = DType::Float32;
  /// The call's own shapes were [C] and []: one row.
  bool single = false;
};
} // namespace

static FailureOr<Rows> readRows(Call &call) {
  Rows rows;
  rows.logProbs = call.tensor("self");
  rows.labels = call.tensor("target");
  rows.weight = call.tensor("weight");
  rows.type = dtypeOf(rows.logProbs);
  rows.math = computeType(rows.type);
  if (dtypeOf(rows.labels) != DType::Int64)
    return call.failAt("target",
                       "got " + Twine(dtypeName(dtypeOf(rows.labels)).data()) +
                           ", expected int64");
  rows.single = rankOf(rows.logProbs) == 1;
  if (rows.single) {
    rows.logProbs = call.unsqueeze(rows.logProbs, 0);
    if (rankOf(rows.labels) == 0)
      rows.labels = call.reshape(rows.labels, {1});
  }
  rows.logProbs = call.cast(rows.logProbs, rows.math);
  if (rows.weight)
    rows.weight = call.cast(rows.weight, rows.math);
  return rows;
}

static LogicalResult importNllLoss(Call &call) {
  auto rows = readRows(call);
  auto reduction = lossReduction(call);
  if (failed(rows) || failed(reduction))
    return failure();
  SmallVector<mlir::Value> operands{rows->logProbs, rows->labels};
  if (rows->weight)
    operands.push_back(rows->weight);
  auto values =
      call.emitAll<NllLossOp>(operands, lossAttributes(call, *reduction));
  if (values.empty())
    return failure();
  if (rows->single && *reduction == LossReduction::none)
    values[0] = call.reshape(values[0], {});
  return call.results(
      {call.cast(values[0], rows->type), call.cast(values[1], rows->type)});
}

static LogicalResult importNllLossBackward(Call &call) {
  auto rows = readRows(call);
  auto reduction = lossReduction(call);
  if (failed(rows) || failed(reduction))
    return failure();
  mlir::Value grad = call.cast(call.tensor("grad_output"), rows->math);
  if (rows->single && *reduction == LossReduction::none)
    grad = call.reshape(grad, {1});
  SmallVector<mlir::Value> operands{grad, rows->logProbs, rows->labels};
  if (rows->weight)
    operands.push_back(rows->weight);
  operands.push_back(call.cast(call.tensor("total_weight"), rows->math));
  mlir::Value result =
      call.emit<NllLossBackwardOp>(operands, lossAttributes(call, *reduction));
  if (result && rows->single)
    result = call.squeeze(result, 0);
  return call.result(call.cast(result, rows->type));
}

/// The composite of log-softmax over the classes and nll_loss.
static LogicalResult importCrossEntropy(Call &call) {
  auto rows = readRows(call);
  auto reduction = lossReduction(call);
  if (failed(rows) || failed(reduction))
    return failure();
  if (call.real("label_smoothing") != 0)
    return call.failAt("label_smoothing",
                       "got " + numberText(call.real("label_smoothing")) +
                           ", only 0 is supported");
  if (rankOf(rows->logProbs) != 2)
    return call.failAt("self", "got rank " + Twine(rankOf(rows->logProbs)) +
                                   ", only ranks 1 and 2 are supported");
  SmallVector<mlir::Value> operands{
      call.emit<LogSoftmaxOp>({rows->logProbs}, {call.intAttr("dim", 1)}),
      rows->labels};
  if (rows->weight)
    operands.push_back(rows->weight);
  mlir::Value loss =
      call.emit<NllLossOp>(operands, lossAttributes(call, *reduction));
  if (rows->single && *reduction == LossReduction::none)
    loss = call.reshape(loss, {});
  return call.result(call.cast(loss, rows->type));
}

llvm::ArrayRef<OpEntry> importer::lossTable() {
  static const OpEntry table[] = {
      {"aten.nll_loss_forward.default",
       "(Tensor self, Tensor target, Tensor? weight, int reduction, int "
       "ignore_index)",
       "", importNllLoss},
      {"aten.nll_loss_backward.default",
       "(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
       "reduction, int ignore_index, Tensor total_weight)",
       "", importNllLossBackward},
      {"aten.cross_entropy_loss.default",
       "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
       "ignore_index=-100, float label_smoothing=0.0)",
       "rank 1 or 2, label indices, label_smoothing 0", importCrossEntropy},
  };
  return table;
}
