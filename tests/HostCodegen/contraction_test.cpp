//===- contraction_test.cpp - Matrix products -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

std::string s(int64_t value) { return std::to_string(value); }

// C[m, n] = sum_k A[m, k] B[k, n], each of A and B in either order in memory.
const char *kMatmul = R"(
func.func private @matmul(%a: tensor<$Mx$Kxf32> {nova.strides = array<i64: $SAM, $SAK>}, %b: tensor<$Kx$Nxf32> {nova.strides = array<i64: $SBK, $SBN>})
    -> (tensor<$Mx$Nxf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: $M, $N>, nova.tile = array<i64: $TM, $TN>} {
  %zero = arith.constant dense<0.0> : tensor<$Mx$Nxf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<$Mx$Kxf32>, tensor<$Kx$Nxf32>) outs(%zero : tensor<$Mx$Nxf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<$Mx$Nxf32>
  return %c : tensor<$Mx$Nxf32>
}
)";

void matmul(int64_t m, int64_t n, int64_t k, int64_t tm, int64_t tn) {
  // NN, NT, TN, TT.
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      checkKernel(fill(kMatmul, {{"M", s(m)},
                                 {"N", s(n)},
                                 {"K", s(k)},
                                 {"TM", s(std::min(tm, m))},
                                 {"TN", s(std::min(tn, n))},
                                 {"SAM", s(ta ? 1 : k)},
                                 {"SAK", s(ta ? m : 1)},
                                 {"SBK", s(tb ? 1 : n)},
                                 {"SBN", s(tb ? k : 1)}}));
      if (::testing::Test::HasFailure())
        return;
    }
}

TEST(Contraction, Blocked) {
  matmul(64, 64, 64, 64, 64);
  matmul(37, 50, 29, 16, 24);
  matmul(70, 90, 130, 64, 64);
  matmul(7, 257, 20, 7, 100);
}

TEST(Contraction, ManyBlocks) { matmul(110, 270, 270, 110, 270); }

// Any sizes, any tiles, any order in memory.
TEST(Contraction, Random) {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 24; ++i) {
    int64_t m = pick(1, 70), n = pick(1, 70), k = pick(1, 40);
    bool ta = pick(0, 1), tb = pick(0, 1);
    checkKernel(fill(kMatmul, {{"M", s(m)},
                               {"N", s(n)},
                               {"K", s(k)},
                               {"TM", s(pick(1, m))},
                               {"TN", s(pick(1, n))},
                               {"SAM", s(ta ? 1 : k + pick(0, 3))},
                               {"SAK", s(ta ? m + pick(0, 3) : 1)},
                               {"SBK", s(tb ? 1 : n + pick(0, 3))},
                               {"SBN", s(tb ? k + pick(0, 3) : 1)}}));
    if (::testing::Test::HasFailure())
      return;
  }
}

// Strides that no operand has contiguous.
TEST(Contraction, Strided) {
  checkKernel(fill(kMatmul, {{"M", "20"},
                             {"N", "30"},
                             {"K", "25"},
                             {"TM", "13"},
                             {"TN", "17"},
                             {"SAM", "50"},
                             {"SAK", "2"},
                             {"SBK", "90"},
                             {"SBN", "3"}}));
}

TEST(Contraction, Thin) {
  matmul(1, 40, 33, 1, 40);
  matmul(40, 1, 33, 8, 1);
  matmul(3, 5, 7, 2, 2);
  matmul(5, 9, 1, 5, 9);
  matmul(1, 1, 100, 1, 1);
}

// A batch of products whose result is permuted, with a product over nothing.
TEST(Contraction, BatchedPermuted) {
  for (const char *k : {"0", "1", "19"})
    for (const char *tile : {"1, 13", "2, 8"})
      checkKernel(fill(R"(
    func.func private @heads(%q: tensor<3x4x13x$Kxf32>, %k: tensor<3x4x17x$Kxf32>)
        -> (tensor<3x13x4x17xf32> {nova.map = array<i64: 0, 1, -1, -1>})
        attributes {nova.kernel, nova.space = array<i64: 3, 13>, nova.tile = array<i64: $T>} {
      %zero = arith.constant dense<0.0> : tensor<3x13x4x17xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(b, h, m, n, k) -> (b, h, m, k)>, affine_map<(b, h, m, n, k) -> (b, h, n, k)>,
                                            affine_map<(b, h, m, n, k) -> (b, m, h, n)>],
                           iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<3x4x13x$Kxf32>, tensor<3x4x17x$Kxf32>) outs(%zero : tensor<3x13x4x17xf32>) {
      ^bb0(%x: f32, %y: f32, %acc: f32):
        %0 = arith.mulf %y, %x : f32
        %1 = arith.addf %0, %acc : f32
        linalg.yield %1 : f32
      } -> tensor<3x13x4x17xf32>
      return %c : tensor<3x13x4x17xf32>
    })",
                       {{"K", k}, {"T", tile}}));
}

// A weight gradient: two summed dimensions, the init from memory (in place).
TEST(Contraction, TwoSummedDimensions) {
  for (const char *tile : {"40, 24", "16, 16"})
    checkKernel(fill(R"(
    func.func private @dw(%x: tensor<5x11x40xf32>, %dy: tensor<5x11x24xf32> {nova.strides = array<i64: 24, 120, 1>}, %w: tensor<24x40xf32>)
        -> (tensor<24x40xf32> {nova.map = array<i64: 1, 0>})
        attributes {nova.kernel, nova.space = array<i64: 40, 24>, nova.tile = array<i64: $T>, nova.inplace = [array<i64: 2, 0>]} {
      %c = linalg.generic {indexing_maps = [affine_map<(m, n, a, b) -> (a, b, m)>, affine_map<(m, n, a, b) -> (a, b, n)>,
                                            affine_map<(m, n, a, b) -> (n, m)>],
                           iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
          ins(%x, %dy : tensor<5x11x40xf32>, tensor<5x11x24xf32>) outs(%w : tensor<24x40xf32>) {
      ^bb0(%x0: f32, %y: f32, %acc: f32):
        %0 = arith.mulf %x0, %y : f32
        %1 = arith.addf %acc, %0 : f32
        linalg.yield %1 : f32
      } -> tensor<24x40xf32>
      return %c : tensor<24x40xf32>
    })",
                     {{"T", tile}}));
}

// bfloat16 operands widened in the body, accumulated in float32.
TEST(Contraction, WidenedOperands) {
  for (const char *tile : {"40, 24", "16, 16", "1, 24"})
    for (const char *map : {"(k, n)", "(n, k)"})
      checkKernel(fill(R"(
    func.func private @bf16(%a: tensor<40x30xbf16>, %b: tensor<$Bxbf16>) -> (tensor<40x24xf32> {nova.map = array<i64: 0, 1>})
        attributes {nova.kernel, nova.space = array<i64: 40, 24>, nova.tile = array<i64: $TILE>} {
      %zero = arith.constant dense<0.0> : tensor<40x24xf32>
      %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> $MAP>, affine_map<(m, n, k) -> (m, n)>],
                           iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<40x30xbf16>, tensor<$Bxbf16>) outs(%zero : tensor<40x24xf32>) {
      ^bb0(%x: bf16, %y: bf16, %acc: f32):
        %xf = arith.extf %x : bf16 to f32
        %yf = arith.extf %y : bf16 to f32
        %0 = arith.mulf %xf, %yf : f32
        %1 = arith.addf %acc, %0 : f32
        linalg.yield %1 : f32
      } -> tensor<40x24xf32>
      return %c : tensor<40x24xf32>
    })",
                       {{"B", map == std::string("(k, n)") ? "30x24" : "24x30"},
                        {"MAP", map},
                        {"TILE", tile}}));
}

// Products of other types take plain loops.
TEST(Contraction, OtherTypes) {
  for (const char *type : {"f64", "i64"})
    checkKernel(fill(R"(
    func.func private @plain(%a: tensor<9x30x$T>, %b: tensor<30x24x$T>) -> (tensor<9x24x$T> {nova.map = array<i64: 0, 1>})
        attributes {nova.kernel, nova.space = array<i64: 9, 24>, nova.tile = array<i64: 4, 24>} {
      %zero = arith.constant dense<$Z> : tensor<9x24x$T>
      %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                           iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : tensor<9x30x$T>, tensor<30x24x$T>) outs(%zero : tensor<9x24x$T>) {
      ^bb0(%x: $T, %y: $T, %acc: $T):
        %0 = arith.mul$S %x, %y : $T
        %1 = arith.add$S %acc, %0 : $T
        linalg.yield %1 : $T
      } -> tensor<9x24x$T>
      return %c : tensor<9x24x$T>
    })",
                     {{"T", type},
                      {"S", std::string(type).substr(0, 1)},
                      {"Z", type[0] == 'f' ? "0.0" : "0"}}));
}

// Attention on a tile of rows: scores, causal mask, softmax, and the product
// with values: contractions of in-kernel values.
TEST(Contraction, Attention) {
  for (const char *tile : {"1, 1, 1", "1, 1, 8", "1, 2, 40"})
    checkKernel(fill(R"(
    #s = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
    #p = affine_map<(b, h, i, j) -> (b, h, i, j)>
    #r = affine_map<(b, h, i, j) -> (b, h, i)>
    func.func private @attention(%q: tensor<2x2x40x12xf32> {nova.strides = array<i64: 2880, 12, 72, 1>},
                                 %k: tensor<2x2x40x12xf32> {nova.strides = array<i64: 2880, 12, 72, 1>},
                                 %v: tensor<2x2x40x12xf32> {nova.strides = array<i64: 2880, 12, 72, 1>})
        -> (tensor<2x2x40x12xf32> {nova.map = array<i64: 0, 1, 2, -1>}, tensor<2x2x40xf32> {nova.map = array<i64: 0, 1, 2>})
        attributes {nova.kernel, nova.space = array<i64: 2, 2, 40>, nova.tile = array<i64: $T>} {
      %zero = arith.constant dense<0.0> : tensor<2x2x40x40xf32>
      %zero_r = arith.constant dense<0.0> : tensor<2x2x40xf32>
      %zero_o = arith.constant dense<0.0> : tensor<2x2x40x12xf32>
      %low = arith.constant dense<0xFF800000> : tensor<2x2x40xf32>
      %e = tensor.empty() : tensor<2x2x40x40xf32>
      %er = tensor.empty() : tensor<2x2x40xf32>
      %eo = tensor.empty() : tensor<2x2x40x12xf32>
      %qk = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, #s],
                            iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<2x2x40x12xf32>, tensor<2x2x40x12xf32>) outs(%zero : tensor<2x2x40x40xf32>) {
      ^bb0(%x: f32, %y: f32, %acc: f32):
        %0 = arith.mulf %x, %y : f32
        %1 = arith.addf %acc, %0 : f32
        linalg.yield %1 : f32
      } -> tensor<2x2x40x40xf32>
      %masked = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
          ins(%qk : tensor<2x2x40x40xf32>) outs(%e : tensor<2x2x40x40xf32>) {
      ^bb0(%x: f32, %o: f32):
        %i = linalg.index 2 : index
        %j = linalg.index 3 : index
        %c = arith.cmpi sle, %j, %i : index
        %scale = arith.constant 0.288675 : f32
        %inf = arith.constant 0xFF800000 : f32
        %0 = arith.mulf %x, %scale : f32
        %1 = arith.select %c, %0, %inf : f32
        linalg.yield %1 : f32
      } -> tensor<2x2x40x40xf32>
      %max = linalg.generic {indexing_maps = [#p, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%masked : tensor<2x2x40x40xf32>) outs(%low : tensor<2x2x40xf32>) {
      ^bb0(%x: f32, %acc: f32):
        %0 = arith.maximumf %x, %acc : f32
        linalg.yield %0 : f32
      } -> tensor<2x2x40xf32>
      %exp = linalg.generic {indexing_maps = [#p, #r, #p], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
          ins(%masked, %max : tensor<2x2x40x40xf32>, tensor<2x2x40xf32>) outs(%e : tensor<2x2x40x40xf32>) {
      ^bb0(%x: f32, %m: f32, %o: f32):
        %0 = arith.subf %x, %m : f32
        %1 = math.exp %0 : f32
        linalg.yield %1 : f32
      } -> tensor<2x2x40x40xf32>
      %sum = linalg.generic {indexing_maps = [#p, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%exp : tensor<2x2x40x40xf32>) outs(%zero_r : tensor<2x2x40xf32>) {
      ^bb0(%x: f32, %acc: f32):
        %0 = arith.addf %x, %acc : f32
        linalg.yield %0 : f32
      } -> tensor<2x2x40xf32>
      %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>,
                                            affine_map<(b, h, i, d, j) -> (b, h, i, d)>],
                           iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
          ins(%exp, %v : tensor<2x2x40x40xf32>, tensor<2x2x40x12xf32>) outs(%zero_o : tensor<2x2x40x12xf32>) {
      ^bb0(%x: f32, %y: f32, %acc: f32):
        %0 = arith.mulf %x, %y : f32
        %1 = arith.addf %acc, %0 : f32
        linalg.yield %1 : f32
      } -> tensor<2x2x40x12xf32>
      %out = linalg.generic {indexing_maps = [#p, #r, #p], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
          ins(%o, %sum : tensor<2x2x40x12xf32>, tensor<2x2x40xf32>) outs(%eo : tensor<2x2x40x12xf32>) {
      ^bb0(%x: f32, %t: f32, %oo: f32):
        %0 = arith.divf %x, %t : f32
        linalg.yield %0 : f32
      } -> tensor<2x2x40x12xf32>
      return %out, %sum : tensor<2x2x40x12xf32>, tensor<2x2x40xf32>
    })",
                     {{"T", tile}}));
}

} // namespace
