//===- reduction_test.cpp - Reductions of rows, columns and pairs ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

// Softmax of the last dimension; the row's maximum and sum are in-kernel.
const char *kSoftmax = R"(
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func private @softmax(%x: tensor<$Ax$Bx$Cxf32>$ATTR) -> (tensor<$Ax$Bx$Cxf32> {nova.map = array<i64: 0, 1, -1>})
    attributes {nova.kernel, nova.space = array<i64: $A, $B>, nova.tile = array<i64: $TILE>,
                nova.inplace = [array<i64: 0, 0>]} {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<$Ax$Bxf32>
  %e = tensor.empty() : tensor<$Ax$Bx$Cxf32>
  %i0 = linalg.fill ins(%lowest : f32) outs(%er : tensor<$Ax$Bxf32>) -> tensor<$Ax$Bxf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%er : tensor<$Ax$Bxf32>) -> tensor<$Ax$Bxf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<$Ax$Bx$Cxf32>) outs(%i0 : tensor<$Ax$Bxf32>) {
  ^bb0(%in: f32, %acc: f32):
    %0 = arith.maximumf %in, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<$Ax$Bxf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %max : tensor<$Ax$Bx$Cxf32>, tensor<$Ax$Bxf32>) outs(%e : tensor<$Ax$Bx$Cxf32>) {
  ^bb0(%in: f32, %m: f32, %o: f32):
    %0 = arith.subf %in, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<$Ax$Bx$Cxf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%exp : tensor<$Ax$Bx$Cxf32>) outs(%i1 : tensor<$Ax$Bxf32>) {
  ^bb0(%in: f32, %acc: f32):
    %0 = arith.addf %acc, %in : f32
    linalg.yield %0 : f32
  } -> tensor<$Ax$Bxf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%exp, %sum : tensor<$Ax$Bx$Cxf32>, tensor<$Ax$Bxf32>) outs(%e : tensor<$Ax$Bx$Cxf32>) {
  ^bb0(%in: f32, %s: f32, %o: f32):
    %0 = arith.divf %in, %s : f32
    linalg.yield %0 : f32
  } -> tensor<$Ax$Bx$Cxf32>
  return %y : tensor<$Ax$Bx$Cxf32>
}
)";

void softmax(int a, int b, int c, std::string tile,
             std::string attributes = "") {
  checkKernel(fill(kSoftmax, {{"A", std::to_string(a)},
                              {"B", std::to_string(b)},
                              {"C", std::to_string(c)},
                              {"TILE", tile},
                              {"ATTR", attributes}}));
}

TEST(Reduction, Softmax) {
  softmax(3, 40, 48, "1, 8");
  softmax(2, 5, 257, "1, 2");
  softmax(2, 3, 7, "2, 2");
  softmax(1, 9, 1, "1, 4");
  softmax(3, 2, 13, "3, 2");
}

// Layer norm with its statistics as results; the mean is also read in-kernel.
TEST(Reduction, LayerNorm) {
  for (const char *n : {"1", "5", "48", "100", "1027"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    #row1 = affine_map<(d0) -> (d0)>
    #col = affine_map<(d0, d1) -> (d1)>
    func.func private @ln(%x: tensor<7x$Nxf32>, %w: tensor<$Nxf32>, %b: tensor<$Nxf32>)
        -> (tensor<7x$Nxf32> {nova.map = array<i64: 0, -1>}, tensor<7xf32> {nova.map = array<i64: 0>},
            tensor<7xf32> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: 7>, nova.tile = array<i64: 3>} {
      %zero = arith.constant 0.0 : f32
      %n = arith.constant $N.0 : f32
      %eps = arith.constant 1.0e-5 : f32
      %er = tensor.empty() : tensor<7xf32>
      %e = tensor.empty() : tensor<7x$Nxf32>
      %i = linalg.fill ins(%zero : f32) outs(%er : tensor<7xf32>) -> tensor<7xf32>
      %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<7x$Nxf32>) outs(%i : tensor<7xf32>) {
      ^bb0(%in: f32, %acc: f32):
        %0 = arith.addf %in, %acc : f32
        linalg.yield %0 : f32
      } -> tensor<7xf32>
      %mean = linalg.generic {indexing_maps = [#row1, #row1], iterator_types = ["parallel"]}
          ins(%sum : tensor<7xf32>) outs(%er : tensor<7xf32>) {
      ^bb0(%in: f32, %o: f32):
        %0 = arith.divf %in, %n : f32
        linalg.yield %0 : f32
      } -> tensor<7xf32>
      %sq = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x, %mean : tensor<7x$Nxf32>, tensor<7xf32>) outs(%i : tensor<7xf32>) {
      ^bb0(%in: f32, %m: f32, %acc: f32):
        %0 = arith.subf %in, %m : f32
        %1 = arith.mulf %0, %0 : f32
        %2 = arith.addf %acc, %1 : f32
        linalg.yield %2 : f32
      } -> tensor<7xf32>
      %rstd = linalg.generic {indexing_maps = [#row1, #row1], iterator_types = ["parallel"]}
          ins(%sq : tensor<7xf32>) outs(%er : tensor<7xf32>) {
      ^bb0(%in: f32, %o: f32):
        %0 = arith.divf %in, %n : f32
        %1 = arith.addf %0, %eps : f32
        %2 = math.rsqrt %1 : f32
        linalg.yield %2 : f32
      } -> tensor<7xf32>
      %y = linalg.generic {indexing_maps = [#id, #row, #row, #col, #col, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x, %mean, %rstd, %w, %b : tensor<7x$Nxf32>, tensor<7xf32>, tensor<7xf32>, tensor<$Nxf32>, tensor<$Nxf32>)
          outs(%e : tensor<7x$Nxf32>) {
      ^bb0(%in: f32, %m: f32, %r: f32, %g: f32, %h: f32, %o: f32):
        %0 = arith.subf %in, %m : f32
        %1 = arith.mulf %0, %r : f32
        %2 = arith.mulf %1, %g : f32
        %3 = arith.addf %2, %h : f32
        linalg.yield %3 : f32
      } -> tensor<7x$Nxf32>
      return %y, %mean, %rstd : tensor<7x$Nxf32>, tensor<7xf32>, tensor<7xf32>
    })",
                     {{"N", n}}));
}

// Sums over the leading dimensions: lanes along the kept one.
TEST(Reduction, Columns) {
  for (const char *n : {"3", "8", "48", "131"})
    for (const char *tile : {"1", "3"})
      checkKernel(fill(R"(
    #id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
    #col = affine_map<(d0, d1, d2) -> (d2)>
    func.func private @columns(%x: tensor<5x9x$Nxf32>, %y: tensor<5x9x$Nxf32>)
        -> (tensor<$Nxf32> {nova.map = array<i64: 0>}, tensor<$Nxf32> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: $N>, nova.tile = array<i64: $T>} {
      %zero = arith.constant 0.0 : f32
      %er = tensor.empty() : tensor<$Nxf32>
      %i = linalg.fill ins(%zero : f32) outs(%er : tensor<$Nxf32>) -> tensor<$Nxf32>
      %r:2 = linalg.generic {indexing_maps = [#id, #id, #col, #col],
                             iterator_types = ["reduction", "reduction", "parallel"]}
          ins(%x, %y : tensor<5x9x$Nxf32>, tensor<5x9x$Nxf32>) outs(%i, %i : tensor<$Nxf32>, tensor<$Nxf32>) {
      ^bb0(%a: f32, %b: f32, %s: f32, %p: f32):
        %0 = arith.addf %s, %a : f32
        %1 = arith.mulf %a, %b : f32
        %2 = arith.addf %p, %1 : f32
        linalg.yield %0, %2 : f32, f32
      } -> (tensor<$Nxf32>, tensor<$Nxf32>)
      return %r#0, %r#1 : tensor<$Nxf32>, tensor<$Nxf32>
    })",
                       {{"N", n}, {"T", tile}}));
}

// The whole tensor to one number, with an init read from memory.
TEST(Reduction, EverythingFromInit) {
  for (const char *n : {"1", "17", "64", "1000"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #s = affine_map<(d0, d1) -> ()>
    func.func private @all(%x: tensor<3x$Nxf32>, %start: tensor<f32>) -> (tensor<f32> {nova.map = array<i64>})
        attributes {nova.kernel, nova.space = array<i64>, nova.tile = array<i64>} {
      %r = linalg.generic {indexing_maps = [#id, #s], iterator_types = ["reduction", "reduction"]}
          ins(%x : tensor<3x$Nxf32>) outs(%start : tensor<f32>) {
      ^bb0(%a: f32, %s: f32):
        %0 = arith.addf %s, %a : f32
        linalg.yield %0 : f32
      } -> tensor<f32>
      return %r : tensor<f32>
    })",
                     {{"N", n}}));
}

// A reduction over nothing is its init.
TEST(Reduction, OverNothing) {
  checkKernel(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #s = affine_map<(d0, d1) -> (d0)>
    func.func private @none(%x: tensor<9x0xf32>) -> (tensor<9xf32> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: 9>, nova.tile = array<i64: 2>} {
      %c = arith.constant dense<3.0> : tensor<9xf32>
      %r = linalg.generic {indexing_maps = [#id, #s], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<9x0xf32>) outs(%c : tensor<9xf32>) {
      ^bb0(%a: f32, %s: f32):
        %0 = arith.addf %s, %a : f32
        linalg.yield %0 : f32
      } -> tensor<9xf32>
      return %r : tensor<9xf32>
    })");
}

// A window over an argument: indices that are sums of two dimensions.
TEST(Reduction, Window) {
  checkKernel(R"(
    func.func private @window(%x: tensor<41xf32>, %w: tensor<5xf32>) -> (tensor<37xf32> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: 37>, nova.tile = array<i64: 20>} {
      %zero = arith.constant dense<0.0> : tensor<37xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x, %w : tensor<41xf32>, tensor<5xf32>) outs(%zero : tensor<37xf32>) {
      ^bb0(%a: f32, %b: f32, %acc: f32):
        %0 = arith.mulf %a, %b : f32
        %1 = arith.addf %acc, %0 : f32
        linalg.yield %1 : f32
      } -> tensor<37xf32>
      return %r : tensor<37xf32>
    })");
}

// Argmax: a pair of results whose combination is not a plain one.
TEST(Reduction, ArgMax) {
  for (const char *n : {"1", "7", "40", "257"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    func.func private @argmax(%x: tensor<11x$Nxf32>)
        -> (tensor<11xf32> {nova.map = array<i64: 0>}, tensor<11xi64> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: 11>, nova.tile = array<i64: 10>} {
      %lowest = arith.constant dense<0xFF800000> : tensor<11xf32>
      %zero = arith.constant dense<0> : tensor<11xi64>
      %r:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<11x$Nxf32>) outs(%lowest, %zero : tensor<11xf32>, tensor<11xi64>) {
      ^bb0(%a: f32, %best: f32, %at: i64):
        %j = linalg.index 1 : index
        %ji = arith.index_cast %j : index to i64
        %more = arith.cmpf ogt, %a, %best : f32
        %0 = arith.select %more, %a, %best : f32
        %1 = arith.select %more, %ji, %at : i64
        linalg.yield %0, %1 : f32, i64
      } -> (tensor<11xf32>, tensor<11xi64>)
      return %r#0, %r#1 : tensor<11xf32>, tensor<11xi64>
    })",
                     {{"N", n}}));
}

// Integer and boolean reductions; keepdim results (constant 0 in the map).
TEST(Reduction, IntegersAndBools) {
  for (const char *n : {"3", "8", "50"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0, 0)>
    func.func private @ints(%x: tensor<6x$Nxi64>, %m: tensor<6x$Nxi1>)
        -> (tensor<6x1xi64> {nova.map = array<i64: 0, -1>}, tensor<6x1xi1> {nova.map = array<i64: 0, -1>},
            tensor<6x1xi64> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 6>, nova.tile = array<i64: 1>} {
      %zero = arith.constant dense<0> : tensor<6x1xi64>
      %true = arith.constant dense<true> : tensor<6x1xi1>
      %low = arith.constant dense<-100> : tensor<6x1xi64>
      %r:3 = linalg.generic {indexing_maps = [#id, #id, #row, #row, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x, %m : tensor<6x$Nxi64>, tensor<6x$Nxi1>)
          outs(%zero, %true, %low : tensor<6x1xi64>, tensor<6x1xi1>, tensor<6x1xi64>) {
      ^bb0(%a: i64, %b: i1, %s: i64, %all: i1, %max: i64):
        %0 = arith.addi %s, %a : i64
        %1 = arith.andi %all, %b : i1
        %2 = arith.maxsi %max, %a : i64
        linalg.yield %0, %1, %2 : i64, i1, i64
      } -> (tensor<6x1xi64>, tensor<6x1xi1>, tensor<6x1xi64>)
      return %r#0, %r#1, %r#2 : tensor<6x1xi64>, tensor<6x1xi1>, tensor<6x1xi64>
    })",
                     {{"N", n}}));
}

// Sums of another thread's rows would collide: a result that is not bound to a
// tiled dimension is computed by every grid point and written by one.
TEST(Reduction, ResultNotBoundToATiledDimension) {
  checkKernel(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    func.func private @twice(%x: tensor<6x20xf32>, %z: tensor<10xf32>)
        -> (tensor<6xf32> {nova.map = array<i64: 0>}, tensor<6x10xf32> {nova.map = array<i64: 0, 1>})
        attributes {nova.kernel, nova.space = array<i64: 6, 10>, nova.tile = array<i64: 2, 3>} {
      %zero = arith.constant dense<0.0> : tensor<6xf32>
      %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<6x20xf32>) outs(%zero : tensor<6xf32>) {
      ^bb0(%a: f32, %s: f32):
        %0 = arith.addf %s, %a : f32
        linalg.yield %0 : f32
      } -> tensor<6xf32>
      %e = tensor.empty() : tensor<6x10xf32>
      %y = linalg.generic {indexing_maps = [#row, affine_map<(d0, d1) -> (d1)>, #id], iterator_types = ["parallel", "parallel"]}
          ins(%sum, %z : tensor<6xf32>, tensor<10xf32>) outs(%e : tensor<6x10xf32>) {
      ^bb0(%s: f32, %w: f32, %o: f32):
        %0 = arith.mulf %s, %w : f32
        linalg.yield %0 : f32
      } -> tensor<6x10xf32>
      return %sum, %y : tensor<6xf32>, tensor<6x10xf32>
    })");
}

} // namespace
