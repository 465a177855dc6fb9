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

namespace mlir::scf {
class ForOp;
} // namespace mlir::scf

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

/// Bytes that the address of a memory (an argument) is a multiple of.
int64_t argumentAlignment(mlir::Value memory);

/// A number that divides `index` (an SSA value of index type); 0 for zero.
int64_t knownDivisor(mlir::Value index);

/// The element that a tile.splat repeats; of anything else the value itself.
mlir::Value throughSplat(mlir::Value value);

/// The layout in which a block of `warps` warps makes this access best.
LinearLayout accessLayout(const Access &access, int64_t warps);

/// A layout for this access in which every warp has the elements that it has in
/// `layout`, so that a conversion stays within warps; nothing if `layout` holds copies.
std::optional<LinearLayout> accessLayoutNear(const Access &access, const LinearLayout &layout);

/// Bytes that are asked for over bytes of the 32-byte sectors that one warp's
/// accesses touch: 1 is perfect.
double sectorEfficiency(const Access &access, const LinearLayout &layout);

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// What multiplies.
enum class DotKind {
  Fma,      ///< Lane by lane.
  MmaTF32,  ///< mma.sync m16n8k8, float32 operands rounded to tf32.
  MmaHalf,  ///< mma.sync m16n8k16, operands of 16 bits.
  Wgmma,    ///< wgmma.mma_async, float32 operands rounded to tf32, or of 16 bits.
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

/// Iterations of a loop with constant bounds.
std::optional<int64_t> tripCount(mlir::scf::ForOp loop);

//===----------------------------------------------------------------------===//
// Products of warpgroups (WarpgroupLayouts.cpp)
//===----------------------------------------------------------------------===//

/// Warps that multiply together.
inline constexpr int64_t kWarpgroup = 4;
/// Bytes of a panel's row: what the 128-byte swizzle of tensor maps and of
/// wgmma's operands repeats over.
inline constexpr int64_t kPanelBytes = 128;

/// Where a product uses a tile.
struct ProductUse {
  mlir::OpOperand *operand; ///< Of the tile.dot, lhs or rhs.
  bool transposed;          ///< Of the tile.
  DotOp dot() const { return mlir::cast<DotOp>(operand->getOwner()); }
  unsigned number() const { return operand->getOperandNumber(); }
};
/// All uses of a tile, if they are operands of products, directly or through
/// transposes and conversions; else nothing.
std::optional<llvm::SmallVector<ProductUse>> productUses(mlir::Value tile);

/// A tensor map can copy this tile, a matrix, into panels, and what it fills in is
/// what the load does.
bool isMappable(LoadOp load);

/// How warpgroups compute the products of one accumulator.
struct WarpgroupChoice {
  bool flipped = false;  ///< The transposed product.
  /// The left operand's rows are numbered so that threads read them from panels
  /// without bank conflicts (only then: descriptors know the plain order).
  bool permuted = false;
};
/// The better way round to compute `products`, which share an accumulator; nothing
/// if warpgroups cannot. `alongRows`, `alongColumns`: somebody reduces the
/// accumulator's rows (to a column), its columns.
std::optional<WarpgroupChoice> chooseWarpgroups(llvm::ArrayRef<DotOp> products, int64_t warps,
                                                bool alongRows, bool alongColumns);

/// The accumulator of wgmma's fragments, rows (the left operand's) x columns.
LinearLayout warpgroupAccumulator(int64_t rows, int64_t columns, int64_t warps,
                                  WarpgroupChoice choice);
/// The row that a thread holds beside its first in every fragment: 8 further in
/// the plain order.
int64_t secondRow(const LinearLayout &fragment);
/// The fragment's rows are in their plain order, the one that descriptors know.
bool isReadByDescriptors(const LinearLayout &fragment);
/// The left operand in registers, rows x k, of elements of 2 or 4 bytes.
LinearLayout warpgroupLeft(const LinearLayout &accumulator, int64_t k, int64_t elementBytes);
/// The layout of operand 0 or 1 of a product that warpgroups compute: the left
/// operand's; the right one is never in registers, its layout is a form.
LinearLayout warpgroupOperand(DotOp op, const LinearLayout &accumulator, unsigned operand,
                              int64_t warps);
/// In which a tile whose neighbours in memory lie along its rows (dimension 0 of
/// `shape`) is read from panels to be written transposed: blocks of 4 x 4.
LinearLayout transposingLayout(llvm::ArrayRef<int64_t> shape, int64_t warps);

/// Of a tile.settle in the step of its product: products that were started later, which
/// it does not wait for. Without it, there is nothing else in flight.
inline constexpr llvm::StringLiteral kPendingAttr = "tile.pending";

/// Its one reader is a product in the same block, as an operand: that takes it
/// from shared memory piece by piece.
bool isReadByProductOnly(mlir::Value value);

} // namespace nova::tile

#endif // NOVA_SRC_TILELOWERING_LAYOUTS_H
