//===- groups_test.cpp - Several kernels in one launch as tile programs ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps whose launches nova-group-kernels makes one of; the kernel of that launch,
// which holds what each did, is run, and so is its tile program.
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/KernelGroups.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace nova;
using namespace nova::test;

/// One launch of `text` with every number for $N; $V of a tensor are its view's strides.
/// Returns the group.
static OwningOpRef<ModuleOp> grouped(const std::string &kernel, const std::string &type, const std::string &view,
                                     std::vector<int64_t> extents) {
  std::string arguments, launches, types, values, kernels;
  for (auto [i, n] : llvm::enumerate(extents)) {
    std::string number = std::to_string(i);
    auto with = [&](const std::string &text) {
      return filled(text, {{"N", std::to_string(n)}, {"I", number}});
    };
    arguments += with((i ? ", " : "") + std::string("%a$I: tensor<") + type + ">");
    launches += with("  %r$I = nova.launch @k$I(%a$I, %lr) views [#nova.view<0, " + view +
                     ">, #nova.view<0>] nodes [\"n$I\"] : (tensor<" + type + ">, tensor<f32>) -> tensor<$Nxf32>\n");
    types += with((i ? ", " : "") + std::string("tensor<$Nxf32>"));
    values += with((i ? ", " : "") + std::string("%r$I"));
    kernels += with(kernel);
  }
  std::string text = "func.func @step(" + arguments + ", %lr: tensor<f32>) -> (" + types +
                     ") attributes {nova.graph = \"g\"} {\n" + launches + "  return " + values + " : " + types + "\n}\n" +
                     kernels;
  auto module = parseSourceString<ModuleOp>(text, &context());
  EXPECT_TRUE(module) << text;
  PassManager passes(&context());
  passes.addPass(createGroupKernels());
  EXPECT_TRUE(succeeded(passes.run(*module)));
  return module;
}

static void check(const std::string &kernel, const std::string &type, const std::string &view,
                  std::vector<int64_t> extents) {
  auto module = grouped(kernel, type, view, extents);
  for (auto function : module->getOps<func::FuncOp>()) {
    auto group = groupOf(function);
    if (!group)
      continue;
    EXPECT_EQ(group->members, extents.size());
    EXPECT_EQ(group->shared, 1u);
    checkTiles(function);
    return;
  }
  ADD_FAILURE() << "no group";
}

static const char *kScale = R"mlir(
func.func private @k$I(%x: tensor<$Nxf32>, %s: tensor<f32>) -> (tensor<$Nxf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: $N>} {
  %e = tensor.empty() : tensor<$Nxf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<$Nxf32>, tensor<f32>) outs(%e : tensor<$Nxf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %m = arith.mulf %v, %w : f32
    linalg.yield %m : f32
  } -> tensor<$Nxf32>
  return %r : tensor<$Nxf32>
}
)mlir";

TEST(Groups, ElementwiseOfManySizes) {
  check(kScale, "$Nxf32", "[1]", {4, 8, 12, 768, 4, 2048, 768, 5000, 100});
}

TEST(Groups, OddSizesAreOnesOwn) { check(kScale, "$Nxf32", "[1]", {5, 7, 1025, 3, 5}); }

TEST(Groups, TwoMembers) { check(kScale, "$Nxf32", "[1]", {16, 16}); }

TEST(Groups, RowsAreReduced) {
  // As many rows as one has, of equal length.
  check(R"mlir(
func.func private @k$I(%x: tensor<$Nx40xf32>, %s: tensor<f32>) -> (tensor<$Nxf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "rows", nova.space = array<i64: $N>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$Nxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<$Nxf32>) -> tensor<$Nxf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %s : tensor<$Nx40xf32>, tensor<f32>) outs(%f : tensor<$Nxf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %d = arith.subf %v, %w : f32
    %m = arith.addf %o, %d : f32
    linalg.yield %m : f32
  } -> tensor<$Nxf32>
  return %r : tensor<$Nxf32>
}
)mlir",
        "$Nx40xf32", "[40, 1]", {4, 24, 36, 4});
}

TEST(Groups, ColumnsAreReduced) {
  // Strides along the parts are a member's own: those that differ are not one launch.
  check(R"mlir(
func.func private @k$I(%x: tensor<16x$Nxf32>, %s: tensor<f32>) -> (tensor<$Nxf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "columns", nova.space = array<i64: $N>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$Nxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<$Nxf32>) -> tensor<$Nxf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %s : tensor<16x$Nxf32>, tensor<f32>) outs(%f : tensor<$Nxf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %d = arith.mulf %v, %w : f32
    %m = arith.addf %o, %d : f32
    linalg.yield %m : f32
  } -> tensor<$Nxf32>
  return %r : tensor<$Nxf32>
}
)mlir",
        "16x$Nxf32", "[$N, 1]", {72, 72, 72});
}
