//===- RetypeUnsigned.cpp - Unsigned integers as signless ones ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/IR/Nova.h"
#include "nova/Transforms/Passes.h"
#include "nova/Transforms/RetypeUnsigned.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseSet.h"

namespace nova {
#define GEN_PASS_DEF_RETYPEUNSIGNED
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

static bool isUnsigned(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isUnsignedInteger();
}

static RankedTensorType signless(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.clone(IntegerType::get(
      type.getContext(), tensor.getElementType().getIntOrFloatBitWidth()));
}

/// An attribute of an operation: numbers and tensors of them change their type.
static Attribute retyped(Attribute attribute) {
  if (auto elements = dyn_cast<DenseElementsAttr>(attribute);
      elements && isUnsigned(elements.getType()))
    return DenseElementsAttr::getFromRawBuffer(
        signless(elements.getType()), elements.getRawData());
  if (auto number = dyn_cast<IntegerAttr>(attribute);
      number && number.getType().isUnsignedInteger())
    return IntegerAttr::get(
        IntegerType::get(attribute.getContext(),
                         number.getType().getIntOrFloatBitWidth()),
        number.getValue());
  return attribute;
}

namespace {
struct RetypeUnsigned : nova::impl::RetypeUnsignedBase<RetypeUnsigned> {
  llvm::DenseSet<Value> values; ///< whose bits are those of unsigned integers

  void retype(Value value) {
    if (!isUnsigned(value.getType()))
      return;
    value.setType(signless(value.getType()));
    values.insert(value);
  }

  /// The value in i32.
  Value widen(ImplicitLocOpBuilder &b, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    unsigned width = type.getElementType().getIntOrFloatBitWidth();
    Value wide = CastOp::create(b, type.clone(b.getI32Type()), value);
    auto bits = DenseElementsAttr::get(RankedTensorType::get({}, b.getI32Type()),
                                       b.getI32IntegerAttr((1 << width) - 1));
    return AndOp::create(b, wide, ConstantOp::create(b, bits.getType(), bits));
  }

  /// The operation on widened operands, its unsigned results narrowed.
  void computeWide(Operation *op) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    for (OpOperand &operand : op->getOpOperands())
      if (values.contains(operand.get()))
        operand.set(widen(b, operand.get()));
    b.setInsertionPointAfter(op);
    for (Value result : op->getResults()) {
      if (!values.contains(result))
        continue;
      auto narrow = cast<RankedTensorType>(result.getType());
      result.setType(narrow.clone(b.getI32Type()));
      values.erase(result);
      auto cast = CastOp::create(b, narrow, result);
      values.insert(cast);
      result.replaceAllUsesExcept(cast, cast);
    }
  }

  /// To an unsigned type by way of a signed one that holds all its values.
  void castThrough(CastOp cast) {
    ImplicitLocOpBuilder b(cast.getLoc(), cast);
    bool from = values.contains(cast.getInput()), to = values.contains(cast);
    auto source = mlir::cast<RankedTensorType>(cast.getInput().getType());
    if (from && !to)
      cast.getInputMutable().assign(widen(b, cast.getInput()));
    else if (to && !from && isa<FloatType>(source.getElementType()))
      cast.getInputMutable().assign(
          CastOp::create(b, source.clone(b.getI32Type()), cast.getInput()));
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    values.clear();
    for (BlockArgument argument : func.getArguments())
      if (isUnsigned(argument.getType()))
        func.setArgAttr(argument.getArgNumber(), attr::isUnsigned,
                        UnitAttr::get(&getContext()));
    for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
      if (isUnsigned(type))
        func.setResultAttr(i, attr::isUnsigned, UnitAttr::get(&getContext()));
    func.walk([&](Block *block) {
      for (Value argument : block->getArguments())
        retype(argument);
    });
    func.walk([&](Operation *op) {
      for (Value result : op->getResults())
        retype(result);
      if (isa<func::FuncOp>(op))
        return;
      SmallVector<NamedAttribute> attributes;
      for (NamedAttribute each : op->getAttrs())
        attributes.push_back({each.getName(), retyped(each.getValue())});
      op->setAttrs(attributes);
    });
    if (func.isDeclaration())
      return;
    auto ret = cast<func::ReturnOp>(func.getBody().back().getTerminator());
    func.setFunctionType(FunctionType::get(
        &getContext(), func.getBody().getArgumentTypes(), ret.getOperandTypes()));
    if (values.empty())
      return;
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (auto cast = dyn_cast<CastOp>(op))
        castThrough(cast);
      else if (isa<CompareOp, MaximumOp, MinimumOp, FloorDivOp, TruncDivOp,
                   RemainderOp, PowOp, ReluOp, MaxOp, MinOp, ArgMaxOp,
                   ArgMinOp>(op))
        computeWide(op);
    }
  }
};
} // namespace
