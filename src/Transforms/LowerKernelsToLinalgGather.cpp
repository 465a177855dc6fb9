//===- LowerKernelsToLinalgGather.cpp - Reads at computed positions
//--------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No read leaves its tensor: an index is clamped first, and what was read there
// is replaced after. A dimension of size 0 has nothing to read at all.
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace nova::lowering {

/// What stands for an element that is not there: NaN, or 0 of an integer.
static Value missing(ImplicitLocOpBuilder &b, Type element) {
  return constant(
      b, element,
      isa<FloatType>(element) ? std::numeric_limits<double>::quiet_NaN() : 0);
}

Value KernelLowering::extract(ImplicitLocOpBuilder &b, const Read &source,
                              ValueRange indices) {
  if (auto constantOp = source.value.getDefiningOp<ConstantOp>()) {
    auto splat = cast<DenseElementsAttr>(constantOp.getValue());
    return arith::ConstantOp::create(
        b, cast<TypedAttr>(splat.getSplatValue<Attribute>()));
  }
  Values at;
  for (AffineExpr expr : source.map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      at.push_back(indices[dim.getPosition()]);
    else
      at.push_back(arith::ConstantIndexOp::create(b, 0));
  }
  return tensor::ExtractOp::create(b, source.value, at);
}

Value KernelLowering::clampIndex(ImplicitLocOpBuilder &b, Value value,
                                 int64_t size, bool wrapNegative,
                                 Value &valid) {
  Value index = value;
  if (!index.getType().isIndex())
    index = arith::IndexCastOp::create(b, b.getIndexType(), index);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value extent = arith::ConstantIndexOp::create(b, size);
  if (wrapNegative) {
    Value negative =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, zero);
    Value wrapped = arith::AddIOp::create(b, index, extent);
    index = arith::SelectOp::create(b, negative, wrapped, index);
  }
  // Unsigned: what is still negative is above every size.
  Value inside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, index, extent);
  valid = valid ? arith::AndIOp::create(b, valid, inside).getResult() : inside;
  return arith::SelectOp::create(b, inside, index, zero);
}

Values KernelLowering::lower(IndexOp op) {
  RankedTensorType type = typeOf(op.getResult()),
                   inputType = typeOf(op.getInput());
  ArrayRef<int64_t> dims = op.getDims();
  if (dims.empty())
    return {materialise(op.getInput())};
  int64_t first = dims.front(), count = dims.size();
  int64_t indexRank = typeOf(op.getIndices().front()).getRank();
  SmallVector<int64_t> indexDims =
      llvm::to_vector(llvm::seq(first, first + indexRank));
  SmallVector<Read> reads;
  for (Value index : op.getIndices())
    reads.push_back(read(index, mapTo(type.getRank(), indexDims)));
  Read source = readWhole(op.getInput());
  return {pointwise(
      type, reads, [&](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
        Value none = missing(b, type.getElementType());
        if (llvm::is_contained(inputType.getShape(), 0))
          return none;
        Value valid;
        Values at;
        for (int64_t d = 0; d < inputType.getRank(); ++d) {
          if (d >= first && d < first + count)
            at.push_back(clampIndex(b, in[d - first], inputType.getDimSize(d),
                                    true, valid));
          else
            at.push_back(linalg::IndexOp::create(
                b, d < first ? d : d - count + indexRank));
        }
        return arith::SelectOp::create(b, valid, extract(b, source, at), none);
      })};
}

Values KernelLowering::lower(GatherOp op) {
  RankedTensorType type = typeOf(op.getResult()),
                   inputType = typeOf(op.getInput());
  Read source = readWhole(op.getInput());
  return {pointwise(type, readWhole(op.getIndex()),
                    [&](ImplicitLocOpBuilder &b, ValueRange in) -> Value {
                      Value none = missing(b, type.getElementType());
                      if (llvm::is_contained(inputType.getShape(), 0))
                        return none;
                      Value valid;
                      Values at;
                      for (int64_t d = 0; d < type.getRank(); ++d) {
                        if (d == static_cast<int64_t>(op.getDim()))
                          at.push_back(clampIndex(
                              b, in[0], inputType.getDimSize(d), false, valid));
                        else
                          at.push_back(linalg::IndexOp::create(b, d));
                      }
                      return arith::SelectOp::create(
                          b, valid, extract(b, source, at), none);
                    })};
}

Values KernelLowering::lower(PadOp op) {
  RankedTensorType type = typeOf(op.getResult()),
                   inputType = typeOf(op.getInput());
  auto padding = cast<TypedAttr>(op.getValue());
  Read source = readWhole(op.getInput());
  if (inputType.getNumElements() == 0)
    return {filled(type, padding)};
  if (source.value.getDefiningOp() && !source.value.getDefiningOp<ConstantOp>())
    return {padComputed(op)};
  return {
      pointwise(type, {}, [&](ImplicitLocOpBuilder &b, ValueRange) -> Value {
        Value valid;
        Values at;
        for (int64_t d = 0; d < type.getRank(); ++d) {
          Value index = linalg::IndexOp::create(b, d);
          int64_t low = op.getLow()[d];
          if (low != 0)
            index = arith::SubIOp::create(
                b, index, arith::ConstantIndexOp::create(b, low));
          if (type.getDimSize(d) != inputType.getDimSize(d))
            index = clampIndex(b, index, inputType.getDimSize(d), false, valid);
          at.push_back(index);
        }
        Value element = extract(b, source, at);
        if (!valid)
          return element;
        return arith::SelectOp::create(b, valid, element,
                                       arith::ConstantOp::create(b, padding));
      })};
}

/// Values of the kernel are not indexed freely; they are put between fills.
Value KernelLowering::padComputed(PadOp op) {
  Value value = materialise(op.getInput());
  for (int64_t d = 0; d < typeOf(value).getRank(); ++d) {
    Values parts;
    auto fill = [&](int64_t size) {
      SmallVector<int64_t> shape(typeOf(value).getShape());
      shape[d] = size;
      if (size != 0)
        parts.push_back(
            filled(typeOf(value).clone(shape), cast<TypedAttr>(op.getValue())));
    };
    fill(op.getLow()[d]);
    parts.push_back(value);
    fill(op.getHigh()[d]);
    if (parts.size() > 1)
      value = tensor::ConcatOp::create(*this, d, parts);
  }
  return value;
}

Values KernelLowering::lower(ConcatOp op) {
  Values inputs;
  for (Value input : op.getInputs())
    inputs.push_back(materialise(input));
  return {tensor::ConcatOp::create(*this, op.getDim(), inputs)};
}

} // namespace nova::lowering
