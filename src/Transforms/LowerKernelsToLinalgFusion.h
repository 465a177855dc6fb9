//===- LowerKernelsToLinalgFusion.h - The rewrites of fusion
//---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each writes a new generic at the insertion point and leaves the old ones for
// the caller to replace. Equal reads are read once; operations and reads that
// the results do not need are left out.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_LOWERKERNELSTOLINALGFUSION_H
#define NOVA_SRC_TRANSFORMS_LOWERKERNELSTOLINALGFUSION_H

#include "LowerKernelsToLinalg.h"

namespace nova::lowering {

/// `consumer`, computing itself all that it reads of `producer` (elementwise).
/// Null if nothing would be left to tell how far a reduction runs.
mlir::linalg::GenericOp compose(mlir::OpBuilder &b,
                                mlir::linalg::GenericOp consumer,
                                mlir::linalg::GenericOp producer);

/// One generic with the results of `first`, then those of `second`. Iterators
/// and extents are equal; `second` may read `first` (elementwise) in place.
mlir::linalg::GenericOp merge(mlir::OpBuilder &b, mlir::linalg::GenericOp first,
                              mlir::linalg::GenericOp second);

/// `op` with only the results that have uses; null if all have.
mlir::linalg::GenericOp withoutDeadResults(mlir::OpBuilder &b,
                                           mlir::linalg::GenericOp op);

/// Replaces `extract`, which reads one element of what `producer` (elementwise) makes, by
/// the element's own computation. Returns what that reads.
llvm::SmallVector<mlir::tensor::ExtractOp> composeExtract(mlir::RewriterBase &rewriter,
                                                          mlir::tensor::ExtractOp extract,
                                                          mlir::linalg::GenericOp producer);

/// Does `op` store one value as it is read?
bool isCopy(mlir::linalg::GenericOp op);

/// `producer` (one result), writing what `copy` (its reader) stores. Null if
/// the copy repeats elements, or where the result starts is no fill.
mlir::linalg::GenericOp rearrange(mlir::OpBuilder &b,
                                  mlir::linalg::GenericOp producer,
                                  mlir::linalg::GenericOp copy);

} // namespace nova::lowering

#endif // NOVA_SRC_TRANSFORMS_LOWERKERNELSTOLINALGFUSION_H
