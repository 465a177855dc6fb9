//===- graphs_test.cpp - Every kernel of the repository's graphs -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include "nova/IR/NovaKernelOps.h"
#include "nova/Import/Import.h"
#include "nova/Pipelines/Pipelines.h"
#include "nova/Tiling/Passes.h"
#include "nova/Transforms/KernelAxes.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

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

/// Any tiles of which at most three have more than one position; elements that are
/// taken one by one have none.
static void setRandomTiles(func::FuncOp kernel, std::mt19937 &random) {
  OwningOpRef<func::FuncOp> collapsed = kernel.clone();
  tiling::collapseAxes(*collapsed);
  auto axes = tiling::Axes::analyse(*collapsed);
  ASSERT_TRUE(succeeded(axes));
  std::set<int64_t> single;
  for (size_t id = 0; id < axes->size(); ++id)
    if ((*axes)[id].single && !(*axes)[id].local())
      single.insert((*axes)[id].space);
  static constexpr int64_t kTiles[] = {2, 3, 4, 8, 16, 24, 32, 48, 64, 80};
  Builder builder(&context());
  unsigned rank = 0;
  for (StringRef name : {attr::tile, attr::localTile}) {
    SmallVector<int64_t> tiles(kernel->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef());
    for (auto [d, tile] : llvm::enumerate(tiles)) {
      if (name == attr::tile && single.count(d))
        continue;
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
      // Sorted updates are positions that exist, in parts one behind the other.
      if (auto sum = dyn_cast<SegmentSumOp>(op)) {
        auto updates = cast<RankedTensorType>(sum.getUpdates().getType()).getShape();
        int64_t positions = computeProduct(updates.take_front(tiling::positionRank(sum)));
        auto order = dyn_cast<BlockArgument>(sum.getOrder()), bounds = dyn_cast<BlockArgument>(sum.getBounds());
        ASSERT_TRUE(order && bounds);
        options.range[order.getArgNumber()] = {0, positions - 1};
        options.range[bounds.getArgNumber()] = {0, positions};
        options.sorted.insert(bounds.getArgNumber());
      }
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
