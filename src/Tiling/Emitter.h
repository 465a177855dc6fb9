//===- Emitter.h - Computes values of a kernel on tiles --------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Demand-driven: whoever needs a value asks for it in a scope. A scope is the
// grid point or the body of a loop over the chunks of a streamed axis; it says
// at which place each axis is. A value is emitted once, into the outermost scope
// (from the asking one up) where all of its axes have their place.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILING_EMITTER_H
#define NOVA_SRC_TILING_EMITTER_H

#include "BodyFacts.h"

#include "nova/Transforms/KernelAxes.h"
#include "nova/Transforms/KernelGroups.h"
#include "nova/Tile/Tile.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <map>

namespace nova::tiling {

/// A value on a tile: its dimensions run along `axes`, and it repeats along all
/// others. Without axes it is a scalar, not a tile of rank 0.
struct Tile {
  mlir::Value value;
  AxisList axes;
};

/// Where an axis is in a scope.
struct Place {
  mlir::Value offset;
  /// As in tile.load: may the tile reach over the axis' ends?
  int64_t bounds = 0;
};

struct Scope {
  Scope *parent = nullptr;
  mlir::Block *block = nullptr;
  /// What is emitted goes before this op (the loop that is being filled), or to
  /// the end of the block.
  mlir::Operation *before = nullptr;
  /// A scope that only places some axes elsewhere: it emits where this one does.
  Scope *viewOf = nullptr;
  llvm::DenseMap<AxisId, Place> places;
  /// What this scope is there to compute.
  llvm::SmallVector<mlir::Operation *> targets;

  llvm::DenseMap<mlir::Value, Tile> values;
  /// Values that stand for something else in this scope (a maximum so far): what
  /// needs them is emitted here, though its axes have their places further out.
  llvm::SmallVector<mlir::Value> replaced;
  std::map<std::vector<int64_t>, Tile> loads;
  llvm::DenseMap<AxisId, Tile> ranges, insides;
  /// Of running sums along this loop's axis: what is summed before this chunk, and
  /// once the sum is emitted, with it.
  llvm::DenseMap<mlir::Operation *, mlir::Value> carries;
  unsigned depth() const { return parent ? parent->depth() + 1 : 0; }
  Scope *real() { return viewOf ? viewOf->real() : this; }
};

/// How a generic's body reduces; see Reductions.cpp.
struct Reduction;

/// The members that a kernel stands for, of a group (nova/Transforms/KernelGroups.h).
struct Members {
  KernelGroup group;
  llvm::SmallVector<int64_t> starts; ///< The first grid point of each.
};

class Emitter {
public:
  /// With `members` the kernel is one of them, and the program is for all.
  Emitter(mlir::func::FuncOp kernel, const Axes &axes, mlir::func::FuncOp program, tile::Precision precision,
          std::optional<Members> members = std::nullopt);

  /// Emits the whole program. Failure after an error.
  mlir::LogicalResult run();

private:
  friend class BodyEmitter;
  friend class ReductionEmitter;

  // Scopes (Emitter.cpp).
  mlir::ImplicitLocOpBuilder &at(Scope *scope);
  Scope *home(llvm::ArrayRef<AxisId> axes, Scope *scope);
  const Place &place(AxisId axis, Scope *scope);
  bool isPlaced(AxisId axis, Scope *scope);
  /// Opens loops over the chunks of `streamed`, outermost first; `body` gets the
  /// innermost scope and the carried values and returns the new ones. `idle`: for
  /// each of those who share the loop, where it has nothing to do.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  loop(llvm::ArrayRef<AxisId> streamed, Scope *scope, mlir::ValueRange init,
       llvm::ArrayRef<mlir::Operation *> targets,
       llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(Scope *, mlir::ValueRange)> body,
       llvm::ArrayRef<llvm::SmallVector<HalfPlane>> idle = {});

  /// A loop with the given step that carries `init`.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  count(mlir::Value from, mlir::Value to, int64_t step, Scope *scope, mlir::ValueRange init,
        llvm::ArrayRef<mlir::Operation *> targets,
        llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(Scope *, mlir::Value, mlir::ValueRange)>
            body);

  // Tiles (Tiles.cpp).
  mlir::Value index(Scope *scope, int64_t value);
  mlir::Value constant(Scope *scope, mlir::TypedAttr value);
  mlir::RankedTensorType tileType(llvm::ArrayRef<AxisId> axes, mlir::Type element);
  /// Those of `axes` that are dimensions of tiles, ordered by `order`.
  AxisList tileAxes(llvm::ArrayRef<AxisId> axes, llvm::ArrayRef<AxisId> order);
  Tile ordered(Scope *scope, Tile tile, llvm::ArrayRef<AxisId> order);
  /// The tile with exactly the dimensions `axes`; rank 0 for none.
  mlir::Value expanded(Scope *scope, const Tile &tile, llvm::ArrayRef<AxisId> axes);
  /// A tile of rank 0 as a scalar, any other as it is.
  Tile unwrapped(Scope *scope, mlir::Value value, llvm::ArrayRef<AxisId> axes);
  Tile range(Scope *scope, AxisId axis);
  /// Whether each position of a tile along a ragged axis is one.
  Tile inside(Scope *scope, AxisId axis);
  /// AND of `inside` of the ragged ones of `axes`, with dimensions `axes`; null
  /// if there is none.
  mlir::Value mask(Scope *scope, llvm::ArrayRef<AxisId> axes);
  using Build = llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;
  /// An elementwise operation on tiles or scalars, on the axes of all.
  Tile apply(Scope *scope, llvm::ArrayRef<Tile> operands, llvm::ArrayRef<AxisId> order, Build build);
  Tile number(Scope *scope, int64_t value);
  mlir::LogicalResult checkRank(mlir::Operation *op, llvm::ArrayRef<AxisId> axes);

  // Values (Values.cpp).
  mlir::FailureOr<Tile> emit(mlir::Value value, llvm::ArrayRef<AxisId> dims, Scope *scope,
                             llvm::ArrayRef<AxisId> order);
  mlir::FailureOr<Tile> load(mlir::BlockArgument argument, llvm::ArrayRef<AxisId> dims, Scope *scope,
                             llvm::ArrayRef<AxisId> order);
  mlir::LogicalResult elementwise(mlir::linalg::GenericOp op, Scope *scope, llvm::ArrayRef<AxisId> order);
  /// The value of every element of a splat; null if `value` is none.
  mlir::FailureOr<Tile> uniform(mlir::Value value, Scope *scope);

  // Movement.cpp, RunningSums.cpp.
  mlir::LogicalResult concat(mlir::Operation *op, Scope *scope, llvm::ArrayRef<AxisId> order);
  /// Running sums along `axis` that `targets` need.
  llvm::SmallVector<mlir::Operation *> runningSums(AxisId axis, llvm::ArrayRef<mlir::Operation *> targets);
  AxisList carryAxes(mlir::Operation *sum);
  mlir::LogicalResult cumsum(mlir::Operation *op, Scope *scope, llvm::ArrayRef<AxisId> order);
  mlir::LogicalResult scatter(mlir::Operation *op, Scope *scope, llvm::ArrayRef<AxisId> order);
  mlir::LogicalResult indexPut(mlir::Operation *op, Scope *scope, llvm::ArrayRef<AxisId> order);
  /// Index tensors' elements as indices; negative ones count from the end of
  /// `wrap` if that is not 0.
  mlir::FailureOr<Tile> indices(mlir::Value value, llvm::ArrayRef<AxisId> dims, Scope *scope, int64_t wrap);
  // SegmentSum.cpp.
  mlir::LogicalResult segmentSum(mlir::Operation *op, Scope *scope, llvm::ArrayRef<AxisId> order);
  /// The lower 32 bits of an entry of a list, an argument of rank 1, as an index.
  mlir::FailureOr<mlir::Value> entry(mlir::Operation *op, mlir::Value list, mlir::Value where, Scope *scope);
  /// `old` where not all of `matches` are true, else `update` or the sum of both.
  mlir::Value merged(Scope *scope, llvm::ArrayRef<Tile> matches, const Tile &update, const Tile &old,
                     bool accumulate);
  mlir::Value lastOf(Scope *scope, const Tile &tile, AxisId axis);
  /// A tile less its last dimension, or the scalar of a tile of rank one: what
  /// `combine` makes of the elements along it.
  mlir::Value folded(Scope *scope, mlir::Value tile,
                     llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value, mlir::Value)> combine);

  // ReductionLoops.cpp.
  std::pair<mlir::Value, mlir::Value> bounds(AxisId axis, Scope *scope,
                                             llvm::ArrayRef<llvm::SmallVector<HalfPlane>> idle);
  Tile growth(Scope *scope, const Tile &before, const Tile &after);
  Tile isMinusInfinity(Scope *scope, const Tile &tile);
  mlir::LogicalResult reduce(mlir::linalg::GenericOp op, Scope *scope, llvm::ArrayRef<AxisId> order);

  // Program.cpp.
  void openRoot();
  void openMembers();
  /// The memory of an argument of the kernel, or, behind those, of a result.
  mlir::Value memory(unsigned parameter) { return memories[parameter]; }
  mlir::Value rasterBands(mlir::Value number, int64_t planes, int64_t rows, int64_t columns, int64_t band);
  mlir::LogicalResult storeResults();
  mlir::LogicalResult store(mlir::OpOperand &result, Scope *scope, const Tile &tile);

  mlir::func::FuncOp kernel, program;
  const Axes &axes;
  tile::Precision precision;
  std::optional<Members> members;
  llvm::SmallVector<mlir::Value> memories;
  mlir::ImplicitLocOpBuilder builder;
  Scope root;
  mlir::Value ownPoint; ///< Of members: the number among its member's points.
  /// Number of its tile, of each dimension of the space.
  llvm::SmallVector<mlir::Value> point;
};

} // namespace nova::tiling

#endif // NOVA_SRC_TILING_EMITTER_H
