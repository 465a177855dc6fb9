//===- LowerKernelsToLinalgReductions.cpp - Sums and extrema
//---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction iterates over the dimensions of its input in order. Narrow floats
// accumulate in float32 and are rounded once at the end.
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace nova::lowering {

/// What every value of `type` is at least (or at most): where a maximum starts.
static TypedAttr lowest(OpBuilder &b, Type type, bool largest) {
  if (auto floating = dyn_cast<FloatType>(type))
    return b.getFloatAttr(
        type, APFloat::getInf(floating.getFloatSemantics(), largest));
  if (type.isInteger(1))
    return b.getBoolAttr(!largest);
  unsigned width = type.getIntOrFloatBitWidth();
  return b.getIntegerAttr(type, largest ? APInt::getSignedMinValue(width)
                                        : APInt::getSignedMaxValue(width));
}

KernelLowering::Reduction KernelLowering::reductionOver(RankedTensorType input,
                                                        ArrayRef<int64_t> dims,
                                                        bool keep) {
  Reduction out;
  SmallVector<int64_t> results;
  for (int64_t d = 0; d < input.getRank(); ++d) {
    bool reduced = llvm::is_contained(dims, d);
    out.iterators.push_back(reduced ? utils::IteratorType::reduction
                                    : utils::IteratorType::parallel);
    if (reduced && !keep)
      continue;
    out.shape.push_back(reduced ? 1 : input.getDimSize(d));
    results.push_back(reduced ? -1 : d);
  }
  out.map = mapTo(input.getRank(), results);
  return out;
}

/// The input of a reduction, from which its extents can be told.
static bool tellsExtents(const Read &read, ArrayRef<int64_t> dims) {
  return !read.value.getDefiningOp<ConstantOp>() &&
         llvm::all_of(dims,
                      [&](int64_t d) { return read.map.isFunctionOfDim(d); });
}

Read KernelLowering::readReduced(Value value, AffineMap map,
                                 ArrayRef<int64_t> dims) {
  Read through = read(value, map);
  if (tellsExtents(through, dims))
    return through;
  return {materialise(value), map};
}

Value KernelLowering::reduce(
    Value input, ArrayRef<int64_t> dims, bool keep, TypedAttr init,
    llvm::function_ref<Value(ImplicitLocOpBuilder &, Value acc, Value x)>
        combine) {
  RankedTensorType type = typeOf(input);
  Reduction over = reductionOver(type, dims, keep);
  Read in = readReduced(input, getMultiDimIdentityMap(type.getRank()), dims);
  Read out{filled(RankedTensorType::get(over.shape, init.getType()), init),
           over.map};
  Value wide =
      generic(in, out, over.iterators,
              [&](ImplicitLocOpBuilder &b, ValueRange ins, ValueRange outs) {
                return Values{combine(b, outs[0], widen(b, ins[0]))};
              })
          .getResult(0);
  return rounded(wide, type.getElementType());
}

Values KernelLowering::lower(SumOp op) {
  Type wide = computeType(elementOf(op.getInput()));
  return {reduce(op.getInput(), op.getDims(), op.getKeepdims(),
                 getZeroAttr(wide),
                 [](ImplicitLocOpBuilder &b, Value acc, Value x) -> Value {
                   if (isa<FloatType>(x.getType()))
                     return arith::AddFOp::create(b, acc, x);
                   if (x.getType().isInteger(1))
                     return arith::OrIOp::create(b, acc, x);
                   return arith::AddIOp::create(b, acc, x);
                 })};
}

Values KernelLowering::lowerExtremum(Value input, ArrayRef<int64_t> dims,
                                     bool keep, bool largest) {
  TypedAttr init = lowest(*this, computeType(elementOf(input)), largest);
  return {reduce(
      input, dims, keep, init,
      [largest](ImplicitLocOpBuilder &b, Value acc, Value x) -> Value {
        Type type = x.getType();
        if (isa<FloatType>(type))
          return largest ? arith::MaximumFOp::create(b, acc, x).getResult()
                         : arith::MinimumFOp::create(b, acc, x).getResult();
        if (type.isInteger(1))
          return largest ? arith::OrIOp::create(b, acc, x).getResult()
                         : arith::AndIOp::create(b, acc, x).getResult();
        return largest ? arith::MaxSIOp::create(b, acc, x).getResult()
                       : arith::MinSIOp::create(b, acc, x).getResult();
      })};
}

Values KernelLowering::lowerArgExtremum(Value input, int64_t dim, bool keep,
                                        bool largest) {
  RankedTensorType type = typeOf(input);
  Type element = type.getElementType(), wide = computeType(element);
  Reduction over = reductionOver(type, dim, keep);
  Read in = readReduced(input, getMultiDimIdentityMap(type.getRank()), dim);
  auto init = [&](TypedAttr value) {
    return Read{
        filled(RankedTensorType::get(over.shape, value.getType()), value),
        over.map};
  };
  // Only what is strictly better replaces, so the first of equals stays; the
  // start is replaced by anything better, and stands for index 0 otherwise.
  auto op = generic(
      in, {init(lowest(*this, wide, largest)), init(getI64IntegerAttr(0))},
      over.iterators,
      [&](ImplicitLocOpBuilder &b, ValueRange ins, ValueRange outs) -> Values {
        Value x = widen(b, ins[0]), better;
        if (isa<FloatType>(wide)) {
          auto predicate =
              largest ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
          better = arith::CmpFOp::create(b, predicate, x, outs[0]);
          Value accIsNumber = arith::CmpFOp::create(
              b, arith::CmpFPredicate::ORD, outs[0], outs[0]);
          Value firstNaN = arith::AndIOp::create(b, isNaN(b, x), accIsNumber);
          better = arith::OrIOp::create(b, better, firstNaN);
        } else {
          using P = arith::CmpIPredicate;
          bool isBool = wide.isInteger(1);
          P predicate =
              largest ? (isBool ? P::ugt : P::sgt) : (isBool ? P::ult : P::slt);
          better = arith::CmpIOp::create(b, predicate, x, outs[0]);
        }
        Value position = arith::IndexCastOp::create(
            b, b.getI64Type(), linalg::IndexOp::create(b, dim));
        return {arith::SelectOp::create(b, better, x, outs[0]),
                arith::SelectOp::create(b, better, position, outs[1])};
      });
  return {rounded(op.getResult(0), element), op.getResult(1)};
}

} // namespace nova::lowering
