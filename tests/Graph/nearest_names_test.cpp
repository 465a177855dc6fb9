//===- nearest_names_test.cpp - "Did you mean" ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Graph/NearestNames.h"

#include <gtest/gtest.h>

using namespace nova::graph;

TEST(NearestNames, EditDistance) {
  EXPECT_EQ(editDistance("", "", 5), 0u);
  EXPECT_EQ(editDistance("abc", "abc", 5), 0u);
  EXPECT_EQ(editDistance("abc", "", 5), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting", 5), 3u);
  EXPECT_EQ(editDistance("mm", "bmm", 5), 1u);
  EXPECT_EQ(editDistance("abcd", "abdc", 5), 1u) << "a swap costs one";
  EXPECT_EQ(editDistance("abcdefgh", "stuvwxyz", 3), 4u) << "limit + 1";
}

TEST(NearestNames, NearestFirstTiesByName) {
  std::vector<std::string_view> known{"aten.mul.Tensor", "aten.add.Tensor",
                                      "aten.add.Scalar", "aten.sub.Tensor",
                                      "aten.cumsum.default"};
  EXPECT_EQ(nearestNames("aten.ad.Tensor", known),
            (std::vector<std::string>{"aten.add.Tensor", "aten.mul.Tensor",
                                      "aten.sub.Tensor"}));
  EXPECT_EQ(nearestNames("aten.ad.Tensor", known, 1),
            (std::vector<std::string>{"aten.add.Tensor"}));
  EXPECT_TRUE(nearestNames("prims.convolution", known).empty());
}
