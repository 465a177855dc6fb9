//===- EvaluateConstants.cpp - Masks and positions at compile time
//---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Evaluate.h"
#include "EvaluateBias.h"

#include "nova/Transforms/Passes.h"

#include "mlir/IR/Remarks.h"

namespace nova {
#define GEN_PASS_DEF_EVALUATECONSTANTS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

namespace {
struct EvaluateConstants
    : nova::impl::EvaluateConstantsBase<EvaluateConstants> {
  using Base::Base;

  void runOnOperation() override {
    values.clear();
    unevaluated.clear();
    evaluateAll();
    for (Operation *op : unevaluated) {
      if (auto attention = dyn_cast<AttentionOp>(op))
        readMask(attention);
      else if (auto backward = dyn_cast<AttentionBackwardOp>(op))
        readMask(backward);
    }
    for (Operation *op : unevaluated)
      for (Value operand : op->getOperands())
        if (values.contains(operand))
          provide(operand);
    eraseDead();
    values.clear();
    unevaluated.clear();
  }

private:
  //===--------------------------------------------------------------------===//
  // Evaluation
  //===--------------------------------------------------------------------===//

  void evaluateAll() {
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == getOperation())
        return;
      SmallVector<ConstantTensor, 3> operands;
      for (Value operand : op->getOperands()) {
        auto known = values.find(operand);
        if (known == values.end())
          break;
        operands.push_back(known->second);
      }
      std::optional<ConstantTensor> result;
      if (operands.size() == op->getNumOperands() && op->getNumResults() == 1)
        result = evaluate(op, operands, maxElements);
      if (!result)
        return unevaluated.push_back(op);
      numEvaluated += !isa<ConstantOp, IotaOp>(op);
      evaluated.push_back(op);
      values.try_emplace(op->getResult(0), std::move(*result));
    });
  }

  //===--------------------------------------------------------------------===//
  // Attention
  //===--------------------------------------------------------------------===//

  template <typename Attention> void readMask(Attention op) {
    if (!op.getBias())
      return;
    auto options =
        remark::RemarkOpts::name("attention-bias").category(getArgument());
    auto known = values.find(op.getBias());
    if (known == values.end()) {
      remark::missed(op.getLoc(), options)
          << "bias is not known at compile time: it stays an operand";
      return;
    }
    auto query = cast<RankedTensorType>(op.getQuery().getType()),
         key = cast<RankedTensorType>(op.getKey().getType());
    int64_t scores[] = {query.getDimSize(0), query.getDimSize(1),
                        query.getDimSize(2), key.getDimSize(2)};
    BiasMeaning meaning = readBias(known->second, scores);
    if (meaning.lowerIsZero && (meaning.upperIsZero || op.getCausal())) {
      remark::passed(op.getLoc(), options) << "bias adds nothing: dropped";
    } else if (meaning.lowerIsZero && meaning.upperIsMasked) {
      op.setCausal(true);
      ++numCausal;
      remark::passed(op.getLoc(), options)
          << "bias proves the attention causal: dropped";
    } else {
      remark::missed(op.getLoc(), options)
          << "bias is neither zero nor causal: " + meaning.witness;
      return;
    }
    op.getBiasMutable().clear();
  }

  //===--------------------------------------------------------------------===//
  // Constants for those who stay
  //===--------------------------------------------------------------------===//

  /// Makes `value` available to an operation that stays: by what is there
  /// already (constants, iotas and views of them), else as a new constant.
  void provide(Value value) {
    Operation *op = value.getDefiningOp();
    if (!needed.insert(op).second || isa<ConstantOp, IotaOp>(op))
      return;
    if (isFreeView(op))
      return provide(op->getOperand(0));
    ConstantTensor tensor = values.find(value)->second;
    auto type = cast<RankedTensorType>(value.getType());
    OpBuilder builder(op);
    DenseElementsAttr core = tensor.coreAttribute();
    Value constant;
    if (core.isSplat()) {
      constant =
          ConstantOp::create(builder, op->getLoc(), core.resizeSplat(type));
    } else {
      constant = ConstantOp::create(builder, op->getLoc(), core);
      if (constant.getType() != type)
        constant = BroadcastOp::create(builder, op->getLoc(), type, constant);
    }
    value.replaceAllUsesWith(constant);
    values.try_emplace(constant, tensor);
    needed.insert(constant.getDefiningOp());
  }

  /// A view with a strided form that throws no elements away costs its readers
  /// nothing.
  bool isFreeView(Operation *op) {
    if (!isView(op))
      return false;
    auto from = cast<RankedTensorType>(op->getOperand(0).getType());
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    return from.getNumElements() <= to.getNumElements() &&
           applyView(op, values.find(op->getOperand(0))->second.view());
  }

  void eraseDead() {
    for (Operation *op : llvm::reverse(evaluated))
      if (op->use_empty())
        op->erase();
    needed.clear();
    evaluated.clear();
  }

  llvm::DenseMap<Value, ConstantTensor> values;
  SmallVector<Operation *> evaluated, unevaluated;
  llvm::DenseSet<Operation *> needed;
};
} // namespace
