//===- NovaInferComposite.cpp - Result types of contractions, norms, losses ===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/IR/Nova.h"

using namespace mlir;
using namespace nova;

using Loc = std::optional<Location>;
using Types = SmallVectorImpl<Type>;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The result type of a product of matrices with batch dimensions.
static LogicalResult inferProduct(Loc loc, StringRef op, Value lhs, Value rhs,
                                  bool transposeLhs, bool transposeRhs, Types &out) {
  auto a = typeOf(lhs), b = typeOf(rhs);
  if (a.getElementType() != b.getElementType())
    return emitOptionalError(loc, op, ": element types differ: ", a, " and ", b);
  if (a.getRank() < 2 || b.getRank() < 2)
    return emitOptionalError(loc, op, ": operands need rank 2 or more: ", a, " and ", b);
  bool shared = b.getRank() == 2 || a.getShape().drop_back(2) == b.getShape().drop_back(2);
  int64_t ra = a.getRank(), rb = b.getRank();
  int64_t m = a.getDimSize(transposeLhs ? ra - 1 : ra - 2);
  int64_t ka = a.getDimSize(transposeLhs ? ra - 2 : ra - 1);
  int64_t kb = b.getDimSize(transposeRhs ? rb - 1 : rb - 2);
  int64_t n = b.getDimSize(transposeRhs ? rb - 2 : rb - 1);
  if (!shared || ka != kb)
    return emitOptionalError(loc, op, ": cannot multiply ", a, " by ", b,
                             ": inner sizes ", ka, " and ", kb);
  SmallVector<int64_t> shape(a.getShape().drop_back(2));
  shape.push_back(m);
  shape.push_back(n);
  out.push_back(RankedTensorType::get(shape, a.getElementType()));
  return success();
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  return inferProduct(loc, getOperationName(), a.getLhs(), a.getRhs(),
                      a.getTransposeLhs(), a.getTransposeRhs(), out);
}

LogicalResult LinearOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  auto x = typeOf(a.getInput()), w = typeOf(a.getWeight()), b = typeOf(a.getBias());
  if (x.getRank() < 1 || w.getRank() != 2)
    return emitOptionalError(loc, getOperationName(), ": input ", x, " and weight ", w,
                             ": expected rank 1 or more, and rank 2");
  int64_t k = w.getDimSize(a.getTransposeWeight() ? 1 : 0);
  int64_t n = w.getDimSize(a.getTransposeWeight() ? 0 : 1);
  if (x.getShape().back() != k || b.getRank() != 1 || b.getDimSize(0) != n ||
      x.getElementType() != w.getElementType() || b.getElementType() != w.getElementType())
    return emitOptionalError(loc, getOperationName(), ": input ", x, ", weight ", w,
                             ", bias ", b, " do not agree");
  SmallVector<int64_t> shape(x.getShape());
  shape.back() = n;
  out.push_back(RankedTensorType::get(shape, x.getElementType()));
  return success();
}

static RankedTensorType statsType(RankedTensorType x, int64_t axes) {
  SmallVector<int64_t> shape(x.getShape());
  for (int64_t i = x.getRank() - axes; i < x.getRank(); ++i)
    shape[i] = 1;
  return RankedTensorType::get(shape, x.getElementType());
}

static LogicalResult checkAxes(Loc loc, StringRef op, RankedTensorType x, int64_t axes) {
  if (axes >= 1 && axes <= x.getRank())
    return success();
  return emitOptionalError(loc, op, ": axes = ", axes, " of ", x, ", expected 1 to ", x.getRank());
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  auto x = typeOf(a.getInput());
  int64_t axes = a.getAxes();
  if (failed(checkAxes(loc, getOperationName(), x, axes)))
    return failure();
  for (Value affine : {a.getWeight(), a.getBias()})
    if (affine && typeOf(affine).getShape() != x.getShape().take_back(axes))
      return emitOptionalError(loc, getOperationName(), ": weight or bias ", affine.getType(),
                               " is not the normalised shape of ", x);
  out.push_back(x);
  out.push_back(statsType(x, axes));
  out.push_back(statsType(x, axes));
  return success();
}

LogicalResult LayerNormBackwardOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  auto x = typeOf(a.getInput());
  int64_t axes = a.getAxes();
  if (failed(checkAxes(loc, getOperationName(), x, axes)))
    return failure();
  auto stats = statsType(x, axes);
  if (typeOf(a.getGrad()) != x || typeOf(a.getMean()) != stats || typeOf(a.getRstd()) != stats ||
      (a.getWeight() && typeOf(a.getWeight()).getShape() != x.getShape().take_back(axes)))
    return emitOptionalError(loc, getOperationName(), ": grad ", a.getGrad().getType(), ", mean ",
                             a.getMean().getType(), ", rstd ", a.getRstd().getType(),
                             " do not belong to input ", x);
  auto affine = RankedTensorType::get(x.getShape().take_back(axes), x.getElementType());
  out.append({x, affine, affine});
  return success();
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

static LogicalResult checkRows(Loc loc, StringRef op, Value rows, Value labels, Value weight) {
  auto x = typeOf(rows), t = typeOf(labels);
  if (x.getRank() != 2 || t.getRank() != 1 || t.getDimSize(0) != x.getDimSize(0))
    return emitOptionalError(loc, op, ": expected rows [N, C] and labels [N], got ", x, " and ", t);
  if (weight && typeOf(weight).getShape() != x.getShape().take_back(1))
    return emitOptionalError(loc, op, ": weight ", weight.getType(), " is not [C] of ", x);
  return success();
}
static RankedTensorType lossType(RankedTensorType rows, LossReduction reduction) {
  if (reduction == LossReduction::none)
    return RankedTensorType::get(rows.getShape().take_front(1), rows.getElementType());
  return RankedTensorType::get({}, rows.getElementType());
}
static LogicalResult checkType(Loc loc, StringRef op, StringRef what, Value got, RankedTensorType want) {
  if (got.getType() == want)
    return success();
  return emitOptionalError(loc, op, ": ", what, " is ", got.getType(), ", expected ", want);
}

LogicalResult NllLossOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  if (failed(checkRows(loc, getOperationName(), a.getLogProbs(), a.getLabels(), a.getWeight())))
    return failure();
  auto x = typeOf(a.getLogProbs());
  out.push_back(lossType(x, a.getReduction()));
  out.push_back(RankedTensorType::get({}, x.getElementType()));
  return success();
}

LogicalResult NllLossBackwardOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  auto x = typeOf(a.getLogProbs());
  out.push_back(x);
  if (failed(checkRows(loc, getOperationName(), a.getLogProbs(), a.getLabels(), a.getWeight())) ||
      failed(checkType(loc, getOperationName(), "grad", a.getGrad(), lossType(x, a.getReduction()))))
    return failure();
  return checkType(loc, getOperationName(), "total_weight", a.getTotalWeight(),
                   RankedTensorType::get({}, x.getElementType()));
}

LogicalResult SceOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  if (failed(checkRows(loc, getOperationName(), a.getLogits(), a.getLabels(), {})))
    return failure();
  auto x = typeOf(a.getLogits());
  out.push_back(lossType(x, a.getReduction()));
  out.push_back(RankedTensorType::get(x.getShape().take_front(1), x.getElementType()));
  out.push_back(RankedTensorType::get({}, x.getElementType()));
  return success();
}

LogicalResult SceBackwardOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  auto x = typeOf(a.getLogits());
  out.push_back(x);
  StringRef op = getOperationName();
  if (failed(checkRows(loc, op, a.getLogits(), a.getLabels(), {})) ||
      failed(checkType(loc, op, "grad", a.getGrad(), lossType(x, a.getReduction()))) ||
      failed(checkType(loc, op, "lse", a.getLse(), RankedTensorType::get(x.getShape().take_front(1), x.getElementType()))))
    return failure();
  return checkType(loc, op, "count", a.getCount(), RankedTensorType::get({}, x.getElementType()));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static LogicalResult checkAttention(Loc loc, StringRef op, Value query, Value key, Value value, Value bias) {
  auto q = typeOf(query), k = typeOf(key), v = typeOf(value);
  bool agrees = q.getRank() == 4 && k.getRank() == 4 && v.getRank() == 4 &&
                q.getShape().take_front(2) == k.getShape().take_front(2) &&
                k.getShape().take_front(3) == v.getShape().take_front(3) &&
                q.getDimSize(3) == k.getDimSize(3) &&
                q.getElementType() == k.getElementType() && k.getElementType() == v.getElementType();
  if (!agrees)
    return emitOptionalError(loc, op, ": query ", q, ", key ", k, ", value ", v,
                             " do not agree; expected [B,H,T,D], [B,H,S,D], [B,H,S,E]");
  if (!bias)
    return success();
  SmallVector<int64_t> scores{q.getDimSize(0), q.getDimSize(1), q.getDimSize(2), k.getDimSize(2)};
  auto wide = broadcastShapes(scores, typeOf(bias).getShape());
  if (failed(wide) || *wide != scores)
    return emitOptionalError(loc, op, ": bias ", bias.getType(), " does not broadcast to [", ArrayRef(scores), "]");
  return success();
}
static RankedTensorType outType(Value query, Value value) {
  SmallVector<int64_t> shape(typeOf(query).getShape());
  shape[3] = typeOf(value).getDimSize(3);
  return RankedTensorType::get(shape, typeOf(query).getElementType());
}
/// Statistics of rows are not rounded to 16 bits.
static RankedTensorType lseType(Value query) {
  auto q = typeOf(query);
  Type element = q.getElementType();
  if (element.getIntOrFloatBitWidth() < 32)
    element = Float32Type::get(element.getContext());
  return RankedTensorType::get(q.getShape().take_front(3), element);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  if (failed(checkAttention(loc, getOperationName(), a.getQuery(), a.getKey(), a.getValue(), a.getBias())))
    return failure();
  out.push_back(outType(a.getQuery(), a.getValue()));
  out.push_back(lseType(a.getQuery()));
  return success();
}

/// The operands both halves of the backward share.
template <typename Adaptor>
static LogicalResult checkAttentionBackward(Loc loc, StringRef op, Adaptor a) {
  if (failed(checkAttention(loc, op, a.getQuery(), a.getKey(), a.getValue(), a.getBias())) ||
      failed(checkType(loc, op, "grad", a.getGrad(), outType(a.getQuery(), a.getValue()))))
    return failure();
  return checkType(loc, op, "lse", a.getLse(), lseType(a.getQuery()));
}

LogicalResult AttentionBackwardOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  out.append({a.getQuery().getType(), a.getKey().getType(), a.getValue().getType()});
  if (failed(checkAttentionBackward(loc, getOperationName(), a)))
    return failure();
  return checkType(loc, getOperationName(), "out", a.getOut(), outType(a.getQuery(), a.getValue()));
}

LogicalResult AttentionBackwardQueryOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  if (failed(checkAttentionBackward(loc, getOperationName(), a)) ||
      failed(checkType(loc, getOperationName(), "out", a.getOut(), outType(a.getQuery(), a.getValue()))))
    return failure();
  out.append({a.getQuery().getType(), lseType(a.getQuery())});
  return success();
}

LogicalResult AttentionBackwardKeyValueOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) {
  if (failed(checkAttentionBackward(loc, getOperationName(), a)) ||
      failed(checkType(loc, getOperationName(), "delta", a.getDelta(), lseType(a.getQuery()))))
    return failure();
  out.append({a.getKey().getType(), a.getValue().getType()});
  return success();
}
