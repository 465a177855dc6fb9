//===- ImportConvolutions.cpp - Convolutions as products of matrices ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution whose windows do not overlap (stride = kernel, as the patch
// embedding of a vision transformer) is a product of matrices: one row per
// patch, one column per output channel. Any other is the same product of a
// matrix that has an element once per window that sees it.
//
//===----------------------------------------------------------------------===//

#include "Windows.h"

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

/// The windows that lie side by side, as patches.
static Patches patchesOf(const Windows &w, int64_t outputs) {
  Patches patches{w.input[0], w.input[1], outputs, w.kernel, w.count, w.input};
  return patches;
}

namespace {
struct Convolution {
  Windows windows;
  int64_t batch, channels, outputs, groups;
  DType type;
  /// Elements of one window in one group.
  int64_t columns() const { return channels / groups * windows.taps(); }
  int64_t rows() const { return batch * windows.windows(); }
};
} // namespace

static FailureOr<Convolution> readConvolution(Call &call) {
  mlir::Value x = call.tensor("input"), weight = call.tensor("weight");
  if (call.flag("transposed"))
    return call.failAt("transposed", "got true, only false is supported");
  int64_t groups = call.integer("groups");
  bool fits = groups >= 1 && rankOf(x) >= 3 && rankOf(weight) == rankOf(x) &&
              shapeOf(weight)[1] * groups == shapeOf(x)[1] &&
              shapeOf(weight)[0] % groups == 0 && dtypeOf(x) == dtypeOf(weight) &&
              graph::isFloating(dtypeOf(x));
  if (!fits)
    return call.failAt("weight",
                       "got " + shapeText(shapeOf(weight)) + " for input " +
                           shapeText(shapeOf(x)) + " in " + Twine(groups) +
                           " groups, expected [O,C/groups,K...] for [N,C,S...], "
                           "one floating type");
  SmallVector<int64_t> kernel(shapeOf(weight).drop_front(2));
  auto windows = readWindows(call, x, kernel, /*ceil=*/false);
  if (failed(windows))
    return failure();
  return Convolution{*windows,           shapeOf(x)[0], shapeOf(x)[1],
                     shapeOf(weight)[0], groups,        dtypeOf(x)};
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

//===----------------------------------------------------------------------===//
// Any windows, in groups
//===----------------------------------------------------------------------===//

/// One row per window, of the elements it sees: [G, N * count, C/G * K].
static mlir::Value windowRows(Call &call, const Convolution &c,
                              mlir::Value input) {
  const Windows &w = c.windows;
  mlir::Value padded = padWindows(call, w, input, Number::ofInt(0));
  SmallVector<mlir::Value> taps;
  for (int64_t t = 0; t < w.taps(); ++t)
    taps.push_back(call.unsqueeze(readTap(call, w, padded, t), 2));
  mlir::Value all = taps.size() == 1 ? taps[0]
                                     : call.emit<ConcatOp>(
                                           taps, {call.intAttr("dim", 2)});
  // [N, G, C/G * K, count] to [G, N, count, C/G * K].
  all = call.reshape(all, {c.batch, c.groups, c.columns(), w.windows()});
  return call.reshape(call.transpose(all, {1, 0, 3, 2}),
                      {c.groups, c.rows(), c.columns()});
}

/// Rows per window and columns per output channel, [G, N * count, O/G], as
/// [N, O, count...], and back.
static mlir::Value outputOfRows(Call &call, const Convolution &c,
                                mlir::Value rows) {
  rows = call.reshape(rows, {c.groups, c.batch, c.windows.windows(),
                             c.outputs / c.groups});
  SmallVector<int64_t> shape{c.batch, c.outputs};
  llvm::append_range(shape, c.windows.count);
  return call.reshape(call.transpose(rows, {1, 0, 3, 2}), shape);
}
static mlir::Value rowsOfOutput(Call &call, const Convolution &c,
                                mlir::Value output) {
  output = call.reshape(output, {c.batch, c.groups, c.outputs / c.groups,
                                 c.windows.windows()});
  return call.reshape(call.transpose(output, {1, 0, 3, 2}),
                      {c.groups, c.rows(), c.outputs / c.groups});
}

static mlir::Value product(Call &call, mlir::Value lhs, mlir::Value rhs,
                           StringRef transposed = "") {
  SmallVector<NamedAttribute> attributes;
  if (!transposed.empty())
    attributes.push_back(call.unitAttr(transposed));
  if (lhs && rhs && shapeOf(lhs)[0] == 1) {
    mlir::Value flat = call.emit<MatmulOp>(
        {call.squeeze(lhs, 0), call.squeeze(rhs, 0)}, attributes);
    return call.unsqueeze(flat, 0);
  }
  return call.emit<MatmulOp>({lhs, rhs}, attributes);
}

static mlir::Value groupedWeight(Call &call, const Convolution &c) {
  return call.reshape(call.tensor("weight"),
                      {c.groups, c.outputs / c.groups, c.columns()});
}

/// Elements of windows, [G, N * count, C/G * K], added where they come from.
static mlir::Value inputOfRows(Call &call, const Convolution &c,
                               mlir::Value rows) {
  const Windows &w = c.windows;
  rows = call.reshape(rows, {c.groups, c.batch, w.windows(), c.columns()});
  SmallVector<int64_t> shape{c.batch, c.channels, w.taps()};
  llvm::append_range(shape, w.count);
  mlir::Value all = call.reshape(call.transpose(rows, {1, 0, 3, 2}), shape);
  SmallVector<mlir::Value> parts;
  for (int64_t t = 0; t < w.taps(); ++t)
    parts.push_back(call.squeeze(call.sliceDim(all, 2, t, 1), 2));
  return sumTaps(call, w, parts);
}

//===----------------------------------------------------------------------===//
// The operations
//===----------------------------------------------------------------------===//

static mlir::Value patchConvolution(Call &call, const Patches &p) {
  mlir::Value rows = patchRows(call, p, call.tensor("input"));
  mlir::Value weight =
      call.reshape(call.tensor("weight"), {p.outputs, p.columns()});
  mlir::Value bias = call.tensor("bias");
  mlir::Value product =
      bias ? call.emit<LinearOp>({rows, weight, bias},
                                 {call.unitAttr("transpose_weight")})
           : call.emit<MatmulOp>({rows, weight},
                                 {call.unitAttr("transpose_rhs")});
  SmallVector<int64_t> shape{p.batch};
  llvm::append_range(shape, p.count);
  shape.push_back(p.outputs);
  // [N, S/K..., O] to [N, O, S/K...].
  SmallVector<int64_t> order{0, int64_t(shape.size()) - 1};
  for (size_t i = 0; i < p.count.size(); ++i)
    order.push_back(1 + i);
  return call.transpose(call.reshape(product, shape), order);
}

static LogicalResult importConvolution(Call &call) {
  auto c = readConvolution(call);
  if (failed(c))
    return failure();
  if (c->windows.cutsPatches() && c->groups == 1)
    return call.result(
        patchConvolution(call, patchesOf(c->windows, c->outputs)));
  mlir::Value result = outputOfRows(
      call, *c,
      product(call, windowRows(call, *c, call.tensor("input")),
              groupedWeight(call, *c), "transpose_rhs"));
  if (mlir::Value bias = call.tensor("bias")) {
    SmallVector<int64_t> shape(c->windows.spatialRank() + 1, 1);
    shape[0] = c->outputs;
    DType math = computeType(c->type);
    result = call.cast(
        call.emit<AddOp>({call.cast(result, math),
                          call.cast(call.reshape(bias, shape), math)}),
        c->type);
  }
  return call.result(result);
}

static LogicalResult importConvolutionBackward(Call &call) {
  auto c = readConvolution(call);
  if (failed(c))
    return failure();
  SmallVector<bool> mask = call.flags("output_mask");
  if (mask.size() != 3)
    return call.failAt("output_mask",
                       "got " + Twine(mask.size()) + " flags, expected 3");
  mlir::Value grad = call.tensor("grad_output");
  SmallVector<int64_t> expected{c->batch, c->outputs};
  llvm::append_range(expected, c->windows.count);
  if (shapeOf(grad) != ArrayRef<int64_t>(expected))
    return call.failAt("grad_output", "got " + shapeText(shapeOf(grad)) +
                                          ", expected " + shapeText(expected));
  mlir::Value weight = call.tensor("weight"), dInput, dWeight, dBias;
  if (c->windows.cutsPatches() && c->groups == 1) {
    Patches p = patchesOf(c->windows, c->outputs);
    SmallVector<int64_t> order{0};
    for (size_t i = 0; i < p.count.size(); ++i)
      order.push_back(2 + i);
    order.push_back(1);
    grad = call.reshape(call.transpose(grad, order), {p.rows(), p.outputs});
    if (mask[0])
      dInput = fromPatchRows(
          call, p,
          call.emit<MatmulOp>(
              {grad, call.reshape(weight, {p.outputs, p.columns()})}));
    if (mask[1])
      dWeight = call.reshape(
          call.emit<MatmulOp>({grad, patchRows(call, p, call.tensor("input"))},
                              {call.unitAttr("transpose_lhs")}),
          shapeOf(weight));
  } else {
    mlir::Value rows = rowsOfOutput(call, *c, grad);
    if (mask[0])
      dInput = inputOfRows(call, *c,
                           product(call, rows, groupedWeight(call, *c)));
    if (mask[1])
      dWeight = call.reshape(
          product(call, rows, windowRows(call, *c, call.tensor("input")),
                  "transpose_lhs"),
          shapeOf(weight));
    // [N * count, O] for the bias: groups are neighbours.
    grad = call.reshape(call.transpose(rows, {1, 0, 2}),
                        {c->rows(), c->outputs});
  }
  if (mask[2])
    dBias = call.cast(
        call.sum(call.cast(grad, computeType(c->type)), {0}, false), c->type);
  return call.results({dInput, dWeight, dBias});
}

llvm::ArrayRef<OpEntry> importer::convolutionTable() {
  static constexpr llvm::StringLiteral straight("not transposed");
  static const OpEntry table[] = {
      {"aten.convolution.default",
       "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] "
       "padding, int[] dilation, bool transposed, int[] output_padding, int "
       "groups)",
       straight, importConvolution},
      {"aten.convolution_backward.default",
       "(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, "
       "int[] stride, int[] padding, int[] dilation, bool transposed, int[] "
       "output_padding, int groups, bool[3] output_mask)",
       straight, importConvolutionBackward},
  };
  return table;
}
