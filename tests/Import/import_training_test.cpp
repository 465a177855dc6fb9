//===- import_training_test.cpp - What exported training steps need -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

using namespace nova;

TEST(ImportTraining, Attention) {
  expectCases({
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,1,40,40]"},
       "aten._scaled_dot_product_flash_attention_for_cpu.default",
       "['x0','x1','x2',0.0,false]",
       R"({"attn_mask":{"ref":"x3"},"scale":0.25})",
       {"float32[2,3,40,16]", "float32[2,3,40]"},
       "attention(x0, x1, x2, x3){scale=0.25}#0\n"
       "attention(x0, x1, x2, x3){scale=0.25}#1"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40]"},
       "aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
       "['x0','x1','x2','x3','x4','x5',0.0,true]",
       R"({})",
       {"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]"},
       "attention_backward(x0, x1, x2, x3, x4, x5){causal scale=0.25}#0\n"
       "attention_backward(x0, x1, x2, x3, x4, x5){causal scale=0.25}#1\n"
       "attention_backward(x0, x1, x2, x3, x4, x5){causal scale=0.25}#2"},
  });
}

TEST(ImportTraining, SafeSoftmax) {
  expectCases({
      {{"float32[3,4]"},
       "aten._safe_softmax.default",
       "['x0',-1]",
       R"({})",
       {"float32[3,4]"},
       "select(compare(max(x0){dims=[1] keepdims}, "
       "{\"float\":\"-inf\"}:f32[]){predicate=eq}, 0.0:f32[], "
       "softmax(x0){dim=1})"},
      {{"bfloat16[3,4]"},
       "aten._safe_softmax.default",
       "['x0',0]",
       R"({})",
       {"bfloat16[3,4]"},
       "cast(select(compare(max(cast(x0):f32[3,4]){dims=[0] keepdims}, "
       "{\"float\":\"-inf\"}:f32[]){predicate=eq}, 0.0:f32[], "
       "softmax(cast(x0):f32[3,4]){dim=0})):bf16[3,4]"},
  });
}

TEST(ImportTraining, CpuLayerNorm) {
  expectCases({
      {{"bfloat16[3,4]", "bfloat16[4]"},
       "aten.native_layer_norm.default",
       "['x0',[4],'x1',null,1e-05]",
       R"({})",
       {"bfloat16[3,4]", "bfloat16[3,1]", "bfloat16[3,1]"},
       "cast(layer_norm(cast(x0):f32[3,4], cast(x1):f32[4]){axes=1 "
       "eps=1e-05}#0):bf16[3,4]\n"
       "cast(layer_norm(cast(x0):f32[3,4], cast(x1):f32[4]){axes=1 "
       "eps=1e-05}#1):bf16[3,1]\n"
       "cast(layer_norm(cast(x0):f32[3,4], cast(x1):f32[4]){axes=1 "
       "eps=1e-05}#2):bf16[3,1]"},
  });
}

TEST(ImportTraining, Scatters) {
  expectCases({
      {{"float32[5,4]", "float32[2,4]"},
       "aten.slice_scatter.default",
       "['x0','x1',0,1,3]",
       R"({})",
       {"float32[5,4]"},
       "concat(slice(x0){offsets=[0,0] sizes=[1,4] strides=[1,1]}, x1, "
       "slice(x0){offsets=[3,0] sizes=[2,4] strides=[1,1]}){dim=0}"},
      {{"float32[5,4]", "float32[5,2]"},
       "aten.slice_scatter.default",
       "['x0','x1',1,0,4,2]",
       R"({})",
       {"float32[5,4]"},
       "transpose(index_put(transpose(x0){permutation=[1,0]}, "
       "iota(){start=0 step=2}:i64[2], "
       "transpose(x1){permutation=[1,0]})){permutation=[1,0]}"},
      {{"float32[5,4]", "float32[5]"},
       "aten.select_scatter.default",
       "['x0','x1',1,-1]",
       R"({})",
       {"float32[5,4]"},
       "concat(slice(x0){offsets=[0,0] sizes=[5,3] strides=[1,1]}, "
       "reshape(x1):f32[5,1]){dim=1}"},
      {{"float32[5,4]"},
       "aten.flip.default",
       "['x0',[1]]",
       R"({})",
       {"float32[5,4]"},
       "index(x0, iota(){start=3 step=-1}:i64[4]){dims=[1]}"},
      {{"float32[5,4]", "float32[5,4]"},
       "aten.slice_scatter.default",
       "['x0','x1',0,1,3]",
       R"({})",
       {"float32[5,4]"},
       "nodes[0].args[1]: aten.slice_scatter.default: src: got [5,4], "
       "expected the slice's shape [2,4]"},
      {{"float32[5,4]", "float32[4]"},
       "aten.select_scatter.default",
       "['x0','x1',1,0]",
       R"({})",
       {"float32[5,4]"},
       "nodes[0].args[1]: aten.select_scatter.default: src: got [4], "
       "expected the row's shape [5]"},
      {{"float32[5,4]", "float32[4]"},
       "aten.select_scatter.default",
       "['x0','x1',0,5]",
       R"({})",
       {"float32[5,4]"},
       "nodes[0].args[3]: aten.select_scatter.default: index: got 5, "
       "expected one in [-5, 5)"},
  });
}

TEST(ImportTraining, WholeNumbers) {
  expectCases({
      {{"float32[3]"},
       "aten.floor.default",
       "['x0']",
       R"({})",
       {"float32[3]"},
       "select(compare(abs(x0), 8388608.0:f32[]){predicate=lt}, "
       "floor_div(x0, 1.0:f32[]), x0)"},
      {{"float32[3]"},
       "aten.ceil.default",
       "['x0']",
       R"({})",
       {"float32[3]"},
       "select(compare(abs(x0), 8388608.0:f32[]){predicate=lt}, "
       "neg(floor_div(neg(x0), 1.0:f32[])), x0)"},
      {{"float64[3]"},
       "aten.trunc.default",
       "['x0']",
       R"({})",
       {"float64[3]"},
       "select(compare(abs(x0), "
       "4503599627370496.0:f64[]){predicate=lt}, trunc_div(x0, "
       "1.0:f64[]), x0)"},
      {{"int64[3]"},
       "aten.floor.default",
       "['x0']",
       R"({})",
       {"int64[3]"},
       "x0"},
      {{"bool[3]"},
       "aten.floor.default",
       "['x0']",
       R"({})",
       {"bool[3]"},
       "nodes[0].args[0]: aten.floor.default: self: got bool, expected "
       "numbers"},
      {{"float32[3]"},
       "aten.sign.default",
       "['x0']",
       R"({})",
       {"float32[3]"},
       "sub(cast(compare(x0, 0.0:f32[]){predicate=gt}):f32[3], "
       "cast(compare(x0, 0.0:f32[]){predicate=lt}):f32[3])"},
      {{"float32[3]"},
       "aten.isfinite.default",
       "['x0']",
       R"({})",
       {"bool[3]"},
       "compare(abs(x0), {\"float\":\"inf\"}:f32[]){predicate=lt}"},
      {{"int64[3]"},
       "aten.isfinite.default",
       "['x0']",
       R"({})",
       {"bool[3]"},
       "true:i1[3]"},
  });
}

TEST(ImportTraining, Logarithms) {
  expectCases({
      {{"float32[3]"},
       "aten.log1p.default",
       "['x0']",
       R"({})",
       {"float32[3]"},
       "select(compare(add(x0, 1.0:f32[]), 1.0:f32[]){predicate=eq}, "
       "x0, select(compare(add(x0, 1.0:f32[]), "
       "{\"float\":\"inf\"}:f32[]){predicate=eq}, add(x0, 1.0:f32[]), "
       "div(mul(log(add(x0, 1.0:f32[])), x0), sub(add(x0, 1.0:f32[]), "
       "1.0:f32[]))))"},
      {{"float32[3]"},
       "aten.expm1.default",
       "['x0']",
       R"({})",
       {"float32[3]"},
       "select(compare(exp(x0), 1.0:f32[]){predicate=eq}, x0, "
       "select(compare(abs(x0), 1.0:f32[]){predicate=lt}, "
       "div(mul(sub(exp(x0), 1.0:f32[]), x0), log(exp(x0))), "
       "sub(exp(x0), 1.0:f32[])))"},
      {{"int64[3]"},
       "aten.log2.default",
       "['x0']",
       R"({})",
       {"float32[3]"},
       "mul(log(cast(x0):f32[3]), 1.4426950216293335:f32[])"},
  });
}

TEST(ImportTraining, Empty) {
  expectCases({
      {{"float32[3]"},
       "aten.empty_like.default",
       "['x0']",
       R"({})",
       {"float32[3]"},
       "0.0:f32[3]"},
      {{"float32[3]"},
       "aten.new_empty.default",
       "['x0',[2]]",
       R"({})",
       {"float32[2]"},
       "0.0:f32[2]"},
      {{"int64[3]"},
       "aten.fill.Scalar",
       "['x0',7]",
       R"({})",
       {"int64[3]"},
       "7:i64[3]"},
      {{"float32[3]", "float64[]"},
       "aten.fill.Tensor",
       "['x0','x1']",
       R"({})",
       {"float32[3]"},
       "broadcast(cast(x1):f32[]):f32[3]"},
  });
}

// What the product of windows computes is compared with PyTorch in
// tests/EndToEnd/random_vocabulary.py.
TEST(ImportTraining, Convolution) {
  expectCases({
      {{"float32[1,4,5]", "float32[2,2,1]"},
       "aten.convolution.default",
       "['x0','x1',null,[2],[0],[1],false,[0],2]",
       R"({})",
       {"float32[1,2,3]"},
       "reshape(transpose(reshape(matmul(reshape(transpose(reshape(resha"
       "pe(slice(x0){offsets=[0,0,0] sizes=[1,4,3] "
       "strides=[1,1,2]}):f32[1,4,1,3]):f32[1,2,2,3]){permutation=[1,0,3"
       ",2]}):f32[2,3,2], "
       "reshape(x1):f32[2,1,2]){transpose_rhs}):f32[2,1,3,1]){permutatio"
       "n=[1,0,3,2]}):f32[1,2,3]"},
      {{"float32[1,2,5]", "float32[3,2,7]"},
       "aten.convolution.default",
       "['x0','x1',null,[1],[0],[1],false,[0],1]",
       R"({})",
       {"float32[1,3,1]"},
       "nodes[0]: aten.convolution.default: a window of 7 along "
       "dimension 2, expected at most the padded extent 5"},
      {{"float32[1,2,5]", "float32[3,2,3]"},
       "aten.convolution.default",
       "['x0','x1',null,[0],[0],[1],false,[0],1]",
       R"({})",
       {"float32[1,3,1]"},
       "nodes[0].args[3]: aten.convolution.default: stride: got [0], "
       "expected 1 numbers, none below 1"},
      {{"float32[1,2,5]", "float32[3,2,3]"},
       "aten.convolution.default",
       "['x0','x1',null,[1],[0],[1],true,[0],1]",
       R"({})",
       {"float32[1,3,1]"},
       "nodes[0].args[6]: aten.convolution.default: transposed: got "
       "true, only false is supported"},
  });
}

TEST(ImportTraining, Pooling) {
  expectCases({
      {{"float32[1,1,2,1]", "float32[1,1,2,2]", "int64[1,1,2,1]"},
       "aten.max_pool2d_with_indices_backward.default",
       "['x0','x1',[1,2],[1,2],[0,0],[1,1],false,'x2']",
       R"({})",
       {"float32[1,1,2,2]"},
       "reshape(scatter(0.0:f32[1,4], reshape(x2):i64[1,2], "
       "reshape(x0):f32[1,2]){accumulate dim=1}):f32[1,1,2,2]"},
      {{"float32[1,1,2,2]"},
       "aten.avg_pool2d.default",
       "['x0',[1,2],[],0,false,true,2]",
       R"({})",
       {"float32[1,1,2,1]"},
       "mul(add(slice(x0){offsets=[0,0,0,0] sizes=[1,1,2,1] "
       "strides=[1,1,1,2]}, slice(x0){offsets=[0,0,0,1] sizes=[1,1,2,1] "
       "strides=[1,1,1,2]}), 0.5:f32[])"},
      {{"float32[1,1,2,2]"},
       "aten.avg_pool2d.default",
       "['x0',[1,2],[],0,false,true,0]",
       R"({})",
       {"float32[1,1,2,1]"},
       "nodes[0].args[6]: aten.avg_pool2d.default: divisor_override: "
       "got 0, expected another number"},
      {{"int64[1,1,2,2]"},
       "aten.max_pool2d_with_indices.default",
       "['x0',[1,2]]",
       R"({})",
       {"int64[1,1,2,1]", "int64[1,1,2,1]"},
       "nodes[0].args[0]: aten.max_pool2d_with_indices.default: self: "
       "got int64, expected floating numbers"},
  });
}

TEST(ImportTraining, Uniform) {
  expectCases({
      {{"int32[]"},
       "nova.uniform",
       "['x0']",
       R"({"stream":1})",
       {"float32[4]"},
       "nodes[0].args[0]: nova.uniform: seed: got int32[], expected a "
       "0-d tensor of int64"},
      {{"int64[]"},
       "nova.uniform",
       "['x0']",
       R"({"stream":-1})",
       {"float32[4]"},
       "nodes[0].kwargs.stream: nova.uniform: stream: got -1, expected "
       "a number of 32 bits"},
      {{"int64[]"},
       "nova.uniform",
       "['x0']",
       R"({"stream":1})",
       {"float64[4]"},
       "nodes[0].results[0].dtype: got float64, expected float32 "
       "(nova.uniform)"},
  });
}
