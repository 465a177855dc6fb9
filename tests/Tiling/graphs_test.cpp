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
#include <random>

using namespace mlir;
using namespace nova;
using namespace nova::test;

/// What the two interpreters do in a second or two.
static constexpr int64_t kWorkLimit = 10'000'000;

static constexpr int64_t kRandomLimit = 500'000;

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

/// Any tiles of which at most three have more than one position.
static void setRandomTiles(func::FuncOp kernel, std::mt19937 &random) {
  static constexpr int64_t kTiles[] = {2, 3, 4, 8, 16, 24, 32, 48, 64, 80};
  Builder builder(&context());
  unsigned rank = 0;
  for (StringRef name : {attr::tile, attr::localTile}) {
    SmallVector<int64_t> tiles(kernel->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef());
    for (int64_t &tile : tiles) {
      tile = rank < 3 && random() % 4 ? kTiles[random() % std::size(kTiles)] : 1;
      rank += tile > 1;
    }
    kernel->setAttr(name, builder.getDenseI64ArrayAttr(tiles));
  }
}

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
      std::mt19937 random(kernel.getSymName().size());
      for (int round = 0; round < 3 && referenceWork(kernel) <= kRandomLimit; ++round) {
        OwningOpRef<func::FuncOp> other = kernel.clone();
        setRandomTiles(*other, random);
        checkTiles(*other, options);
      }
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
