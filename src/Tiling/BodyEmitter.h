//===- BodyEmitter.h - A generic's body on tiles ---------------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILING_BODYEMITTER_H
#define NOVA_SRC_TILING_BODYEMITTER_H

#include "Emitter.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace nova::tiling {

/// Computes values of a generic's body in a scope, each on the fewest axes it
/// depends on: what a row has in common is computed once a row.
class BodyEmitter {
public:
  BodyEmitter(Emitter &emitter, mlir::linalg::GenericOp op, Scope *scope, llvm::ArrayRef<AxisId> order)
      : e(emitter), op(op), scope(scope), order(order) {}

  mlir::FailureOr<Tile> get(mlir::Value value);
  void set(mlir::Value value, Tile tile) { known[value] = std::move(tile); }

private:
  mlir::FailureOr<Tile> compute(mlir::Operation *inner);
  mlir::FailureOr<Tile> extract(mlir::tensor::ExtractOp inner);

  Emitter &e;
  mlir::linalg::GenericOp op;
  Scope *scope;
  AxisList order;
  llvm::DenseMap<mlir::Value, Tile> known;
};

} // namespace nova::tiling

#endif // NOVA_SRC_TILING_BODYEMITTER_H
