//===- Layouts.h - The layouts that instructions and accesses ask for ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILELOWERING_LAYOUTS_H
#define NOVA_SRC_TILELOWERING_LAYOUTS_H

#include "nova/Tile/Tile.h"

#include <optional>

namespace nova::tile {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// An access of a tile to memory, as tile.load and tile.store describe it.
struct Access {
  mlir::Value memory;
  mlir::OperandRange offsets;
  llvm::ArrayRef<int64_t> along, bounds;
  std::vector<int64_t> shape;

  mlir::MemRefType memoryType() const;
  int64_t elementBytes() const;
  /// Element stride in memory of each dimension of the tile.
  std::vector<int64_t> strides() const;
  /// Dimensions of the tile, the one with the smallest positive stride first.
  std::vector<unsigned> order() const;
  /// Most neighbours along `dim` that one aligned access of at most 16 bytes may
  /// take: the strides, offsets, bounds and the address are multiples of it.
  int64_t vectorLength(unsigned dim) const;
};

/// The access of a tile.load, tile.store or tile.async_load.
std::optional<Access> accessOf(mlir::Operation *op);

/// A number that divides `index` (an SSA value of index type); 0 for zero.
int64_t knownDivisor(mlir::Value index);

/// The layout in which a block of `warps` warps makes this access best.
LinearLayout accessLayout(const Access &access, int64_t warps);

/// Bytes that are asked for over bytes of the 32-byte sectors that one warp's
/// accesses touch: 1 is perfect.
double sectorEfficiency(const Access &access, const LinearLayout &layout);

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Unit attribute of a tile.dot that must use FMA, because a product with the same
/// accumulator must.
inline constexpr llvm::StringLiteral kFmaAttr = "tile.fma";

/// What multiplies.
enum class DotKind {
  Fma,      ///< Lane by lane.
  MmaTF32,  ///< mma.sync m16n8k8, float32 operands rounded to tf32.
  MmaHalf,  ///< mma.sync m16n8k16, operands of 16 bits.
};

/// What multiplies here: MMA where the extents' powers of two hold whole
/// instructions, unless the operation says FMA.
DotKind dotKind(DotOp op);

/// The accumulator's layout. `rowsTogether`: rows are combined later, so the
/// warps should share no row.
LinearLayout accumulatorLayout(DotKind kind, int64_t m, int64_t n,
                               int64_t warps, bool rowsTogether);

/// The layouts of the operands (MxK: operand 0; KxN: operand 1) that go with an
/// accumulator layout.
LinearLayout operandLayout(DotKind kind, const LinearLayout &accumulator,
                           unsigned operand, int64_t k);

/// Its one reader is a product in the same block, as an operand: that takes it
/// from shared memory piece by piece.
bool isReadByProductOnly(mlir::Value value);

} // namespace nova::tile

#endif // NOVA_SRC_TILELOWERING_LAYOUTS_H
