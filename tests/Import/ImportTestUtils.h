//===- ImportTestUtils.h - One-node graphs, imported and printed ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_IMPORT_IMPORTTESTUTILS_H
#define NOVA_TESTS_IMPORT_IMPORTTESTUTILS_H

#include "Cases.h"
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
  // Without threads: starting them costs more than these tests do.
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
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

} // namespace nova

#endif // NOVA_TESTS_IMPORT_IMPORTTESTUTILS_H
