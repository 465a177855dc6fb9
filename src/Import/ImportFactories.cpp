//===- ImportFactories.cpp - Tensors out of nothing -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <cmath>

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

/// Filled with `number`; of the dtype asked for, else of `missing`.
static LogicalResult filled(Call &call, const Number &number, DType missing) {
  return call.result(call.splat(number, call.dtype("dtype").value_or(missing),
                                call.integers("size")));
}

static LogicalResult importFull(Call &call) {
  Number number = call.number("fill_value");
  return filled(call, number, number.dtype);
}
template <int number> static LogicalResult newConstant(Call &call) {
  return filled(call, Number::ofInt(number), DType::Float32);
}
template <int number> static LogicalResult newOfSelf(Call &call) {
  return filled(call, Number::ofInt(number), dtypeOf(call.tensor("self")));
}
static LogicalResult importNewFull(Call &call) {
  return filled(call, call.number("fill_value"), dtypeOf(call.tensor("self")));
}

static LogicalResult filledLike(Call &call, const Number &number) {
  mlir::Value self = call.tensor("self");
  DType dtype = call.dtype("dtype").value_or(dtypeOf(self));
  return call.result(call.splat(number, dtype, shapeOf(self)));
}
static LogicalResult importFullLike(Call &call) {
  return filledLike(call, call.number("fill_value"));
}
template <int number> static LogicalResult constantLike(Call &call) {
  return filledLike(call, Number::ofInt(number));
}

static LogicalResult importScalarTensor(Call &call) {
  return call.result(call.splat(call.number("s"),
                                call.dtype("dtype").value_or(DType::Float32)));
}

/// start, start + step, ... below (or above) end.
static LogicalResult range(Call &call, const Number &start, const Number &end,
                           const Number &step) {
  DType dtype = DType::Int64;
  if (start.isFloat() || end.isFloat() || step.isFloat())
    dtype = DType::Float32;
  dtype = call.dtype("dtype").value_or(dtype);
  double width = end.asDouble() - start.asDouble(), each = step.asDouble();
  if (each == 0 || !std::isfinite(width) || !std::isfinite(each) ||
      width / each < 0)
    return call.failAt("end", "got start " + numberText(start.asDouble()) +
                                  ", end " + numberText(end.asDouble()) +
                                  ", step " + numberText(each) +
                                  ", expected a step that leads from start to "
                                  "end");
  double count = std::ceil(width / each);
  if (count > double(int64_t(1) << 53))
    return call.failAt("end", "got " + numberText(count) +
                                  " elements, expected at most 2^53");
  if (dtype == DType::Bool)
    return call.failAt("dtype", "got bool, expected numbers");
  return call.result(call.iota(start, step, dtype, int64_t(count)));
}

static LogicalResult importArange(Call &call) {
  return range(call, Number::ofInt(0), call.number("end"), Number::ofInt(1));
}
static LogicalResult importArangeStart(Call &call) {
  return range(call, call.number("start"), call.number("end"),
               Number::ofInt(1));
}
static LogicalResult importArangeStep(Call &call) {
  return range(call, call.number("start"), call.number("end"),
               call.number("step"));
}

// What every factory takes and what decides nothing but the dtype.
#define OPTIONS                                                                \
  "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "      \
  "bool? pin_memory=None"
#define LIKE_OPTIONS OPTIONS ", MemoryFormat? memory_format=None"

llvm::ArrayRef<OpEntry> importer::factoryTable() {
  static const OpEntry table[] = {
      {"aten.full.default", "(int[] size, Scalar fill_value, " OPTIONS ")", "",
       importFull},
      {"aten.zeros.default", "(int[] size, " OPTIONS ")", "", newConstant<0>},
      {"aten.ones.default", "(int[] size, " OPTIONS ")", "", newConstant<1>},
      {"aten.new_full.default",
       "(Tensor self, int[] size, Scalar fill_value, " OPTIONS ")", "",
       importNewFull},
      {"aten.new_zeros.default", "(Tensor self, int[] size, " OPTIONS ")", "",
       newOfSelf<0>},
      {"aten.new_ones.default", "(Tensor self, int[] size, " OPTIONS ")", "",
       newOfSelf<1>},
      {"aten.full_like.default",
       "(Tensor self, Scalar fill_value, " LIKE_OPTIONS ")", "",
       importFullLike},
      {"aten.zeros_like.default", "(Tensor self, " LIKE_OPTIONS ")", "",
       constantLike<0>},
      {"aten.ones_like.default", "(Tensor self, " LIKE_OPTIONS ")", "",
       constantLike<1>},
      // What stands in them is undefined until somebody writes: zeros.
      {"aten.empty.memory_format", "(int[] size, " LIKE_OPTIONS ")", "",
       newConstant<0>},
      {"aten.empty_strided.default", "(int[] size, int[] stride, " OPTIONS ")",
       "", newConstant<0>},
      {"aten.empty_like.default", "(Tensor self, " LIKE_OPTIONS ")", "",
       constantLike<0>},
      {"aten.new_empty.default", "(Tensor self, int[] size, " OPTIONS ")", "",
       newOfSelf<0>},
      {"aten.new_empty_strided.default",
       "(Tensor self, int[] size, int[] stride, " OPTIONS ")", "",
       newOfSelf<0>},
      {"aten.empty_permuted.default",
       "(int[] size, int[] physical_layout, " OPTIONS ")", "", newConstant<0>},
      {"aten.scalar_tensor.default", "(Scalar s, " OPTIONS ")", "",
       importScalarTensor},
      {"aten.arange.default", "(Scalar end, " OPTIONS ")", "", importArange},
      {"aten.arange.start", "(Scalar start, Scalar end, " OPTIONS ")", "",
       importArangeStart},
      {"aten.arange.start_step",
       "(Scalar start, Scalar end, Scalar step=1, " OPTIONS ")", "",
       importArangeStep},
  };
  return table;
}
