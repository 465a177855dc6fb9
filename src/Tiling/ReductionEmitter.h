//===- ReductionEmitter.h - One reduction of a kernel on tiles -*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums and the like accumulate element by element of the chunk's tile and combine
// along the tile only at the end: threads talk to one another once, not once a
// chunk.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILING_REDUCTIONEMITTER_H
#define NOVA_SRC_TILING_REDUCTIONEMITTER_H

#include "BodyEmitter.h"
#include "BodyFacts.h"

namespace nova::tiling {

/// One reduction. It is prepared (which axes its accumulators have), initialised,
/// stepped once a chunk, and finished.
class ReductionEmitter {
public:
  ReductionEmitter(Emitter &emitter, mlir::linalg::GenericOp op, Scope *home, llvm::ArrayRef<AxisId> order)
      : e(emitter), op(op), home(home), order(order) {}

  /// `eager`: the accumulators are combined along the tile in every step, so that
  /// others may use what there is so far.
  mlir::LogicalResult prepare(bool eager = false);
  /// Empty after an error.
  llvm::SmallVector<mlir::Value> init();
  /// `accumulators` is empty where there is one chunk only.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> step(Scope *scope, mlir::ValueRange accumulators);
  mlir::LogicalResult finish(mlir::ValueRange accumulated);

  // Reductions of what is relative to a running maximum (ReductionLoops.cpp).
  void follow(mlir::Value maximum) { leader = maximum; }
  mlir::Value getLeader() const { return leader; }
  /// The accumulators for a larger maximum, which makes them smaller by `factor`.
  llvm::SmallVector<mlir::Value> rescaled(Scope *scope, mlir::ValueRange accumulators, const Tile &factor);
  const AxisList &outAxes() const { return out; }
  /// The half planes in which nothing is contributed.
  llvm::SmallVector<HalfPlane> idle() const;

  size_t size() { return choice ? choice->elements.size() + 1 : folds ? op->getNumResults() : parts.size(); }

private:
  bool prepareDot();
  /// What the accumulations start with.
  llvm::SmallVector<mlir::Value> initialTiles();
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> stepFold(Scope *scope, mlir::ValueRange accumulators);
  llvm::SmallVector<mlir::Value> initSelection();
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> stepSelection(Scope *scope, mlir::ValueRange accumulators);
  llvm::SmallVector<mlir::Value> selectAlong(mlir::ValueRange values, unsigned dim);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> stepDot(Scope *scope, mlir::ValueRange accumulators);
  mlir::Value combine(Scope *scope, const Accumulation &part, mlir::Value a, mlir::Value b);
  mlir::Value reduceAlong(Scope *scope, mlir::Value value, const Accumulation &part, unsigned dim);
  /// Combined along the reduced axes of the tile.
  mlir::Value reduceTile(Scope *scope, mlir::Value value, const Accumulation &part);
  /// `tile` on `wanted`, with `identity` where one of `along` is outside.
  mlir::Value masked(Scope *scope, const Tile &tile, llvm::ArrayRef<AxisId> wanted, llvm::ArrayRef<AxisId> along,
                     mlir::TypedAttr identity, mlir::Value bodyValue);

  Emitter &e;
  mlir::linalg::GenericOp op;
  Scope *home;
  AxisList order;
  llvm::SmallVector<Accumulation> parts;
  std::optional<Selection> choice;
  /// Of no known form: one position after the other.
  bool folds = false;
  AxisList loops;             ///< Along which it reduces, outermost first.
  AxisList out, reduced, all; ///< Of tiles; all = out, then reduced.
  /// Of a product: operands by row and column.
  bool isDot = false;
  bool eager = false;
  mlir::Value leader;
  mlir::Value lhs, rhs;
};
} // namespace nova::tiling

#endif // NOVA_SRC_TILING_REDUCTIONEMITTER_H
