//===- import_composites_test.cpp - Products, norms, softmax, losses ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

using namespace nova;

TEST(Import, Composites) {
  expectCases({
      {{"float32[3,4]", "float32[4,5]"},
       "aten.mm.default",
       "['x0','x1']",
       "{}",
       {"float32[3,5]"},
       "matmul(x0, x1)"},
      {{"float32[2,3,4]", "float32[2,4,5]"},
       "aten.bmm.default",
       "['x0','x1']",
       "{}",
       {"float32[2,3,5]"},
       "matmul(x0, x1)"},
      {{"float32[5]", "float32[3,4]", "float32[4,5]"},
       "aten.addmm.default",
       "['x0','x1','x2']",
       "{}",
       {"float32[3,5]"},
       "linear(x1, x2, x0)"},
      {{"float32[3,5]", "float32[3,4]", "float32[4,5]"},
       "aten.addmm.default",
       "['x0','x1','x2']",
       R"({"beta":0.5,"alpha":2})",
       {"float32[3,5]"},
       "add(mul(matmul(x1, x2), 2.0:f32[]), mul(x0, 0.5:f32[]))"},
      {{"float32[5]", "float32[3,4]", "float32[4,5]"},
       "aten.addmm.default",
       "['x0','x1','x2']",
       R"({"beta":0})",
       {"float32[3,5]"},
       "matmul(x1, x2)"},
      {{"float32[3,5]", "float32[2,3,4]", "float32[2,4,5]"},
       "aten.baddbmm.default",
       "['x0','x1','x2']",
       "{}",
       {"float32[2,3,5]"},
       "add(matmul(x1, x2), x0)"},
      {{"float32[2,3,4]", "float32[5,4]", "float32[5]"},
       "aten.linear.default",
       "['x0','x1','x2']",
       "{}",
       {"float32[2,3,5]"},
       "linear(x0, x1, x2){transpose_weight}"},
      {{"float32[4]", "float32[5,4]"},
       "aten.linear.default",
       "['x0','x1']",
       "{}",
       {"float32[5]"},
       "reshape(matmul(reshape(x0):f32[1,4], x1){transpose_rhs}):f32[5]"},
      {{"float32[2,1,3,4]", "float32[6,4,5]"},
       "aten.matmul.default",
       "['x0','x1']",
       "{}",
       {"float32[2,6,3,5]"},
       "matmul(broadcast(x0):f32[2,6,3,4], broadcast(x1):f32[2,6,4,5])"},
      {{"float32[4]", "float32[4]"},
       "aten.matmul.default",
       "['x0','x1']",
       "{}",
       {"float32[]"},
       "reshape(reshape(matmul(reshape(x0):f32[1,4], "
       "reshape(x1):f32[4,1])):f32[1]):f32[]"},
      {{"float32[3,4]", "float32[4]"},
       "aten.mv.default",
       "['x0','x1']",
       "{}",
       {"float32[3]"},
       "reshape(matmul(x0, reshape(x1):f32[4,1])):f32[3]"},
      {{"float32[2,3,4]", "float32[4]", "float32[4]"},
       "aten.native_layer_norm.default",
       "['x0',[4],'x1','x2',1e-05]",
       "{}",
       {"float32[2,3,4]", "float32[2,3,1]", "float32[2,3,1]"},
       "layer_norm(x0, x1, x2){axes=1 eps=1e-05}#0\n"
       "layer_norm(x0, x1, x2){axes=1 eps=1e-05}#1\n"
       "layer_norm(x0, x1, x2){axes=1 eps=1e-05}#2"},
      {{"float32[2,3,4]"},
       "aten.native_layer_norm.default",
       "['x0',[3,4],null,null,1e-05]",
       "{}",
       {"float32[2,3,4]", "float32[2,1,1]", "float32[2,1,1]"},
       "layer_norm(x0){axes=2 eps=1e-05}#0\n"
       "layer_norm(x0){axes=2 eps=1e-05}#1\n"
       "layer_norm(x0){axes=2 eps=1e-05}#2"},
      {{"bfloat16[3,4]", "float32[4]", "float32[4]"},
       "aten.native_layer_norm.default",
       "['x0',[4],'x1','x2',1e-05]",
       "{}",
       {"bfloat16[3,4]", "float32[3,1]", "float32[3,1]"},
       "cast(layer_norm(cast(x0):f32[3,4], x1, x2){axes=1 "
       "eps=1e-05}#0):bf16[3,4]\n"
       "layer_norm(cast(x0):f32[3,4], x1, x2){axes=1 eps=1e-05}#1\n"
       "layer_norm(cast(x0):f32[3,4], x1, x2){axes=1 eps=1e-05}#2"},
      {{"float32[3,4]", "float32[3,4]", "float32[3,1]", "float32[3,1]",
        "float32[4]", "float32[4]"},
       "aten.native_layer_norm_backward.default",
       "['x0','x1',[4],'x2','x3','x4','x5',[true,true,true]]",
       "{}",
       {"float32[3,4]", "float32[4]", "float32[4]"},
       "layer_norm_backward(x0, x1, x2, x3, x4){axes=1}#0\n"
       "layer_norm_backward(x0, x1, x2, x3, x4){axes=1}#1\n"
       "layer_norm_backward(x0, x1, x2, x3, x4){axes=1}#2"},
      {{"float32[3,4]", "float32[3,4]", "float32[3,1]", "float32[3,1]",
        "float32[4]"},
       "aten.native_layer_norm_backward.default",
       "['x0','x1',[4],'x2','x3','x4',null,[true,false,false]]",
       "{}",
       {"float32[3,4]", "null", "null"},
       "layer_norm_backward(x0, x1, x2, x3, x4){axes=1}#0"},
      {{"float32[3,4]"},
       "aten._softmax.default",
       "['x0',-1,false]",
       "{}",
       {"float32[3,4]"},
       "softmax(x0){dim=1}"},
      {{"bfloat16[3,4]"},
       "aten._log_softmax.default",
       "['x0',1,true]",
       "{}",
       {"float32[3,4]"},
       "log_softmax(cast(x0):f32[3,4]){dim=1}"},
      {{"bfloat16[3,4]"},
       "aten._softmax.default",
       "['x0',1,false]",
       "{}",
       {"bfloat16[3,4]"},
       "cast(softmax(cast(x0):f32[3,4]){dim=1}):bf16[3,4]"},
      {{"float32[]"},
       "aten.softmax.int",
       "['x0',0]",
       "{}",
       {"float32[]"},
       "reshape(softmax(reshape(x0):f32[1]){dim=0}):f32[]"},
      {{"float32[3,4]", "float32[3,4]"},
       "aten._softmax_backward_data.default",
       R"(['x0','x1',-1,{"dtype":"float32"}])",
       "{}",
       {"float32[3,4]"},
       "softmax_backward(x0, x1){dim=1}"},
      {{"float32[3,4]", "float32[3,4]"},
       "aten._log_softmax_backward_data.default",
       R"(['x0','x1',1,{"dtype":"float32"}])",
       "{}",
       {"float32[3,4]"},
       "log_softmax_backward(x0, x1){dim=1}"},
      {{"float32[3,4]", "int64[3]"},
       "aten.nll_loss_forward.default",
       "['x0','x1',null,1,-100]",
       "{}",
       {"float32[]", "float32[]"},
       "nll_loss(x0, x1){ignore_index=-100 reduction=mean}#0\n"
       "nll_loss(x0, x1){ignore_index=-100 reduction=mean}#1"},
      {{"float32[3,4]", "int64[3]", "float32[4]"},
       "aten.nll_loss_forward.default",
       "['x0','x1','x2',0,-100]",
       "{}",
       {"float32[3]", "float32[]"},
       "nll_loss(x0, x1, x2){ignore_index=-100 reduction=none}#0\n"
       "nll_loss(x0, x1, x2){ignore_index=-100 reduction=none}#1"},
      {{"float32[4]", "int64[]"},
       "aten.nll_loss_forward.default",
       "['x0','x1',null,0,-100]",
       "{}",
       {"float32[]", "float32[]"},
       "reshape(nll_loss(reshape(x0):f32[1,4], "
       "reshape(x1):i64[1]){ignore_index=-100 reduction=none}#0):f32[]\n"
       "nll_loss(reshape(x0):f32[1,4], reshape(x1):i64[1]){ignore_index=-100 "
       "reduction=none}#1"},
      {{"float32[]", "float32[3,4]", "int64[3]", "float32[]"},
       "aten.nll_loss_backward.default",
       "['x0','x1','x2',null,2,-1,'x3']",
       "{}",
       {"float32[3,4]"},
       "nll_loss_backward(x0, x1, x2, x3){ignore_index=-1 reduction=sum}"},
      {{"float32[3,4]", "int64[3]"},
       "aten.cross_entropy_loss.default",
       "['x0','x1']",
       "{}",
       {"float32[]"},
       "nll_loss(log_softmax(x0){dim=1}, x1){ignore_index=-100 "
       "reduction=mean}#0"},
      {{"float32[2,3,4,6]", "float32[5,3,2,3]", "float32[5]"},
       "aten.convolution.default",
       "['x0','x1','x2',[2,3],[0,0],[1,1],false,[0,0],1]",
       "{}",
       {"float32[2,5,2,2]"},
       "transpose(reshape(linear(reshape(transpose(reshape(x0):f32[2,3,2,2,2,3]"
       "){permutation=[0,2,4,1,3,5]}):f32[8,18], reshape(x1):f32[5,18], "
       "x2){transpose_weight}):f32[2,2,2,5]){permutation=[0,3,1,2]}"},
      {{"float32[2,3,5]", "float32[4,3,2]"},
       "aten.convolution.default",
       "['x0','x1',null,[2],[0],[1],false,[0],1]",
       "{}",
       {"float32[2,4,2]"},
       "transpose(reshape(matmul(reshape(transpose(reshape(slice(x0){offsets=["
       "0,0,0] sizes=[2,3,4] "
       "strides=[1,1,1]}):f32[2,3,2,2]){permutation=[0,2,1,3]}):f32[4,6], "
       "reshape(x1):f32[4,6]){transpose_rhs}):f32[2,2,4]){permutation=[0,2,1]"
       "}"},
      {{"float32[2,4,2]", "float32[2,3,5]", "float32[4,3,2]"},
       "aten.convolution_backward.default",
       "['x0','x1','x2',[4],[2],[0],[1],false,[0],1,[true,true,true]]",
       "{}",
       {"float32[2,3,5]", "float32[4,3,2]", "float32[4]"},
       "pad(reshape(transpose(reshape(matmul(reshape(transpose(x0){permutation="
       "[0,2,1]}):f32[4,4], "
       "reshape(x2):f32[4,6])):f32[2,2,3,2]){permutation=[0,2,1,3]}):f32[2,3,4]"
       "){high=[0,0,1] low=[0,0,0] value=0.0}\n"
       "reshape(matmul(reshape(transpose(x0){permutation=[0,2,1]}):f32[4,4], "
       "reshape(transpose(reshape(slice(x1){offsets=[0,0,0] sizes=[2,3,4] "
       "strides=[1,1,1]}):f32[2,3,2,2]){permutation=[0,2,1,3]}):f32[4,6]){"
       "transpose_lhs}):f32[4,3,2]\n"
       "sum(reshape(transpose(x0){permutation=[0,2,1]}):f32[4,4]){dims=[0]}"},
  });
}
