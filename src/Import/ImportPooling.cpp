//===- ImportPooling.cpp - Maxima and averages over windows ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Windows.h"

#include <limits>

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

namespace {
/// An input [N, C, H, W]; [C, H, W] with a batch put before it.
struct Pooling {
  Windows windows;
  mlir::Value input;
  bool batched = true;
};
} // namespace

static FailureOr<Pooling> readPooling(Call &call, bool dilated) {
  Pooling p;
  p.input = call.tensor("self");
  p.batched = rankOf(p.input) == 4;
  if (rankOf(p.input) != 3 && rankOf(p.input) != 4)
    return call.failAt("self", "got shape " + shapeText(shapeOf(p.input)) +
                                   ", expected [N,C,H,W] or [C,H,W]");
  if (!graph::isFloating(dtypeOf(p.input)))
    return call.failAt("self", "got " +
                                   Twine(dtypeName(dtypeOf(p.input)).data()) +
                                   ", expected floating numbers");
  if (!p.batched)
    p.input = call.unsqueeze(p.input, 0);
  SmallVector<int64_t> kernel = call.integers("kernel_size");
  if (kernel.size() == 1)
    kernel.resize(2, kernel[0]);
  if (kernel.size() != 2 || kernel[0] < 1 || kernel[1] < 1)
    return call.failAt("kernel_size",
                       "got " + shapeText(kernel) +
                           ", expected two numbers, none below 1");
  auto windows = readWindows(call, p.input, kernel, call.flag("ceil_mode"),
                             dilated);
  if (failed(windows))
    return failure();
  p.windows = *windows;
  return p;
}

static mlir::Value batch(Call &call, const Pooling &p, mlir::Value value) {
  return p.batched ? value : call.squeeze(value, 0);
}

//===----------------------------------------------------------------------===//
// Maxima
//===----------------------------------------------------------------------===//

/// What tap t of every window has for a coordinate along spatial dimension d,
/// as [count] with the other dimension 1; the first tap's, moved up into the
/// input, where t is negative.
static mlir::Value coordinate(Call &call, const Windows &w, int64_t d,
                              int64_t t) {
  mlir::Value at = call.iota(
      Number::ofInt(std::max<int64_t>(t, 0) * w.dilation[d] - w.padding[d]),
      Number::ofInt(w.stride[d]), DType::Int64, w.count[d]);
  auto number = [&](int64_t value) {
    return call.splat(Number::ofInt(value), DType::Int64);
  };
  if (t < 0) {
    // Steps of the dilation that lead from before the input into it.
    mlir::Value missing = call.emit<MaximumOp>(
        {call.emit<SubOp>({number(w.dilation[d] - 1), at}), number(0)});
    mlir::Value steps =
        call.emit<TruncDivOp>({missing, number(w.dilation[d])});
    at = call.emit<AddOp>(
        {at, call.emit<MulOp>({steps, number(w.dilation[d])})});
  }
  return call.reshape(at, d == 0 ? ArrayRef<int64_t>{w.count[0], 1}
                                 : ArrayRef<int64_t>{1, w.count[1]});
}

/// Values and the places they come from, in [0, H * W). As PyTorch: the first
/// of equal values, and NaN, the last one, wins.
static LogicalResult importMaxPool(Call &call) {
  auto p = readPooling(call, /*dilated=*/true);
  if (failed(p))
    return failure();
  const Windows &w = p->windows;
  DType type = dtypeOf(p->input);
  mlir::Value padded =
      padWindows(call, w, p->input,
                 Number::ofFloat(-std::numeric_limits<double>::infinity()));
  SmallVector<int64_t> shape{w.input[0], w.input[1], w.count[0], w.count[1]};
  auto place = [&](mlir::Value row, mlir::Value column) {
    mlir::Value first = call.emit<MulOp>(
        {row, call.splat(Number::ofInt(w.input[3]), DType::Int64)});
    return call.emit<AddOp>({first, column});
  };
  mlir::Value best =
      call.splat(-std::numeric_limits<double>::infinity(), type, shape);
  mlir::Value where = call.broadcast(
      place(coordinate(call, w, 0, -1), coordinate(call, w, 1, -1)), shape);
  for (int64_t t = 0; t < w.taps(); ++t) {
    SmallVector<int64_t> at = w.tap(t);
    mlir::Value value = readTap(call, w, padded, t);
    mlir::Value larger =
        call.emit<OrOp>({call.compare(ComparePredicate::gt, value, best),
                         call.compare(ComparePredicate::ne, value, value)});
    best = call.emit<SelectOp>({larger, value, best});
    where = call.emit<SelectOp>(
        {larger,
         place(coordinate(call, w, 0, at[0]), coordinate(call, w, 1, at[1])),
         where});
  }
  return call.results({batch(call, *p, best), batch(call, *p, where)});
}

static LogicalResult importMaxPoolBackward(Call &call) {
  auto p = readPooling(call, /*dilated=*/true);
  if (failed(p))
    return failure();
  const Windows &w = p->windows;
  mlir::Value grad = call.tensor("grad_output"), where = call.tensor("indices");
  DType type = dtypeOf(p->input), math = computeType(type);
  int64_t planes = w.input[0] * w.input[1], places = w.input[2] * w.input[3];
  mlir::Value flat = call.emit<ScatterOp>(
      {call.splat(0, math, {planes, places}),
       call.reshape(where, {planes, w.windows()}),
       call.cast(call.reshape(grad, {planes, w.windows()}), math)},
      {call.intAttr("dim", 1), call.unitAttr("accumulate")});
  return call.result(
      call.cast(call.reshape(flat, shapeOf(call.tensor("self"))), type));
}

//===----------------------------------------------------------------------===//
// Averages
//===----------------------------------------------------------------------===//

/// 1 / the number of elements that each window counts: [count_h, count_w], or
/// one number.
static mlir::Value reciprocalCounts(Call &call, const Windows &w, DType type) {
  if (auto divisor = call.maybeInteger("divisor_override"))
    return call.splat(1.0 / double(*divisor), type);
  bool padding = call.flag("count_include_pad");
  mlir::Value product;
  for (int64_t d = 0; d < 2; ++d) {
    auto number = [&](int64_t value) {
      return call.splat(Number::ofInt(value), DType::Int64);
    };
    mlir::Value start =
        call.iota(Number::ofInt(-w.padding[d]), Number::ofInt(w.stride[d]),
                  DType::Int64, w.count[d]);
    mlir::Value end = call.emit<MinimumOp>(
        {call.emit<AddOp>({start, number(w.kernel[d])}),
         number(w.input[2 + d] + (padding ? w.padding[d] : 0))});
    if (!padding)
      start = call.emit<MaximumOp>({start, number(0)});
    mlir::Value extent = call.reshape(
        call.emit<SubOp>({end, start}),
        d == 0 ? ArrayRef<int64_t>{w.count[0], 1} : ArrayRef<int64_t>{1, w.count[1]});
    product = product ? call.emit<MulOp>({product, extent}) : extent;
  }
  return call.emit<DivOp>({call.splat(1, type), call.cast(product, type)});
}

static LogicalResult needDivisor(Call &call) {
  auto divisor = call.maybeInteger("divisor_override");
  if (!divisor || *divisor != 0)
    return success();
  return call.failAt("divisor_override", "got 0, expected another number");
}

static LogicalResult importAvgPool(Call &call) {
  auto p = readPooling(call, /*dilated=*/false);
  if (failed(p) || failed(needDivisor(call)))
    return failure();
  DType type = dtypeOf(p->input), math = computeType(type);
  mlir::Value padded = padWindows(call, p->windows, call.cast(p->input, math),
                                  Number::ofInt(0));
  mlir::Value total;
  for (int64_t t = 0; t < p->windows.taps(); ++t) {
    mlir::Value value = readTap(call, p->windows, padded, t);
    total = total ? call.emit<AddOp>({total, value}) : value;
  }
  total =
      call.emit<MulOp>({total, reciprocalCounts(call, p->windows, math)});
  return call.result(batch(call, *p, call.cast(total, type)));
}

static LogicalResult importAvgPoolBackward(Call &call) {
  auto p = readPooling(call, /*dilated=*/false);
  if (failed(p) || failed(needDivisor(call)))
    return failure();
  DType type = dtypeOf(p->input), math = computeType(type);
  mlir::Value grad = call.tensor("grad_output");
  if (!p->batched)
    grad = call.unsqueeze(grad, 0);
  grad = call.emit<MulOp>({call.cast(grad, math),
                           reciprocalCounts(call, p->windows, math)});
  SmallVector<mlir::Value> parts(p->windows.taps(), grad);
  return call.result(batch(
      call, *p, call.cast(sumTaps(call, p->windows, parts), type)));
}

llvm::ArrayRef<OpEntry> importer::poolingTable() {
  static const OpEntry table[] = {
      {"aten.max_pool2d_with_indices.default",
       "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
       "int[2] dilation=1, bool ceil_mode=False)",
       "", importMaxPool},
      {"aten.max_pool2d_with_indices_backward.default",
       "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
       "int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices)",
       "", importMaxPoolBackward},
      {"aten.avg_pool2d.default",
       "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
       "bool ceil_mode=False, bool count_include_pad=True, int? "
       "divisor_override=None)",
       "", importAvgPool},
      {"aten.avg_pool2d_backward.default",
       "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
       "int[2] padding, bool ceil_mode, bool count_include_pad, int? "
       "divisor_override)",
       "", importAvgPoolBackward},
  };
  return table;
}
