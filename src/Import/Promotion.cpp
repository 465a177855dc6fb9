//===- Promotion.cpp - PyTorch's type promotion ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Promotion.h"

#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

std::optional<Number> Number::of(const graph::Value &value) {
  if (const bool *b = value.as<bool>()) {
    Number number = ofInt(*b);
    number.dtype = DType::Bool;
    return number;
  }
  if (const int64_t *i = value.as<int64_t>())
    return ofInt(*i);
  if (const double *d = value.as<double>())
    return ofFloat(*d);
  return std::nullopt;
}

Number Number::ofInt(int64_t value) {
  Number number;
  number.integer = value;
  return number;
}

Number Number::ofFloat(double value) {
  Number number;
  number.dtype = DType::Float32;
  number.floating = value;
  return number;
}

double Number::asDouble() const {
  return isFloat() ? floating : static_cast<double>(integer);
}

DType importer::promote(DType a, DType b) {
  if (a == b)
    return a;
  if (graph::isFloating(a) || graph::isFloating(b)) {
    if (!graph::isFloating(a))
      return b;
    if (!graph::isFloating(b))
      return a;
    // float16 and bfloat16 hold different values: only float32 holds both.
    if (a == DType::Float64 || b == DType::Float64)
      return DType::Float64;
    return DType::Float32;
  }
  if (a == DType::Bool)
    return b;
  if (b == DType::Bool)
    return a;
  // uint8 with int8 needs int16; with a wider signed type, that type.
  if (a == DType::UInt8 || b == DType::UInt8) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  return graph::dtypeBytes(a) > graph::dtypeBytes(b) ? a : b;
}

static void add(std::optional<DType> &rank, DType dtype) {
  rank = rank ? promote(*rank, dtype) : dtype;
}

void ResultType::addTensor(DType dtype, bool hasDims) {
  add(hasDims ? dims : zeroDims, dtype);
}

void ResultType::addNumber(const Number &number) { add(numbers, number.dtype); }

static std::optional<DType> combine(std::optional<DType> higher,
                                    std::optional<DType> lower) {
  if (!higher || !lower)
    return higher ? higher : lower;
  if (graph::isFloating(*higher))
    return higher;
  if (*higher == DType::Bool || graph::isFloating(*lower))
    return promote(*higher, *lower);
  return higher;
}

DType ResultType::result() const {
  auto combined = combine(dims, combine(zeroDims, numbers));
  assert(combined && "no operand");
  return *combined;
}

DType importer::computeType(DType dtype) {
  return dtype == DType::BFloat16 || dtype == DType::Float16 ? DType::Float32
                                                             : dtype;
}

Type importer::elementType(DType dtype, MLIRContext *context) {
  switch (dtype) {
  case DType::Float64:
    return Float64Type::get(context);
  case DType::Float32:
    return Float32Type::get(context);
  case DType::BFloat16:
    return BFloat16Type::get(context);
  case DType::Float16:
    return Float16Type::get(context);
  case DType::Int64:
    return IntegerType::get(context, 64);
  case DType::Int32:
    return IntegerType::get(context, 32);
  case DType::Int16:
    return IntegerType::get(context, 16);
  case DType::Int8:
    return IntegerType::get(context, 8);
  case DType::UInt8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case DType::Bool:
    return IntegerType::get(context, 1);
  }
  llvm_unreachable("all dtypes are above");
}

DType importer::dtypeOf(Type type) {
  if (type.isF64())
    return DType::Float64;
  if (type.isF32())
    return DType::Float32;
  if (type.isBF16())
    return DType::BFloat16;
  if (type.isF16())
    return DType::Float16;
  if (type.isUnsignedInteger(8))
    return DType::UInt8;
  switch (type.getIntOrFloatBitWidth()) {
  case 64:
    return DType::Int64;
  case 32:
    return DType::Int32;
  case 16:
    return DType::Int16;
  case 8:
    return DType::Int8;
  default:
    return DType::Bool;
  }
}

RankedTensorType importer::tensorType(const graph::Tensor &tensor,
                                      MLIRContext *context) {
  return RankedTensorType::get(tensor.shape,
                               elementType(tensor.dtype, context));
}
