//===- KernelAxes.h - What runs together in a kernel -----------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dimensions of the values in a kernel's body and loops of its generics that
// index maps identify are one axis. An axis is bound to a dimension of the grid
// or local. Dimensions of extent one have no axis: there is one place only.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_KERNELAXES_H
#define NOVA_TRANSFORMS_KERNELAXES_H

#include "nova/IR/NovaKernelOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace nova::tiling {

/// An error on `op` that begins with the names of kernel and op.
inline mlir::InFlightDiagnostic refuse(mlir::func::FuncOp kernel, mlir::Operation *op) {
  mlir::InFlightDiagnostic diagnostic = op->emitError() << "kernel '" << kernel.getSymName() << "': ";
  if (op != kernel)
    diagnostic << op->getName() << ": ";
  return diagnostic;
}

/// Number of an axis in its kernel, or kNoAxis for a dimension of extent one.
using AxisId = int;
inline constexpr AxisId kNoAxis = -1;
using AxisList = llvm::SmallVector<AxisId, 4>;

struct Axis {
  int64_t extent = 1;
  /// Elements of it in a tile; 1 leaves it out of the tile.
  int64_t tile = 1;
  /// Dimension of nova.space, or -1: local.
  int64_t space = -1;
  /// Something reduces along it.
  bool reduced = false;
  /// A running sum runs along it.
  bool scanned = false;
  /// Whoever goes along it goes element by element: its tile is 1.
  bool single = false;
  /// Of several kernels in one launch that differ along it: whether a tile hangs over
  /// the end of some; where the end is, memory says.
  bool uneven = false;
  /// Its tile is that of another axis, of which it is a part (tensor.concat).
  AxisId partOf = kNoAxis;

  bool local() const { return space < 0; }
  /// Taken in chunks, by a loop: one that never runs where there is nothing.
  bool streamed() const { return local() && (tile < extent || extent == 0); }
  /// A tile may hang over the axis' end.
  bool ragged() const { return tile > 1 && (uneven || extent % tile != 0); }
  int64_t chunks() const { return (extent + tile - 1) / tile; }
};

/// Dimensions of the updates that number positions.
unsigned positionRank(SegmentSumOp op);

class Axes {
public:
  /// Finds the axes of `kernel` and their binding; tiles are still 1. Failure
  /// after an error that names the kernel and the op at fault.
  /// With `bound` false nothing is said of the space, and what only arguments have
  /// in common stays apart.
  static mlir::FailureOr<Axes> analyse(mlir::func::FuncOp kernel, bool bound = true);

  /// Reads the tiles of the attributes nova.tile and nova.local_tile.
  mlir::LogicalResult readTiles(mlir::func::FuncOp kernel);

  AxisId ofDim(mlir::Value value, unsigned dim) const;
  /// Loops of a generic. A movement's are its positions: of the index tensors,
  /// then of the updates (nova.index_put), of the updates (nova.segment_sum), or the
  /// one along its dimension (nova.scatter).
  AxisId ofLoop(mlir::Operation *op, unsigned loop) const;
  /// Axis of each dimension of what `operand` reads or writes: kNoAxis also for
  /// a constant index.
  AxisList ofOperand(mlir::OpOperand &operand) const;
  AxisList ofValue(mlir::Value value) const;

  const Axis &operator[](AxisId id) const { return axes[id]; }
  Axis &operator[](AxisId id) { return axes[id]; }
  size_t size() const { return axes.size(); }
  /// Local axes whose tile is free, in the order of nova.local_tile.
  AxisList localAxes() const;

private:
  llvm::DenseMap<std::pair<void *, unsigned>, AxisId> ids;
  std::vector<Axis> axes;
};

/// A kernel has this where nova.space and nova.map are those of the kernel after
/// collapseAxes(): neighbouring dimensions of a result that are bound to the same
/// dimension of the space run along it together, row-major.
inline constexpr llvm::StringLiteral kCollapsedAttr = "nova.collapsed";

/// For each result and each of its former dimensions the dimension it is now part
/// of.
using CollapsedDims = llvm::SmallVector<llvm::SmallVector<unsigned>>;

/// Makes one dimension of neighbours that all values, loops and arguments have
/// side by side, if those of the space among them are neighbours there too (or one
/// already: kCollapsedAttr). Changes the kernel's type, space, map and strides;
/// nothing if there are no such dimensions.
std::optional<CollapsedDims> collapseAxes(mlir::func::FuncOp kernel);

} // namespace nova::tiling

#endif // NOVA_TRANSFORMS_KERNELAXES_H
