//===- ProductOperand.h - Where a product's operand comes from -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILELOWERING_PRODUCTOPERAND_H
#define NOVA_SRC_TILELOWERING_PRODUCTOPERAND_H

#include "ThreadEmitter.h"

#include <set>

namespace nova::tile {

/// The left (MxK, number 0) or right (KxN, number 1) operand of a product, in
/// registers or in shared memory. From shared memory it is read when it is asked
/// for, so that little of it is alive at a time: by ldmatrix where the layout is
/// what ldmatrix delivers.
class ProductOperand {
public:
  /// In registers.
  ProductOperand(ThreadEmitter &emitter, unsigned number, const LinearLayout &layout,
                 Registers held);
  /// In shared memory; slot dimension i is tile dimension order[i].
  ProductOperand(ThreadEmitter &emitter, unsigned number, const LinearLayout &layout,
                 mlir::Type element, const SharedTile &tile, llvm::ArrayRef<int64_t> order);

  /// The element of the thread's register at (side, k): side is a row of the left
  /// operand, a column of the right one.
  mlir::Value at(int64_t side, int64_t k);
  /// The 32-bit word of an MMA fragment that starts at (side, k): one element of
  /// 32 bits, or two of 16. `columns`: the blocks of the right operand's columns.
  mlir::Value word(int64_t side, int64_t k, int64_t depth, const std::set<int64_t> &columns);

private:
  /// How ldmatrix can read it.
  enum class Matrix { No, Plain, Transposed };
  Matrix matrixKind() const;
  void loadMatrix(int64_t side, int64_t k, int64_t depth, const std::set<int64_t> &columns);
  LinearLayout::Coordinates toStored(int64_t side, int64_t k) const;

  ThreadEmitter &emitter;
  unsigned number;
  LinearLayout stored; ///< In the order of the slot's dimensions.
  std::vector<unsigned> order;
  mlir::Type element;
  std::optional<SharedTile> tile;
  Registers values;
  std::map<LinearLayout::Coordinates, int64_t> where; ///< By stored coordinates.
  int64_t vector = 1;
  Matrix matrix = Matrix::No;
  std::map<std::pair<int64_t, int64_t>, mlir::Value> words;
};

/// The bits of a float32 rounded to TF32, to nearest. Where there are warpgroups
/// (compute capability 9.0) by `cvt.rn`, one instruction; `cvt.rna`, which all have, is
/// four there.
mlir::Value roundToTf32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value word, bool warpgroups);

} // namespace nova::tile

#endif // NOVA_SRC_TILELOWERING_PRODUCTOPERAND_H
