//===- InterpreterTiles.cpp - Pure operations on tiles --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterImpl.h"

#include <cmath>

using namespace mlir;

namespace nova::tile {

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult Interpreter::executeRange(RangeOp op) {
  Held tile(tileType(op.getResult()));
  for (auto [i, bits] : llvm::enumerate(tile.bits))
    bits = uint64_t(getIndex(op.getStart())) + i;
  set(op.getResult(), std::move(tile));
  return success();
}

LogicalResult Interpreter::executeSplat(SplatOp op) {
  Held tile(tileType(op.getResult()));
  std::fill(tile.bits.begin(), tile.bits.end(), get(op.getValue()).bits[0]);
  set(op.getResult(), std::move(tile));
  return success();
}

LogicalResult Interpreter::executeBroadcast(BroadcastOp op) {
  const Held &operand = get(op.getOperand());
  Held tile(tileType(op.getResult()));
  Coordinates from(operand.shape().size());
  for (auto [i, bits] : llvm::enumerate(tile.bits)) {
    Coordinates to = coordinatesOf(tile.shape(), i);
    for (auto [k, dim] : llvm::enumerate(op.getDims()))
      from[k] = to[dim];
    bits = operand.bits[linearOf(operand.shape(), from)];
  }
  set(op.getResult(), std::move(tile));
  return success();
}

/// The operand's element `i` along `dim` of those that make element `result`.
static size_t elementAlong(ArrayRef<int64_t> shape, size_t dim,
                           ArrayRef<int64_t> resultShape, size_t result,
                           int64_t i) {
  Coordinates coordinates = coordinatesOf(resultShape, result);
  coordinates.insert(coordinates.begin() + dim, i);
  return linearOf(shape, coordinates);
}

LogicalResult Interpreter::executeReduce(ReduceOp op) {
  size_t count = op.getOperands().size(), dim = op.getDim();
  Block &combiner = op.getCombiner().front();
  SmallVector<Held> results;
  for (Value result : op.getResults())
    results.push_back(Held(tileType(result)));
  ArrayRef<int64_t> shape = tileType(op.getOperands()[0]).getShape();

  auto element = [&](size_t operand, size_t result, int64_t i) {
    return get(op.getOperands()[operand])
        .bits[elementAlong(shape, dim, results[0].shape(), result, i)];
  };
  for (size_t e = 0; e < results[0].bits.size(); ++e) {
    SmallVector<Held> soFar;
    for (size_t k = 0; k < count; ++k)
      soFar.push_back(
          Held(combiner.getArgument(k).getType(), element(k, e, 0)));
    for (int64_t i = 1; i < shape[dim]; ++i) {
      for (size_t k = 0; k < count; ++k) {
        set(combiner.getArgument(k), soFar[k]);
        BlockArgument next = combiner.getArgument(count + k);
        set(next, Held(next.getType(), element(k, e, i)));
      }
      soFar.clear();
      if (failed(runBlock(combiner, soFar)))
        return failure();
    }
    for (size_t k = 0; k < count; ++k)
      results[k].bits[e] = soFar[k].bits[0];
  }
  for (auto [value, held] : llvm::zip_equal(op.getResults(), results))
    set(value, std::move(held));
  return success();
}

LogicalResult Interpreter::executeScan(ScanOp op) {
  Held tile = get(op.getOperand());
  Format format = *formatOf(tile.type);
  size_t dim = op.getDim();
  for (auto [i, bits] : llvm::enumerate(tile.bits)) {
    // Row-major: the element before this one along `dim` is a sum already.
    Coordinates before = coordinatesOf(tile.shape(), i);
    if (before[dim]-- == 0)
      continue;
    uint64_t sum = tile.bits[linearOf(tile.shape(), before)];
    bits = format.isFloat()
               ? format.encode(format.decode(sum) + format.decode(bits))
               : format.wrap(sum + bits);
  }
  set(op.getResult(), std::move(tile));
  return success();
}

/// The numbers of an operand of a product, as its precision has them.
static std::vector<double> factors(const Held &held, Precision precision) {
  Format format = *formatOf(held.type), narrow{Format::BF16, 16};
  std::vector<double> numbers;
  for (uint64_t bits : held.bits) {
    if (format.kind == Format::F32 && precision == Precision::tf32)
      bits = roundToTF32(bits);
    double number = format.decode(bits);
    if (format.kind == Format::F32 && precision == Precision::bf16)
      number = narrow.decode(narrow.encode(number));
    numbers.push_back(number);
  }
  return numbers;
}

LogicalResult Interpreter::executeDot(DotOp op) {
  const Held &accumulator = get(op.getAccumulator());
  std::vector<double> lhs = factors(get(op.getLhs()), op.getPrecision());
  std::vector<double> rhs = factors(get(op.getRhs()), op.getPrecision());
  Format format = *formatOf(accumulator.type);
  bool wide = format.kind == Format::F64 || options.dotInDouble;
  Held tile(tileType(op.getResult()));
  int64_t rows = tile.shape()[0], columns = tile.shape()[1];
  int64_t depth = tileType(op.getLhs()).getShape()[1];
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      double sum = format.decode(accumulator.bits[m * columns + n]);
      for (int64_t k = 0; k < depth; ++k) {
        double a = lhs[m * depth + k], b = rhs[k * columns + n];
        sum = wide ? std::fma(a, b, sum)
                   : std::fmaf(float(a), float(b), float(sum));
      }
      tile.bits[m * columns + n] = format.encode(sum);
    }
  set(op.getResult(), std::move(tile));
  return success();
}

LogicalResult Interpreter::executeAny(AnyOp op) {
  bool any = llvm::any_of(get(op.getOperand()).bits,
                          [](uint64_t bits) { return bits != 0; });
  set(op.getResult(), Held(op.getType(), any));
  return success();
}

LogicalResult Interpreter::executeRename(Operation *op) {
  Held held = get(op->getOperand(0));
  held.type = op->getResult(0).getType();
  set(op->getResult(0), std::move(held));
  return success();
}

} // namespace nova::tile
