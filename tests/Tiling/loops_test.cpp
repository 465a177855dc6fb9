//===- loops_test.cpp - Loops over chunks: shared, online, shortened -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

/// Rows of x: maximum, sum of exponentials relative to it, and all of it divided
/// by the sum.
const char *kSoftmax = R"mlir(
func.func private @rows(%x: tensor<6x150xf32>)
    -> (tensor<6xf32> {nova.map = array<i64: 0>}, tensor<6xf32> {nova.map = array<i64: 0>},
        tensor<6x150xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 6>, nova.tile = array<i64: $ROWS>,
                nova.local_tile = array<i64: $CHUNK>} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<6xf32>
  %1 = linalg.fill ins(%low : f32) outs(%0 : tensor<6xf32>) -> tensor<6xf32>
  %max = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x150xf32>) outs(%1 : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %2 = arith.maximumf %out, %a : f32
    linalg.yield %2 : f32
  } -> tensor<6xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%0 : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %max : tensor<6x150xf32>, tensor<6xf32>) outs(%3 : tensor<6xf32>) {
  ^bb0(%a: f32, %m: f32, %out: f32):
    %4 = arith.subf %a, %m : f32
    %5 = math.exp %4 : f32
    %6 = arith.addf %out, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<6xf32>
  %7 = tensor.empty() : tensor<6x150xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %max, %sum : tensor<6x150xf32>, tensor<6xf32>, tensor<6xf32>) outs(%7 : tensor<6x150xf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32, %out: f32):
    %4 = arith.subf %a, %m : f32
    %5 = math.exp %4 : f32
    %6 = arith.divf %5, %s : f32
    linalg.yield %6 : f32
  } -> tensor<6x150xf32>
  return %max, %sum, %y : tensor<6xf32>, tensor<6xf32>, tensor<6x150xf32>
}
)mlir";

/// Rows of scores of q and k, of which i sees those where $SEES(j, i); weights
/// relative to the largest, summed with v.
const char *kScores = R"mlir(
#q = affine_map<(i, j, d) -> (i, d)>
#k = affine_map<(i, j, d) -> (j, d)>
#s = affine_map<(i, j, d) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func private @scores(%q: tensor<50x16xf32>, %k: tensor<90x16xf32>, %v: tensor<90x16xf32>)
    -> (tensor<50xf32> {nova.map = array<i64: 0>}, tensor<50x16xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 50>, nova.tile = array<i64: $ROWS>,
                nova.local_tile = array<i64: $CHUNK, 16, 16>} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<50x90xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<50x90xf32>) -> tensor<50x90xf32>
  %raw = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<50x16xf32>, tensor<90x16xf32>) outs(%1 : tensor<50x90xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %2 = arith.mulf %a, %b : f32
    %3 = arith.addf %out, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<50x90xf32>
  %4 = tensor.empty() : tensor<50xf32>
  %5 = linalg.fill ins(%low : f32) outs(%4 : tensor<50xf32>) -> tensor<50xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%raw : tensor<50x90xf32>) outs(%5 : tensor<50xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
$HIDES
    %s = arith.select %hides, %low, %a : f32
    %m = arith.maximumf %out, %s : f32
    linalg.yield %m : f32
  } -> tensor<50xf32>
  %weights = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%raw, %max : tensor<50x90xf32>, tensor<50xf32>) outs(%0 : tensor<50x90xf32>) {
  ^bb0(%a: f32, %m: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
$HIDES
    %s = arith.select %hides, %low, %a : f32
    %none = arith.cmpf oeq, %m, %low : f32
    %g = arith.select %none, %zero, %m : f32
    %x = arith.subf %s, %g : f32
    %e = math.exp %x : f32
    linalg.yield %e : f32
  } -> tensor<50x90xf32>
  %6 = linalg.fill ins(%zero : f32) outs(%4 : tensor<50xf32>) -> tensor<50xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%weights : tensor<50x90xf32>) outs(%6 : tensor<50xf32>) {
  ^bb0(%a: f32, %out: f32):
    %7 = arith.addf %out, %a : f32
    linalg.yield %7 : f32
  } -> tensor<50xf32>
  %8 = tensor.empty() : tensor<50x16xf32>
  %9 = linalg.fill ins(%zero : f32) outs(%8 : tensor<50x16xf32>) -> tensor<50x16xf32>
  %out = linalg.generic {indexing_maps = [affine_map<(i, d, j) -> (i, j)>, affine_map<(i, d, j) -> (j, d)>, affine_map<(i, d, j) -> (i, d)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%weights, %v : tensor<50x90xf32>, tensor<90x16xf32>) outs(%9 : tensor<50x16xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %10 = arith.mulf %a, %b : f32
    %11 = arith.addf %acc, %10 : f32
    linalg.yield %11 : f32
  } -> tensor<50x16xf32>
  return %sum, %out : tensor<50xf32>, tensor<50x16xf32>
}
)mlir";

const char *kCausal = "    %hides = arith.cmpi ugt, %j, %i : index\n";
/// Of the 25 before it, and nothing for the last rows.
const char *kWindow = R"mlir(
    %c25 = arith.constant 25 : index
    %c15 = arith.constant 15 : index
    %low_end = arith.addi %j, %c25 : index
    %early = arith.cmpi slt, %low_end, %i : index
    %high_end = arith.addi %j, %c15 : index
    %late = arith.cmpi sge, %high_end, %i : index
    %hides = arith.ori %early, %late : i1
)mlir";

TEST(Loops, AMaximumAndTheSumRelativeToIt) {
  for (const char *chunk : {"16", "48", "64", "256", "1"})
    for (const char *rows : {"1", "4"})
      for (unsigned specials : {0, 3, 40}) {
        TilingOptions options;
        options.specials = specials;
        options.floats = {-90, 90};
        checkTiles(filled(kSoftmax, {{"CHUNK", chunk}, {"ROWS", rows}}), options);
      }
}

TEST(Loops, ScoresOfWhichSomeAreHidden) {
  for (const char *hides : {kCausal, kWindow})
    for (const char *chunk : {"16", "32", "96", "1"})
      for (const char *rows : {"16", "1", "64"}) {
        TilingOptions options;
        options.floats = {-4, 4};
        checkTiles(filled(kScores, {{"CHUNK", chunk}, {"ROWS", rows}, {"HIDES", hides}}), options);
      }
}

} // namespace
