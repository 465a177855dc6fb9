//===- collapse_test.cpp - One axis of several, before tiles are chosen ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include "nova/Transforms/KernelAxes.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace nova;
using namespace nova::test;

namespace {

/// Collapses the kernel in `text`, compares its space and the type of its first
/// argument, and its tile program with it.
void check(const std::string &text, std::vector<int64_t> space, std::vector<int64_t> argument,
           const TilingOptions &options = {}) {
  SCOPED_TRACE(text);
  auto module = parseSourceString<ModuleOp>(text, &context());
  ASSERT_TRUE(module);
  auto kernel = *module->getOps<func::FuncOp>().begin();
  checkTiles(kernel, options);
  tiling::collapseAxes(kernel);
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  EXPECT_EQ(kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).asArrayRef().vec(), space);
  EXPECT_EQ(cast<RankedTensorType>(kernel.getArgumentTypes()[0]).getShape().vec(), argument);
}

TEST(Collapse, BatchesOfRowsThatAProductTreatsAlike) {
  check(R"mlir(
func.func private @k(%x: tensor<3x40x24xf32>, %w: tensor<24x32xf32>, %b: tensor<32xf32>)
    -> (tensor<3x40x32xf32> {nova.map = array<i64: 0, 1, 2>}) attributes {nova.kernel, nova.space = array<i64: 3, 40, 32>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<3x40x32xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<3x40x32xf32>) -> tensor<3x40x32xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (k, j)>, affine_map<(b, i, j, k) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x40x24xf32>, tensor<24x32xf32>) outs(%1 : tensor<3x40x32xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %4 = arith.mulf %p, %q : f32
    %5 = arith.addf %out, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<3x40x32xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %b : tensor<3x40x32xf32>, tensor<32xf32>) outs(%0 : tensor<3x40x32xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %4 = arith.addf %p, %q : f32
    linalg.yield %4 : f32
  } -> tensor<3x40x32xf32>
  return %3 : tensor<3x40x32xf32>
})mlir",
        {120, 32}, {120, 24});
}

TEST(Collapse, BatchesThatAColumnSumsOver) {
  check(R"mlir(
func.func private @k(%x: tensor<3x40x24xf32> {nova.strides = array<i64: 1200, 30, 1>}) -> (tensor<24xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 24>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<24xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<24xf32>) -> tensor<24xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (j)>],
      iterator_types = ["reduction", "reduction", "parallel"]} ins(%x : tensor<3x40x24xf32>) outs(%1 : tensor<24xf32>) {
  ^bb0(%p: f32, %out: f32):
    %3 = arith.addf %out, %p : f32
    linalg.yield %3 : f32
  } -> tensor<24xf32>
  return %2 : tensor<24xf32>
})mlir",
        {24}, {120, 24});
}

TEST(Collapse, NotWhatAnArgumentLacksOrMemoryInterrupts) {
  const char *text = R"mlir(
func.func private @k(%x: tensor<3x4x5xf32> {nova.strides = array<i64: $STRIDES>}, %b: tensor<4x5xf32>)
    -> (tensor<3x4x5xf32> {nova.map = array<i64: 0, 1, 2>}) attributes {nova.kernel, nova.space = array<i64: 3, 4, 5>} {
  %0 = tensor.empty() : tensor<3x4x5xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %b : tensor<3x4x5xf32>, tensor<4x5xf32>) outs(%0 : tensor<3x4x5xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %4 = arith.addf %p, %q : f32
    linalg.yield %4 : f32
  } -> tensor<3x4x5xf32>
  return %1 : tensor<3x4x5xf32>
})mlir";
  check(filled(text, {{"STRIDES", "20, 5, 1"}}), {3, 20}, {3, 20});
  check(filled(text, {{"STRIDES", "24, 6, 1"}}), {3, 4, 5}, {3, 4, 5});
}

TEST(Collapse, WhatIsCopied) {
  check(R"mlir(
func.func private @k(%x: tensor<4x6x8x5xf32> {nova.strides = array<i64: 240, 5, 30, 1>})
    -> (tensor<4x6x8x5xf32> {nova.map = array<i64: 0, 1, 2, 3>}) attributes {nova.kernel, nova.space = array<i64: 4, 6, 8, 5>} {
  return %x : tensor<4x6x8x5xf32>
})mlir",
        {4, 6, 8, 5}, {4, 6, 8, 5});
  check(R"mlir(
func.func private @k(%x: tensor<4x6x8x5xf32> {nova.strides = array<i64: 480, 80, 10, 2>})
    -> (tensor<4x6x8x5xf32> {nova.map = array<i64: 0, 1, 2, 3>}) attributes {nova.kernel, nova.space = array<i64: 4, 6, 8, 5>} {
  return %x : tensor<4x6x8x5xf32>
})mlir",
        {960}, {960});
}

TEST(Collapse, PositionsAndTheDimensionsBesideAMovement) {
  TilingOptions options;
  options.range[1] = {-9, 8};
  check(R"mlir(
func.func private @k(%t: tensor<7x3x4xf32>, %i: tensor<3x10xi64>, %u: tensor<3x10x3x4xf32>)
    -> (tensor<7x3x4xf32> {nova.map = array<i64: 0, 1, 2>}) attributes {nova.kernel, nova.space = array<i64: 7, 3, 4>} {
  %r = nova.index_put %t, %i, %u {accumulate} : (tensor<7x3x4xf32>, tensor<3x10xi64>, tensor<3x10x3x4xf32>) -> tensor<7x3x4xf32>
  return %r : tensor<7x3x4xf32>
})mlir",
        {7, 12}, {7, 12}, options);
  check(R"mlir(
func.func private @k(%x: tensor<2x3x5x4xf32>, %y: tensor<2x3x2x4xf32>)
    -> (tensor<2x3x8x4xf32> {nova.map = array<i64: 0, 1, 2, 3>}) attributes {nova.kernel, nova.space = array<i64: 2, 3, 8, 4>} {
  %z = arith.constant dense<1.0> : tensor<2x3x1x4xf32>
  %r = tensor.concat dim(2) %x, %z, %y : (tensor<2x3x5x4xf32>, tensor<2x3x1x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
})mlir",
        {6, 8, 4}, {6, 5, 4});
  check(R"mlir(
func.func private @k(%x: tensor<2x3x5x4xf32>) -> (tensor<2x3x5x4xf32> {nova.map = array<i64: 0, 1, -1, 2>})
    attributes {nova.kernel, nova.space = array<i64: 2, 3, 4>} {
  %r = nova.cumsum %x {dim = 2 : i64} : (tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32>
  return %r : tensor<2x3x5x4xf32>
})mlir",
        {6, 4}, {6, 5, 4});
}

} // namespace
