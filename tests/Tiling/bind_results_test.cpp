//===- bind_results_test.cpp - Movements over a grid of their results -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace nova;
using namespace nova::test;

/// Binds the result of the kernel in `text`, which must have `space` then, and
/// compares its tile program with it.
static void check(const std::string &text, std::vector<int64_t> space, const TilingOptions &options = {}) {
  SCOPED_TRACE(text);
  auto module = parseSourceString<ModuleOp>(text, &context());
  ASSERT_TRUE(module);
  PassManager passes(&context());
  passes.addNestedPass<func::FuncOp>(createBindResults());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  auto kernel = *module->getOps<func::FuncOp>().begin();
  EXPECT_EQ(kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).asArrayRef().vec(), space);
  checkTiles(kernel, options);
}

TEST(BindResults, ThreePartsSideBySide) {
  check(R"mlir(
func.func private @k(%x: tensor<9x5xf32>, %y: tensor<9x33xf32> {nova.strides = array<i64: 40, 1>}, %z: tensor<9x1xf32>)
    -> (tensor<9x39xf32> {nova.map = array<i64: 0, -1>}) attributes {nova.kernel, nova.space = array<i64: 9>} {
  %c = tensor.concat dim(1) %x, %y, %z : (tensor<9x5xf32>, tensor<9x33xf32>, tensor<9x1xf32>) -> tensor<9x39xf32>
  return %c : tensor<9x39xf32>
})mlir",
        {9, 39});
}

TEST(BindResults, RowsThatUpdatesAreAddedTo) {
  // Of 7 rows: some indices count from the end, some are outside.
  TilingOptions options;
  options.range[1] = {-9, 8};
  for (const char *accumulate : {"{accumulate} ", ""})
    check(filled(R"mlir(
func.func private @k(%t: tensor<7x12xf32>, %i: tensor<3x10xi64>, %u: tensor<3x10x12xf32>)
    -> (tensor<7x12xf32> {nova.map = array<i64: -1, 0>}) attributes {nova.kernel, nova.space = array<i64: 12>} {
  %r = nova.index_put %t, %i, %u $HOW: (tensor<7x12xf32>, tensor<3x10xi64>, tensor<3x10x12xf32>) -> tensor<7x12xf32>
  return %r : tensor<7x12xf32>
})mlir",
                 {{"HOW", accumulate}}),
          {7, 12}, options);
}
