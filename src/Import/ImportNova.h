//===- ImportNova.h - Graph nodes that name nova operations ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_IMPORT_IMPORTNOVA_H
#define NOVA_SRC_IMPORT_IMPORTNOVA_H

#include "Build.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nova::importer {

/// Whether a graph node may name this operation: any of the dialect but those
/// of later stages (launch) and constants, which have a section of their own.
bool isNovaOp(llvm::StringRef name, mlir::MLIRContext *context);

/// Builds the operation a node names: tensors of `args` are the operands in
/// order (lists are spliced, null stands for an absent optional one), `kwargs`
/// are the attributes. Where the operation does not determine its result
/// types, they are the declared ones.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
importNovaNode(mlir::OpBuilder &builder, mlir::Location loc,
               const graph::Graph &graph, uint32_t index,
               llvm::function_ref<mlir::Value(const graph::Ref &)> lookup);

} // namespace nova::importer

#endif // NOVA_SRC_IMPORT_IMPORTNOVA_H
