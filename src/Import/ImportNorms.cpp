//===- ImportNorms.cpp - Layer norm and softmax, forward and backward -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <limits>

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

/// How many trailing dimensions `normalized_shape` names.
static FailureOr<int64_t> normalizedAxes(Call &call, mlir::Value x) {
  SmallVector<int64_t> shape = call.integers("normalized_shape");
  bool fits = !shape.empty() && int64_t(shape.size()) <= rankOf(x) &&
              shapeOf(x).take_back(shape.size()) == ArrayRef<int64_t>(shape);
  if (!fits)
    return call.failAt("normalized_shape",
                       "got " + shapeText(shape) +
                           ", expected the last dimensions of " +
                           shapeText(shapeOf(x)));
  return shape.size();
}

static LogicalResult importLayerNorm(Call &call) {
  mlir::Value x = call.tensor("input");
  auto axes = normalizedAxes(call, x);
  if (failed(axes))
    return failure();
  DType type = dtypeOf(x), math = computeType(type);
  SmallVector<mlir::Value> operands{call.cast(x, math)};
  SmallVector<int32_t> segments{1};
  for (StringRef name : {"weight", "bias"}) {
    mlir::Value affine = call.tensor(name);
    segments.push_back(affine ? 1 : 0);
    if (affine)
      operands.push_back(call.cast(affine, math));
  }
  auto values = call.emitAll<LayerNormOp>(
      operands,
      {call.intAttr("axes", *axes), call.realAttr("eps", call.real("eps")),
       call.namedAttr("operandSegmentSizes",
                      DenseI32ArrayAttr::get(call.context(), segments))});
  if (values.empty())
    return failure();
  values[0] = call.cast(values[0], type);
  // The statistics stay in the type of computing on PyTorch's GPUs; its CPUs
  // round them to the input's, which the declared results tell.
  const auto &declared = call.node().results;
  for (size_t i = 1; i < 3 && i < declared.size(); ++i)
    if (declared[i] && declared[i]->dtype == type)
      values[i] = call.cast(values[i], type);
  return call.results(values);
}

static LogicalResult importLayerNormBackward(Call &call) {
  mlir::Value x = call.tensor("input"), weight = call.tensor("weight");
  auto axes = normalizedAxes(call, x);
  if (failed(axes))
    return failure();
  SmallVector<bool> mask = call.flags("output_mask");
  if (mask.size() != 3)
    return call.failAt("output_mask",
                       "got " + Twine(mask.size()) + " flags, expected 3");
  DType type = dtypeOf(x), math = computeType(type);
  SmallVector<mlir::Value> operands;
  for (mlir::Value value :
       {call.tensor("grad_out"), x, call.tensor("mean"), call.tensor("rstd")})
    operands.push_back(call.cast(value, math));
  if (weight)
    operands.push_back(call.cast(weight, math));
  auto values = call.emitAll<LayerNormBackwardOp>(
      operands, {call.intAttr("axes", *axes)});
  if (values.empty())
    return failure();
  DType affine = weight ? dtypeOf(weight) : type;
  for (auto [i, value] : llvm::enumerate(values))
    value = mask[i] ? call.cast(value, i == 0 ? type : affine) : mlir::Value();
  return call.results(values);
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// `Op` along a dimension of tensors of one shape; a 0-d tensor is a row of
/// one.
template <typename Op>
static mlir::Value along(Call &call, ArrayRef<mlir::Value> values,
                         int64_t dim) {
  SmallVector<mlir::Value> operands(values);
  bool scalar = rankOf(values[0]) == 0;
  if (scalar)
    for (mlir::Value &value : operands)
      value = call.reshape(value, {1});
  mlir::Value result = call.emit<Op>(operands, {call.intAttr("dim", dim)});
  return scalar ? call.reshape(result, {}) : result;
}

/// The dimension of a softmax computed from `type`.
static FailureOr<int64_t> softmaxDim(Call &call, DType type) {
  if (!graph::isFloating(type))
    return call.failAt("self", "got " + Twine(dtypeName(type).data()) +
                                   ", expected floating numbers");
  return call.dim("dim", rankOf(call.tensor("self")));
}

/// Softmax computed from `type`, given in `result`.
template <typename Op>
static LogicalResult softmax(Call &call, DType type, DType result) {
  mlir::Value x = call.cast(call.tensor("self"), type);
  auto dim = softmaxDim(call, type);
  if (failed(dim))
    return failure();
  return call.result(call.cast(
      along<Op>(call, {call.cast(x, computeType(type))}, *dim), result));
}

template <typename Op> static LogicalResult importSoftmax(Call &call) {
  DType type = dtypeOf(call.tensor("self"));
  bool widen = call.flag("half_to_float");
  if (widen && type != DType::Float16 && type != DType::BFloat16)
    return call.failAt("half_to_float", "got true, expected false for " +
                                            Twine(dtypeName(type).data()));
  return softmax<Op>(call, type, widen ? DType::Float32 : type);
}

/// Softmax that gives zeros, not NaN, where a row is -inf throughout.
static LogicalResult importSafeSoftmax(Call &call) {
  mlir::Value x = call.tensor("self");
  DType type = call.dtype("dtype").value_or(dtypeOf(x)),
        math = computeType(type);
  auto dim = softmaxDim(call, type);
  if (failed(dim))
    return failure();
  x = call.cast(call.cast(x, type), math);
  mlir::Value plain = along<SoftmaxOp>(call, {x}, *dim);
  if (rankOf(x) == 0 || shapeOf(x)[*dim] == 0)
    return call.result(call.cast(plain, type));
  mlir::Value largest = call.emit<MaxOp>(
      {x}, {call.listAttr("dims", {*dim}), call.unitAttr("keepdims")});
  mlir::Value masked = call.compare(
      ComparePredicate::eq, largest,
      call.splat(-std::numeric_limits<double>::infinity(), math));
  return call.result(call.cast(
      call.emit<SelectOp>({masked, call.splat(0, math), plain}), type));
}

template <typename Op> static LogicalResult importSoftmaxInt(Call &call) {
  DType type = call.dtype("dtype").value_or(dtypeOf(call.tensor("self")));
  return softmax<Op>(call, type, type);
}

template <typename Op> static LogicalResult importSoftmaxBackward(Call &call) {
  mlir::Value grad = call.tensor("grad_output"), output = call.tensor("output");
  auto dim = call.dim("dim", rankOf(grad));
  if (failed(dim))
    return failure();
  DType math = computeType(dtypeOf(grad));
  if (shapeOf(grad) != shapeOf(output))
    return call.failAt("output", "got " + shapeText(shapeOf(output)) +
                                     ", expected the shape of grad_output, " +
                                     shapeText(shapeOf(grad)));
  mlir::Value result =
      along<Op>(call, {call.cast(grad, math), call.cast(output, math)}, *dim);
  return call.result(call.cast(result, *call.dtype("input_dtype")));
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral
    softmaxSignature("(Tensor self, int dim, bool half_to_float)"),
    softmaxInt("(Tensor self, int dim, ScalarType? dtype=None)"),
    softmaxBackward("(Tensor grad_output, Tensor output, int dim, ScalarType "
                    "input_dtype)");

llvm::ArrayRef<OpEntry> importer::normTable() {
  static const OpEntry table[] = {
      {"aten.native_layer_norm.default",
       "(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
       "float eps)",
       "", importLayerNorm},
      {"aten.native_layer_norm_backward.default",
       "(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, "
       "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask)",
       "", importLayerNormBackward},
      {"aten._softmax.default", softmaxSignature, "", importSoftmax<SoftmaxOp>},
      {"aten._log_softmax.default", softmaxSignature, "",
       importSoftmax<LogSoftmaxOp>},
      {"aten._safe_softmax.default", softmaxInt, "", importSafeSoftmax},
      {"aten.softmax.int", softmaxInt, "", importSoftmaxInt<SoftmaxOp>},
      {"aten.log_softmax.int", softmaxInt, "", importSoftmaxInt<LogSoftmaxOp>},
      {"aten._softmax_backward_data.default", softmaxBackward, "",
       importSoftmaxBackward<SoftmaxBackwardOp>},
      {"aten._log_softmax_backward_data.default", softmaxBackward, "",
       importSoftmaxBackward<LogSoftmaxBackwardOp>},
  };
  return table;
}
