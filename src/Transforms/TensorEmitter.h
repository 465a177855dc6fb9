//===- TensorEmitter.h - Short names for building nova operations
//----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the rewrites of this folder write mathematics with. Shapes broadcast as
// the dialect says; constants are 0-d and broadcast, so none is ever large.
// C++ leaves the order of a call's arguments open, and with it the order of the
// operations: never write more than one call that emits into one argument list.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_TENSOREMITTER_H
#define NOVA_SRC_TRANSFORMS_TENSOREMITTER_H

#include "nova/IR/Nova.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace nova {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline mlir::Type elementType(mlir::Value value) {
  return tensorType(value).getElementType();
}

class TensorEmitter : public mlir::ImplicitLocOpBuilder {
  using Value = mlir::Value;

public:
  /// Writes before `op`, at its location; `listener` hears of each operation.
  explicit TensorEmitter(mlir::Operation *op, Listener *listener = nullptr)
      : ImplicitLocOpBuilder(op->getLoc(), op) {
    setListener(listener);
  }

  Value add(Value a, Value b) { return AddOp::create(*this, a, b); }
  Value sub(Value a, Value b) { return SubOp::create(*this, a, b); }
  Value mul(Value a, Value b) { return MulOp::create(*this, a, b); }
  Value div(Value a, Value b) { return DivOp::create(*this, a, b); }
  Value neg(Value a) { return NegOp::create(*this, a); }
  Value exp(Value a) { return ExpOp::create(*this, a); }
  Value log(Value a) { return LogOp::create(*this, a); }
  Value rsqrt(Value a) { return RsqrtOp::create(*this, a); }
  Value select(Value c, Value a, Value b) {
    return SelectOp::create(*this, c, a, b);
  }
  Value compare(ComparePredicate p, Value a, Value b) {
    return CompareOp::create(*this, a, b, p);
  }
  /// Reductions; the reduced dimensions stay with size 1.
  Value sumKeep(Value a, llvm::ArrayRef<int64_t> dims) {
    return SumOp::create(*this, a, dims, true);
  }
  Value maxKeep(Value a, llvm::ArrayRef<int64_t> dims) {
    return MaxOp::create(*this, a, dims, true);
  }
  /// A sum whose reduced dimensions are gone; over no dimension, `a` itself.
  Value sum(Value a, llvm::ArrayRef<int64_t> dims) {
    return dims.empty() ? a : Value(SumOp::create(*this, a, dims, false));
  }
  Value reshape(Value a, llvm::ArrayRef<int64_t> shape) {
    auto type = tensorType(a);
    if (type.getShape() == shape)
      return a;
    return ReshapeOp::create(
        *this, mlir::RankedTensorType::get(shape, type.getElementType()), a);
  }
  Value cast(Value a, mlir::Type element) {
    if (elementType(a) == element)
      return a;
    return CastOp::create(*this, tensorType(a).clone(element), a);
  }
  /// A 0-d constant of a floating element type.
  Value constant(double value, mlir::Type element) {
    auto type = mlir::RankedTensorType::get({}, element);
    return ConstantOp::create(*this, mlir::DenseElementsAttr::get(
                                         type, getFloatAttr(element, value)));
  }
  /// A 0-d constant of an integer element type.
  Value integer(int64_t value, mlir::Type element) {
    auto type = mlir::RankedTensorType::get({}, element);
    return ConstantOp::create(*this, mlir::DenseElementsAttr::get(
                                         type, getIntegerAttr(element, value)));
  }
  /// 0, 1, ... along dimension `dim` of a shape otherwise of ones.
  Value positions(int64_t size, int64_t dim, int64_t rank, mlir::Type element) {
    Value line =
        IotaOp::create(*this, mlir::RankedTensorType::get({size}, element),
                       getIntegerAttr(element, 0), getIntegerAttr(element, 1));
    llvm::SmallVector<int64_t> shape(rank, 1);
    shape[dim] = size;
    return reshape(line, shape);
  }

  /// The type floating mathematics on `element` is done in: at least f32.
  mlir::Type computeType(mlir::Type element) {
    return element.getIntOrFloatBitWidth() < 32 ? getF32Type() : element;
  }
  /// `a` in the type its mathematics is done in.
  Value wide(Value a) { return cast(a, computeType(elementType(a))); }
};

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_TENSOREMITTER_H
