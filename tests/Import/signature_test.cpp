//===- signature_test.cpp - Schemas, and arguments bound to them ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"

#include "nova/Import/Import.h"

#include <gtest/gtest.h>

using namespace nova;
using namespace nova::importer;

TEST(Signature, ParsesTypesDefaultsAndKeywords) {
  Signature s = parseSignature("(Tensor self, int[1]? dim=[], bool "
                               "keepdim=False, *, ScalarType? dtype=None, "
                               "float p=0.5, str mode='none')");
  ASSERT_EQ(s.params.size(), 6u);
  EXPECT_EQ(s.params[0].kind, Param::Kind::Tensor);
  EXPECT_FALSE(s.params[0].defaultValue);
  EXPECT_EQ(s.params[1].kind, Param::Kind::IntList);
  EXPECT_TRUE(s.params[1].optional);
  EXPECT_TRUE(s.params[1].oneForList);
  EXPECT_FALSE(s.params[2].keywordOnly);
  EXPECT_EQ(*s.params[2].defaultValue->as<bool>(), false);
  EXPECT_TRUE(s.params[3].keywordOnly);
  EXPECT_TRUE(s.params[3].defaultValue->isNull());
  EXPECT_EQ(*s.params[4].defaultValue->as<double>(), 0.5);
  EXPECT_EQ(*s.params[5].defaultValue->as<std::string>(), "none");
}

TEST(Signature, EveryRowOfTheTableParses) {
  // supportedOps() parses them all; a bad one ends the program.
  EXPECT_GT(supportedOps().size(), 150u);
  for (const OpInfo &info : supportedOps())
    EXPECT_TRUE(info.signature.starts_with("(")) << info.name.str();
}

/// What binding says about a call of this signature.
static std::string
bindError(llvm::StringRef signature, std::vector<graph::Value> args,
          std::vector<std::pair<std::string, graph::Value>> kwargs = {}) {
  Signature parsed = parseSignature(signature);
  graph::Graph graph;
  graph::Node node;
  node.args = std::move(args);
  node.kwargs = std::move(kwargs);
  Bound bound;
  BindError error;
  if (bindArguments(parsed, node, graph, bound, error))
    return "";
  return error.path + ": " + error.what;
}

static graph::Value integer(int64_t value) { return {value}; }
static graph::Value real(double value) { return {value}; }
static graph::Value text(std::string value) { return {std::move(value)}; }
static graph::Value list(graph::ValueList values) {
  return {std::move(values)};
}

TEST(Signature, BindsOrSaysWhyNot) {
  constexpr llvm::StringLiteral dims("(int[1] dim, bool keep=False, *, Scalar "
                                     "alpha=1)");
  EXPECT_EQ(bindError(dims, {integer(1)}), "");
  EXPECT_EQ(bindError(dims, {list({integer(1), integer(2)})}), "");
  EXPECT_EQ(bindError(dims, {}, {{"dim", integer(1)}, {"alpha", real(2)}}), "");
  EXPECT_EQ(bindError(dims, {}), "args: missing the argument dim (int[1])");
  EXPECT_EQ(bindError(dims, {real(1)}),
            "args[0]: got 1.0, expected int[1] for dim");
  EXPECT_EQ(bindError(dims, {integer(1), integer(1)}),
            "args[1]: got 1, expected bool for keep");
  EXPECT_EQ(bindError(dims, {integer(1), {true}, integer(1)}),
            "args: got 3 positional arguments, expected at most 2");
  EXPECT_EQ(bindError(dims, {integer(1)}, {{"dim", integer(1)}}),
            "kwargs.dim: given already, as args[0]");
  EXPECT_EQ(bindError(dims, {integer(1)}, {{"keepdims", {true}}}),
            "kwargs.keepdims: unknown keyword, expected one of dim, keep, "
            "alpha");
  EXPECT_EQ(bindError(dims, {integer(1)}, {{"alpha", text("x")}}),
            "kwargs.alpha: got \"x\", expected Scalar for alpha");
}

TEST(Signature, KindsOfValues) {
  EXPECT_EQ(bindError("(int[] dims)", {integer(1)}),
            "args[0]: got 1, expected int[] for dims");
  EXPECT_EQ(bindError("(float eps)", {integer(1)}), "");
  EXPECT_EQ(bindError("(int? n)", {graph::Value()}), "");
  EXPECT_EQ(bindError("(int n)", {graph::Value()}),
            "args[0]: got null, expected int for n");
  EXPECT_EQ(bindError("(Device? d, Layout l)",
                      {{graph::EnumName{"cuda:0"}}, graph::Value()}),
            "");
  EXPECT_EQ(bindError("(ScalarType t)", {{graph::DType::Bool}}), "");
  EXPECT_EQ(bindError("(ScalarType t)", {text("bool")}),
            "args[0]: got \"bool\", expected ScalarType for t");
  EXPECT_EQ(bindError("(Tensor x)", {real(1)}),
            "args[0]: got 1.0, expected Tensor for x");
  EXPECT_EQ(bindError("(Tensor/Scalar x)", {real(1)}), "");
  EXPECT_EQ(bindError("(Tensor?[] xs)", {list({graph::Value(), integer(1)})}),
            "args[0]: got [null,1], expected Tensor?[] for xs");
  EXPECT_EQ(bindError("(bool[2] mask)", {list({{true}, {false}})}), "");
}
