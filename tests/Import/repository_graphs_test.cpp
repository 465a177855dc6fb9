//===- repository_graphs_test.cpp - Every graph of the repository imports -===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportTestUtils.h"

#include <chrono>

using namespace mlir;
using namespace nova;

namespace {
class RepositoryGraphs : public ::testing::TestWithParam<const char *> {};
} // namespace

TEST_P(RepositoryGraphs, ImportAndVerify) {
  auto graph = graph::readGraph(std::string(NOVA_GRAPHS_DIR) + "/" +
                                GetParam() + ".json");
  ASSERT_TRUE(graph) << graph.error().message;
  Imported imported;
  auto start = std::chrono::steady_clock::now();
  auto module = imported.import(*graph);
  std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(module) << imported.errors;
  RecordProperty("milliseconds", std::to_string(took.count()));
  auto step = (*module).lookupSymbol<func::FuncOp>("step");
  ASSERT_TRUE(step);
  EXPECT_EQ(step.getNumArguments(), graph->inputs.size());
  EXPECT_EQ(step.getNumResults(), graph->outputs.size());
  // What stands for a failed node must not be left behind.
  step.walk([](Operation *op) {
    EXPECT_TRUE(isa<NovaDialect>(op->getDialect()) || isa<func::FuncOp>(op) ||
                isa<func::ReturnOp>(op))
        << op->getName().getStringRef().str();
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, RepositoryGraphs,
    ::testing::Values("format_corners", "lm_head_small", "mlp_mnist",
                      "mlp_mnist_adamw_core", "gpt2_tiny", "gpt2_tiny_core",
                      "gpt2_tiny_eagerattn", "gpt2_124m_b8",
                      "llama_tiny", "vit_tiny", "gpt2_small_bf16",
                      "gpt2_124m_b8_bf16"),
    [](const auto &info) { return std::string(info.param); });

TEST(Locations, NameTheNodeAndItsPath) {
  auto graph = graph::parseGraph(oneNode({"float32[4]"}, "aten.exp.default",
                                         "['x0']", "{}", {"float32[4]"}));
  ASSERT_TRUE(graph) << graph.error().message;
  Imported imported;
  auto module = imported.import(*graph);
  ASSERT_TRUE(module) << imported.errors;
  auto step = (*module).lookupSymbol<func::FuncOp>("step");
  auto loc = dyn_cast<NameLoc>(step.getBody().front().front().getLoc());
  ASSERT_TRUE(loc);
  EXPECT_EQ(loc.getName(), "n");
  auto path = dyn_cast<NameLoc>(loc.getChildLoc());
  ASSERT_TRUE(path);
  EXPECT_EQ(path.getName(), "nodes[0]");
}
