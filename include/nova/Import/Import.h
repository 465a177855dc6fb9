//===- Import.h - Graph files and MLIR into the stage `graph` -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stage `graph`: a module with one `func.func @step` of nova operations,
// argument and result attributes as the nova dialect's description says.
//
// Errors are MLIR diagnostics. Each names the JSON path (in the message, and in
// the location), the value found and what was expected; import goes on after an
// error, so that one run shows everything that is wrong.
//
// Every operation made for a graph node has the location
//   NameLoc("NODE NAME", child: NameLoc("nodes[12]"))
// so the outermost name of a location is the graph's own name for a node.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_IMPORT_IMPORT_H
#define NOVA_IMPORT_IMPORT_H

#include "nova/Graph/Graph.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace llvm {
class MemoryBufferRef;
} // namespace llvm

namespace nova {

/// Loads the dialects that the stage `graph` is made of into the context.
void loadGraphDialects(mlir::MLIRContext &context);

/// Builds the step of a graph. Null after emitting diagnostics: operations that
/// are not supported (all of them in one diagnostic, with the nearest known
/// names), arguments an operation does not take, results whose dtype or shape
/// is not what the operation computes.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(const graph::Graph &graph,
                                              mlir::MLIRContext &context);

/// Parses nova MLIR (text or bytecode, told apart by content) and verifies the
/// step contract. Null after emitting diagnostics. The dialects of what kernels
/// hold are the caller's to load.
mlir::OwningOpRef<mlir::ModuleOp> importMlir(llvm::MemoryBufferRef buffer,
                                             mlir::MLIRContext &context);

/// Whether the module is a step at a stage up to `plan`: one function `step`,
/// nova operations only, every argument and result described; from `fused` on
/// kernels beside it, and launches of them in it. Emits one diagnostic per
/// violation.
mlir::LogicalResult verifyStep(mlir::ModuleOp module);

/// One supported operation, for people.
struct OpInfo {
  llvm::StringRef name;      ///< "aten.add.Tensor"
  llvm::StringRef signature; ///< "(Tensor/Scalar self, ...)"
  /// What is not supported of it; empty: everything is.
  llvm::StringRef constraints;
};

/// Every ATen overload that importGraph knows, sorted by name.
llvm::ArrayRef<OpInfo> supportedOps();

/// Every operation of the nova dialect that a graph may name, sorted.
std::vector<std::string> supportedNovaOps(mlir::MLIRContext &context);

} // namespace nova

#endif // NOVA_IMPORT_IMPORT_H
