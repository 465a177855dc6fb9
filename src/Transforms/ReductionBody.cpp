//===- ReductionBody.cpp - What a generic's body accumulates ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/ReductionBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nova::tiling;

/// All values of the body that `value` is made of, itself included; what comes
/// from outside is not followed.
static llvm::SetVector<Value> slice(Value value, linalg::GenericOp op) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i)
    if (Operation *inner = seen[i].getDefiningOp(); inner && inner->getBlock() == op.getBody())
      seen.insert(inner->operand_begin(), inner->operand_end());
  return seen;
}

bool nova::tiling::dependsOnAccumulator(Value value, linalg::GenericOp op) {
  return llvm::any_of(slice(value, op), [&](Value part) {
    return llvm::is_contained(op.getRegionOutputArgs(), part);
  });
}

AxisList nova::tiling::axesOf(Value value, linalg::GenericOp op, const Axes &axes) {
  AxisList list;
  auto add = [&](AxisId axis) {
    if (axis != kNoAxis && !llvm::is_contained(list, axis))
      list.push_back(axis);
  };
  for (Value part : slice(value, op)) {
    if (auto index = part.getDefiningOp<linalg::IndexOp>()) {
      add(axes.ofLoop(op, index.getDim()));
    } else if (auto argument = dyn_cast<BlockArgument>(part); argument && argument.getOwner() == op.getBody()) {
      for (AxisId axis : axes.ofOperand(*op.getMatchingOpOperand(argument)))
        add(axis);
    }
  }
  return list;
}

bool nova::tiling::readsZeroOutside(Value value, AxisId axis, linalg::GenericOp op, const Axes &axes) {
  while (Operation *cast = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp>(cast))
      return false;
    value = cast->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != op.getBody())
    return false;
  OpOperand *operand = op.getMatchingOpOperand(argument);
  return isa<BlockArgument>(operand->get()) && llvm::is_contained(axes.ofOperand(*operand), axis);
}

static TypedAttr identityOf(Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  Builder b(combiner->getContext());
  auto infinity = [&](bool negative) -> TypedAttr {
    return b.getFloatAttr(type, APFloat::getInf(cast<FloatType>(type).getFloatSemantics(), negative));
  };
  auto integer = [&](APInt value) -> TypedAttr { return b.getIntegerAttr(type, value); };
  unsigned width = type.isIndex() ? 64 : type.isInteger() ? type.getIntOrFloatBitWidth() : 1;
  return llvm::TypeSwitch<Operation *, TypedAttr>(combiner)
      .Case([&](arith::AddFOp) -> TypedAttr { return b.getFloatAttr(type, 0.0); })
      .Case([&](arith::MulFOp) -> TypedAttr { return b.getFloatAttr(type, 1.0); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) { return infinity(true); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) { return infinity(false); })
      .Case<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(
          [&](auto) { return integer(APInt::getZero(width)); })
      .Case([&](arith::MulIOp) { return integer(APInt(width, 1)); })
      .Case<arith::AndIOp, arith::MinUIOp>([&](auto) { return integer(APInt::getAllOnes(width)); })
      .Case([&](arith::MaxSIOp) { return integer(APInt::getSignedMinValue(width)); })
      .Case([&](arith::MinSIOp) { return integer(APInt::getSignedMaxValue(width)); })
      .Default([](Operation *) { return TypedAttr(); });
}

FailureOr<SmallVector<Accumulation>> nova::tiling::accumulations(linalg::GenericOp op) {
  SmallVector<Accumulation> list;
  for (auto [yielded, accumulator] :
       llvm::zip_equal(op.getBody()->getTerminator()->getOperands(), op.getRegionOutputArgs())) {
    Operation *combiner = yielded.getDefiningOp();
    if (!combiner || combiner->getBlock() != op.getBody() || combiner->getNumOperands() != 2 ||
        combiner->getNumResults() != 1)
      return failure();
    bool first = combiner->getOperand(0) == accumulator;
    Value contribution = combiner->getOperand(first ? 1 : 0);
    TypedAttr identity = identityOf(combiner);
    if (!identity || combiner->getOperand(first ? 0 : 1) != accumulator || dependsOnAccumulator(contribution, op))
      return failure();
    list.push_back({combiner, contribution, identity});
  }
  return list;
}

FailureOr<Selection> nova::tiling::selection(linalg::GenericOp op) {
  Selection result;
  for (auto [yielded, accumulator] :
       llvm::zip_equal(op.getBody()->getTerminator()->getOperands(), op.getRegionOutputArgs())) {
    auto select = yielded.getDefiningOp<arith::SelectOp>();
    if (!select || select.getFalseValue() != accumulator || dependsOnAccumulator(select.getTrueValue(), op) ||
        (result.takes && result.takes != select.getCondition()))
      return failure();
    result.takes = select.getCondition();
    result.elements.push_back(select.getTrueValue());
  }
  llvm::SetVector<Value> needed;
  needed.insert(result.takes);
  llvm::DenseSet<Operation *> steps;
  for (size_t i = 0; i < needed.size(); ++i) {
    Value value = needed[i];
    if (llvm::is_contained(result.elements, value) || llvm::is_contained(op.getRegionOutputArgs(), value))
      continue;
    Operation *inner = value.getDefiningOp();
    if (!inner || isa<linalg::IndexOp>(inner) || inner->getNumRegions() || inner->getNumResults() != 1)
      return failure();
    // A constant may stand outside.
    if (inner->getBlock() != op.getBody() && !isa<arith::ConstantOp>(inner))
      return failure();
    steps.insert(inner);
    needed.insert(inner->operand_begin(), inner->operand_end());
  }
  for (Operation *inner : steps)
    if (inner->getBlock() != op.getBody())
      result.steps.push_back(inner);
  for (Operation &inner : *op.getBody())
    if (steps.contains(&inner))
      result.steps.push_back(&inner);
  return result;
}

std::optional<std::pair<Value, Value>> nova::tiling::factors(const Accumulation &accumulation) {
  auto product = accumulation.contribution.getDefiningOp<arith::MulFOp>();
  if (!product || !isa<arith::AddFOp>(accumulation.combiner))
    return std::nullopt;
  Value a = product.getLhs(), b = product.getRhs();
  auto wideA = a.getDefiningOp<arith::ExtFOp>(), wideB = b.getDefiningOp<arith::ExtFOp>();
  // Products of short floats are exact in float32: they may go in as they are.
  if (a.getType().isF32() && wideA && wideB && wideA.getIn().getType() == wideB.getIn().getType())
    return std::pair(wideA.getIn(), wideB.getIn());
  return std::pair(a, b);
}
