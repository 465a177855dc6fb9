//===- InterpreterValues.cpp - Elements as bits, and tiles of them --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterValues.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace nova::tile {

const llvm::fltSemantics &Format::semantics() const {
  switch (kind) {
  case F32:
    return llvm::APFloat::IEEEsingle();
  case F16:
    return llvm::APFloat::IEEEhalf();
  case BF16:
    return llvm::APFloat::BFloat();
  default:
    return llvm::APFloat::IEEEdouble();
  }
}

double Format::decode(uint64_t bits) const {
  switch (kind) {
  case F64:
    return llvm::bit_cast<double>(bits);
  case F32:
    return llvm::bit_cast<float>(uint32_t(bits));
  case BF16:
    return llvm::bit_cast<float>(uint32_t(bits) << 16);
  default: {
    llvm::APFloat number(semantics(), llvm::APInt(width, bits));
    bool exact;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &exact);
    return number.convertToDouble();
  }
  }
}

uint64_t Format::encode(double value) const {
  if (kind == F64)
    return llvm::bit_cast<uint64_t>(value);
  if (kind == F32)
    return llvm::bit_cast<uint32_t>(float(value));
  llvm::APFloat number(value);
  bool exact;
  number.convert(semantics(), llvm::APFloat::rmNearestTiesToEven, &exact);
  return number.bitcastToAPInt().getZExtValue();
}

uint64_t Format::wrap(uint64_t value) const {
  return value & llvm::maskTrailingOnes<uint64_t>(width);
}

int64_t Format::toSigned(uint64_t bits) const {
  return llvm::SignExtend64(bits, width);
}

std::optional<Format> formatOf(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF64())
    return Format{Format::F64, 64};
  if (type.isF32())
    return Format{Format::F32, 32};
  if (type.isF16())
    return Format{Format::F16, 16};
  if (type.isBF16())
    return Format{Format::BF16, 16};
  if (type.isIndex())
    return Format{Format::Integer, 64};
  for (unsigned width : {1, 8, 16, 32, 64})
    if (type.isSignlessInteger(width))
      return Format{Format::Integer, width};
  return std::nullopt;
}

Coordinates coordinatesOf(ArrayRef<int64_t> shape, int64_t linear) {
  Coordinates coordinates(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    coordinates[d] = linear % shape[d];
    linear /= shape[d];
  }
  return coordinates;
}

int64_t linearOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> coordinates) {
  int64_t linear = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    linear = linear * shape[d] + coordinates[d];
  return linear;
}

std::string textOf(ArrayRef<int64_t> coordinates) {
  std::string text = "(";
  for (size_t i = 0; i < coordinates.size(); ++i)
    text += (i ? ", " : "") + std::to_string(coordinates[i]);
  return text + ")";
}

} // namespace nova::tile
