//===- ImportShapes.cpp - Joining, padding, and the gradients of parts ----===//
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

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

static LogicalResult importCat(Call &call) {
  SmallVector<mlir::Value> tensors = call.tensors("tensors");
  // Tensors of shape [0] join anything: what PyTorch keeps from old days.
  SmallVector<mlir::Value> used;
  ResultType type;
  for (mlir::Value tensor : tensors) {
    type.addTensor(dtypeOf(tensor), rankOf(tensor) > 0);
    if (shapeOf(tensor) != ArrayRef<int64_t>{0})
      used.push_back(tensor);
  }
  if (tensors.empty())
    return call.failAt("tensors", "got [], expected at least one tensor");
  if (used.empty())
    return call.result(call.cast(tensors[0], type.result()));
  if (rankOf(used[0]) == 0)
    return call.failAt("tensors", "got a 0-d tensor, expected a dimension");
  auto dim = call.dim("dim", rankOf(used[0]));
  if (failed(dim))
    return failure();
  for (mlir::Value &value : used)
    value = call.cast(value, type.result());
  if (used.size() == 1)
    return call.result(used[0]);
  return call.result(call.emit<ConcatOp>(used, {call.intAttr("dim", *dim)}));
}

static LogicalResult importStack(Call &call) {
  SmallVector<mlir::Value> tensors = call.tensors("tensors");
  if (tensors.empty())
    return call.failAt("tensors", "got [], expected at least one tensor");
  auto dim = call.dim("dim", rankOf(tensors[0]) + 1);
  if (failed(dim))
    return failure();
  ResultType type;
  for (mlir::Value tensor : tensors) {
    if (shapeOf(tensor) != shapeOf(tensors[0]))
      return call.failAt("tensors", "got " + shapeText(shapeOf(tensors[0])) +
                                        " and " + shapeText(shapeOf(tensor)) +
                                        ", expected equal shapes");
    type.addTensor(dtypeOf(tensor), rankOf(tensor) > 0);
  }
  for (mlir::Value &value : tensors)
    value = call.unsqueeze(call.cast(value, type.result()), *dim);
  if (tensors.size() == 1)
    return call.result(tensors[0]);
  return call.result(call.emit<ConcatOp>(tensors, {call.intAttr("dim", *dim)}));
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

static mlir::Value padded(Call &call, mlir::Value x, ArrayRef<int64_t> low,
                          ArrayRef<int64_t> high, const Number &value) {
  return call.emit<PadOp>(
      {x}, {call.listAttr("low", low), call.listAttr("high", high),
            call.namedAttr("value", call.element(value, dtypeOf(x)))});
}

/// `pad` goes from the last dimension backward, two numbers each; a negative
/// number cuts.
static LogicalResult importConstantPad(Call &call) {
  mlir::Value x = call.tensor("self");
  SmallVector<int64_t> pad = call.integers("pad");
  int64_t rank = rankOf(x);
  if (pad.size() % 2 || int64_t(pad.size()) > 2 * rank)
    return call.failAt("pad", "got " + shapeText(pad) +
                                  ", expected pairs for at most " +
                                  Twine(rank) + " dimensions");
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t dim = rank - 1 - int64_t(i), before = pad[2 * i],
            after = pad[2 * i + 1], extent = shapeOf(x)[dim];
    // So that no sum of sizes and padding can leave 64 bits.
    constexpr int64_t most = int64_t(1) << 60;
    if (std::max(before, after) > most || std::min(before, after) < -most)
      return call.failAt("pad",
                         "got " + shapeText(pad) + ", expected at most 2^60");
    int64_t cutLow = std::max<int64_t>(-before, 0);
    int64_t cutHigh = std::max<int64_t>(-after, 0);
    if (cutLow > extent || cutHigh > extent - cutLow)
      return call.failAt("pad", "got " + shapeText(pad) +
                                    ", expected to cut no more than size " +
                                    Twine(extent));
    x = call.sliceDim(x, dim, cutLow, extent - cutLow - cutHigh);
    low[dim] = std::max<int64_t>(before, 0);
    high[dim] = std::max<int64_t>(after, 0);
  }
  bool any = llvm::any_of(low, [](int64_t p) { return p != 0; }) ||
             llvm::any_of(high, [](int64_t p) { return p != 0; });
  if (!any)
    return call.result(x);
  return call.result(padded(call, x, low, high, call.number("value")));
}

//===----------------------------------------------------------------------===//
// Gradients of parts: zeros around the part
//===----------------------------------------------------------------------===//

/// `grad` of `input_sizes` but for dimension `dim`, put at [start, start +
/// size), zeros elsewhere.
static LogicalResult placed(Call &call, mlir::Value grad, int64_t dim,
                            int64_t start) {
  SmallVector<int64_t> sizes = call.integers("input_sizes");
  SmallVector<int64_t> low(sizes.size(), 0), high(sizes.size(), 0);
  low[dim] = start;
  high[dim] = sizes[dim] - start - shapeOf(grad)[dim];
  SmallVector<int64_t> expected(sizes);
  expected[dim] = shapeOf(grad)[dim];
  if (shapeOf(grad) != ArrayRef<int64_t>(expected))
    return call.failAt("grad_output", "got " + shapeText(shapeOf(grad)) +
                                          ", expected " + shapeText(expected));
  if (low[dim] == 0 && high[dim] == 0)
    return call.result(grad);
  return call.result(padded(call, grad, low, high, Number::ofInt(0)));
}

static FailureOr<int64_t> sizesDim(Call &call) {
  SmallVector<int64_t> sizes = call.integers("input_sizes");
  if (sizes.empty() || llvm::any_of(sizes, [](int64_t s) { return s < 0; }))
    return call.failAt("input_sizes",
                       "got " + shapeText(sizes) + ", expected sizes >= 0");
  return call.dim("dim", sizes.size());
}

static LogicalResult importSliceBackward(Call &call) {
  auto dim = sizesDim(call);
  if (failed(dim))
    return failure();
  int64_t extent = call.integers("input_sizes")[*dim];
  auto place = [&](StringRef name) {
    int64_t at = call.integer(name);
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  if (call.integer("step") != 1)
    return call.failAt("step", "got " + Twine(call.integer("step")) +
                                   ", only 1 is supported");
  mlir::Value grad = call.tensor("grad_output");
  int64_t start = place("start");
  int64_t size = std::max<int64_t>(place("end") - start, 0);
  if (rankOf(grad) != int64_t(call.integers("input_sizes").size()) ||
      shapeOf(grad)[*dim] != size)
    return call.failAt("grad_output", "got " + shapeText(shapeOf(grad)) +
                                          ", expected size " + Twine(size) +
                                          " in dimension " + Twine(*dim));
  return placed(call, grad, *dim, start);
}

static LogicalResult importSelectBackward(Call &call) {
  auto dim = sizesDim(call);
  if (failed(dim))
    return failure();
  int64_t extent = call.integers("input_sizes")[*dim],
          index = call.integer("index");
  if (index < -extent || index >= extent)
    return call.failAt("index", "got " + Twine(index) + ", expected one in [" +
                                    Twine(-extent) + ", " + Twine(extent) +
                                    ")");
  mlir::Value grad = call.tensor("grad_output");
  if (rankOf(grad) + 1 != int64_t(call.integers("input_sizes").size()))
    return call.failAt("grad_output", "got rank " + Twine(rankOf(grad)) +
                                          ", expected one less than "
                                          "input_sizes");
  return placed(call, call.unsqueeze(grad, *dim), *dim,
                index < 0 ? index + extent : index);
}

//===----------------------------------------------------------------------===//
// Triangles
//===----------------------------------------------------------------------===//

/// Keeps elements whose column - row compares with `diagonal`.
template <ComparePredicate kept> static LogicalResult triangle(Call &call) {
  mlir::Value x = call.tensor("self");
  int64_t rank = rankOf(x);
  if (rank < 2)
    return call.failAt("self",
                       "got rank " + Twine(rank) + ", expected at least 2");
  int64_t rows = shapeOf(x)[rank - 2], columns = shapeOf(x)[rank - 1];
  Number zero = Number::ofInt(0), one = Number::ofInt(1);
  // column >= row + diagonal, row counted from `diagonal`.
  mlir::Value row =
      call.unsqueeze(call.iota(Number::ofInt(call.integer("diagonal")), one,
                               DType::Int64, rows),
                     1);
  mlir::Value column = call.iota(zero, one, DType::Int64, columns);
  return call.result(call.emit<SelectOp>(
      {call.compare(kept, column, row), x, call.splat(0, dtypeOf(x))}));
}

llvm::ArrayRef<OpEntry> importer::shapeTable() {
  static const OpEntry table[] = {
      {"aten.cat.default", "(Tensor[] tensors, int dim=0)", "", importCat},
      {"aten.stack.default", "(Tensor[] tensors, int dim=0)", "", importStack},
      {"aten.constant_pad_nd.default",
       "(Tensor self, int[] pad, Scalar value=0)", "", importConstantPad},
      {"aten.slice_backward.default",
       "(Tensor grad_output, int[] input_sizes, int dim, int start, int end, "
       "int step)",
       "step 1", importSliceBackward},
      {"aten.select_backward.default",
       "(Tensor grad_output, int[] input_sizes, int dim, int index)", "",
       importSelectBackward},
      {"aten.tril.default", "(Tensor self, int diagonal=0)", "",
       triangle<ComparePredicate::le>},
      {"aten.triu.default", "(Tensor self, int diagonal=0)", "",
       triangle<ComparePredicate::ge>},
  };
  return table;
}
