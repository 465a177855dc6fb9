//===- movement_test.cpp - Concat, cumsum and scatters --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

// An argument, an in-kernel value and a constant, in the middle dimension.
TEST(Movement, Concat) {
  for (const char *n : {"5", "24"})
    checkKernel(fill(R"(
    #id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
    func.func private @concat(%x: tensor<6x3x$Nxf32> {nova.strides = array<i64: 3, 1, 18>}, %y: tensor<6x4x$Nxf32>)
        -> (tensor<6x9x$Nxf32> {nova.map = array<i64: 0, -1, 1>})
        attributes {nova.kernel, nova.space = array<i64: 6, $N>, nova.tile = array<i64: 4, 5>} {
      %c = arith.constant dense<-1.0> : tensor<6x2x$Nxf32>
      %e = tensor.empty() : tensor<6x4x$Nxf32>
      %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%y : tensor<6x4x$Nxf32>) outs(%e : tensor<6x4x$Nxf32>) {
      ^bb0(%a: f32, %o: f32):
        %0 = arith.negf %a : f32
        linalg.yield %0 : f32
      } -> tensor<6x4x$Nxf32>
      %r = tensor.concat dim(1) %x, %n, %c
          : (tensor<6x3x$Nxf32>, tensor<6x4x$Nxf32>, tensor<6x2x$Nxf32>) -> tensor<6x9x$Nxf32>
      return %r : tensor<6x9x$Nxf32>
    })",
                     {{"N", n}}));
}

TEST(Movement, Cumsum) {
  checkKernel(R"(
    func.func private @cumsum(%x: tensor<4x7x9xi64>)
        -> (tensor<4x7x9xi64> {nova.map = array<i64: 0, -1, 1>})
        attributes {nova.kernel, nova.space = array<i64: 4, 9>, nova.tile = array<i64: 3, 4>,
                    nova.inplace = [array<i64: 0, 0>]} {
      %r = "nova.cumsum"(%x) {dim = 1 : i64} : (tensor<4x7x9xi64>) -> tensor<4x7x9xi64>
      return %r : tensor<4x7x9xi64>
    })");
  checkKernel(R"(
    func.func private @cumsum(%x: tensor<4x70xf32>) -> (tensor<4x70xf32> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 1>} {
      %r = "nova.cumsum"(%x) {dim = 1 : i64} : (tensor<4x70xf32>) -> tensor<4x70xf32>
      return %r : tensor<4x70xf32>
    })");
}

// torch.scatter along dim 0 and 1, with out-of-range indices, accumulating or
// not.
TEST(Movement, Scatter) {
  CheckOptions options;
  options.range[1] = {-2, 9};
  for (const char *flag : {"", ", accumulate"}) {
    checkKernel(fill(R"(
    func.func private @scatter(%init: tensor<8x12xf32>, %i: tensor<20x12xi64>, %u: tensor<20x12xf32>)
        -> (tensor<8x12xf32> {nova.map = array<i64: -1, 0>})
        attributes {nova.kernel, nova.space = array<i64: 12>, nova.tile = array<i64: 5>,
                    nova.inplace = [array<i64: 0, 0>]} {
      %r = "nova.scatter"(%init, %i, %u) {dim = 0 : i64$FLAG}
          : (tensor<8x12xf32>, tensor<20x12xi64>, tensor<20x12xf32>) -> tensor<8x12xf32>
      return %r : tensor<8x12xf32>
    })",
                     {{"FLAG", flag}}),
                options);
    // The scattered dimension itself is tiled.
    checkKernel(fill(R"(
    func.func private @scatter(%init: tensor<8x12xf32>, %i: tensor<20x10xi64>, %u: tensor<20x10xf32>)
        -> (tensor<8x12xf32> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 8>, nova.tile = array<i64: 3>} {
      %r = "nova.scatter"(%init, %i, %u) {dim = 0 : i64$FLAG}
          : (tensor<8x12xf32>, tensor<20x10xi64>, tensor<20x10xf32>) -> tensor<8x12xf32>
      return %r : tensor<8x12xf32>
    })",
                     {{"FLAG", flag}}),
                options);
  }
}

// The gradient of an embedding: rows accumulate into a table of zeros.
TEST(Movement, IndexPut) {
  CheckOptions options;
  options.range[0] = {-12, 12};
  for (const char *flag : {"", "accumulate"})
    for (const char *tile : {"11, 19", "4, 19", "3, 8"})
      checkKernel(fill(R"(
    func.func private @put(%i: tensor<4x5xi64>, %u: tensor<4x5x19xf32>)
        -> (tensor<11x19xf32> {nova.map = array<i64: 0, 1>})
        attributes {nova.kernel, nova.space = array<i64: 11, 19>, nova.tile = array<i64: $T>} {
      %zero = arith.constant dense<0.0> : tensor<11x19xf32>
      %r = "nova.index_put"(%zero, %i, %u) {$FLAG}
          : (tensor<11x19xf32>, tensor<4x5xi64>, tensor<4x5x19xf32>) -> tensor<11x19xf32>
      return %r : tensor<11x19xf32>
    })",
                       {{"FLAG", flag}, {"T", tile}}),
                  options);
  options.range[1] = {0, 3};
  checkKernel(R"(
    func.func private @put(%i: tensor<30xi64>, %j: tensor<30xi32>, %u: tensor<30xf32>, %init: tensor<11x4xf32>)
        -> (tensor<11x4xf32> {nova.map = array<i64: 0, -1>})
        attributes {nova.kernel, nova.space = array<i64: 11>, nova.tile = array<i64: 2>} {
      %r = "nova.index_put"(%init, %i, %j, %u) {accumulate}
          : (tensor<11x4xf32>, tensor<30xi64>, tensor<30xi32>, tensor<30xf32>) -> tensor<11x4xf32>
      return %r : tensor<11x4xf32>
    })",
              options);
}

} // namespace
