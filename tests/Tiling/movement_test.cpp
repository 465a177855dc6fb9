//===- movement_test.cpp - Concatenation, sums, scatters, choices on tiles -===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

TEST(Concat, OfArgumentsAndComputedValuesAtAnyTile) {
  const char *text = R"mlir(
func.func private @concat(%a: tensor<5x7xf32>, %b: tensor<5x1xf32>, %c: tensor<5x12xf32> {nova.strides = array<i64: 1, 5>})
    -> (tensor<5x20xf32> {nova.map = array<i64: $MAP>})
    attributes {nova.kernel, nova.space = array<i64: $SPACE>, nova.tile = array<i64: $TILE>,
                nova.local_tile = array<i64$LOCAL>} {
  %0 = tensor.empty() : tensor<5x12xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%c : tensor<5x12xf32>) outs(%0 : tensor<5x12xf32>) {
  ^bb0(%x: f32, %out: f32):
    %2 = arith.addf %x, %x : f32
    linalg.yield %2 : f32
  } -> tensor<5x12xf32>
  %3 = tensor.concat dim(1) %a, %b, %1 : (tensor<5x7xf32>, tensor<5x1xf32>, tensor<5x12xf32>) -> tensor<5x20xf32>
  return %3 : tensor<5x20xf32>
})mlir";
  for (const char *tile : {"1", "4", "8", "32"}) {
    for (const char *rows : {"1", "2"}) {
      std::string both = std::string(rows) + ", " + tile;
      checkTiles(filled(text, {{"MAP", "0, 1"}, {"SPACE", "5, 20"}, {"TILE", both}, {"LOCAL", ""}}));
      checkTiles(filled(text, {{"MAP", "0, -1"}, {"SPACE", "5"}, {"TILE", rows}, {"LOCAL", std::string(": ") + tile}}));
    }
  }
}

TEST(Cumsum, AlongEitherDimensionWholeOrInChunks) {
  const char *text = R"mlir(
func.func private @cumsum(%a: tensor<9x20x$T>) -> (tensor<9x20x$T> {nova.map = array<i64: -1, -1>})
    attributes {nova.kernel, nova.space = array<i64>, nova.tile = array<i64>, nova.local_tile = array<i64: $TILE>} {
  %0 = nova.cumsum %a {dim = $DIM : i64} : (tensor<9x20x$T>) -> tensor<9x20x$T>
  return %0 : tensor<9x20x$T>
})mlir";
  for (const char *type : {"f32", "i64", "bf16"})
    for (const char *tile : {"16, 32", "4, 32", "1, 32", "1, 1"})
      checkTiles(filled(text, {{"DIM", "0"}, {"T", type}, {"TILE", tile}}));
  for (const char *tile : {"16, 32", "16, 8", "16, 1"})
    checkTiles(filled(text, {{"DIM", "1"}, {"T", "f32"}, {"TILE", tile}}));
}

/// What follows a running sum is computed in its loop.
TEST(Cumsum, InsideALargerKernel) {
  for (const char *tile : {"32", "8", "1"})
    checkTiles(filled(R"mlir(
func.func private @k(%a: tensor<6x20xf32>)
    -> (tensor<6x20xf32> {nova.map = array<i64: 0, -1>}, tensor<6xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 6>, nova.tile = array<i64: 4>, nova.local_tile = array<i64: $TILE>} {
  %zero = arith.constant 0.0 : f32
  %0 = nova.cumsum %a {dim = 1 : i64} : (tensor<6x20xf32>) -> tensor<6x20xf32>
  %1 = tensor.empty() : tensor<6x20xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%0, %a : tensor<6x20xf32>, tensor<6x20xf32>) outs(%1 : tensor<6x20xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %5 = arith.mulf %x, %y : f32
    linalg.yield %5 : f32
  } -> tensor<6x20xf32>
  %3 = tensor.empty() : tensor<6xf32>
  %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<6xf32>) -> tensor<6xf32>
  %6 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<6x20xf32>) outs(%4 : tensor<6xf32>) {
  ^bb0(%x: f32, %out: f32):
    %5 = arith.addf %out, %x : f32
    linalg.yield %5 : f32
  } -> tensor<6xf32>
  return %2, %6 : tensor<6x20xf32>, tensor<6xf32>
})mlir",
                      {{"TILE", tile}}));
}

/// Indices that wrap, repeat and miss.
TEST(IndexPut, AddsAndWritesInTheOrderOfTheUpdates) {
  const char *text = R"mlir(
func.func private @put(%init: tensor<11x20xf32>, %at: tensor<3x30xi64>, %updates: tensor<3x30x20xf32>)
    -> (tensor<11x20xf32> {nova.map = array<i64: $MAP>})
    attributes {nova.kernel, nova.space = array<i64: $SPACE>, nova.tile = array<i64: $TILE>,
                nova.local_tile = array<i64: $LOCAL>} {
  %0 = nova.index_put %init, %at, %updates $MODE : (tensor<11x20xf32>, tensor<3x30xi64>, tensor<3x30x20xf32>) -> tensor<11x20xf32>
  return %0 : tensor<11x20xf32>
})mlir";
  TilingOptions options;
  options.range[1] = {-14, 13};
  options.tolerance = 0;
  for (const char *mode : {"", "{accumulate}"})
    for (const char *chunk : {"1", "8", "32"}) {
      checkTiles(filled(text, {{"MODE", mode}, {"MAP", "0, 1"}, {"SPACE", "11, 20"}, {"TILE", "4, 8"}, {"LOCAL", chunk}}), options);
      checkTiles(filled(text, {{"MODE", mode}, {"MAP", "0, 1"}, {"SPACE", "11, 20"}, {"TILE", "1, 1"}, {"LOCAL", chunk}}), options);
      std::string local = std::string("16, ") + chunk;
      checkTiles(filled(text, {{"MODE", mode}, {"MAP", "-1, 0"}, {"SPACE", "20"}, {"TILE", "32"}, {"LOCAL", local}}), options);
    }
}

TEST(IndexPut, OfSeveralIndicesThatAreComputed) {
  TilingOptions options;
  options.range[0] = {-5, 6};
  checkTiles(R"mlir(
func.func private @put(%at: tensor<40xi64>, %updates: tensor<40x6xf32>)
    -> (tensor<4x5x6xf32> {nova.map = array<i64: 0, 1, 2>})
    attributes {nova.kernel, nova.space = array<i64: 4, 5, 6>, nova.tile = array<i64: 2, 4, 8>,
                nova.local_tile = array<i64: 16>} {
  %init = arith.constant dense<0.0> : tensor<4x5x6xf32>
  %0 = tensor.empty() : tensor<40xi64>
  %1 = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%at : tensor<40xi64>) outs(%0 : tensor<40xi64>) {
  ^bb0(%x: i64, %out: i64):
    %one = arith.constant 1 : i64
    %2 = arith.subi %x, %one : i64
    linalg.yield %2 : i64
  } -> tensor<40xi64>
  %3 = nova.index_put %init, %1, %at, %updates {accumulate} : (tensor<4x5x6xf32>, tensor<40xi64>, tensor<40xi64>, tensor<40x6xf32>) -> tensor<4x5x6xf32>
  return %3 : tensor<4x5x6xf32>
})mlir",
             options);
}

/// Segments of no, few and many updates; the upper halves of the order mean nothing.
TEST(SegmentSum, AddsWhatEachRowTakesInItsOrder) {
  const char *text = R"mlir(
func.func private @sum(%init: tensor<3x5x20x$T>, %updates: tensor<2x30x20x$T>, %order: tensor<64xi64>, %bounds: tensor<16xi32>)
    -> (tensor<3x5x20x$T> {nova.map = array<i64: 0, 1, 2>})
    attributes {nova.kernel, nova.space = array<i64: 3, 5, 20>, nova.tile = array<i64: 1, 1, $TILE>,
                nova.local_tile = array<i64>, nova.warps = 1 : i64} {
  %0 = nova.segment_sum %init, %updates, %order, %bounds {rows = 2 : i64} : (tensor<3x5x20x$T>, tensor<2x30x20x$T>, tensor<64xi64>, tensor<16xi32>) -> tensor<3x5x20x$T>
  return %0 : tensor<3x5x20x$T>
})mlir";
  TilingOptions options;
  options.range[2] = {0, 59};
  options.range[3] = {0, 64};
  options.sorted = {3};
  for (const char *type : {"f32", "bf16", "f16", "i64", "f64"})
    for (const char *tile : {"1", "8", "32"})
      checkTiles(filled(text, {{"T", type}, {"TILE", tile}}), options);
  // One segment has all.
  options.range[3] = {64, 64};
  checkTiles(filled(text, {{"T", "f32"}, {"TILE", "32"}}), options);
}

/// Without columns, from one value, of updates that are computed.
TEST(SegmentSum, OfSingleElements) {
  TilingOptions options;
  options.range[1] = {0, 39};
  options.range[2] = {0, 40};
  options.sorted = {2};
  checkTiles(R"mlir(
func.func private @sum(%x: tensor<40xf32>, %order: tensor<40xi64>, %bounds: tensor<12xi32>)
    -> (tensor<11xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 11>} {
  %init = arith.constant dense<1.0> : tensor<11xf32>
  %0 = tensor.empty() : tensor<40xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>], iterator_types = ["parallel"]}
      ins(%x : tensor<40xf32>) outs(%0 : tensor<40xf32>) {
  ^bb0(%v: f32, %out: f32):
    %2 = arith.addf %v, %v : f32
    linalg.yield %2 : f32
  } -> tensor<40xf32>
  %3 = nova.segment_sum %init, %1, %order, %bounds {rows = 1 : i64} : (tensor<11xf32>, tensor<40xf32>, tensor<40xi64>, tensor<12xi32>) -> tensor<11xf32>
  return %3 : tensor<11xf32>
})mlir",
             options);
}

TEST(Scatter, AddsAndWritesInTheOrderOfTheUpdates) {
  const char *text = R"mlir(
func.func private @scatter(%init: tensor<9x20xf32>, %at: tensor<$I>, %updates: tensor<$U>)
    -> (tensor<9x20xf32> {nova.map = array<i64: $MAP>})
    attributes {nova.kernel, nova.space = array<i64: $SPACE>, nova.tile = array<i64: $TILE>,
                nova.local_tile = array<i64: 32>} {
  %0 = nova.scatter %init, %at, %updates {dim = 1 : i64$MODE} : (tensor<9x20xf32>, tensor<$I>, tensor<$U>) -> tensor<9x20xf32>
  return %0 : tensor<9x20xf32>
})mlir";
  TilingOptions options;
  options.range[1] = {-2, 22};
  options.tolerance = 0;
  for (const char *mode : {"", ", accumulate"})
    for (const char *extents : {"9x30", "9x13", "7x30", "9x1"})
      for (const char *tile : {"4", "1", "16"}) {
        std::string shape = extents;
        checkTiles(filled(text, {{"MODE", mode}, {"I", shape + "xi64"}, {"U", shape + "xf32"}, {"MAP", "0, -1"}, {"SPACE", "9"}, {"TILE", tile}}),
                   options);
      }
}

/// The first largest, its position; and a body of no known form.
TEST(Choice, OfTheFirstLargest) {
  const char *text = R"mlir(
func.func private @choose(%x: tensor<7x50xf32>)
    -> (tensor<7xf32> {nova.map = array<i64: 0>}, tensor<7xi64> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 7>, nova.tile = array<i64: $ROWS>, nova.local_tile = array<i64: $CHUNK>} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %0 = tensor.empty() : tensor<7xf32>
  %1 = tensor.empty() : tensor<7xi64>
  %2 = linalg.fill ins(%low : f32) outs(%0 : tensor<7xf32>) -> tensor<7xf32>
  %3 = linalg.fill ins(%zero : i64) outs(%1 : tensor<7xi64>) -> tensor<7xi64>
  %4:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<7x50xf32>) outs(%2, %3 : tensor<7xf32>, tensor<7xi64>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %5 = arith.cmpf ogt, %a, %best : f32
    %6 = arith.cmpf ord, %best, %best : f32
    %7 = arith.cmpf uno, %a, %a : f32
    %8 = arith.andi %6, %7 : i1
    %9 = arith.ori %5, %8 : i1
    %10 = arith.select %9, %a, %best : f32
    %11 = arith.select %9, %j64, %at : i64
    linalg.yield %10, %11 : f32, i64
  } -> (tensor<7xf32>, tensor<7xi64>)
  return %4#0, %4#1 : tensor<7xf32>, tensor<7xi64>
})mlir";
  for (const char *rows : {"1", "4"})
    for (const char *chunk : {"1", "16", "64"})
      for (unsigned specials : {0, 2, 30}) {
        TilingOptions options;
        options.specials = specials;
        checkTiles(filled(text, {{"ROWS", rows}, {"CHUNK", chunk}}), options);
      }
}

TEST(Fold, OfABodyOfNoKnownForm) {
  for (const char *rows : {"1", "4"})
    checkTiles(filled(R"mlir(
func.func private @fold(%x: tensor<7x50xf32>) -> (tensor<7xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 7>, nova.tile = array<i64: $ROWS>, nova.local_tile = array<i64>} {
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %0 = tensor.empty() : tensor<7xf32>
  %1 = linalg.fill ins(%one : f32) outs(%0 : tensor<7xf32>) -> tensor<7xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<7x50xf32>) outs(%1 : tensor<7xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %3 = arith.mulf %acc, %half : f32
    %4 = arith.addf %3, %a : f32
    linalg.yield %4 : f32
  } -> tensor<7xf32>
  return %2 : tensor<7xf32>
})mlir",
                      {{"ROWS", rows}}));
}

} // namespace
