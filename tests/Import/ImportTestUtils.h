//===- ImportTestUtils.h - One-node graphs, imported and printed
//-----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_IMPORT_IMPORTTESTUTILS_H
#define NOVA_TESTS_IMPORT_IMPORTTESTUTILS_H

#include "nova/IR/Nova.h"
#include "nova/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nova {

/// A context, and what import says in it.
struct Imported {
  mlir::MLIRContext context;
  std::string errors;

  mlir::OwningOpRef<mlir::ModuleOp> import(const graph::Graph &graph) {
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          errors += (errors.empty() ? "" : "\n") + diagnostic.str();
          return mlir::success();
        });
    return importGraph(graph, context);
  }
};

/// A graph with inputs x0, x1, ... of the given types ("float32[3,4]"), one
/// node `n`, and its results as outputs (those that are not "null").
std::string oneNode(const std::vector<std::string> &inputs,
                    const std::string &op, const std::string &args,
                    const std::string &kwargs,
                    const std::vector<std::string> &results);

/// Imports it and gives the body of the step, one operation per line, as
///   %0 = nova.add %x0, %x1 : float32[3,4]
/// Errors instead, if there were any.
std::string imported(const std::string &graphText);

} // namespace nova

#endif // NOVA_TESTS_IMPORT_IMPORTTESTUTILS_H
