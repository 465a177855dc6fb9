//===- graphs_test.cpp - Every kernel of the repository's graphs -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include "nova/Import/Import.h"
#include "nova/Pipelines/Pipelines.h"
#include "nova/Tiling/Passes.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace mlir;
using namespace nova;
using namespace nova::test;

/// What the two interpreters do in a second or two.
static constexpr int64_t kWorkLimit = 10'000'000;

static std::vector<std::string> graphNames() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(NOVA_GRAPHS_DIR))
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {
class Graphs : public ::testing::TestWithParam<std::string> {};
} // namespace

TEST_P(Graphs, KernelsComputeTheSameOnTiles) {
  auto graph = graph::readGraph(std::string(NOVA_GRAPHS_DIR) + "/" + GetParam() + ".json");
  ASSERT_TRUE(graph) << graph.error().message;
  auto module = importGraph(*graph, context());
  ASSERT_TRUE(module);
  PassManager passes(&context());
  PipelineOptions pipeline;
  pipeline.device = "h200";
  buildPipeline(passes, pipeline, Stage::Configured);
  ASSERT_TRUE(succeeded(passes.run(*module)));
  for (auto kernel : module->getOps<func::FuncOp>()) {
    if (!isKernel(kernel))
      continue;
    SCOPED_TRACE(kernel.getSymName().str());
    TilingOptions options;
    // Roots and logarithms see what they are for.
    kernel.walk([&](Operation *op) {
      if (isa<math::SqrtOp, math::RsqrtOp, math::LogOp, math::PowFOp>(op))
        options.floats = {0.1, 1};
    });
    if (referenceWork(kernel) <= kWorkLimit) {
      checkTiles(kernel, options);
      continue;
    }
    // Too much to execute: it must be a program at least.
    OwningOpRef<ModuleOp> alone = ModuleOp::create(kernel.getLoc());
    alone->getBody()->push_back(kernel->clone());
    PassManager tiling(&context());
    tiling.addPass(createLowerKernelsToTiles());
    EXPECT_TRUE(succeeded(tiling.run(*alone)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Graphs, ::testing::ValuesIn(graphNames()),
                         [](const auto &info) { return info.param; });
