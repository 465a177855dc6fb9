//===- Interpreter.h - What a tile program means, executed on the host ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The executable form of the tile dialect's semantics (TileDialect.td): the
// reference for every lowering below the tile level. It is strict, not fast.
//
// Numbers. Elementwise operations round to their own type, once; those of
// `math` are libm's of double precision, rounded. `tile.reduce` and `tile.scan`
// combine in the order of the index; `tile.dot` accumulates by FMA in float32
// (float64 for float64 operands) in the order of k. `index` has 64 bits. Flags
// that only permit (fast math, no wrap) are not used. A float that does not fit
// into an integer is clamped, NaN becomes 0.
//
// Errors. Whatever a lowering may rely on not to happen stops the program:
//
// - an access outside memory along a dimension whose `bounds` exclude it, an
//   offset outside memory along any other, a gathered index outside it where
//   the mask is true, a store along a dimension of stride 0;
// - one grid point reads what another writes, or two write different values;
// - division by zero or overflow of a signed one, a shift by the width or more,
// a
//   loop whose step is not positive, an i1 in memory that is neither 0 nor 1;
// - a slot read before its copy has arrived at a wait, or through the token of
//   a wait before that; a copy into a slot with another in flight, or one that
//   was read since the last wait; a copy whose source is written before it
//   arrives; a commit that does not name exactly the copies since the last one;
//   a copy still in flight at the end;
// - an operation that is not part of the level.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILE_INTERPRETER_H
#define NOVA_TILE_INTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace nova::tile {

struct InterpreterOptions {
  /// Grid points [firstPoint, endPoint) are executed, in this order; without
  /// endPoint up to the program's `tile.grid`.
  int64_t firstPoint = 0;
  std::optional<int64_t> endPoint;
  /// Products of float32 sums accumulate in double and are rounded once: a
  /// reference that is nearer to the exact sum than any order of float32
  /// additions.
  bool dotInDouble = false;
  /// Whether grid points are checked for touching each other's elements; costs
  /// a look-up for each element that is read or written.
  bool checkRaces = true;
};

/// Executes `program` on host memory. For each memref parameter `buffers` has
/// the address of the view's element (0, ..., 0), so the type's offset is not
/// applied; its strides are, also negative ones and 0. An element is stored in
/// the host's byte order, i1 in one byte, index in eight.
///
/// An error names the operation's location, its name, the grid point and the
/// element; memory then holds what was stored before it.
llvm::Error interpret(mlir::func::FuncOp program,
                      llvm::ArrayRef<void *> buffers,
                      const InterpreterOptions &options = {});

} // namespace nova::tile

#endif // NOVA_TILE_INTERPRETER_H
