//===- cuda_strands_test.cpp - Launches dealt to strands ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Cuda/CudaStrands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace nova::rt::cuda;

namespace {

using Edges = std::vector<std::vector<uint32_t>>;
using Reach = std::vector<std::vector<bool>>;

/// reach[i][j]: j comes before i.
Reach closure(const Edges &edges) {
  Reach reach(edges.size(), std::vector<bool>(edges.size()));
  for (size_t i = 0; i < edges.size(); ++i)
    for (uint32_t j : edges[i]) {
      reach[i][j] = true;
      for (size_t k = 0; k < j; ++k)
        if (reach[j][k])
          reach[i][k] = true;
    }
  return reach;
}

/// The most launches of which none comes before another: by Dilworth, launches
/// less the largest matching of the order's pairs.
size_t width(const Reach &reach) {
  size_t n = reach.size(), matched = 0;
  std::vector<int> partner(n, -1);
  std::vector<char> seen;
  auto match = [&](auto &&self, size_t i) -> bool {
    for (size_t j = 0; j < n; ++j) {
      if (!reach[i][j] || seen[j])
        continue;
      seen[j] = 1;
      if (partner[j] < 0 || self(self, size_t(partner[j]))) {
        partner[j] = static_cast<int>(i);
        return true;
      }
    }
    return false;
  };
  for (size_t i = 0; i < n; ++i) {
    seen.assign(n, 0);
    matched += match(match, i);
  }
  return n - matched;
}

void check(const Edges &after, unsigned most) {
  Edges edges = edgesInStrands(after, most);
  ASSERT_EQ(edges.size(), after.size());
  Reach wanted = closure(after), got = closure(edges);
  for (size_t i = 0; i < edges.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(!wanted[i][j] || got[i][j])
          << i << " no longer comes after " << j;
  EXPECT_LE(width(got), most);
  for (size_t i = 0; i < edges.size(); ++i)
    for (uint32_t a : edges[i]) {
      EXPECT_LT(a, i);
      for (uint32_t b : edges[i])
        EXPECT_TRUE(a == b || !got[a][b]) << i << " says twice " << b;
    }
  if (width(wanted) == 1) {
    EXPECT_EQ(got, wanted) << "an edge that orders nothing";
  }
}

} // namespace

TEST(Strands, WhatIsOrderedStaysOrdered) {
  std::mt19937 random(1);
  for (int n = 0; n < 200; ++n) {
    Edges after(random() % 40);
    unsigned density = 1 + random() % 12;
    for (uint32_t i = 0; i < after.size(); ++i)
      for (uint32_t j = 0; j < i; ++j)
        if (random() % density == 0 && random() % 3 == 0)
          after[i].push_back(j);
    for (unsigned most : {1u, 2u, 5u, 64u})
      check(after, most);
  }
}

TEST(Strands, ForksAreKeptToTheMost) {
  // One, then 50 after it, then one after them all.
  Edges after(52);
  for (uint32_t i = 1; i <= 50; ++i)
    after[i] = {0}, after[51].push_back(i);
  Edges edges = edgesInStrands(after, 8);
  EXPECT_EQ(edges[8], std::vector<uint32_t>{0});
  EXPECT_EQ(edges[9], std::vector<uint32_t>{1}) << "the first to have ended";
  EXPECT_EQ(edges[51].size(), 8u);
  EXPECT_EQ(width(closure(edges)), 8u);
  // Where there is room nothing is added.
  EXPECT_EQ(edgesInStrands(after, 64), after);
  EXPECT_EQ(edgesInStrands({{}, {0}, {0, 1, 0}}, 8), (Edges{{}, {0}, {1}}));
}
