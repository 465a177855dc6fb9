//===- AssignLayouts.cpp - Give every chain of views a strided form --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelClusters.h"

#include "nova/IR/StridedView.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

namespace nova {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

namespace {

/// The permutation p for which dimensions taken in order p lie contiguous, if
/// the strides are those of some transposed contiguous tensor.
std::optional<SmallVector<int64_t>> densePermutation(const StridedView &view) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, view.shape.size()));
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return view.strides[a] > view.strides[b]; });
  if (!view.transpose(order).isContiguous())
    return std::nullopt;
  return order;
}

struct AssignLayouts : ::nova::impl::AssignLayoutsBase<AssignLayouts> {
  /// Stores the input of `blocker` (a view operation without a strided form)
  /// contiguous. If it is just a transpose of what some operation computes, that
  /// operation's other readers are sent to the copy, so that only the transposed
  /// value is stored. A copy is never moved again: readers that want it two ways
  /// would chase each other.
  void materialise(Operation *blocker) {
    OpBuilder builder(blocker);
    Value value = blocker->getOperand(0);
    auto transpose = value.getDefiningOp<TransposeOp>();
    Value source = transpose ? transpose.getInput() : Value();
    if (!source || isa<BlockArgument>(source) || isView(source.getDefiningOp()) ||
        source.getDefiningOp<CopyOp>()) {
      blocker->setOperand(0, CopyOp::create(builder, value.getLoc(), value));
      return;
    }
    builder.setInsertionPointAfterValue(source);
    auto moved = TransposeOp::create(builder, transpose.getLoc(), source, transpose.getPermutation());
    auto copy = CopyOp::create(builder, transpose.getLoc(), moved.getResult());
    auto back = TransposeOp::create(builder, transpose.getLoc(), copy.getResult(),
                                    invertPermutation(transpose.getPermutation()));
    value.replaceAllUsesWith(copy.getResult());
    transpose.erase();
    source.replaceAllUsesExcept(back.getResult(), moved);
  }

  /// Positions are computed inside the kernels that read them, where only views
  /// that follow the kernel's own loops make sense; under any other view they
  /// are stored once.
  void storeViewedPositions(func::FuncOp step) {
    for (Operation &op : step.getBody().front()) {
      if (!isView(&op) || KernelClusters::isInnerView(&op))
        continue;
      Value source = KernelClusters::throughInnerViews(op.getOperand(0));
      if (!source.getDefiningOp<IotaOp>())
        continue;
      OpBuilder builder(&op);
      op.setOperand(0, CopyOp::create(builder, op.getLoc(), op.getOperand(0)));
    }
  }

  /// One round over the readers; true when something was stored anew (which
  /// may leave an earlier reader with another chain, so the caller repeats).
  bool resolveReaders(func::FuncOp step) {
    for (Operation &op : step.getBody().front()) {
      if (isView(&op) || op.hasTrait<OpTrait::IsTerminator>())
        continue;
      for (Value operand : op.getOperands())
        if (Operation *blocker = resolveView(operand).blocker) {
          materialise(blocker);
          return true;
        }
    }
    return false;
  }

  /// What the step returns must lie in the caller's buffer as the signature
  /// says: contiguous, or with the strides of the input it updates. Each
  /// returned value needs memory of its own.
  LogicalResult resolveResults(func::FuncOp step) {
    auto ret = cast<func::ReturnOp>(step.getBody().front().getTerminator());
    OpBuilder builder(ret);
    llvm::DenseSet<Value> taken;
    for (OpOperand &operand : ret->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      StridedView want = StridedView::contiguous(cast<RankedTensorType>(operand.get().getType()).getShape());
      auto updates = step.getResultAttrOfType<IntegerAttr>(index, attr::updates);
      if (updates)
        want = baseLayout(step.getArgument(updates.getInt()));
      ResolvedView got = resolveView(operand.get());
      Operation *producer = got.base.getDefiningOp();
      bool lies = got.view && (*got.view == want || (got.view->isContiguous() && want.isContiguous()));
      bool whole = got.view && cast<RankedTensorType>(got.base.getType()).getNumElements() ==
                                   cast<RankedTensorType>(operand.get().getType()).getNumElements();
      if (lies && whole && producer && !isa<ConstantOp, IotaOp>(producer) && taken.insert(got.base).second)
        continue;
      auto order = densePermutation(want);
      if (!order)
        return step.emitError("result ") << index << " updates an input whose strides ["
               << want.strides << "] leave gaps or overlap; novac can replace only dense tensors";
      Value stored = TransposeOp::create(builder, operand.get().getLoc(), operand.get(), *order);
      stored = CopyOp::create(builder, operand.get().getLoc(), stored);
      taken.insert(stored);
      operand.set(TransposeOp::create(builder, operand.get().getLoc(), stored, invertPermutation(*order)));
    }
    return success();
  }

  void runOnOperation() override {
    func::FuncOp step = getOperation();
    if (step.isExternal() || isKernel(step))
      return;
    storeViewedPositions(step);
    // Each round stores one more value; a chain stores each of its values once.
    while (resolveReaders(step))
      ;
    if (failed(resolveResults(step)))
      return signalPassFailure();
    while (resolveReaders(step))
      ;
  }
};

} // namespace
