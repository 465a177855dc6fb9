//===- GraphTestUtils.h - A small graph, and ways to break it -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_GRAPH_GRAPHTESTUTILS_H
#define NOVA_TESTS_GRAPH_GRAPHTESTUTILS_H

#include "nova/Graph/Graph.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <stdlib.h>

namespace nova::graph {

/// w - lr * (x @ w) and a constant, with every kind of value somewhere.
inline const std::string &smallGraph() {
  static const std::string text = R"({
 "format": "nova.graph", "version": 1, "name": "small",
 "producer": {"by": "hand"},
 "inputs": [
  {"name":"w","role":"parameter","path":"net.w","dtype":"float32","shape":[4]},
  {"name":"lr","role":"scalar","path":"lr","dtype":"float32","shape":[],"advance":1},
  {"name":"x","role":"input","path":"x","dtype":"float32","shape":[3,4],"strides":[1,3]}
 ],
 "constants": [
  {"name":"c","dtype":"float32","shape":[4],"values":[0.5,1,{"float":"-inf"},-2e3]}
 ],
 "nodes": [
  {"name":"a","op":"aten.mul.Tensor","args":[{"ref":"x"},{"ref":"c","result":0}],"results":[{"dtype":"float32","shape":[3,4]}]},
  {"name":"b","op":"aten.max.dim","args":[{"ref":"a"},0,false],"kwargs":{"k":[null,true,"s",1.0,{"dtype":"bool"},{"enum":"cuda:0"},{"float":"nan"}]},"results":[{"dtype":"float32","shape":[4]},{"dtype":"int64","shape":[4]},null]},
  {"name":"d","op":"aten.sub.Tensor","args":[{"ref":"w"},{"ref":"b"}],"results":[{"dtype":"float32","shape":[4]}]}
 ],
 "outputs": [
  {"ref":"b","result":1,"role":"output"},
  {"ref":"d","role":"update","updates":"w"}
 ]
})";
  return text;
}

/// `text` with the first `from` replaced; fails the test if it is not there.
inline std::string edited(std::string text, const std::string &from,
                          const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "not in the text: " << from;
  if (at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

inline void expectError(const std::string &text, const std::string &message,
                        const std::string &folder = {}) {
  auto graph = parseGraph(text, folder);
  ASSERT_FALSE(graph) << "accepted, expected: " << message;
  EXPECT_EQ(graph.error().message, message);
  EXPECT_EQ(graph.error().code, ErrorCode::BadInput);
}

/// The error that the small graph gives with one edit.
inline void expectEditError(const std::string &from, const std::string &to,
                            const std::string &message) {
  expectError(edited(smallGraph(), from, to), message);
}

/// A folder that goes away with the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = ::testing::TempDir() + "nova-graph-XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    [[maybe_unused]] int status = ::system(("rm -rf '" + path + "'").c_str());
  }
  void write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
  }
  std::string path;
};

} // namespace nova::graph

#endif // NOVA_TESTS_GRAPH_GRAPHTESTUTILS_H
