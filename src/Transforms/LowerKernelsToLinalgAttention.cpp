//===- LowerKernelsToLinalgAttention.cpp - Attention as rows of scores
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One grid point holds whole rows of scores: all keys of some queries (forward,
// and the half of the backward that reduces over keys), or all queries of some
// keys (the other half, whose scores are kept transposed, [B, H, S, T], so that
// they are rows there too). Everything in between is in computeType, but that
// what products of 16-bit tensors multiply is rounded to their type first.
//
// Masked scores are -inf, and their exponential exactly 0. A row that sees no
// key has the maximum -inf; 0 is subtracted instead, its sum is 0, and the
// results are defined to be 0.
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace nova::lowering {

/// Scores before scale, bias and mask, and how to finish one of them.
struct KernelLowering::Scores {
  Scores(KernelLowering &l, Value query, Value key, Value bias, double scale,
         bool causal, bool transposed);

  /// [B, H, T, S], or [B, H, S, T] if transposed, in the query's element type:
  /// what multiplies another operand is rounded to it.
  RankedTensorType type;
  /// Positions of query and key among the dimensions of `type`.
  int64_t i = 2, j = 3;
  Value raw;
  /// The reads of `raw` and, if there is one, of the bias, for the body of a
  /// generic over `type`'s shape: they go first.
  SmallVector<Read> reads;

  /// scale * raw + bias of a body whose first operands are `reads`.
  Value biased(ImplicitLocOpBuilder &b, ValueRange in) const;
  /// `visible`, or `hidden` where the causal mask hides the key.
  Value masked(ImplicitLocOpBuilder &b, Value visible, double hidden) const;
  /// The gradient of a score before scale: what the products with query and key
  /// then need no scaling of their own for.
  Value gradient(ImplicitLocOpBuilder &b, Value weight, Value centred) const;

private:
  double scale;
  bool causal, hasBias;
};

KernelLowering::Scores::Scores(KernelLowering &l, Value query, Value key,
                               Value bias, double scale, bool causal,
                               bool transposed)
    : scale(scale), causal(causal), hasBias(static_cast<bool>(bias)) {
  if (transposed)
    std::swap(i, j);
  RankedTensorType q = l.typeOf(query);
  SmallVector<int64_t> shape(q.getShape());
  shape[i] = q.getDimSize(2);
  shape[j] = l.typeOf(key).getDimSize(2);
  type = q.clone(shape);
  int64_t queryDims[] = {0, 1, i, 4}, keyDims[] = {0, 1, j, 4};
  raw = transposed ? l.contract(type, key, keyDims, query, queryDims)
                   : l.contract(type, query, queryDims, key, keyDims);
  reads.push_back(l.readWhole(raw));
  if (!bias)
    return;
  int64_t order[] = {0, 1, i, j};
  ArrayRef<int64_t> from = l.typeOf(bias).getShape();
  SmallVector<int64_t> dims;
  for (auto [d, size] : llvm::enumerate(from)) {
    int64_t along = order[4 - from.size() + d];
    dims.push_back(size == shape[along] ? along : -1);
  }
  reads.push_back(l.read(bias, l.mapTo(4, dims)));
}

Value KernelLowering::Scores::biased(ImplicitLocOpBuilder &b,
                                     ValueRange in) const {
  Value s =
      arith::MulFOp::create(b, in[0], constant(b, in[0].getType(), scale));
  return hasBias ? arith::AddFOp::create(b, s, widen(b, in[1])).getResult() : s;
}

Value KernelLowering::Scores::masked(ImplicitLocOpBuilder &b, Value visible,
                                     double hidden) const {
  if (!causal)
    return visible;
  Value query = linalg::IndexOp::create(b, i),
        key = linalg::IndexOp::create(b, j);
  Value hides = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, key, query);
  return arith::SelectOp::create(
      b, hides, constant(b, visible.getType(), hidden), visible);
}

Value KernelLowering::Scores::gradient(ImplicitLocOpBuilder &b, Value weight,
                                       Value centred) const {
  Value product = arith::MulFOp::create(b, weight, centred);
  return arith::MulFOp::create(b, product,
                               constant(b, product.getType(), scale));
}

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Values KernelLowering::lower(AttentionOp op) {
  Scores scores(*this, op.getQuery(), op.getKey(), op.getBias(),
                op.getScale().convertToDouble(), op.getCausal(),
                /*transposed=*/false);
  Type wide = computeType(scores.type.getElementType());
  RankedTensorType wideScores = scores.type.clone(wide);
  Value finished =
      pointwise(wideScores, scores.reads, [&](auto &b, ValueRange in) {
        return scores.masked(b, scores.biased(b, in), -kInfinity);
      });
  TypedAttr lowest = getFloatAttr(wide, -kInfinity);
  Value largest = reduce(
      finished, {3}, /*keep=*/false, lowest, [](auto &b, Value acc, Value x) {
        return arith::MaximumFOp::create(b, acc, x).getResult();
      });
  AffineMap ofRow = mapTo(4, {0, 1, 2});
  Read exponentReads[] = {readWhole(finished), {largest, ofRow}};
  Value weights = pointwise(
      wideScores, exponentReads,
      [&](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
        Value sawNone = arith::CmpFOp::create(
            b, arith::CmpFPredicate::OEQ, in[1], constant(b, wide, -kInfinity));
        Value offset =
            arith::SelectOp::create(b, sawNone, constant(b, wide, 0), in[1]);
        return math::ExpOp::create(b, arith::SubFOp::create(b, in[0], offset));
      });
  Value total = reduce(weights, {3}, /*keep=*/false, getZeroAttr(wide),
                       [](auto &b, Value acc, Value x) {
                         return arith::AddFOp::create(b, acc, x).getResult();
                       });
  RankedTensorType outType = typeOf(op.getResult());
  Value product =
      contract(outType, rounded(weights, scores.type.getElementType()),
               {0, 1, 2, 4}, op.getValue(), {0, 1, 4, 3});

  auto unlessNone = [&](ImplicitLocOpBuilder &b, Value total, Value value) {
    Value zero = constant(b, wide, 0);
    Value none =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, total, zero);
    return arith::SelectOp::create(b, none, zero, value).getResult();
  };
  Read outReads[] = {readWhole(product), {total, ofRow}};
  Value out =
      pointwise(outType, outReads, [&](ImplicitLocOpBuilder &b, ValueRange in) {
        Value mean = arith::DivFOp::create(b, in[0], in[1]);
        return convertFloat(b, unlessNone(b, in[1], mean), outType.getElementType());
      });
  Read lseReads[] = {readWhole(largest), readWhole(total)};
  Value lse = pointwise(typeOf(op.getLse()), lseReads,
                        [&](ImplicitLocOpBuilder &b, ValueRange in) {
                          Value log = math::LogOp::create(b, in[1]);
                          return unlessNone(
                              b, in[1], arith::AddFOp::create(b, in[0], log));
                        });
  return {out, lse};
}

Values KernelLowering::lower(AttentionBackwardQueryOp op) {
  Scores scores(*this, op.getQuery(), op.getKey(), op.getBias(),
                op.getScale().convertToDouble(), op.getCausal(),
                /*transposed=*/false);
  Type element = scores.type.getElementType(), wide = computeType(element);
  RankedTensorType wideScores = scores.type.clone(wide);
  Value gradWeights = contract(scores.type, op.getGrad(), {0, 1, 2, 4},
                               op.getValue(), {0, 1, 3, 4});

  RankedTensorType outType = typeOf(op.getOut());
  Read productReads[] = {readWhole(op.getGrad()), readWhole(op.getOut())};
  Value products =
      pointwise(outType.clone(wide), productReads, [](auto &b, ValueRange in) {
        return arith::MulFOp::create(b, widen(b, in[0]), widen(b, in[1]))
            .getResult();
      });
  Value delta = reduce(products, {3}, /*keep=*/false, getZeroAttr(wide),
                       [](auto &b, Value acc, Value x) {
                         return arith::AddFOp::create(b, acc, x).getResult();
                       });

  AffineMap ofRow = mapTo(4, {0, 1, 2});
  SmallVector<Read> reads = scores.reads;
  reads.append(
      {read(op.getLse(), ofRow), readWhole(gradWeights), {delta, ofRow}});
  Value gradScores = pointwise(
      wideScores, reads, [&](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
        ValueRange rest = in.take_back(3);
        Value exponent =
            arith::SubFOp::create(b, scores.biased(b, in), widen(b, rest[0]));
        Value weight = scores.masked(b, math::ExpOp::create(b, exponent), 0);
        return scores.gradient(b, weight,
                               arith::SubFOp::create(b, rest[1], rest[2]));
      });
  RankedTensorType queryType = typeOf(op.getDQuery());
  Value product =
      contract(queryType, rounded(gradScores, element), {0, 1, 2, 4},
               op.getKey(), {0, 1, 4, 3});
  return {rounded(product, element), delta};
}

Values KernelLowering::lower(AttentionBackwardKeyValueOp op) {
  Scores scores(*this, op.getQuery(), op.getKey(), op.getBias(),
                op.getScale().convertToDouble(), op.getCausal(),
                /*transposed=*/true);
  Type element = scores.type.getElementType(), wide = computeType(element);
  RankedTensorType wideScores = scores.type.clone(wide);
  AffineMap ofQuery = mapTo(4, {0, 1, 3});
  SmallVector<Read> weightReads = scores.reads;
  weightReads.push_back(read(op.getLse(), ofQuery));
  Value weights =
      pointwise(wideScores, weightReads,
                [&](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
                  Value exponent = arith::SubFOp::create(
                      b, scores.biased(b, in), widen(b, in.back()));
                  return scores.masked(b, math::ExpOp::create(b, exponent), 0);
                });
  Value gradWeights = contract(scores.type, op.getValue(), {0, 1, 2, 4},
                               op.getGrad(), {0, 1, 3, 4});
  Read gradReads[] = {readWhole(weights), readWhole(gradWeights),
                      read(op.getDelta(), ofQuery)};
  Value gradScores = pointwise(
      wideScores, gradReads, [&](ImplicitLocOpBuilder &b, ValueRange in) {
        return scores.gradient(
            b, in[0], arith::SubFOp::create(b, in[1], widen(b, in[2])));
      });
  Value dValue = contract(typeOf(op.getDValue()), rounded(weights, element),
                          {0, 1, 2, 4}, op.getGrad(), {0, 1, 4, 3});
  Value dKey = contract(typeOf(op.getDKey()), rounded(gradScores, element),
                        {0, 1, 2, 4}, op.getQuery(), {0, 1, 4, 3});
  return {rounded(dKey, element), rounded(dValue, element)};
}

} // namespace nova::lowering
