//===- Frontend.h - The operand GRAPH, whatever it is ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_FRONTEND_H
#define NOVA_LIB_DRIVER_FRONTEND_H

#include "nova/Graph/Graph.h"
#include "nova/Pipelines/Pipelines.h"
#include "nova/Support/Error.h"
#include "nova/Target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace nova::driver {

/// A graph that was read: nova.graph JSON, or nova MLIR as text or bytecode,
/// told apart by content; "-" is standard input.
class Frontend {
public:
  static Expected<Frontend> read(const std::string &path);

  /// The module, at the stage `graph` or, from MLIR, at the one it holds (stageOf).
  /// Null after emitting diagnostics.
  mlir::OwningOpRef<mlir::ModuleOp> import(mlir::MLIRContext &context) const;

  /// The graph's name and the digest of its canonical form. nullopt for MLIR,
  /// which has them in the module (moduleName, moduleDigest).
  std::optional<std::string> name() const;
  std::optional<std::string> digest() const;

  /// The files that were read: the graph and those that its constants name.
  std::vector<std::string> files() const;

private:
  std::string path;
  std::string text; ///< Of MLIR, or of JSON from standard input.
  std::optional<graph::Graph> graph;
};

/// The graph's name in a module that holds a step.
std::string moduleName(mlir::ModuleOp module);
/// The stage that such a module is at: `graph` also stands for `simplified`.
Stage stageOf(mlir::ModuleOp module);

/// Leaves in the module the digest of the graph that it was imported from, and one
/// of itself, so that its text says later which graph it is.
void recordDigest(mlir::ModuleOp module, llvm::StringRef graphDigest);
/// The digest that was recorded, if the module is still what was imported; else
/// "sha256:" and the digest of the module printed without locations.
std::string moduleDigest(mlir::ModuleOp module);

/// Leaves in the module for what device, and with which precision of products, it
/// was configured.
void recordDevice(mlir::ModuleOp module, const target::Device &device,
                  llvm::StringRef matmul);
/// Whether that was so: BadInput with what it was configured for.
Status checkDevice(mlir::ModuleOp module, const target::Device &device,
                   llvm::StringRef matmul);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_FRONTEND_H
