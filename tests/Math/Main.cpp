//===- Main.cpp - The flags of MathTests ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

#include <gtest/gtest.h>

#include <cstring>

namespace nova::test {
bool exhaustive = false;
bool showCost = false;
bool showAssembly = false;
} // namespace nova::test

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--exhaustive"))
      nova::test::exhaustive = true;
    else if (!std::strcmp(argv[i], "--cost"))
      nova::test::showCost = true;
    else if (!std::strcmp(argv[i], "--asm"))
      nova::test::showAssembly = true;
  }
  return RUN_ALL_TESTS();
}
