//===- promotion_test.cpp - torch.result_type -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Promotion.h"

#include <gtest/gtest.h>

using namespace nova::importer;
using nova::graph::DType;

/// 't' a tensor with dimensions, 'z' a 0-d tensor.
static DType tensors(std::initializer_list<std::pair<char, DType>> operands) {
  ResultType type;
  for (auto [kind, dtype] : operands)
    type.addTensor(dtype, kind == 't');
  return type.result();
}

static DType withNumber(char kind, DType dtype, const Number &number) {
  ResultType type;
  type.addTensor(dtype, kind == 't');
  type.addNumber(number);
  return type.result();
}

TEST(Promotion, TensorsOfOneRank) {
  EXPECT_EQ(promote(DType::Float32, DType::Float64), DType::Float64);
  EXPECT_EQ(promote(DType::Float16, DType::BFloat16), DType::Float32);
  EXPECT_EQ(promote(DType::BFloat16, DType::Float32), DType::Float32);
  EXPECT_EQ(promote(DType::Int64, DType::Float16), DType::Float16);
  EXPECT_EQ(promote(DType::Int8, DType::UInt8), DType::Int16);
  EXPECT_EQ(promote(DType::UInt8, DType::Int32), DType::Int32);
  EXPECT_EQ(promote(DType::Int16, DType::Int64), DType::Int64);
  EXPECT_EQ(promote(DType::Bool, DType::UInt8), DType::UInt8);
  EXPECT_EQ(promote(DType::Bool, DType::Bool), DType::Bool);
}

TEST(Promotion, DimensionsDecideWithinACategory) {
  EXPECT_EQ(tensors({{'t', DType::BFloat16}, {'z', DType::Float32}}),
            DType::BFloat16);
  EXPECT_EQ(tensors({{'t', DType::Int32}, {'z', DType::Int64}}), DType::Int32);
  EXPECT_EQ(tensors({{'t', DType::Int64}, {'z', DType::Float32}}),
            DType::Float32);
  EXPECT_EQ(tensors({{'t', DType::Bool}, {'z', DType::Int8}}), DType::Int8);
  EXPECT_EQ(tensors({{'z', DType::Float32}, {'z', DType::Float64}}),
            DType::Float64);
}

TEST(Promotion, PythonNumbersOnlyRaiseTheCategory) {
  EXPECT_EQ(withNumber('t', DType::Int64, Number::ofFloat(0.5)),
            DType::Float32);
  EXPECT_EQ(withNumber('t', DType::BFloat16, Number::ofFloat(0.5)),
            DType::BFloat16);
  EXPECT_EQ(withNumber('t', DType::Float64, Number::ofFloat(0.5)),
            DType::Float64);
  EXPECT_EQ(withNumber('t', DType::Int8, Number::ofInt(1000)), DType::Int8);
  EXPECT_EQ(withNumber('t', DType::Bool, Number::ofInt(1)), DType::Int64);
  EXPECT_EQ(withNumber('z', DType::Int32, Number::ofInt(1)), DType::Int32);
  EXPECT_EQ(withNumber('z', DType::Float16, Number::ofFloat(1)),
            DType::Float16);
}
