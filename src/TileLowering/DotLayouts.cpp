//===- DotLayouts.cpp - Layouts for products -------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fragments of mma.sync (PTX ISA 8.0, section 9.7.13.4, "Matrix Fragments")
// as linear layouts. With g = lane / 4 and t = lane mod 4:
//
//   accumulator m16n8       row g (+8), column 2t + {0, 1}
//   A, m16n8k8,  32 bits    row g (+8), k = t (+4)
//   B, m16n8k8,  32 bits    k = t (+4), column g
//   A, m16n8k16, 16 bits    row g (+8), k = 2t + {0, 1} (+8)
//   B, m16n8k16, 16 bits    k = 2t + {0, 1} (+8), column g
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"

#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

DotKind nova::tile::dotKind(DotOp op) {
  if (std::optional<Multiplier> multiplier = op.getMultiplier())
    return *multiplier == Multiplier::fma ? DotKind::Fma : DotKind::Wgmma;
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  Type element = lhs.getElementType();
  Precision precision = op.getPrecision();
  int64_t m = op.getType().getDimSize(0), n = op.getType().getDimSize(1), k = lhs.getDimSize(1);
  bool fits = powerOfTwoPart(m) >= 16 && powerOfTwoPart(n) >= 8;
  int64_t coreK = powerOfTwoPart(k);
  if (fits && (element.isBF16() || element.isF16()) && coreK >= 16)
    return DotKind::MmaHalf;
  if (fits && element.isF32() && precision == Precision::tf32 && coreK >= 8)
    return DotKind::MmaTF32;
  if (fits && element.isF32() && precision == Precision::bf16 && coreK >= 16)
    return DotKind::MmaHalf;
  return DotKind::Fma;
}

namespace {
/// Builds a layout of a matrix by handing out bits of rows and columns.
struct MatrixBits {
  int64_t coreRows, coreColumns;
  int64_t nextRow = 1, nextColumn = 1; ///< The next bit of each to hand out.

  bool rowsLeft() const { return nextRow < coreRows; }
  bool columnsLeft() const { return nextColumn < coreColumns; }
  /// Number of the core element at the row (column) bit, or 0 if none is left.
  int64_t row() {
    if (!rowsLeft())
      return 0;
    int64_t bit = nextRow;
    nextRow *= 2;
    return bit * coreColumns;
  }
  int64_t column() {
    if (!columnsLeft())
      return 0;
    int64_t bit = nextColumn;
    nextColumn *= 2;
    return bit;
  }
};
} // namespace

static void pushUnlessZero(LinearLayout::Bases &bases, int64_t basis) {
  if (basis)
    bases.push_back(basis);
}

LinearLayout nova::tile::accumulatorLayout(DotKind kind, int64_t m, int64_t n,
                                           int64_t warpCount,
                                           bool rowsTogether) {
  int64_t coreM = powerOfTwoPart(m), coreN = powerOfTwoPart(n);
  MatrixBits bits{coreM, coreN};
  LinearLayout::Bases registers, lanes, warps;
  if (kind == DotKind::Fma) {
    // Four neighbours of a row in a thread, eight threads along a row, four
    // rows in a warp: operands are then read as broadcasts and short vectors.
    pushUnlessZero(registers, bits.column());
    pushUnlessZero(registers, bits.column());
    for (int i = 0; i < 3; ++i)
      lanes.push_back(bits.columnsLeft() ? bits.column() : bits.row());
    for (int i = 0; i < 2; ++i)
      lanes.push_back(bits.rowsLeft() ? bits.row() : bits.column());
  } else {
    registers.push_back(bits.column());
    lanes = {bits.column(), bits.column(), bits.row(), bits.row(), bits.row()};
    registers.push_back(bits.row());
  }
  for (int64_t w = 1; w < warpCount; w *= 2) {
    // The longer side of what one warp still has is halved.
    int64_t rows = coreM / bits.nextRow, columns = coreN / bits.nextColumn;
    int64_t rowBytes = kind == DotKind::Fma ? 1 : 2; // 16 rows by 8 columns
    bool alongRows = rowsTogether ? rows > 1
                                  : rows * rowBytes >= columns && rows > 1;
    warps.push_back(alongRows ? bits.row() : bits.column());
    if (warps.back() == 0)
      warps.back() = bits.row();
  }
  while (bits.columnsLeft())
    registers.push_back(bits.column());
  while (bits.rowsLeft())
    registers.push_back(bits.row());
  return LinearLayout({coreM, coreN}, {m / coreM, n / coreN}, registers, lanes,
                      warps);
}

LinearLayout nova::tile::operandLayout(DotKind kind,
                                       const LinearLayout &accumulator,
                                       unsigned operand, int64_t k) {
  // Along its own side (rows of the left operand, columns of the right one) an
  // operand lies as the accumulator does; along k every thread (FMA) or every
  // four lanes (MMA) hold all.
  unsigned side = operand, sideDim = operand, kDim = 1 - operand;
  int64_t coreK = powerOfTwoPart(k), coreSide = accumulator.core[side];
  std::vector<int64_t> core(2), outer(2);
  core[sideDim] = coreSide, core[kDim] = coreK;
  outer[sideDim] = accumulator.outer[side], outer[kDim] = k / coreK;
  auto at = [&](int64_t onSide, int64_t alongK) {
    return operand == 0 ? onSide * coreK + alongK : alongK * coreSide + onSide;
  };
  auto sidePart = [&](const LinearLayout::Bases &bases) {
    LinearLayout::Bases result;
    for (int64_t basis : bases)
      result.push_back(at(accumulator.split(basis)[side], 0));
    return result;
  };
  LinearLayout::Bases registers, lanes, warps = sidePart(accumulator.warps);
  int64_t nextK = 1;
  LinearLayout::Bases sideRegisters;
  for (int64_t basis : sidePart(accumulator.registers))
    pushUnlessZero(sideRegisters, basis);
  if (kind == DotKind::Fma) {
    lanes = sidePart(accumulator.lanes);
  } else {
    bool half = kind == DotKind::MmaHalf;
    if (half)
      registers.push_back(at(0, 1)), nextK = 2;
    lanes = {at(0, nextK), at(0, nextK * 2)};
    nextK *= 4;
    for (int64_t bit : {1, 2, 4})
      lanes.push_back(at(bit, 0));
    if (operand == 0 && !half) { // a1 is 8 rows down, a2 is 4 along k
      registers.push_back(at(8, 0));
      registers.push_back(at(0, nextK));
    } else if (operand == 0) { // pairs along k, 8 rows down, 8 along k
      registers.push_back(at(8, 0));
      registers.push_back(at(0, nextK));
    } else {
      registers.push_back(at(0, nextK));
    }
    nextK *= 2;
    // The accumulator's fragment has column pairs in registers; an operand has
    // whole columns (rows) in lanes: what is left are multiples of 8 (16).
    llvm::erase_if(sideRegisters, [&](int64_t basis) {
      return operand == 0 ? basis < 16 * coreK : basis < 8;
    });
  }
  LinearLayout::Bases kRegisters;
  for (; nextK < coreK; nextK *= 2)
    kRegisters.push_back(at(0, nextK));
  // FMA reads short vectors along the inner dimension: columns on the right.
  bool sideFirst = kind == DotKind::Fma && operand == 1;
  for (const auto *bases : {sideFirst ? &sideRegisters : &kRegisters,
                            sideFirst ? &kRegisters : &sideRegisters})
    registers.insert(registers.end(), bases->begin(), bases->end());
  return LinearLayout(core, outer, registers, lanes, warps);
}
