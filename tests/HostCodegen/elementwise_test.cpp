//===- elementwise_test.cpp - Parallel generics ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

// y = (x + bias) * scale, scale a splat constant, x of any strides.
const char *kBias = R"(
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func private @bias(%x: tensor<$Mx$Nxf32> {nova.strides = array<i64: $SM, $SN>}, %b: tensor<$Nxf32>)
    -> (tensor<$Mx$Nxf32> {nova.map = array<i64: 0, $BN>})
    attributes {nova.kernel, nova.space = array<i64: $SPACE>, nova.tile = array<i64: $TILE>} {
  %s = arith.constant dense<1.5> : tensor<$Mx$Nxf32>
  %e = tensor.empty() : tensor<$Mx$Nxf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b, %s : tensor<$Mx$Nxf32>, tensor<$Nxf32>, tensor<$Mx$Nxf32>) outs(%e : tensor<$Mx$Nxf32>) {
  ^bb0(%in: f32, %bias: f32, %scale: f32, %out: f32):
    %0 = arith.addf %in, %bias : f32
    %1 = arith.mulf %0, %scale : f32
    linalg.yield %1 : f32
  } -> tensor<$Mx$Nxf32>
  return %y : tensor<$Mx$Nxf32>
}
)";

void bias(int m, int n, int sm, int sn, std::string space, std::string tile,
          int bound) {
  auto s = [](int v) { return std::to_string(v); };
  checkKernel(fill(kBias, {{"M", s(m)},
                           {"N", s(n)},
                           {"SM", s(sm)},
                           {"SN", s(sn)},
                           {"SPACE", space},
                           {"TILE", tile},
                           {"BN", s(bound)}}));
}

TEST(Elementwise, Contiguous) { bias(3, 48, 48, 1, "3", "1", -1); }
TEST(Elementwise, OddSizes) { bias(7, 37, 37, 1, "7", "2", -1); }
TEST(Elementwise, TwoTiledDims) { bias(13, 37, 37, 1, "13, 37", "4, 16", 1); }
TEST(Elementwise, Transposed) { bias(13, 37, 1, 13, "13, 37", "5, 9", 1); }
TEST(Elementwise, BothStrided) { bias(5, 33, 200, 3, "5", "1", -1); }
TEST(Elementwise, ZeroStrideRows) { bias(5, 33, 0, 1, "5", "2", -1); }
TEST(Elementwise, ZeroStrideColumns) { bias(5, 33, 1, 0, "5", "2", -1); }
TEST(Elementwise, OneElement) { bias(1, 1, 1, 1, "1", "1", -1); }
TEST(Elementwise, Empty) { bias(0, 5, 5, 1, "0", "1", -1); }
TEST(Elementwise, EmptyLocal) { bias(5, 0, 1, 1, "5", "2", -1); }

TEST(Elementwise, Scalars) {
  checkKernel(R"(
    #s = affine_map<() -> ()>
    func.func private @k(%a: tensor<f32>, %b: tensor<i64>) -> (tensor<f32> {nova.map = array<i64>})
        attributes {nova.kernel, nova.space = array<i64>, nova.tile = array<i64>} {
      %e = tensor.empty() : tensor<f32>
      %y = linalg.generic {indexing_maps = [#s, #s, #s], iterator_types = []}
          ins(%a, %b : tensor<f32>, tensor<i64>) outs(%e : tensor<f32>) {
      ^bb0(%x: f32, %i: i64, %o: f32):
        %f = arith.sitofp %i : i64 to f32
        %r = arith.subf %x, %f : f32
        linalg.yield %r : f32
      } -> tensor<f32>
      return %y : tensor<f32>
    })");
}

// Booleans in memory are bytes; two results of different types; linalg.index.
TEST(Elementwise, BoolsIndicesAndIntegers) {
  for (const char *n : {"5", "8", "37", "64"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    func.func private @k(%m: tensor<6x$Nxi1>, %x: tensor<6x$Nxi64>)
        -> (tensor<6x$Nxi1> {nova.map = array<i64: 0, -1>}, tensor<6x$Nxi64> {nova.map = array<i64: 0, -1>},
            tensor<6x$Nxf32> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 6>, nova.tile = array<i64: 4>} {
      %e0 = tensor.empty() : tensor<6x$Nxi1>
      %e1 = tensor.empty() : tensor<6x$Nxi64>
      %e2 = tensor.empty() : tensor<6x$Nxf32>
      %r:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%m, %x : tensor<6x$Nxi1>, tensor<6x$Nxi64>)
          outs(%e0, %e1, %e2 : tensor<6x$Nxi1>, tensor<6x$Nxi64>, tensor<6x$Nxf32>) {
      ^bb0(%c: i1, %i: i64, %o0: i1, %o1: i64, %o2: f32):
        %row = linalg.index 0 : index
        %col = linalg.index 1 : index
        %causal = arith.cmpi sle, %col, %row : index
        %both = arith.andi %c, %causal : i1
        %coli = arith.index_cast %col : index to i64
        %sum = arith.addi %i, %coli : i64
        %sel = arith.select %c, %sum, %i : i64
        %zero = arith.constant 0.0 : f32
        %f = arith.sitofp %sum : i64 to f32
        %masked = arith.select %both, %f, %zero : f32
        linalg.yield %both, %sel, %masked : i1, i64, f32
      } -> (tensor<6x$Nxi1>, tensor<6x$Nxi64>, tensor<6x$Nxf32>)
      return %r#0, %r#1, %r#2 : tensor<6x$Nxi1>, tensor<6x$Nxi64>, tensor<6x$Nxf32>
    })",
                     {{"N", n}}));
}

// A gather: rows of a table by an index tensor.
TEST(Elementwise, GatherRows) {
  CheckOptions options;
  options.range[0] = {0, 10};
  for (const char *n : {"3", "16", "41"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #r = affine_map<(d0, d1) -> (d0)>
    func.func private @k(%ids: tensor<9xi64>, %table: tensor<11x$Nxf32>)
        -> (tensor<9x$Nxf32> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 9>, nova.tile = array<i64: 2>} {
      %e = tensor.empty() : tensor<9x$Nxf32>
      %y = linalg.generic {indexing_maps = [#r, #id], iterator_types = ["parallel", "parallel"]}
          ins(%ids : tensor<9xi64>) outs(%e : tensor<9x$Nxf32>) {
      ^bb0(%id: i64, %o: f32):
        %row = arith.index_cast %id : i64 to index
        %col = linalg.index 1 : index
        %v = tensor.extract %table[%row, %col] : tensor<11x$Nxf32>
        linalg.yield %v : f32
      } -> tensor<9x$Nxf32>
      return %y : tensor<9x$Nxf32>
    })",
                     {{"N", n}}),
                options);
}

// A gather of single elements: each lane has an address of its own.
TEST(Elementwise, GatherElements) {
  CheckOptions options;
  options.range[0] = {0, 36};
  checkKernel(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    func.func private @k(%ids: tensor<5x19xi32>, %table: tensor<5x37xf32>)
        -> (tensor<5x19xf32> {nova.map = array<i64: 0, 1>})
        attributes {nova.kernel, nova.space = array<i64: 5, 19>, nova.tile = array<i64: 2, 10>} {
      %e = tensor.empty() : tensor<5x19xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%ids : tensor<5x19xi32>) outs(%e : tensor<5x19xf32>) {
      ^bb0(%id: i32, %o: f32):
        %row = linalg.index 0 : index
        %col = arith.index_cast %id : i32 to index
        %v = tensor.extract %table[%row, %col] : tensor<5x37xf32>
        linalg.yield %v : f32
      } -> tensor<5x19xf32>
      return %y : tensor<5x19xf32>
    })",
              options);
}

// A gather from a value inside the kernel, reversed; and indices that compare
// with data (64 bits) and with constants.
TEST(Elementwise, GatherFromScratch) {
  for (const char *n : {"6", "19", "32"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d1)>
    func.func private @k(%x: tensor<$Nxf32>, %at: tensor<5xi64>) -> (tensor<5x$Nxf32> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 5>, nova.tile = array<i64: 2>} {
      %e = tensor.empty() : tensor<$Nxf32>
      %neg = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
          ins(%x : tensor<$Nxf32>) outs(%e : tensor<$Nxf32>) {
      ^bb0(%a: f32, %o: f32):
        %0 = arith.negf %a : f32
        linalg.yield %0 : f32
      } -> tensor<$Nxf32>
      %e2 = tensor.empty() : tensor<5x$Nxf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, #id], iterator_types = ["parallel", "parallel"]}
          ins(%at : tensor<5xi64>) outs(%e2 : tensor<5x$Nxf32>) {
      ^bb0(%i: i64, %o: f32):
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : i64
        %n = arith.constant $N : index
        %zero = arith.constant 0.0 : f32
        %col = linalg.index 1 : index
        %row = linalg.index 0 : index
        %up = arith.addi %col, %c1 : index
        %back = arith.subi %n, %up : index
        %v = tensor.extract %neg[%back] : tensor<$Nxf32>
        %coli = arith.index_cast %col : index to i64
        %equal = arith.cmpi eq, %coli, %i : i64
        %less = arith.cmpi slt, %coli, %c3 : i64
        %above = arith.cmpi ugt, %back, %row : index
        %0 = arith.select %equal, %zero, %v : f32
        %1 = arith.addf %0, %0 : f32
        %2 = arith.select %less, %1, %0 : f32
        %3 = arith.addf %2, %2 : f32
        %4 = arith.select %above, %3, %2 : f32
        linalg.yield %4 : f32
      } -> tensor<5x$Nxf32>
      return %y : tensor<5x$Nxf32>
    })",
                     {{"N", n}}));
}

// p -= lr * g, where p may be overwritten, and the in-kernel value has two
// readers.
TEST(Elementwise, InPlaceUpdate) {
  for (const char *tile : {"1", "7", "16", "50"})
    checkKernel(fill(R"(
    #id = affine_map<(d0) -> (d0)>
    #s = affine_map<(d0) -> ()>
    func.func private @k(%p: tensor<50xf32>, %g: tensor<50xf32>, %lr: tensor<f32>)
        -> (tensor<50xf32> {nova.map = array<i64: 0>}, tensor<50xf32> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: 50>, nova.tile = array<i64: $T>,
                    nova.inplace = [array<i64: 0, 0>]} {
      %e = tensor.empty() : tensor<50xf32>
      %step = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel"]}
          ins(%g, %lr : tensor<50xf32>, tensor<f32>) outs(%e : tensor<50xf32>) {
      ^bb0(%x: f32, %l: f32, %o: f32):
        %0 = arith.mulf %x, %l : f32
        linalg.yield %0 : f32
      } -> tensor<50xf32>
      %new = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
          ins(%p, %step : tensor<50xf32>, tensor<50xf32>) outs(%e : tensor<50xf32>) {
      ^bb0(%x: f32, %s: f32, %o: f32):
        %0 = arith.subf %x, %s : f32
        linalg.yield %0 : f32
      } -> tensor<50xf32>
      %sum = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
          ins(%p, %step, %new : tensor<50xf32>, tensor<50xf32>, tensor<50xf32>) outs(%e : tensor<50xf32>) {
      ^bb0(%x: f32, %s: f32, %n: f32, %o: f32):
        %0 = arith.addf %x, %s : f32
        %1 = arith.addf %0, %n : f32
        linalg.yield %1 : f32
      } -> tensor<50xf32>
      return %new, %sum : tensor<50xf32>, tensor<50xf32>
    })",
                     {{"T", tile}}));
}

// Reads a whole row in place: the result must be staged.
TEST(Elementwise, InPlaceReversedRow) {
  checkKernel(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    func.func private @k(%x: tensor<4x19xf32>) -> (tensor<4x19xf32> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>,
                    nova.inplace = [array<i64: 0, 0>]} {
      %e = tensor.empty() : tensor<4x19xf32>
      %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
          outs(%e : tensor<4x19xf32>) {
      ^bb0(%o: f32):
        %c18 = arith.constant 18 : index
        %row = linalg.index 0 : index
        %col = linalg.index 1 : index
        %back = arith.subi %c18, %col : index
        %v = tensor.extract %x[%row, %back] : tensor<4x19xf32>
        linalg.yield %v : f32
      } -> tensor<4x19xf32>
      return %y : tensor<4x19xf32>
    })");
}

// Results that are an argument, a constant, and the same value twice.
TEST(Elementwise, ReturnedAsTheyAre) {
  checkKernel(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    func.func private @k(%x: tensor<4x19xf32> {nova.strides = array<i64: 1, 4>})
        -> (tensor<4x19xf32> {nova.map = array<i64: 0, 1>}, tensor<4x19xf32> {nova.map = array<i64: 0, 1>},
            tensor<4x19xf32> {nova.map = array<i64: 0, 1>}, tensor<4x19xf32> {nova.map = array<i64: 0, 1>})
        attributes {nova.kernel, nova.space = array<i64: 4, 19>, nova.tile = array<i64: 3, 10>} {
      %c = arith.constant dense<2.0> : tensor<4x19xf32>
      %e = tensor.empty() : tensor<4x19xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<4x19xf32>) outs(%e : tensor<4x19xf32>) {
      ^bb0(%i: f32, %o: f32):
        %0 = arith.negf %i : f32
        linalg.yield %0 : f32
      } -> tensor<4x19xf32>
      return %x, %c, %y, %y : tensor<4x19xf32>, tensor<4x19xf32>, tensor<4x19xf32>, tensor<4x19xf32>
    })");
}

// 16-bit floats compute in float32 and round to nearest even.
TEST(Elementwise, ShortFloats) {
  for (const char *type : {"bf16", "f16"})
    for (const char *n : {"5", "40"})
      checkKernel(fill(R"(
    #id = affine_map<(d0) -> (d0)>
    func.func private @k(%x: tensor<$Nx$T>, %y: tensor<$Nxf32>)
        -> (tensor<$Nx$T> {nova.map = array<i64: 0>}, tensor<$Nxf32> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: $N>, nova.tile = array<i64: $N>} {
      %e = tensor.empty() : tensor<$Nx$T>
      %f = tensor.empty() : tensor<$Nxf32>
      %r:2 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<$Nx$T>, tensor<$Nxf32>) outs(%e, %f : tensor<$Nx$T>, tensor<$Nxf32>) {
      ^bb0(%a: $T, %b: f32, %o: $T, %p: f32):
        %0 = arith.truncf %b : f32 to $T
        %1 = arith.addf %a, %0 : $T
        %2 = arith.extf %a : $T to f32
        linalg.yield %1, %2 : $T, f32
      } -> (tensor<$Nx$T>, tensor<$Nxf32>)
      return %r#0, %r#1 : tensor<$Nx$T>, tensor<$Nxf32>
    })",
                       {{"T", type}, {"N", n}}));
}

} // namespace
