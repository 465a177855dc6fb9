//===- ImportFuzzer.cpp - Import on whatever the graph reader accepts -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments no producer would write must end in a diagnostic: import fails if
// and only if it said why, and what it makes passes the verifier.
//
//===----------------------------------------------------------------------===//
// LINK: novaImport
// SEEDS: graphs

#include "nova/Import/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto graph = nova::graph::parseGraph(
      {reinterpret_cast<const char *>(data), size}, /*folder=*/"");
  if (!graph)
    return 0;
  // A context of its own per input: types and attributes are never freed.
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  bool complained = false;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &) {
    complained = true;
    return mlir::success();
  });
  bool made(nova::importGraph(*graph, context));
  if (made == complained)
    std::abort();
  return 0;
}
