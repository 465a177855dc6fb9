//===- import_attention_test.cpp - Attention, by whichever name -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

using namespace nova;

TEST(Import, Attention) {
  expectCases({
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]",
        "float32[2,1,40,40]"},
       "aten._scaled_dot_product_efficient_attention.default",
       "['x0','x1','x2','x3',true]",
       R"({"scale":0.25})",
       {"float32[2,3,40,16]", "float32[2,3,64]", "int64[]", "int64[]"},
       "attention(x0, x1, x2, x3){scale=0.25}#0\n"
       "pad(attention(x0, x1, x2, x3){scale=0.25}#1){high=[0,0,24] low=[0,0,0] "
       "undefined value=0.0}\n"
       "0:i64[]\n"
       "0:i64[]"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]"},
       "aten._scaled_dot_product_efficient_attention.default",
       "['x0','x1','x2',null,false,0.0,true]",
       "{}",
       {"float32[2,3,40,16]", "float32[2,3,0]", "int64[]", "int64[]"},
       "attention(x0, x1, x2){causal scale=0.25}#0\n"
       "slice(attention(x0, x1, x2){causal scale=0.25}#1){offsets=[0,0,0] "
       "sizes=[2,3,0] strides=[1,1,1]}\n"
       "0:i64[]\n"
       "0:i64[]"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]",
        "float32[2,3,40,16]", "float32[2,1,40,40]", "float32[2,3,40,16]",
        "float32[2,3,64]", "int64[]"},
       "aten._scaled_dot_product_efficient_attention_backward.default",
       "['x0','x1','x2','x3','x4','x5','x6','x7','x7',0.0,[true,true,true,"
       "false]]",
       R"({"scale":0.25})",
       {"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]",
        "null"},
       "attention_backward(x0, x1, x2, x3, x4, x5, slice(x6){offsets=[0,0,0] "
       "sizes=[2,3,40] strides=[1,1,1]}){scale=0.25}#0\n"
       "attention_backward(x0, x1, x2, x3, x4, x5, slice(x6){offsets=[0,0,0] "
       "sizes=[2,3,40] strides=[1,1,1]}){scale=0.25}#1\n"
       "attention_backward(x0, x1, x2, x3, x4, x5, slice(x6){offsets=[0,0,0] "
       "sizes=[2,3,40] strides=[1,1,1]}){scale=0.25}#2"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]"},
       "aten._scaled_dot_product_flash_attention.default",
       "['x0','x1','x2',0.0,true]",
       "{}",
       {"float32[2,3,40,16]", "float32[2,3,40]", "null", "null", "null", "null",
        "int64[2]", "int64[]", "null"},
       "attention(x0, x1, x2){causal scale=0.25}#0\n"
       "attention(x0, x1, x2){causal scale=0.25}#1\n"
       "0:i64[2]\n"
       "0:i64[]"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]",
        "float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40]",
        "int64[2]", "int64[]"},
       "aten._scaled_dot_product_flash_attention_backward.default",
       "['x0','x1','x2','x3','x4','x5',null,null,40,40,0.0,true,'x6','x7']",
       "{}",
       {"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]"},
       "attention_backward(x0, x1, x2, x3, x4, x5){causal scale=0.25}#0\n"
       "attention_backward(x0, x1, x2, x3, x4, x5){causal scale=0.25}#1\n"
       "attention_backward(x0, x1, x2, x3, x4, x5){causal scale=0.25}#2"},
      {{"bfloat16[2,3,40,16]"},
       "aten._scaled_dot_product_cudnn_attention.default",
       "['x0','x0','x0',null,true]",
       "{}",
       {"bfloat16[2,3,40,16]", "float32[2,3,40,1]", "null", "null", "null",
        "null", "int64[]", "int64[]", "null"},
       "attention(x0, x0, x0){scale=0.25}#0\n"
       "reshape(attention(x0, x0, x0){scale=0.25}#1):f32[2,3,40,1]\n"
       "0:i64[]\n"
       "0:i64[]"},
  });
}
