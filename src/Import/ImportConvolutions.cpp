//===- ImportConvolutions.cpp - Convolutions that cut into patches --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution whose windows do not overlap (stride = kernel, as the patch
// embedding of a vision transformer) is a product of matrices: one row per
// patch, one column per output channel. Other convolutions are not supported.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

namespace {
/// Sizes of input [N, C, S...], weight [O, C, K...], output [N, O, S/K...].
struct Patches {
  int64_t batch, channels, outputs;
  SmallVector<int64_t> kernel, count; ///< per spatial dimension
  SmallVector<int64_t> input;         ///< the input's shape
  int64_t rows() const {
    int64_t product = batch;
    for (int64_t each : count)
      product *= each;
    return product;
  }
  int64_t columns() const {
    int64_t product = channels;
    for (int64_t each : kernel)
      product *= each;
    return product;
  }
};
} // namespace

static LogicalResult needAll(Call &call, StringRef name, int64_t value) {
  SmallVector<int64_t> given = call.integers(name);
  if (llvm::all_of(given, [&](int64_t each) { return each == value; }))
    return success();
  return call.failAt(name, "got " + shapeText(given) + ", only " +
                               Twine(value) + " is supported");
}

static FailureOr<Patches> readPatches(Call &call) {
  mlir::Value x = call.tensor("input"), weight = call.tensor("weight");
  if (call.flag("transposed"))
    return call.failAt("transposed", "got true, only false is supported");
  if (call.integer("groups") != 1)
    return call.failAt("groups", "got " + Twine(call.integer("groups")) +
                                     ", only 1 is supported");
  if (failed(needAll(call, "padding", 0)) ||
      failed(needAll(call, "dilation", 1)))
    return failure();
  if (rankOf(x) < 3 || rankOf(weight) != rankOf(x) ||
      shapeOf(weight)[1] != shapeOf(x)[1] || dtypeOf(x) != dtypeOf(weight) ||
      !graph::isFloating(dtypeOf(x)))
    return call.failAt("weight",
                       "got " + shapeText(shapeOf(weight)) + " for input " +
                           shapeText(shapeOf(x)) +
                           ", expected [O,C,K...] for [N,C,S...], one "
                           "floating type");
  Patches patches{shapeOf(x)[0], shapeOf(x)[1], shapeOf(weight)[0], {}, {}, {}};
  llvm::append_range(patches.input, shapeOf(x));
  llvm::append_range(patches.kernel, shapeOf(weight).drop_front(2));
  SmallVector<int64_t> stride = call.integers("stride");
  if (stride.size() == 1)
    stride.resize(patches.kernel.size(), stride[0]);
  if (stride != patches.kernel || llvm::is_contained(stride, 0))
    return call.failAt("stride", "got " + shapeText(stride) +
                                     ", only the kernel's " +
                                     shapeText(patches.kernel) +
                                     " is supported (windows side by side)");
  for (auto [i, extent] : llvm::enumerate(patches.kernel))
    patches.count.push_back(patches.input[2 + i] / extent);
  return patches;
}

/// [N, C, S1/K1, K1, S2/K2, K2, ...]
static SmallVector<int64_t> splitShape(const Patches &p) {
  SmallVector<int64_t> shape{p.batch, p.channels};
  for (auto [count, extent] : llvm::zip_equal(p.count, p.kernel))
    shape.append({count, extent});
  return shape;
}

/// From there to [N, S/K..., C, K...].
static SmallVector<int64_t> patchOrder(const Patches &p) {
  SmallVector<int64_t> order{0};
  for (size_t i = 0; i < p.kernel.size(); ++i)
    order.push_back(2 + 2 * i);
  order.push_back(1);
  for (size_t i = 0; i < p.kernel.size(); ++i)
    order.push_back(3 + 2 * i);
  return order;
}

/// The input as one row of C * K... elements per patch.
static mlir::Value patchRows(Call &call, const Patches &p, mlir::Value x) {
  // What is left over at the far ends is in no window.
  for (auto [i, extent] : llvm::enumerate(p.kernel))
    x = call.sliceDim(x, 2 + i, 0, p.count[i] * extent);
  x = call.transpose(call.reshape(x, splitShape(p)), patchOrder(p));
  return call.reshape(x, {p.rows(), p.columns()});
}

/// The inverse for gradients: zeros where there is no window.
static mlir::Value fromPatchRows(Call &call, const Patches &p,
                                 mlir::Value rows) {
  SmallVector<int64_t> order = patchOrder(p), split = splitShape(p), shape,
                       inverse(order.size());
  for (auto [to, from] : llvm::enumerate(order)) {
    shape.push_back(split[from]);
    inverse[from] = to;
  }
  mlir::Value x = call.transpose(call.reshape(rows, shape), inverse);
  SmallVector<int64_t> covered{p.batch, p.channels}, low(p.input.size(), 0),
      high(p.input.size(), 0);
  for (auto [i, extent] : llvm::enumerate(p.kernel)) {
    covered.push_back(p.count[i] * extent);
    high[2 + i] = p.input[2 + i] - covered.back();
  }
  x = call.reshape(x, covered);
  if (!x || ArrayRef<int64_t>(covered) == ArrayRef<int64_t>(p.input))
    return x;
  return call.emit<PadOp>(
      {x},
      {call.listAttr("low", low), call.listAttr("high", high),
       call.namedAttr("value", call.element(Number::ofInt(0), dtypeOf(x)))});
}

static LogicalResult importConvolution(Call &call) {
  auto p = readPatches(call);
  if (failed(p))
    return failure();
  mlir::Value rows = patchRows(call, *p, call.tensor("input"));
  mlir::Value weight =
      call.reshape(call.tensor("weight"), {p->outputs, p->columns()});
  mlir::Value bias = call.tensor("bias");
  mlir::Value product =
      bias ? call.emit<LinearOp>({rows, weight, bias},
                                 {call.unitAttr("transpose_weight")})
           : call.emit<MatmulOp>({rows, weight},
                                 {call.unitAttr("transpose_rhs")});
  SmallVector<int64_t> shape{p->batch};
  llvm::append_range(shape, p->count);
  shape.push_back(p->outputs);
  // [N, S/K..., O] to [N, O, S/K...].
  SmallVector<int64_t> order{0, int64_t(shape.size()) - 1};
  for (size_t i = 0; i < p->count.size(); ++i)
    order.push_back(1 + i);
  return call.result(call.transpose(call.reshape(product, shape), order));
}

static LogicalResult importConvolutionBackward(Call &call) {
  auto p = readPatches(call);
  if (failed(p))
    return failure();
  SmallVector<bool> mask = call.flags("output_mask");
  if (mask.size() != 3)
    return call.failAt("output_mask",
                       "got " + Twine(mask.size()) + " flags, expected 3");
  mlir::Value grad = call.tensor("grad_output");
  SmallVector<int64_t> expected{p->batch, p->outputs}, order{0};
  llvm::append_range(expected, p->count);
  if (shapeOf(grad) != ArrayRef<int64_t>(expected))
    return call.failAt("grad_output", "got " + shapeText(shapeOf(grad)) +
                                          ", expected " + shapeText(expected));
  for (size_t i = 0; i < p->count.size(); ++i)
    order.push_back(2 + i);
  order.push_back(1);
  grad = call.reshape(call.transpose(grad, order), {p->rows(), p->outputs});
  mlir::Value weight = call.tensor("weight"), dInput, dWeight, dBias;
  if (mask[0])
    dInput = fromPatchRows(
        call, *p,
        call.emit<MatmulOp>(
            {grad, call.reshape(weight, {p->outputs, p->columns()})}));
  if (mask[1])
    dWeight = call.reshape(
        call.emit<MatmulOp>({grad, patchRows(call, *p, call.tensor("input"))},
                            {call.unitAttr("transpose_lhs")}),
        shapeOf(weight));
  if (mask[2]) {
    DType type = dtypeOf(grad);
    dBias = call.cast(call.sum(call.cast(grad, computeType(type)), {0}, false),
                      type);
  }
  return call.results({dInput, dWeight, dBias});
}

llvm::ArrayRef<OpEntry> importer::convolutionTable() {
  static constexpr llvm::StringLiteral patches(
      "stride equal to the kernel, padding 0, dilation 1, groups 1, not "
      "transposed");
  static const OpEntry table[] = {
      {"aten.convolution.default",
       "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] "
       "padding, int[] dilation, bool transposed, int[] output_padding, int "
       "groups)",
       patches, importConvolution},
      {"aten.convolution_backward.default",
       "(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, "
       "int[] stride, int[] padding, int[] dilation, bool transposed, int[] "
       "output_padding, int groups, bool[3] output_mask)",
       patches, importConvolutionBackward},
  };
  return table;
}
