//===- import_attention_test.cpp - Attention, by whichever name
//------------===//
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
       "@attention@0@"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]"},
       "aten._scaled_dot_product_efficient_attention.default",
       "['x0','x1','x2',null,false,0.0,true]",
       "{}",
       {"float32[2,3,40,16]", "float32[2,3,0]", "int64[]", "int64[]"},
       "@attention@1@"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]",
        "float32[2,3,40,16]", "float32[2,1,40,40]", "float32[2,3,40,16]",
        "float32[2,3,64]", "int64[]"},
       "aten._scaled_dot_product_efficient_attention_backward.default",
       "['x0','x1','x2','x3','x4','x5','x6','x7','x7',0.0,[true,true,true,"
       "false]]",
       R"({"scale":0.25})",
       {"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]",
        "null"},
       "@attention@2@"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]"},
       "aten._scaled_dot_product_flash_attention.default",
       "['x0','x1','x2',0.0,true]",
       "{}",
       {"float32[2,3,40,16]", "float32[2,3,40]", "null", "null", "null", "null",
        "int64[2]", "int64[]", "null"},
       "@attention@3@"},
      {{"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]",
        "float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40]",
        "int64[2]", "int64[]"},
       "aten._scaled_dot_product_flash_attention_backward.default",
       "['x0','x1','x2','x3','x4','x5',null,null,40,40,0.0,true,'x6','x7']",
       "{}",
       {"float32[2,3,40,16]", "float32[2,3,40,16]", "float32[2,3,40,16]"},
       "@attention@4@"},
      {{"bfloat16[2,3,40,16]"},
       "aten._scaled_dot_product_cudnn_attention.default",
       "['x0','x0','x0',null,true]",
       "{}",
       {"bfloat16[2,3,40,16]", "float32[2,3,40,1]", "null", "null", "null",
        "null", "int64[]", "int64[]", "null"},
       "@attention@5@"},
  });
}
