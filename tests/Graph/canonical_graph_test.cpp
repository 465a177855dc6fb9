//===- canonical_graph_test.cpp - One spelling per meaning ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphTestUtils.h"

using namespace nova;
using namespace nova::graph;

static std::string canonical(const std::string &text) {
  auto graph = parseGraph(text);
  EXPECT_TRUE(graph) << graph.error().message;
  return graph ? canonicalGraph(*graph) : "";
}

TEST(CanonicalGraph, Golden) {
  EXPECT_EQ(
      canonical(smallGraph()),
      R"({"constants":[{"digest":"sha256:)"
      R"(9ded7d1dc5000ce5812ba0842d7f2196e7983ede7af862470eb482da8b0e7374")"
      R"(,"dtype":"float32","name":"c","shape":[4]}],"format":"nova.graph",)"
      R"("inputs":[{"dtype":"float32","name":"w","path":"net.w","role":)"
      R"("parameter","shape":[4]},{"advance":1.0,"dtype":"float32","name":)"
      R"("lr","path":"lr","role":"scalar","shape":[]},{"dtype":"float32",)"
      R"("name":"x","path":"x","role":"input","shape":[3,4],"strides":[1,3]}])"
      R"(,"name":"small","nodes":[{"args":[{"ref":"x"},{"ref":"c"}],"name":)"
      R"("a","op":"aten.mul.Tensor","results":[{"dtype":"float32","shape":)"
      R"([3,4]}]},{"args":[{"ref":"a"},0,false],"kwargs":{"k":[null,true,"s",)"
      R"(1.0,{"dtype":"bool"},{"enum":"cuda:0"},{"float":"nan"}]},"name":"b",)"
      R"("op":"aten.max.dim","results":[{"dtype":"float32","shape":[4]},)"
      R"({"dtype":"int64","shape":[4]},null]},{"args":[{"ref":"w"},{"ref":)"
      R"("b"}],"name":"d","op":"aten.sub.Tensor","results":[{"dtype":)"
      R"("float32","shape":[4]}]}],"outputs":[{"ref":"b","result":1,"role":)"
      R"("output"},{"ref":"d","role":"update","updates":"w"}],"version":1})");
}

TEST(CanonicalGraph, WhatCannotChangeTheOutputIsNotInIt) {
  std::string before = canonical(smallGraph());
  auto same = [&](const std::string &from, const std::string &to) {
    EXPECT_EQ(canonical(edited(smallGraph(), from, to)), before) << to;
  };
  same(R"({"by": "hand"})", R"({"torch": [1, 2.5, null]})");
  same(R"("producer": {"by": "hand"},)", "");
  same(R"("name":"a","op":"aten.mul.Tensor")",
       R"("op" : "aten.mul.Tensor",  "name":"a")");
  same(R"({"ref":"c","result":0})", R"({"ref":"c"})");
  same(R"("op":"aten.mul.Tensor")", R"("op":"aten.mul.Tensor","kwargs":{})");
  same("-2e3", "-2000.0");
  same(R"("shape":[3,4]}])", R"("shape":[3,4],"strides":[4,1]}])");
}

TEST(CanonicalGraph, WhatCanIsInIt) {
  std::string before = canonical(smallGraph());
  auto other = [&](const std::string &from, const std::string &to) {
    EXPECT_NE(canonical(edited(smallGraph(), from, to)), before) << to;
  };
  other("[0.5,1,", "[0.5,2,");
  other(",0,false]", ",0.0,false]"); // type promotion depends on it
  other(R"("strides":[1,3])", R"("strides":[1,4])");
  other(R"("advance":1)", R"("advance":2)");
  other("net.w", "net.v");
  other("aten.mul.Tensor", "aten.add.Tensor");
}

TEST(CanonicalGraph, DigestNamesItsAlgorithm) {
  auto graph = parseGraph(smallGraph());
  ASSERT_TRUE(graph);
  std::string digest = graphDigest(*graph);
  EXPECT_EQ(digest.substr(0, 7), "sha256:");
  EXPECT_EQ(digest.size(), 7u + 64u);
  EXPECT_EQ(digest, graphDigest(*graph));
}
