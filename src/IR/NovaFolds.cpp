//===- NovaFolds.cpp - Folds and canonical forms ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only rewrites that keep every bit: x + 0.0 is not x (for x = -0.0), x * 1 is.
//
//===----------------------------------------------------------------------===//
#include "nova/IR/Nova.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace nova;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Whether `attr` is a splat of exactly `value`.
static bool isSplatOf(Attribute attr, double value) {
  auto elements = dyn_cast_or_null<DenseElementsAttr>(attr);
  if (!elements || !elements.isSplat() || elements.empty())
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().isExactlyValue(value);
  return elements.getSplatValue<APInt>().getSExtValue() == (int64_t)value;
}
static bool isInteger(Value value) {
  return isa<IntegerType>(getElementTypeOrSelf(value.getType()));
}

OpFoldResult AddOp::fold(FoldAdaptor a) {
  if (isInteger(getLhs()) && isSplatOf(a.getRhs(), 0) && getLhs().getType() == getType())
    return getLhs();
  return {};
}
OpFoldResult SubOp::fold(FoldAdaptor a) {
  // x - 0 is x for every float, -0.0 included.
  if (isSplatOf(a.getRhs(), 0) && getLhs().getType() == getType()) {
    auto zero = dyn_cast<DenseElementsAttr>(a.getRhs());
    if (isInteger(getLhs()) || !zero.getSplatValue<APFloat>().isNegative())
      return getLhs();
  }
  return {};
}
OpFoldResult MulOp::fold(FoldAdaptor a) {
  if (isSplatOf(a.getRhs(), 1) && getLhs().getType() == getType())
    return getLhs();
  return {};
}
OpFoldResult DivOp::fold(FoldAdaptor a) {
  if (isSplatOf(a.getRhs(), 1) && getLhs().getType() == getType())
    return getLhs();
  return {};
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput()) : OpFoldResult();
}

namespace {
/// x^2, x^3, x^0.5, x^-1, x^1 as products, roots and quotients: what PyTorch
/// computes for these exponents, and exact where pow would only be close.
struct PowOfConstant : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op, PatternRewriter &rewriter) const override {
    DenseElementsAttr exponent;
    Value x = op.getLhs();
    if (!matchPattern(op.getRhs(), m_Constant(&exponent)) || !exponent.isSplat() ||
        x.getType() != op.getType() || exponent.empty())
      return failure();
    auto is = [&](double v) { return isSplatOf(exponent, v); };
    if (is(1))
      rewriter.replaceOp(op, x);
    else if (is(2))
      rewriter.replaceOpWithNewOp<MulOp>(op, x, x);
    else if (is(3))
      rewriter.replaceOpWithNewOp<MulOp>(op, MulOp::create(rewriter, op.getLoc(), x, x), x);
    else if (is(0.5) && !isInteger(x))
      rewriter.replaceOpWithNewOp<SqrtOp>(op, x);
    else if (is(-1) && !isInteger(x))
      rewriter.replaceOpWithNewOp<ReciprocalOp>(op, x);
    else
      return failure();
    return success();
  }
};
} // namespace

void PowOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<PowOfConstant>(context);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

OpFoldResult ReshapeOp::fold(FoldAdaptor a) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(a.getInput()))
    return elements.reshape(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor a) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<BroadcastOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  if (auto elements = dyn_cast_or_null<SplatElementsAttr>(a.getInput()))
    return elements.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor a) {
  ArrayRef<int64_t> perm = getPermutation();
  if (llvm::equal(perm, llvm::seq<int64_t>(0, perm.size())))
    return getInput();
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t p : perm)
      composed.push_back(inner.getPermutation()[p]);
    setPermutation(composed);
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  if (auto elements = dyn_cast_or_null<SplatElementsAttr>(a.getInput()))
    return elements.resizeSplat(cast<ShapedType>(getType()));
  return {};
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  // A slice of exactly the padded-in part undoes the padding.
  if (auto pad = getInput().getDefiningOp<PadOp>())
    if (pad.getInput().getType() == getType() && getOffsets() == pad.getLow() &&
        llvm::all_of(getStrides(), [](int64_t s) { return s == 1; }))
      return pad.getInput();
  return {};
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// If `value` is a transpose that exchanges just the last two dimensions, its
/// input.
static Value withoutMatrixTranspose(Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  ArrayRef<int64_t> perm = transpose.getPermutation();
  int64_t rank = perm.size();
  if (rank < 2 || perm[rank - 1] != rank - 2 || perm[rank - 2] != rank - 1 ||
      !llvm::equal(perm.drop_back(2), llvm::seq<int64_t>(0, rank - 2)))
    return {};
  return transpose.getInput();
}

namespace {
/// A transposed operand becomes a flag: how the operand is read.
struct AbsorbTranspose : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    Value lhs = withoutMatrixTranspose(op.getLhs()), rhs = withoutMatrixTranspose(op.getRhs());
    if (!lhs && !rhs)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (lhs) {
        op.getLhsMutable().assign(lhs);
        op.setTransposeLhs(!op.getTransposeLhs());
      }
      if (rhs) {
        op.getRhsMutable().assign(rhs);
        op.setTransposeRhs(!op.getTransposeRhs());
      }
    });
    return success();
  }
};
struct AbsorbWeightTranspose : OpRewritePattern<LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LinearOp op, PatternRewriter &rewriter) const override {
    Value weight = withoutMatrixTranspose(op.getWeight());
    if (!weight)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getWeightMutable().assign(weight);
      op.setTransposeWeight(!op.getTransposeWeight());
    });
    return success();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AbsorbTranspose>(context);
}
void LinearOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AbsorbWeightTranspose>(context);
}
