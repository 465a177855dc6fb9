//===- errors_test.cpp - What import refuses, and how it says so -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportTestUtils.h"

using namespace nova;
using Strings = std::vector<std::string>;

static void expectError(const Strings &inputs, const std::string &op,
                        const std::string &args, const std::string &kwargs,
                        const Strings &results, const std::string &message) {
  EXPECT_EQ(imported(oneNode(inputs, op, args, kwargs, results)), message);
}

TEST(ImportErrors, ResultsMustBeWhatTheOperationComputes) {
  expectError({"float32[3,4]", "float32[3,37]"}, "aten.cat.default",
              "[['x0','x1'],1]", "{}", {"float32[3,40]"},
              "nodes[0].results[0].shape: got [3,40], expected [3,41] "
              "(aten.cat.default)");
  expectError({"int64[3]"}, "aten.add.Tensor", "['x0',0.5]", "{}",
              {"int64[3]"},
              "nodes[0].results[0].dtype: got int64, expected float32 "
              "(aten.add.Tensor)");
}
