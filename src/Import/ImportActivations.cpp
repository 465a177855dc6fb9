//===- ImportActivations.cpp - Activations and their gradients ------------===//
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

namespace {
/// Tensors of an activation in one type: the one for computing, and the one
/// the result is rounded to. They must be floating.
struct Inputs {
  SmallVector<mlir::Value> values;
  DType common = DType::Float32;
};
} // namespace

static FailureOr<Inputs> gather(Call &call, ArrayRef<StringRef> names) {
  SmallVector<Operand> operands;
  for (StringRef name : names)
    operands.push_back(call.operand(name));
  Inputs inputs;
  inputs.common = Call::resultType(operands);
  if (!graph::isFloating(inputs.common))
    return call.fail("got integer operands, expected floating ones");
  // The gradients have exact-shape operands; PyTorch broadcasts, so do we.
  SmallVector<int64_t> shape;
  for (const Operand &operand : operands) {
    auto wide = broadcastShapes(shape, shapeOf(operand.value));
    if (failed(wide))
      return call.fail("shapes do not broadcast: " + shapeText(shape) +
                       " and " + shapeText(shapeOf(operand.value)));
    shape = *wide;
  }
  DType math = computeType(inputs.common);
  for (const Operand &operand : operands)
    inputs.values.push_back(
        call.broadcast(call.materialize(operand, inputs.common, math), shape));
  return inputs;
}

/// An operation on those inputs, rounded to their type.
template <typename Op>
static LogicalResult apply(Call &call, ArrayRef<StringRef> names,
                           ArrayRef<NamedAttribute> attributes = {}) {
  auto inputs = gather(call, names);
  if (failed(inputs))
    return failure();
  return call.result(
      call.cast(call.emit<Op>(inputs->values, attributes), inputs->common));
}

template <typename Op, size_t count>
static LogicalResult gelu(Call &call, const StringRef (&names)[count]) {
  StringRef text = call.text("approximate");
  if (text != "none" && text != "tanh")
    return call.failAt("approximate",
                       "got \"" + text + "\", expected \"none\" or \"tanh\"");
  GeluForm form = text == "tanh" ? GeluForm::tanh : GeluForm::erf;
  return apply<Op>(
      call, names,
      {call.namedAttr("form", GeluFormAttr::get(call.context(), form))});
}

static LogicalResult importGelu(Call &call) {
  return gelu<GeluOp>(call, {"self"});
}
static LogicalResult importGeluBackward(Call &call) {
  return gelu<GeluBackwardOp>(call, {"grad_output", "self"});
}
static LogicalResult importTanhBackward(Call &call) {
  return apply<TanhBackwardOp>(call, {"grad_output", "output"});
}
static LogicalResult importSigmoidBackward(Call &call) {
  return apply<SigmoidBackwardOp>(call, {"grad_output", "output"});
}
static LogicalResult importThresholdBackward(Call &call) {
  return apply<ThresholdBackwardOp>(
      call, {"grad_output", "self"},
      {call.realAttr("threshold", call.number("threshold").asDouble())});
}

static LogicalResult importSilu(Call &call) {
  auto inputs = gather(call, {"self"});
  if (failed(inputs))
    return failure();
  mlir::Value x = inputs->values[0];
  return call.result(call.cast(call.emit<MulOp>({x, call.emit<SigmoidOp>({x})}),
                               inputs->common));
}

/// grad * s * (1 + x * (1 - s)), s = sigmoid(x).
static LogicalResult importSiluBackward(Call &call) {
  auto inputs = gather(call, {"grad_output", "self"});
  if (failed(inputs))
    return failure();
  mlir::Value grad = inputs->values[0], x = inputs->values[1];
  mlir::Value one = call.splat(1, computeType(inputs->common));
  mlir::Value s = call.emit<SigmoidOp>({x});
  mlir::Value inner = call.emit<AddOp>(
      {one, call.emit<MulOp>({x, call.emit<SubOp>({one, s})})});
  mlir::Value slope = call.emit<MulOp>({s, inner});
  return call.result(
      call.cast(call.emit<MulOp>({grad, slope}), inputs->common));
}

llvm::ArrayRef<OpEntry> importer::activationTable() {
  static const OpEntry table[] = {
      {"aten.gelu.default", "(Tensor self, *, str approximate='none')", "",
       importGelu},
      {"aten.gelu_backward.default",
       "(Tensor grad_output, Tensor self, *, str approximate='none')", "",
       importGeluBackward},
      {"aten.tanh_backward.default", "(Tensor grad_output, Tensor output)", "",
       importTanhBackward},
      {"aten.sigmoid_backward.default", "(Tensor grad_output, Tensor output)",
       "", importSigmoidBackward},
      {"aten.threshold_backward.default",
       "(Tensor grad_output, Tensor self, Scalar threshold)", "",
       importThresholdBackward},
      {"aten.silu.default", "(Tensor self)", "", importSilu},
      {"aten.silu_backward.default", "(Tensor grad_output, Tensor self)", "",
       importSiluBackward},
  };
  return table;
}
