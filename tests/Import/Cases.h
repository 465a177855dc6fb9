//===- Cases.h - One-node graphs, and what they become --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No MLIR headers here: the tables of cases compile in seconds.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_IMPORT_CASES_H
#define NOVA_TESTS_IMPORT_CASES_H

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace nova {

/// A graph with inputs x0, x1, ... of the given types ("float32[3,4]"), one
/// node `n`, and its results as outputs (those that are not "null").
std::string oneNode(const std::vector<std::string> &inputs,
                    const std::string &op, const std::string &args,
                    const std::string &kwargs,
                    const std::vector<std::string> &results);

/// Imports it and gives each output as an expression over the inputs, one a
/// line: operations without their dialect, attributes in braces, types where
/// an operation chooses its own:
///   add(x0, cast(x1):f32[3,4])
///   argmax(x0){dim=1}#1
/// Errors instead, if there were any.
std::string imported(const std::string &graphText);

/// One call of an operation and what it becomes.
struct Case {
  std::vector<std::string> inputs;
  const char *op;
  const char *args; ///< JSON; 'x0' stands for {"ref":"x0"}
  const char *kwargs;
  std::vector<std::string> results;
  const char *expected;
};

inline void expectCases(std::initializer_list<Case> cases) {
  for (const Case &c : cases)
    EXPECT_EQ(imported(oneNode(c.inputs, c.op, c.args, c.kwargs, c.results)),
              c.expected)
        << c.op << c.args << c.kwargs;
}

} // namespace nova

#endif // NOVA_TESTS_IMPORT_CASES_H
