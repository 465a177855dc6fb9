//===- WarpgroupLayouts.cpp - Which products warpgroups compute, and how ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma (PTX ISA 8.0, section 9.7.14) multiplies a left operand of 64 rows by a
// right one of up to 256 columns. The right one, and the left one or not, are read
// from shared memory through descriptors: 16-bit elements with either dimension
// inside, 32-bit ones with k inside only. The left one may be in registers instead.
// The fragments as linear layouts, with warp w of four, g = lane / 4, t = lane mod 4:
//
//   accumulator      row 16w + g (+8), column 2t + {0, 1} (+8 ...)
//   left, 32 bits    row 16w + g (+8), k = t (+4)
//   left, 16 bits    row 16w + g (+8), k = 2t + {0, 1} (+8)
//
// So where 32-bit elements lie with k outside, the product is turned round to have
// that operand on the left, in registers; where both do, the right one is written
// to shared memory once more, transposed.
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Rows of one instruction, and its columns' granularity.
static constexpr int64_t kRows = 64, kColumns = 8, kHalfDepth = 16;
/// Dimensions of a tensor map, and its largest extents.
static constexpr int64_t kMapRank = 5, kMapExtent = int64_t{1} << 31;
/// What the strides and the base of a tensor map are multiples of, in bytes.
static constexpr int64_t kMapAlignment = 16;

static int64_t bytesOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }

//===----------------------------------------------------------------------===//
// Where tiles come from
//===----------------------------------------------------------------------===//

static bool collectUses(Value tile, bool transposed, SmallVectorImpl<ProductUse> &uses) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner();
    if (isa<DotOp>(user) && use.getOperandNumber() < 2) {
      uses.push_back({&use, transposed});
      continue;
    }
    auto turn = dyn_cast<BroadcastOp>(user);
    if (turn && turn.getType().getRank() != cast<RankedTensorType>(tile.getType()).getRank())
      return false;
    if (!turn && !isa<ConvertOp>(user))
      return false;
    bool turns = turn && turn.getDims()[0] == 1;
    if (!collectUses(user->getResult(0), transposed ^ turns, uses))
      return false;
  }
  return true;
}

std::optional<SmallVector<ProductUse>> nova::tile::productUses(Value tile) {
  SmallVector<ProductUse> uses;
  if (cast<RankedTensorType>(tile.getType()).getRank() != 2 || !collectUses(tile, false, uses) ||
      uses.empty())
    return std::nullopt;
  return uses;
}

bool nova::tile::isMappable(LoadOp load) {
  Type element = load.getType().getElementType();
  if (load.getType().getRank() != 2 || !isa<FloatType>(element) || bytesOf(element) > 4 ||
      bytesOf(element) < 2)
    return false;
  if (load.getFill() && !matchPattern(load.getFill(), m_AnyZeroFloat()))
    return false;
  Access access = *accessOf(load);
  std::vector<unsigned> order = access.order();
  int64_t bytes = access.elementBytes(), inner = access.shape[order[0]], rows = access.shape[order[1]];
  if (access.strides()[order[0]] != 1 || powerOfTwoPart(inner) * bytes < kPanelBytes)
    return false;
  // Panels of a number of rows that is no power of two: their offsets must stay
  // linear over bits.
  if (powerOfTwoPart(rows) != rows && powerOfTwoPart(inner) * bytes > 2 * kPanelBytes)
    return false;
  if (rows % 8)
    return false;
  // The first coordinate of a copy must be a multiple of 16 bytes, too.
  if (argumentAlignment(access.memory) % kMapAlignment ||
      knownDivisor(access.offsets[access.along[order[0]]]) * bytes % kMapAlignment)
    return false;
  MemRefType memory = access.memoryType();
  SmallVector<int64_t> strides;
  int64_t offset, rank = 0;
  (void)memory.getStridesAndOffset(strides, offset);
  for (int64_t d = 0; d < memory.getRank(); ++d) {
    bool isTile = llvm::is_contained(access.along, d);
    if (memory.getDimSize(d) == 1 && !isTile)
      continue;
    ++rank;
    if (memory.getDimSize(d) >= kMapExtent)
      return false;
    if (d != access.along[order[0]] && (strides[d] <= 0 || strides[d] * bytes % kMapAlignment))
      return false;
  }
  return rank <= kMapRank;
}

//===----------------------------------------------------------------------===//
// Which way round
//===----------------------------------------------------------------------===//

namespace {
/// An operand of a product, as the tensor cores could get it.
struct Origin {
  bool mapped = false;  ///< A tensor map copies it.
  bool kInner = false;  ///< Neighbours in memory lie along k.
  int64_t elementBytes = 4;

  /// The work of bringing it, in no unit but its own.
  int64_t costOnTheRight() const {
    if (!mapped)
      return 3; // from registers to shared memory
    return elementBytes == 2 || kInner ? 0 : 6; // to registers, and back transposed
  }
  int64_t costOnTheLeft() const {
    if (!mapped)
      return 2;
    return elementBytes == 2 || kInner ? 0 : 1;
  }
  /// On the left it is read from panels into registers.
  bool readsPanels() const { return mapped && elementBytes == 4 && !kInner; }
};
} // namespace

static Origin originOf(DotOp dot, unsigned number) {
  Value value = dot->getOperand(number);
  Origin origin;
  origin.elementBytes = bytesOf(cast<RankedTensorType>(value.getType()).getElementType());
  unsigned kDim = 1 - number;
  while (auto turn = value.getDefiningOp<BroadcastOp>()) {
    if (turn.getType().getRank() != cast<RankedTensorType>(turn.getOperand().getType()).getRank())
      return origin;
    if (turn.getDims()[0] == 1)
      kDim = 1 - kDim;
    value = turn.getOperand();
  }
  auto load = value.getDefiningOp<LoadOp>();
  if (!load || !isMappable(load) || !productUses(load))
    return origin;
  origin.mapped = true;
  origin.kInner = accessOf(load)->order()[0] == kDim;
  return origin;
}

/// Whether warpgroups can compute it this way round.
static bool fits(DotOp dot, bool flipped, int64_t warps) {
  auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
  Type element = lhs.getElementType();
  bool half = element.isBF16() || element.isF16();
  if (!half && !(element.isF32() && dot.getPrecision() == Precision::tf32))
    return false;
  int64_t k = lhs.getDimSize(1), rows = dot.getType().getDimSize(flipped),
          columns = dot.getType().getDimSize(!flipped);
  if (powerOfTwoPart(rows) < kRows || powerOfTwoPart(columns) < kColumns || warps % kWarpgroup)
    return false;
  // Panels lie along k, unless neither operand has its neighbours there.
  if (powerOfTwoPart(k) * bytesOf(element) < kPanelBytes) {
    Origin left = originOf(dot, flipped), right = originOf(dot, !flipped);
    if (!half || powerOfTwoPart(k) < kHalfDepth || !right.mapped || right.kInner || left.kInner)
      return false;
  }
  // Written to panels by threads, its rows are these columns.
  if (powerOfTwoPart(columns) != columns && powerOfTwoPart(k) * bytesOf(element) > 2 * kPanelBytes)
    return false;
  int64_t pieces = powerOfTwoPart(rows) / kRows * (powerOfTwoPart(columns) / kColumns);
  return warps / kWarpgroup <= pieces;
}

std::optional<WarpgroupChoice> nova::tile::chooseWarpgroups(ArrayRef<DotOp> products, int64_t warps,
                                                            bool alongRows, bool alongColumns) {
  // Reductions across the fragment's rows cross lanes, warps and warpgroups.
  constexpr int64_t kAcross = 4;
  std::optional<WarpgroupChoice> best;
  int64_t least = 0;
  for (bool flipped : {false, true}) {
    int64_t cost = (flipped ? alongRows : alongColumns) ? kAcross : 0;
    bool possible = true, permuted = true;
    for (DotOp dot : products) {
      possible &= fits(dot, flipped, warps);
      Origin left = originOf(dot, flipped), right = originOf(dot, !flipped);
      cost += left.costOnTheLeft() + right.costOnTheRight();
      permuted &= left.readsPanels();
    }
    if (possible && (!best || cost < least)) {
      best = WarpgroupChoice{flipped, permuted};
      least = cost;
    }
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

LinearLayout nova::tile::warpgroupAccumulator(int64_t rows, int64_t columns, int64_t warpCount,
                                              WarpgroupChoice choice) {
  bool permuted = choice.permuted;
  int64_t coreRows = powerOfTwoPart(rows), coreColumns = powerOfTwoPart(columns);
  auto row = [&](int64_t r) { return r * coreColumns; };
  // The fragment's rows by the bits of g, +8, and the warp. Permuted: lanes and
  // registers that read one row of a panel together take neighbours, and the
  // k = t of the left operand, which the swizzle XORs into the chunk, meets
  // different chunks.
  LinearLayout::Bases lanes{2, 4}, registers, warps;
  for (int64_t g : permuted ? std::array<int64_t, 3>{2, 16, 4} : std::array<int64_t, 3>{1, 2, 4})
    lanes.push_back(row(g));
  // Neighbours along the tile's last dimension first: a thread stores them together.
  if (permuted && choice.flipped)
    registers = {row(1), 1};
  else
    registers = {1, row(permuted ? 1 : 8)};
  warps = {row(permuted ? 8 : 16), row(32)};
  int64_t nextRow = kRows, lastColumn = coreColumns;
  for (int64_t w = kWarpgroup; w < warpCount; w *= 2) {
    if (nextRow < coreRows) {
      warps.push_back(row(nextRow));
      nextRow *= 2;
    } else {
      lastColumn /= 2;
      warps.push_back(lastColumn);
    }
  }
  for (int64_t c = kColumns; c < lastColumn; c *= 2)
    registers.push_back(c);
  for (; nextRow < coreRows; nextRow *= 2)
    registers.push_back(row(nextRow));
  return LinearLayout({coreRows, coreColumns}, {rows / coreRows, columns / coreColumns}, registers,
                      lanes, warps);
}

int64_t nova::tile::secondRow(const LinearLayout &fragment) {
  for (int64_t basis : fragment.registers)
    if (int64_t row = fragment.split(basis)[0])
      return row;
  llvm_unreachable("not a fragment of wgmma");
}

bool nova::tile::isReadByDescriptors(const LinearLayout &fragment) {
  auto row = [&](int64_t basis) { return fragment.split(basis)[0]; };
  return row(fragment.lanes[2]) == 1 && row(fragment.lanes[3]) == 2 &&
         row(fragment.lanes[4]) == 4 && secondRow(fragment) == 8 &&
         row(fragment.warps[0]) == 16 && row(fragment.warps[1]) == 32;
}

LinearLayout nova::tile::warpgroupLeft(const LinearLayout &accumulator, int64_t k,
                                       int64_t elementBytes) {
  int64_t coreK = powerOfTwoPart(k), coreRows = accumulator.core[0];
  auto rowOf = [&](int64_t basis) { return accumulator.split(basis)[0] * coreK; };
  LinearLayout::Bases lanes, registers, warps;
  int64_t nextK = 1;
  if (elementBytes == 2) {
    registers.push_back(1);
    nextK = 2;
  }
  lanes = {nextK, nextK * 2};
  nextK *= 4;
  for (int bit = 2; bit < (int)kLaneBits; ++bit)
    lanes.push_back(rowOf(accumulator.lanes[bit]));
  int64_t second = secondRow(accumulator) * coreK;
  registers.push_back(second);
  for (; nextK < coreK; nextK *= 2)
    registers.push_back(nextK);
  for (int64_t held : accumulator.registers)
    if (int64_t basis = rowOf(held); basis && basis != second)
      registers.push_back(basis);
  for (int64_t basis : accumulator.warps)
    warps.push_back(rowOf(basis));
  return LinearLayout({coreRows, coreK}, {accumulator.outer[0], k / coreK}, registers, lanes, warps);
}

LinearLayout nova::tile::warpgroupOperand(DotOp op, const LinearLayout &accumulator,
                                          unsigned operand, int64_t warps) {
  auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
  bool flipped = op.getMultiplier() == Multiplier::flipped_warpgroup;
  if (operand == (flipped ? 1 : 0)) {
    LinearLayout fragment = flipped ? accumulator.transposed({1, 0}) : accumulator;
    LinearLayout left =
        warpgroupLeft(fragment, type.getDimSize(1 - operand), bytesOf(type.getElementType()));
    return flipped ? left.transposed({1, 0}) : left;
  }
  return LinearLayout::blocked({type.getDimSize(0), type.getDimSize(1)}, {1, 0}, 1, warps);
}

LinearLayout nova::tile::transposingLayout(ArrayRef<int64_t> shape, int64_t warpCount) {
  // Rows, along which memory's neighbours lie, and columns. Two lanes' bits of
  // columns and one of rows keep both the reads and the writes at two passes or
  // fewer over the banks.
  int64_t rows = powerOfTwoPart(shape[0]), columns = powerOfTwoPart(shape[1]);
  LinearLayout::Bases registers, lanes, warps;
  int64_t nextRow = 1, nextColumn = 1;
  auto take = [&](bool row) -> int64_t {
    if (row ? nextRow >= rows : nextColumn >= columns)
      row = !row;
    int64_t &next = row ? nextRow : nextColumn;
    if (row ? next >= rows : next >= columns)
      return 0;
    int64_t basis = row ? next * columns : next;
    next *= 2;
    return basis;
  };
  auto push = [&](LinearLayout::Bases &bases, bool row) { bases.push_back(take(row)); };
  for (bool row : {true, true, false, false})
    push(registers, row);
  for (bool row : {false, false, true, true, true})
    push(lanes, row);
  for (int64_t w = 1; w < warpCount; w *= 2)
    push(warps, /*row=*/true);
  while (int64_t basis = take(true))
    registers.push_back(basis);
  llvm::erase(registers, 0);
  return LinearLayout({rows, columns}, {shape[0] / rows, shape[1] / columns}, registers, lanes,
                      warps);
}
