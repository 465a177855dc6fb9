//===- RaiseLosses.cpp - Softmax cross entropy, and scatters of one per row
//===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Raise.h"
#include "TensorEmitter.h"

using namespace mlir;
using namespace nova;

/// Whether `op` runs along the last dimension of rows [N, C].
static bool isOverRows(Value input, int64_t dim) {
  return tensorType(input).getRank() == 2 && dim == 1;
}

//===----------------------------------------------------------------------===//
// log_softmax + nll_loss, and nll_loss_backward + log_softmax_backward
//===----------------------------------------------------------------------===//

namespace {
/// The log-probabilities disappear: the loss and its gradient need one number
/// per row of them. Only when nobody else reads them (they would be computed
/// anyway), and only without class weights, which nova.sce does not have.
struct RaiseCrossEntropy : OpRewritePattern<LogSoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LogSoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOverRows(op.getInput(), op.getDim()))
      return failure();
    NllLossOp loss;
    SmallVector<LogSoftmaxBackwardOp> backwards;
    SmallPtrSet<Operation *, 4> shapesOnly;
    for (Operation *user : op->getUsers()) {
      if (auto nll = dyn_cast<NllLossOp>(user)) {
        if (loss || nll.getWeight() || nll->getBlock() != op->getBlock())
          return failure();
        loss = nll;
      } else if (auto backward = dyn_cast<NllLossBackwardOp>(user)) {
        // It reads the shape alone; but only inside a raised pair does it go.
        if (backward.getGrad() == op.getResult())
          return failure();
        shapesOnly.insert(user);
      } else if (auto backward = dyn_cast<LogSoftmaxBackwardOp>(user)) {
        if (!isRaisable(backward, op))
          return failure();
        backwards.push_back(backward);
      } else {
        return failure();
      }
    }
    if (!loss)
      return failure();
    for (LogSoftmaxBackwardOp backward : backwards) {
      auto nll = backward.getGrad().getDefiningOp<NllLossBackwardOp>();
      if (!loss->isBeforeInBlock(nll))
        return failure();
      shapesOnly.erase(nll);
    }
    // Others would keep the log-probabilities alive for their shape.
    if (!shapesOnly.empty())
      return failure();

    raise(op, loss, backwards, rewriter);
    return success();
  }

private:
  static bool isRaisable(LogSoftmaxBackwardOp backward, LogSoftmaxOp forward) {
    auto nll = backward.getGrad().getDefiningOp<NllLossBackwardOp>();
    return nll && backward.getOutput() == forward.getResult() &&
           nll->hasOneUse() && !nll.getWeight() &&
           isOverRows(backward.getGrad(), backward.getDim()) &&
           nll->getBlock() == forward->getBlock() &&
           backward->getBlock() == forward->getBlock();
  }

  static void raise(LogSoftmaxOp op, NllLossOp loss,
                    ArrayRef<LogSoftmaxBackwardOp> backwards,
                    PatternRewriter &rewriter) {
    rewriter.setInsertionPoint(loss);
    auto fused = rewriter.getFusedLoc({op.getLoc(), loss.getLoc()});
    auto sce =
        SceOp::create(rewriter, fused, op.getInput(), loss.getLabels(),
                      loss.getReductionAttr(), loss.getIgnoreIndexAttr());
    for (LogSoftmaxBackwardOp backward : backwards) {
      auto nll = backward.getGrad().getDefiningOp<NllLossBackwardOp>();
      rewriter.setInsertionPoint(backward);
      auto both = rewriter.getFusedLoc({nll.getLoc(), backward.getLoc()});
      // For a mean the gradient is divided by whatever total the producer
      // passes on: the count of this sce, or a number of its own.
      auto raised = SceBackwardOp::create(
          rewriter, both, nll.getGrad(), op.getInput(), nll.getLabels(),
          sce.getLse(), nll.getTotalWeight(), nll.getReductionAttr(),
          nll.getIgnoreIndexAttr());
      rewriter.replaceOp(backward, raised);
      rewriter.eraseOp(nll);
    }
    Value total = sce.getCount();
    if (loss.getReduction() == LossReduction::none &&
        !loss.getTotalWeight().use_empty()) {
      TensorEmitter b(loss, rewriter.getListener());
      total = b.constant(0, elementType(total));
    }
    rewriter.replaceOp(loss, {sce.getLoss(), total});
    rewriter.eraseOp(op);
  }
};

//===----------------------------------------------------------------------===//
// The decomposed spelling: gather(log_softmax), exp(log_softmax)
//===----------------------------------------------------------------------===//

/// gather(log_softmax(x), label) is minus the cross entropy per row. No label
/// is ignored: that of an ignored row the producer has replaced itself.
struct RaiseGatheredLogSoftmax : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto softmax = op.getInput().getDefiningOp<LogSoftmaxOp>();
    if (!softmax || !isOverRows(softmax.getInput(), softmax.getDim()) ||
        op.getDim() != 1)
      return failure();
    int64_t rows = tensorType(softmax.getInput()).getDimSize(0);
    auto indexType = tensorType(op.getIndex());
    if (indexType.getShape() != ArrayRef<int64_t>{rows, 1} ||
        !indexType.getElementType().isInteger(64))
      return failure();
    TensorEmitter b(op, rewriter.getListener());
    Value labels = b.reshape(op.getIndex(), {rows});
    auto sce = SceOp::create(b, softmax.getInput(), labels, LossReduction::none,
                             std::numeric_limits<int64_t>::min());
    rewriter.replaceOp(op, b.reshape(b.neg(sce.getLoss()), {rows, 1}));
    return success();
  }
};

/// e^log_softmax(x) = e^(x - lse), where the lse of x is there already.
struct ReuseLogSumExp : OpRewritePattern<ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpOp op,
                                PatternRewriter &rewriter) const override {
    auto softmax = op.getInput().getDefiningOp<LogSoftmaxOp>();
    if (!softmax || !isOverRows(softmax.getInput(), softmax.getDim()))
      return failure();
    for (Operation *user : softmax.getInput().getUsers()) {
      auto sce = dyn_cast<SceOp>(user);
      if (!sce || sce->getBlock() != op->getBlock() ||
          !sce->isBeforeInBlock(op))
        continue;
      TensorEmitter b(op, rewriter.getListener());
      int64_t rows = tensorType(sce.getLse()).getDimSize(0);
      Value lse = b.reshape(b.wide(sce.getLse()), {rows, 1});
      Value probability = b.exp(b.sub(b.wide(sce.getLogits()), lse));
      rewriter.replaceOp(op, b.cast(probability, elementType(op.getResult())));
      return success();
    }
    return failure();
  }
};

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// One value per row: the position compared with the index. An index outside
/// the dimension equals no position, and so writes nothing, as in nova.scatter.
struct ScatterOfOnePerRow : OpRewritePattern<ScatterOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScatterOp op,
                                PatternRewriter &rewriter) const override {
    auto type = tensorType(op.getInit()), index = tensorType(op.getIndex());
    int64_t dim = op.getDim();
    if (op.getAccumulate() || index.getDimSize(dim) != 1)
      return failure();
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (i != dim && index.getDimSize(i) != type.getDimSize(i))
        return failure();
    // Positions of a longer dimension would not fit the index's type.
    if (index.getElementType().isInteger(32) &&
        !llvm::isInt<32>(type.getDimSize(dim)))
      return failure();
    TensorEmitter b(op, rewriter.getListener());
    Value positions = b.positions(type.getDimSize(dim), dim, type.getRank(),
                                  index.getElementType());
    Value here = b.compare(ComparePredicate::eq, positions, op.getIndex());
    rewriter.replaceOp(op, b.select(here, op.getUpdates(), op.getInit()));
    return success();
  }
};
} // namespace

void nova::populateRaiseLossPatterns(RewritePatternSet &patterns) {
  patterns.add<RaiseCrossEntropy, RaiseGatheredLogSoftmax, ReuseLogSumExp,
               ScatterOfOnePerRow>(patterns.getContext());
}
