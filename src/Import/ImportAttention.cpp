//===- ImportAttention.cpp - Scaled dot product attention -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PyTorch has one operation per implementation. They compute the same and
// differ in what they leave besides: the shape of the log-sum-exp, and random
// states, which without dropout are undefined and unused.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <cmath>

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

namespace {
struct Attention {
  mlir::Value query, key, value, bias;
  DType type = DType::Float32; ///< Of query, key, value, gradients and output.
  DType math = DType::Float32; ///< Of scores and the log-sum-exp.
  SmallVector<NamedAttribute> attributes;
};
} // namespace

/// The arguments that forward and backward share.
static FailureOr<Attention> readAttention(Call &call, StringRef biasName) {
  Attention a;
  a.query = call.tensor("query");
  a.key = call.tensor("key");
  a.value = call.tensor("value");
  a.type = dtypeOf(a.query);
  a.math = computeType(a.type);
  if (call.real("dropout_p") != 0)
    return call.failAt("dropout_p", "got " +
                                        numberText(call.real("dropout_p")) +
                                        ", only 0 is supported: a step draws "
                                        "no random numbers");
  if (rankOf(a.query) != 4)
    return call.failAt("query", "got shape " + shapeText(shapeOf(a.query)) +
                                    ", expected [B,H,T,D]");
  for (mlir::Value *each : {&a.query, &a.key, &a.value})
    *each = call.cast(*each, a.type);
  if (!biasName.empty())
    a.bias = call.tensor(biasName);
  if (a.bias) {
    if (!graph::isFloating(dtypeOf(a.bias)))
      return call.failAt(biasName,
                         "got " + Twine(dtypeName(dtypeOf(a.bias)).data()) +
                             ", expected floating numbers to add");
    a.bias = call.cast(a.bias, a.math);
  }
  double scale = call.maybeReal("scale").value_or(
      1 / std::sqrt(double(shapeOf(a.query).back())));
  a.attributes.push_back(call.realAttr("scale", scale));
  if (call.flag("is_causal"))
    a.attributes.push_back(call.unitAttr("causal"));
  return a;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Output and log-sum-exp [B,H,T] (float32 or wider).
static SmallVector<mlir::Value> forward(Call &call, const Attention &a) {
  SmallVector<mlir::Value> operands{a.query, a.key, a.value};
  if (a.bias)
    operands.push_back(a.bias);
  return call.emitAll<AttentionOp>(operands, a.attributes);
}

/// A random state nobody reads: what stands in it is undefined, so zeros of
/// whatever type the producer declares.
static mlir::Value unusedState(Call &call, size_t result) {
  const auto &results = call.node().results;
  if (result >= results.size() || !results[result])
    return {};
  return call.splat(0, results[result]->dtype, results[result]->shape);
}

/// Efficient attention pads the log-sum-exp to a multiple of 32 rows.
static mlir::Value paddedTo32(Call &call, mlir::Value lse) {
  int64_t rows = shapeOf(lse).back(), more = (rows + 31) / 32 * 32 - rows;
  if (more == 0)
    return lse;
  return call.emit<PadOp>(
      {lse},
      {call.listAttr("low", {0, 0, 0}), call.listAttr("high", {0, 0, more}),
       call.namedAttr("value", call.element(Number::ofInt(0), dtypeOf(lse))),
       call.unitAttr("undefined")});
}

static LogicalResult importEfficient(Call &call) {
  auto a = readAttention(call, "attn_bias");
  if (failed(a))
    return failure();
  auto values = forward(call, *a);
  if (values.empty())
    return failure();
  if (call.flag("compute_log_sumexp"))
    values[1] = paddedTo32(call, values[1]);
  else
    values[1] = call.sliceDim(values[1], 2, 0, 0);
  return call.results(
      {values[0], values[1], unusedState(call, 2), unusedState(call, 3)});
}

/// Flash and cuDNN: output, log-sum-exp, cumulative sequence lengths (for
/// nested tensors; null), their maxima (numbers, not tensors), random states,
/// debug mask.
static LogicalResult nineResults(Call &call, const Attention &a,
                                 bool trailingOne) {
  auto values = forward(call, a);
  if (values.empty())
    return failure();
  if (trailingOne)
    values[1] = call.unsqueeze(values[1], 3);
  mlir::Value none;
  return call.results({values[0], values[1], none, none, none, none,
                       unusedState(call, 6), unusedState(call, 7),
                       unusedState(call, 8)});
}

static LogicalResult noDebugMask(Call &call) {
  if (!call.flag("return_debug_mask"))
    return success();
  return call.failAt("return_debug_mask", "got true, only false is supported");
}

static LogicalResult importFlash(Call &call) {
  auto a = readAttention(call, "");
  if (failed(a) || failed(noDebugMask(call)))
    return failure();
  return nineResults(call, *a, /*trailingOne=*/false);
}

static LogicalResult importFlashForCpu(Call &call) {
  auto a = readAttention(call, "attn_mask");
  if (failed(a))
    return failure();
  return call.results(forward(call, *a));
}

static LogicalResult importCudnn(Call &call) {
  auto a = readAttention(call, "attn_bias");
  if (failed(a) || failed(noDebugMask(call)))
    return failure();
  return nineResults(call, *a, /*trailingOne=*/true);
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// Gradients of query, key and value. `lse` is the forward's, in
/// whatever shape it left it.
static SmallVector<mlir::Value> backward(Call &call, const Attention &a,
                                         mlir::Value grad, mlir::Value out,
                                         mlir::Value lse) {
  SmallVector<mlir::Value> operands{call.cast(grad, a.type), a.query, a.key,
                                    a.value};
  if (a.bias)
    operands.push_back(a.bias);
  operands.push_back(call.cast(out, a.type));
  operands.push_back(call.cast(lse, a.math));
  return call.emitAll<AttentionBackwardOp>(operands, a.attributes);
}

static LogicalResult importEfficientBackward(Call &call) {
  auto a = readAttention(call, "attn_bias");
  if (failed(a))
    return failure();
  SmallVector<bool> mask = call.flags("grad_input_mask");
  if (mask.size() != 4)
    return call.failAt("grad_input_mask",
                       "got " + Twine(mask.size()) + " flags, expected 4");
  if (mask[3])
    return call.failAt("grad_input_mask",
                       "got true for attn_bias, only false is supported: its "
                       "gradient is the whole score matrix");
  mlir::Value lse = call.tensor("logsumexp");
  int64_t rows = shapeOf(a->query)[2];
  if (rankOf(lse) != 3 || shapeOf(lse)[2] < rows)
    return call.failAt("logsumexp", "got shape " + shapeText(shapeOf(lse)) +
                                        ", expected [B,H,T] with at least " +
                                        Twine(rows) + " rows");
  auto values = backward(call, *a, call.tensor("grad_out_"), call.tensor("out"),
                         call.sliceDim(lse, 2, 0, rows));
  if (values.empty())
    return failure();
  for (auto [i, value] : llvm::enumerate(values))
    if (!mask[i])
      value = {};
  values.push_back({});
  return call.results(values);
}

static LogicalResult importFlashBackward(Call &call) {
  auto a = readAttention(call, "");
  if (failed(a))
    return failure();
  return call.results(backward(call, *a, call.tensor("grad_out"),
                               call.tensor("out"), call.tensor("logsumexp")));
}

static LogicalResult importFlashForCpuBackward(Call &call) {
  auto a = readAttention(call, "attn_mask");
  if (failed(a))
    return failure();
  return call.results(backward(call, *a, call.tensor("grad_out"),
                               call.tensor("out"), call.tensor("logsumexp")));
}

static LogicalResult importCudnnBackward(Call &call) {
  auto a = readAttention(call, "attn_bias");
  if (failed(a))
    return failure();
  mlir::Value lse = call.tensor("logsumexp");
  if (rankOf(lse) == 4 && shapeOf(lse)[3] == 1)
    lse = call.squeeze(lse, 3);
  return call.results(
      backward(call, *a, call.tensor("grad_out"), call.tensor("out"), lse));
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral noDropout("dropout_p 0"),
    noBiasGradient("dropout_p 0, no gradient of attn_bias");

llvm::ArrayRef<OpEntry> importer::attentionTable() {
  static const OpEntry table[] = {
      {"aten._scaled_dot_product_efficient_attention.default",
       "(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool "
       "compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, "
       "float? scale=None)",
       noDropout, importEfficient},
      {"aten._scaled_dot_product_efficient_attention_backward.default",
       "(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor? "
       "attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor "
       "philox_offset, float dropout_p, bool[4] grad_input_mask, bool "
       "is_causal=False, *, float? scale=None)",
       noBiasGradient, importEfficientBackward},
      {"aten._scaled_dot_product_flash_attention.default",
       "(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
       "is_causal=False, bool return_debug_mask=False, *, float? scale=None)",
       noDropout, importFlash},
      {"aten._scaled_dot_product_flash_attention_backward.default",
       "(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
       "Tensor logsumexp, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int "
       "max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor? "
       "philox_offset, *, float? scale=None)",
       noDropout, importFlashBackward},
      {"aten._scaled_dot_product_flash_attention_for_cpu.default",
       "(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
       "is_causal=False, *, Tensor? attn_mask=None, float? scale=None)",
       noDropout, importFlashForCpu},
      {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
       "(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
       "Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? "
       "attn_mask=None, float? scale=None)",
       noDropout, importFlashForCpuBackward},
      {"aten._scaled_dot_product_cudnn_attention.default",
       "(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool "
       "compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, bool "
       "return_debug_mask=False, *, float? scale=None)",
       noDropout, importCudnn},
      {"aten._scaled_dot_product_cudnn_attention_backward.default",
       "(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
       "Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor? "
       "attn_bias, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k, "
       "float dropout_p, bool is_causal, *, float? scale=None)",
       noDropout, importCudnnBackward},
  };
  return table;
}
