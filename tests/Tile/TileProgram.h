//===- TileProgram.h - Tile programs as text, executed on vectors ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_TILE_TILEPROGRAM_H
#define NOVA_TESTS_TILE_TILEPROGRAM_H

#include "nova/Tile/Interpreter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nova::test {

/// Executes the function in `text` (a module of one function) on `buffers`;
/// returns the error's text, empty if there is none.
std::string runProgram(const std::string &text,
                       const std::vector<void *> &buffers,
                       const tile::InterpreterOptions &options = {});

/// A function of these parameters over `grid` points that executes `body`.
std::string programText(const std::string &parameters, const std::string &body,
                        int64_t grid = 1);

/// Executes `body`, which must not fail, on vectors that are the parameters'
/// data.
template <typename... Vectors>
void run(const std::string &parameters, const std::string &body,
         Vectors &...vectors) {
  EXPECT_EQ(runProgram(programText(parameters, body), {vectors.data()...}), "");
}

/// Executes `body` and expects an error with this text in it.
template <typename... Vectors>
void fails(const std::string &why, const std::string &parameters,
           const std::string &body, Vectors &...vectors) {
  std::string error =
      runProgram(programText(parameters, body), {vectors.data()...});
  EXPECT_NE(error.find(why), std::string::npos)
      << "error: '" << error << "', expected: '" << why << "'";
}

} // namespace nova::test

#endif // NOVA_TESTS_TILE_TILEPROGRAM_H
