//===- RaiseShapes.cpp - One shape for what belongs together
//---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Producers flatten [B, T, K] to [B*T, K] before a product and restore it
// behind; reshapes in between part operations that share one parallel space.
// All rewrites here move towards the shape of higher rank, so they end.
//
//===----------------------------------------------------------------------===//
#include "Raise.h"
#include "TensorEmitter.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace nova;

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// The activation of a contraction of rank 2 that could take any rank.
static OpOperand *flatActivation(Operation *op) {
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    bool flat = !matmul.getTransposeLhs() &&
                tensorType(matmul.getLhs()).getRank() == 2 &&
                tensorType(matmul.getRhs()).getRank() == 2;
    return flat ? &matmul.getLhsMutable() : nullptr;
  }
  if (auto linear = dyn_cast<LinearOp>(op))
    return tensorType(linear.getInput()).getRank() == 2
               ? &linear.getInputMutable()
               : nullptr;
  return nullptr;
}

/// `op` applied to `activation` [A.., K] instead of [M, K], reshaped to what it
/// gave before.
static void applyTo(Operation *op, OpOperand &operand, Value activation,
                    PatternRewriter &rewriter) {
  TensorEmitter b(op, rewriter.getListener());
  Operation *wide = b.clone(*op);
  wide->setOperand(operand.getOperandNumber(), activation);
  auto type = tensorType(op->getResult(0));
  SmallVector<int64_t> shape(tensorType(activation).getShape());
  shape.back() = type.getShape().back();
  wide->getResult(0).setType(type.clone(shape));
  rewriter.replaceOp(op, b.reshape(wide->getResult(0), type.getShape()));
}

namespace {
/// contraction(reshape [A.., K] -> [M, K]) -> reshape(contraction([A.., K])).
struct KeepActivationShape : RewritePattern {
  KeepActivationShape(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    OpOperand *operand = flatActivation(op);
    auto reshape =
        operand ? operand->get().getDefiningOp<ReshapeOp>() : nullptr;
    if (!reshape)
      return failure();
    auto from = tensorType(reshape.getInput()), to = tensorType(operand->get());
    if (from.getRank() < 3 || from.getShape().back() != to.getShape().back() ||
        product(from.getShape().drop_back()) != to.getDimSize(0))
      return failure();
    applyTo(op, *operand, reshape.getInput(), rewriter);
    return success();
  }
};

/// reshape(contraction([M, K])) -> [A.., N]: the product takes the shape that
/// its result is read in. Its activation is split the same way, which any
/// layout allows (and where it was flattened from another shape, as heads are
/// merged, [B, T, H, D] -> [B*T, H*D], the reshapes become one).
struct TakeResultShape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    Operation *contraction = op.getInput().getDefiningOp();
    OpOperand *operand = contraction ? flatActivation(contraction) : nullptr;
    if (!operand)
      return failure();
    auto from = tensorType(op.getInput()), to = tensorType(op.getResult());
    if (to.getRank() < 3 || from.getShape().back() != to.getShape().back() ||
        product(to.getShape().drop_back()) != from.getDimSize(0))
      return failure();
    SmallVector<int64_t> shape(to.getShape());
    shape.back() = tensorType(operand->get()).getShape().back();
    TensorEmitter b(contraction, rewriter.getListener());
    applyTo(contraction, *operand, b.reshape(operand->get(), shape), rewriter);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Flattened leading dimensions
//===----------------------------------------------------------------------===//

/// A reshape A ++ C -> B ++ C that only merges leading dimensions: B is one
/// dimension, A more than one.
struct LeadingMerge {
  static std::optional<LeadingMerge> match(Value value) {
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape)
      return std::nullopt;
    auto from = tensorType(reshape.getInput()).getShape(),
         to = tensorType(value).getShape();
    if (to.empty() || from.size() <= to.size() ||
        from.take_back(to.size() - 1) != to.drop_front() ||
        product(from.drop_back(to.size() - 1)) != to.front())
      return std::nullopt;
    return LeadingMerge{from.drop_back(to.size() - 1), to};
  }

  /// Whether the operand costs nothing in the unmerged shape.
  bool isFree(Value operand) const {
    auto shape = tensorType(operand).getShape();
    DenseElementsAttr constant;
    if (!hasMergedDim(shape) || shape.front() == 1 ||
        (matchPattern(operand, m_Constant(&constant)) && constant.isSplat()))
      return true;
    auto other = match(operand);
    return other && other->leading == leading;
  }
  /// The operand in the unmerged shape.
  Value unmerge(Value operand, TensorEmitter &b) const {
    auto shape = tensorType(operand).getShape();
    if (!hasMergedDim(shape))
      return operand;
    SmallVector<int64_t> wide(leading);
    if (shape.front() == 1)
      wide.assign(leading.size(), 1);
    llvm::append_range(wide, shape.drop_front());
    DenseElementsAttr constant;
    if (matchPattern(operand, m_Constant(&constant)) && constant.isSplat())
      return ConstantOp::create(
          b, constant.resizeSplat(tensorType(operand).clone(wide)));
    return b.reshape(operand, wide);
  }

  bool hasMergedDim(ArrayRef<int64_t> shape) const {
    return shape.size() == merged.size();
  }

  ArrayRef<int64_t> leading; // A
  ArrayRef<int64_t> merged;  // B ++ C
};

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// A reshape that only adds or drops the reduced dimensions joins the
/// reduction.
template <typename ReduceOp> struct JoinUnitDims : OpRewritePattern<ReduceOp> {
  using OpRewritePattern<ReduceOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    if (!op->hasOneUse())
      return failure();
    auto reshape = dyn_cast<ReshapeOp>(*op->user_begin());
    if (!reshape)
      return failure();
    bool keep = !op.getKeepdims();
    SmallVector<int64_t> shape;
    for (auto [i, size] : llvm::enumerate(tensorType(op.getInput()).getShape()))
      if (!llvm::is_contained(op.getDims(), (int64_t)i))
        shape.push_back(size);
      else if (keep)
        shape.push_back(1);
    if (tensorType(reshape).getShape() != ArrayRef<int64_t>(shape))
      return failure();
    rewriter.setInsertionPoint(op);
    Value joined = ReduceOp::create(rewriter, op.getLoc(), op.getInput(),
                                    op.getDims(), keep);
    rewriter.replaceOp(reshape, joined);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Products of matrices whose batch dimensions were flattened keep those that
/// one side had: splitting the other side's takes nothing, merging transposed
/// heads would take a copy.
struct KeepBatchShape : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    auto lhs = tensorType(op.getLhs()), rhs = tensorType(op.getRhs());
    if (lhs.getRank() < 3)
      return failure();
    auto merge = LeadingMerge::match(op.getLhs());
    if (!merge && rhs.getRank() == lhs.getRank())
      merge = LeadingMerge::match(op.getRhs());
    if (!merge)
      return failure();
    TensorEmitter b(op, rewriter.getListener());
    auto split = [&](Value value) {
      SmallVector<int64_t> shape(merge->leading);
      llvm::append_range(shape, tensorType(value).getShape().drop_front());
      return b.reshape(value, shape);
    };
    Value left = split(op.getLhs());
    Value right = rhs.getRank() == 2 ? Value(op.getRhs()) : split(op.getRhs());
    Value wide = MatmulOp::create(b, left, right, op.getTransposeLhs(),
                                  op.getTransposeRhs());
    rewriter.replaceOp(op,
                       b.reshape(wide, tensorType(op.getResult()).getShape()));
    return success();
  }
};

/// A reduction of rows that were flattened before is one of the rows as they
/// were, so that the sums over rows all look the same.
template <typename ReduceOp>
struct ReduceUnflattened : OpRewritePattern<ReduceOp> {
  using OpRewritePattern<ReduceOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto merge = LeadingMerge::match(op.getInput());
    if (!merge || op.getDims().empty() || op.getDims().front() != 0)
      return failure();
    int64_t added = merge->leading.size() - 1;
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, added));
    for (int64_t dim : op.getDims())
      dims.push_back(dim + added);
    TensorEmitter b(op, rewriter.getListener());
    auto reshape = op.getInput().template getDefiningOp<ReshapeOp>();
    Value reduced =
        ReduceOp::create(b, reshape.getInput(), dims, op.getKeepdims());
    rewriter.replaceOp(
        op, b.reshape(reduced, tensorType(op.getResult()).getShape()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Broadcasts
//===----------------------------------------------------------------------===//

/// Operations that broadcast their operands themselves.
static bool broadcastsOperands(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, FloorDivOp, TruncDivOp, RemainderOp,
             PowOp, MaximumOp, MinimumOp, AndOp, OrOp, XorOp, CompareOp,
             SelectOp>(op);
}

/// What `value` repeats or only gives leading unit dimensions to; else null.
static Value withoutBroadcast(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return broadcast.getInput();
  if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    auto from = tensorType(reshape.getInput()).getShape(),
         to = tensorType(value).getShape();
    if (to.size() > from.size() && to.take_back(from.size()) == from)
      return reshape.getInput();
  }
  return {};
}

/// An operand is read without its broadcast where the result stays as it is.
struct BroadcastImplicitly : RewritePattern {
  BroadcastImplicitly(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!broadcastsOperands(op))
      return failure();
    bool changed = false;
    for (OpOperand &operand : op->getOpOperands()) {
      Value source = withoutBroadcast(operand.get());
      if (!source || !keepsResult(op, operand, source))
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(source); });
      changed = true;
    }
    return success(changed);
  }

private:
  static bool keepsResult(Operation *op, OpOperand &replaced, Value source) {
    SmallVector<int64_t> shape(tensorType(source).getShape());
    for (OpOperand &operand : op->getOpOperands()) {
      if (&operand == &replaced)
        continue;
      auto wide = broadcastShapes(shape, tensorType(operand.get()).getShape());
      if (failed(wide))
        return false;
      shape = *wide;
    }
    return tensorType(op->getResult(0)).getShape() == ArrayRef<int64_t>(shape);
  }
};

//===----------------------------------------------------------------------===//
// Reshapes below elementwise operations
//===----------------------------------------------------------------------===//

/// Whether `value` comes, through elementwise operations of its own shape, from
/// an operation whose shape is given: a contraction, attention or norm.
static bool isAnchored(Value value, int depth = 8) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<MatmulOp, LinearOp, AttentionOp, AttentionBackwardOp, LayerNormOp,
          LayerNormBackwardOp, SoftmaxOp, SoftmaxBackwardOp>(op))
    return true;
  if (!op->hasTrait<nova::Pointwise>())
    return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return tensorType(operand).getShape() == tensorType(value).getShape() &&
           isAnchored(operand, depth - 1);
  });
}

/// pointwise(reshape(x), ..) -> reshape(pointwise(x, ..)).
struct SinkMerge : RewritePattern {
  SinkMerge(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!op->hasTrait<nova::Pointwise>() || op->getNumResults() != 1 ||
        isa<CopyOp>(op))
      return failure();
    auto type = tensorType(op->getResult(0));
    for (Value operand : op->getOperands()) {
      auto merge = LeadingMerge::match(operand);
      // The merged dimension must be the result's first: nothing repeats it.
      if (!merge || merge->merged.size() != (size_t)type.getRank() ||
          merge->merged.front() != type.getDimSize(0) ||
          !isAnchored(operand.getDefiningOp<ReshapeOp>().getInput()) ||
          !llvm::all_of(op->getOperands(),
                        [&](Value v) { return merge->isFree(v); }))
        continue;
      TensorEmitter b(op, rewriter.getListener());
      IRMapping map;
      for (Value other : op->getOperands())
        if (!map.contains(other))
          map.map(other, merge->unmerge(other, b));
      Operation *wide = b.clone(*op, map);
      SmallVector<int64_t> shape(merge->leading);
      llvm::append_range(shape, type.getShape().drop_front());
      wide->getResult(0).setType(type.clone(shape));
      rewriter.replaceOp(op, b.reshape(wide->getResult(0), type.getShape()));
      return success();
    }
    return failure();
  }
};
} // namespace

void nova::populateRaiseShapePatterns(RewritePatternSet &patterns) {
  patterns
      .add<KeepActivationShape, TakeResultShape, JoinUnitDims<SumOp>,
           JoinUnitDims<MaxOp>, JoinUnitDims<MinOp>, ReduceUnflattened<SumOp>,
           ReduceUnflattened<MaxOp>, ReduceUnflattened<MinOp>, KeepBatchShape,
           BroadcastImplicitly, SinkMerge>(patterns.getContext());
}
