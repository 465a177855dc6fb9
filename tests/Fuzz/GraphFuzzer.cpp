//===- GraphFuzzer.cpp - The graph reader on any bytes --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No bytes may crash it, and what is accepted keeps its promises: every
// reference resolves, every constant has its bytes, the canonical form is made.
//
//===----------------------------------------------------------------------===//
// LINK: novaGraph
// SEEDS: graphs

#include "nova/Graph/Graph.h"

#include <cstdlib>

using namespace nova::graph;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static void checkValue(const Graph &graph, const Value &value, uint32_t node) {
  if (const auto *ref = value.as<Ref>()) {
    require(ref->kind != Ref::Kind::Node || ref->index < node);
    (void)graph.tensor(*ref);
  }
  if (const auto *list = value.as<ValueList>())
    for (const Value &each : *list)
      checkValue(graph, each, node);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto graph =
      parseGraph({reinterpret_cast<const char *>(data), size}, /*folder=*/"");
  if (!graph) {
    require(!graph.error().message.empty());
    return 0;
  }
  for (const Constant &constant : graph->constants)
    require(constant.bytes.size() ==
            static_cast<uint64_t>(constant.denseBytes()));
  for (uint32_t i = 0; i < graph->nodes.size(); ++i) {
    for (const Value &value : graph->nodes[i].args)
      checkValue(*graph, value, i);
    for (const auto &[key, value] : graph->nodes[i].kwargs)
      checkValue(*graph, value, i);
  }
  for (const Output &output : graph->outputs) {
    const Tensor &tensor = graph->tensor(output.value);
    if (output.updates)
      require(graph->inputs[*output.updates].shape == tensor.shape);
  }
  require(!canonicalGraph(*graph).empty());
  return 0;
}
