//===- Main.cpp - Runs the tests of Bundle, or regenerates their goldens --===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   BundleTests --regenerate
//
// writes golden/v1 anew (only while schema 1 is the current one: the goldens of
// former versions never change) and the expected errors of attacks/table.txt.
// The difference is reviewed before it is committed.
//
//===----------------------------------------------------------------------===//

#include "Goldens.h"

#include <gtest/gtest.h>

#include <cstring>

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "--regenerate") == 0)
    return nova::test::regenerateGolden() && nova::test::regenerateAttacks()
               ? 0
               : 1;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
