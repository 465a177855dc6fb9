//===- errors_test.cpp - What import refuses, and how it says so ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

using namespace nova;

TEST(ImportErrors, ResultsMustBeWhatTheOperationComputes) {
  expectCases({
      {{"float32[3,4]", "float32[3,37]"},
       "aten.cat.default",
       "[['x0','x1'],1]",
       "{}",
       {"float32[3,40]"},
       "nodes[0].results[0].shape: got [3,40], expected [3,41] "
       "(aten.cat.default)"},
      {{"int64[3]"},
       "aten.add.Tensor",
       "['x0',0.5]",
       "{}",
       {"int64[3]"},
       "nodes[0].results[0].dtype: got int64, expected float32 "
       "(aten.add.Tensor)"},
      {{"float32[3,4]"},
       "aten.max.dim",
       "['x0',1]",
       "{}",
       {"float32[3]"},
       "nodes[0].results: got 1 results, expected 2 (aten.max.dim)"},
      {{"float32[3,4]", "float32[3,1]", "float32[4]"},
       "aten.native_layer_norm_backward.default",
       "['x0','x0',[4],'x1','x1','x2',null,[true,false,false]]",
       "{}",
       {"float32[3,4]", "float32[4]", "null"},
       "nodes[0].results[1]: got float32 [4], expected null "
       "(aten.native_layer_norm_backward.default)"},
      {{"float32[3,4]"},
       "nova.sum",
       "['x0']",
       "{\"dims\":[0]}",
       {"float32[3]"},
       "nodes[0].results[0].shape: got [3], expected [4] (nova.sum)"},
  });
}

TEST(ImportErrors, ArgumentsOfTheWrongKind) {
  expectCases({
      {{"float32[3,4]"},
       "aten.sum.dim_IntList",
       "['x0',1.5]",
       "{}",
       {"float32[3]"},
       "nodes[0].args[1]: aten.sum.dim_IntList: got 1.5, expected int[1]? for "
       "dim"},
      {{"float32[3,4]"},
       "aten.view.default",
       "['x0',[2,'x0']]",
       "{}",
       {"float32[3]"},
       "nodes[0].args[1]: aten.view.default: got [2,{\"ref\":\"x0\"}], "
       "expected int[] for size"},
      {{"float32[3,4]"},
       "aten.sum.default",
       "['x0']",
       "{\"keepdim\":true}",
       {"float32[]"},
       "nodes[0].kwargs.keepdim: aten.sum.default: unknown keyword, expected "
       "one of self, dtype"},
      {{"float32[3,4]"},
       "aten.sum.default",
       "[]",
       "{}",
       {"float32[]"},
       "nodes[0].args: aten.sum.default: missing the argument self (Tensor)"},
      {{"float32[3,4]"},
       "aten.exp.default",
       "[2.0]",
       "{}",
       {"float32[]"},
       "nodes[0].args[0]: aten.exp.default: got 2.0, expected Tensor for self"},
  });
}

TEST(ImportErrors, ValuesOutOfRange) {
  expectCases({
      {{"float32[3,4]"},
       "aten._softmax.default",
       "['x0',2,false]",
       "{}",
       {"float32[3,4]"},
       "nodes[0].args[1]: aten._softmax.default: dim: got dimension 2, "
       "expected one in [-2, 2) for rank 2"},
      {{"float32[3,4]"},
       "aten.sum.dim_IntList",
       "['x0',[1,-1]]",
       "{}",
       {"float32[3]"},
       "nodes[0].args[1]: aten.sum.dim_IntList: dim: got dimension -1 twice, "
       "expected distinct ones"},
      {{"float32[3,4]"},
       "aten.view.default",
       "['x0',[5,-1]]",
       "{}",
       {"float32[5]"},
       "nodes[0].args[1]: aten.view.default: size: got [5,-1], expected sizes "
       "that divide 12 elements"},
      {{"float32[3,4]"},
       "aten.view.default",
       "['x0',[2,5]]",
       "{}",
       {"float32[2,5]"},
       "nodes[0]: aten.view.default: cannot view [3,4] (12 elements) as [2,5] "
       "(10)"},
      {{"float32[3,4]"},
       "aten.expand.default",
       "['x0',[2,4]]",
       "{}",
       {"float32[2,4]"},
       "nodes[0]: aten.expand.default: cannot expand [3,4] to [2,4]"},
      {{"float32[3,4]"},
       "aten.permute.default",
       "['x0',[0]]",
       "{}",
       {"float32[3]"},
       "nodes[0].args[1]: aten.permute.default: dims: got [0], expected 2 "
       "dimensions"},
      {{"float32[3,4]"},
       "aten.slice.Tensor",
       "['x0',0,0,2,0]",
       "{}",
       {"float32[2,4]"},
       "nodes[0].args[4]: aten.slice.Tensor: step: got 0, expected at least 1"},
      {{"float32[3,4]"},
       "aten.split_with_sizes.default",
       "['x0',[1,1]]",
       "{}",
       {"float32[1,4]", "float32[1,4]"},
       "nodes[0].args[1]: aten.split_with_sizes.default: split_sizes: got "
       "[1,1], expected sizes that add up to 3"},
      {{},
       "aten.arange.start_step",
       "[0,3,-1]",
       "{}",
       {"int64[3]"},
       "nodes[0].args[1]: aten.arange.start_step: end: got start 0.0, end 3.0, "
       "step -1.0, expected a step that leads from start to end"},
      {{"float32[4]"},
       "aten.gelu.default",
       "['x0']",
       "{\"approximate\":\"sigmoid\"}",
       {"float32[4]"},
       "nodes[0].kwargs.approximate: aten.gelu.default: approximate: got "
       "\"sigmoid\", expected \"none\" or \"tanh\""},
      {{"float32[3,4]", "int64[3]"},
       "aten.nll_loss_forward.default",
       "['x0','x1',null,3,-100]",
       "{}",
       {"float32[]", "float32[]"},
       "nodes[0].args[3]: aten.nll_loss_forward.default: reduction: got 3, "
       "expected 0 (none), 1 (mean) or 2 (sum)"},
  });
}

TEST(ImportErrors, OperandsThatDoNotAgree) {
  expectCases({
      {{"float32[3,4]", "float32[3,5]"},
       "aten.mm.default",
       "['x0','x1']",
       "{}",
       {"float32[3,5]"},
       "nodes[0]: aten.mm.default: nova.matmul: cannot multiply "
       "'tensor<3x4xf32>' by 'tensor<3x5xf32>': inner sizes 4 and 3"},
      {{"float32[3,4]", "bfloat16[4,5]"},
       "aten.mm.default",
       "['x0','x1']",
       "{}",
       {"float32[3,5]"},
       "nodes[0].args[1]: aten.mm.default: mat2: got bfloat16 with float32, "
       "expected equal floating types"},
      {{"float32[3,4]", "float32[3]"},
       "aten.add.Tensor",
       "['x0','x1']",
       "{}",
       {"float32[3,4]"},
       "nodes[0]: aten.add.Tensor: nova.add: shapes do not broadcast: "
       "'tensor<3x4xf32>' and 'tensor<3xf32>'"},
      {{"bool[3]", "bool[3]"},
       "aten.sub.Tensor",
       "['x0','x1']",
       "{}",
       {"bool[3]"},
       "nodes[0]: aten.sub.Tensor: got bool operands, expected numbers; "
       "aten.bitwise_xor or aten.logical_not say what is meant"},
      {{"float32[3]", "int64[3]"},
       "aten.where.self",
       "['x0','x1','x1']",
       "{}",
       {"int64[3]"},
       "nodes[0].args[0]: aten.where.self: condition: got float32, expected "
       "bool"},
      {{"float32[3,4]", "float32[3]"},
       "aten.index.Tensor",
       "['x0',['x1']]",
       "{}",
       {"float32[3,4]"},
       "nodes[0].args[1]: aten.index.Tensor: indices: index 0: got float32, "
       "expected int64 or int32 (a bool index has a size that depends on "
       "data)"},
      {{"float32[2,4]", "int64[3]"},
       "aten.nll_loss_forward.default",
       "['x0','x1',null,1,-100]",
       "{}",
       {"float32[]", "float32[]"},
       "nodes[0]: aten.nll_loss_forward.default: nova.nll_loss: expected rows "
       "[N, C] and labels [N], got 'tensor<2x4xf32>' and 'tensor<3xi64>'"},
  });
}

TEST(ImportErrors, ElementTypesAnOperationDoesNotTake) {
  expectCases({
      {{"int8[3,4]", "float32[3,4]"},
       "aten._softmax_backward_data.default",
       "['x0','x1',-1,{\"dtype\":\"float32\"}]",
       "{}",
       {"float32[3,4]"},
       "nodes[0]: aten._softmax_backward_data.default: 'nova.softmax_backward' "
       "op operand #0 must be statically shaped tensor of 64-bit float or "
       "32-bit float or bfloat16 type or 16-bit float values, but got "
       "'tensor<3x4xi8>'"},
  });
}

TEST(ImportErrors, WhatIsNotSupported) {
  std::string q = "float32[2,3,40,16]";
  expectCases({
      {{q},
       "aten._scaled_dot_product_efficient_attention.default",
       "['x0','x0','x0',null,true,0.1]",
       "{}",
       {q, "float32[2,3,64]", "int64[]", "int64[]"},
       "nodes[0].args[5]: aten._scaled_dot_product_efficient_attention."
       "default: dropout_p: got 0.1, only 0 is supported: a step draws no "
       "random numbers"},
      {{"float32[3,4]", "int64[3]"},
       "aten.embedding_dense_backward.default",
       "['x0','x1',7,-1,true]",
       "{}",
       {"float32[7,4]"},
       "nodes[0].args[4]: aten.embedding_dense_backward.default: "
       "scale_grad_by_freq: got true, only false is supported"},
      {{"float32[3,4]"},
       "aten.linalg_vector_norm.default",
       "['x0',3]",
       "{}",
       {"float32[]"},
       "nodes[0].args[1]: aten.linalg_vector_norm.default: ord: got 3.0, only "
       "1, 2 and inf are supported"},
  });
}

TEST(ImportErrors, NovaNodes) {
  expectCases({
      {{"float32[3,4]"},
       "nova.add",
       "['x0']",
       "{}",
       {"float32[3,4]"},
       "nodes[0]: nova.add: 'nova.add' op expected 2 operands, but found 1"},
      {{"float32[3,4]"},
       "nova.sum",
       "['x0']",
       "{}",
       {"float32[4]"},
       "nodes[0]: nova.sum: 'nova.sum' op requires attribute 'dims'"},
      {{"float32[3,4]"},
       "nova.sum",
       "['x0']",
       "{\"dim\":[0]}",
       {"float32[4]"},
       "nodes[0].kwargs.dim: nova.sum: unknown attribute, expected one of "
       "dims, keepdims"},
      {{"float32[3,4]"},
       "nova.compare",
       "['x0','x0']",
       "{\"predicate\":\"less\"}",
       {"bool[3,4]"},
       "nodes[0].kwargs.predicate: nova.compare: got \"less\", which is no "
       "value of this attribute"},
      {{"float32[3,4]"},
       "nova.add",
       "['x0',1.0]",
       "{}",
       {"float32[3,4]"},
       "nodes[0].args[1]: nova.add: got 1.0, expected a reference: attributes "
       "go by name in kwargs"},
      {{"float32[3,4]"},
       "nova.reshape",
       "['x0']",
       "{}",
       {"float32[5]"},
       "nodes[0]: nova.reshape: 'nova.reshape' op changes the number of "
       "elements: 'tensor<3x4xf32>' has 12, 'tensor<5xf32>' has 5"},
  });
}

//===----------------------------------------------------------------------===//
// Everything at once
//===----------------------------------------------------------------------===//

static std::string node(const std::string &name, const std::string &op,
                        const std::string &input) {
  return R"({"name":")" + name + R"(","op":")" + op + R"(","args":[{"ref":")" +
         input + R"("}],"results":[{"dtype":"float32","shape":[4]}]})";
}

static std::string chain(const std::string &nodes, const std::string &last) {
  return R"({"format":"nova.graph","version":1,"name":"chain","inputs":[)"
         R"({"name":"x","role":"input","dtype":"float32","shape":[4]}],)"
         R"("constants":[],"nodes":[)" +
         nodes + R"(],"outputs":[{"ref":")" + last + R"(","role":"output"}]})";
}

TEST(ImportErrors, AllUnknownOperationsInOneReport) {
  EXPECT_EQ(imported(chain(node("a", "aten.expp.default", "x") + "," +
                               node("b", "aten.tanh.default", "a") + "," +
                               node("c", "nova.ad", "b") + "," +
                               node("d", "aten.expp.default", "c") + "," +
                               node("e", "aten.add.Scalar_out", "d"),
                           "e")),
            "4 nodes have an operation that is not supported:\n"
            "  nodes[0] \"a\": aten.expp.default; nearest: aten.exp.default, "
            "nova.exp\n"
            "  nodes[2] \"c\": nova.ad; nearest: nova.add, nova.and, nova.pad\n"
            "  nodes[3] \"d\": aten.expp.default; nearest: aten.exp.default, "
            "nova.exp\n"
            "  nodes[4] \"e\": aten.add.Scalar_out; nearest: aten.add.Scalar, "
            "aten.add.Tensor, nova.add");
  EXPECT_EQ(imported(chain(node("a", "nova.launch", "x"), "a")).substr(0, 47),
            "1 node has an operation that is not supported:\n");
}

TEST(ImportErrors, LaterNodesAreCheckedToo) {
  // `b` is wrong whatever became of `a`; `c` is right, given what `b` declares.
  EXPECT_EQ(imported(chain(node("a", "aten.unknown.default", "x") + "," +
                               node("b", "aten.sum.default", "a") + "," +
                               node("c", "aten.exp.default", "b"),
                           "c")),
            "1 node has an operation that is not supported:\n"
            "  nodes[0] \"a\": aten.unknown.default\n"
            "nodes[1].results[0].shape: got [4], expected [] "
            "(aten.sum.default)");
}
