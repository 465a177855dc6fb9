//===- Scan.cpp - Running sums ----------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line is cut into runs, one for each thread, in the order of lanes and then of
// warps: sums within the run, then over the runs before it in the warp, then over the
// warps before it. Every sum is added in one order, whatever runs when.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// A layout in which each thread has one run of every line along `dim`, as long as
/// keeps all threads busy. Where lines are rows, lanes follow one another along them;
/// else they stand side by side.
static LinearLayout runs(const LinearLayout &layout, unsigned dim, int64_t warps) {
  int64_t length = std::clamp<int64_t>(layout.coreElements() / (kWarpSize * warps), 1, layout.core[dim]);
  auto bitsOf = [&](unsigned d, int64_t from) {
    LinearLayout::Bases bits;
    for (int64_t bit = from; bit < layout.core[d]; bit *= 2) {
      LinearLayout::Coordinates coords(layout.rank(), 0);
      coords[d] = bit;
      bits.push_back(layout.join(coords));
    }
    return bits;
  };
  LinearLayout::Bases line = bitsOf(dim, 1), registers(line.begin(), line.begin() + log2Exact(length)),
                      rest(line.begin() + log2Exact(length), line.end()), across;
  for (unsigned d = layout.rank(); d-- > 0;)
    if (d != dim)
      llvm::append_range(across, bitsOf(d, 1));
  bool isRow = dim + 1 == layout.rank();
  LinearLayout::Bases threads = isRow ? rest : across;
  llvm::append_range(threads, isRow ? across : rest);
  size_t bits = kLaneBits + log2Exact(warps);
  if (threads.size() > bits)
    registers.insert(registers.end(), threads.begin() + bits, threads.end());
  threads.resize(bits, 0);
  return LinearLayout(layout.core, layout.outer, registers,
                      LinearLayout::Bases(threads.begin(), threads.begin() + kLaneBits),
                      LinearLayout::Bases(threads.begin() + kLaneBits, threads.end()));
}

/// One element for what each thread of `layout` has of a line in one repeat of the
/// core; threads of one line hold copies.
static LinearLayout totals(const LinearLayout &layout, unsigned dim) {
  LinearLayout result(layout.core, layout.outer, {}, {}, {});
  result.core[dim] = 1;
  auto without = [&](const LinearLayout::Bases &bases, bool keep) {
    LinearLayout::Bases list;
    for (int64_t basis : bases) {
      LinearLayout::Coordinates coords = layout.split(basis);
      bool along = coords[dim] != 0;
      coords[dim] = 0;
      if (!along || keep)
        list.push_back(result.join(coords));
    }
    return list;
  };
  result.registers = without(layout.registers, false);
  result.lanes = without(layout.lanes, true);
  result.warps = without(layout.warps, true);
  return result;
}

void ThreadEmitter::emitScan(ScanOp op) {
  unsigned dim = op.getDim();
  LinearLayout layout = layoutOf(op), whole = runs(layout, dim, warps), sums = totals(whole, dim);
  Type element = op.getType().getElementType();
  SharedTile tile = sharedTileFor(layout.core, layout.outer, memoryBytes(element));
  beginScratch(tile.bytes());
  storeShared(registers(op.getOperand()), layout, tile);
  scratchWritten();
  Registers values = loadShared(element, whole, tile);

  auto add = [&](Value a, Value b) -> Value {
    if (!a || !b)
      return a ? a : b;
    return isa<FloatType>(element) ? arith::AddFOp::create(builder, loc, a, b).getResult()
                                   : arith::AddIOp::create(builder, loc, a, b).getResult();
  };
  // Minus zero is what changes no float.
  TypedAttr none = builder.getZeroAttr(element);
  if (auto type = dyn_cast<FloatType>(element))
    none = builder.getFloatAttr(type, APFloat::getZero(type.getFloatSemantics(), /*Negative=*/true));
  Value nothing = arith::ConstantOp::create(builder, loc, none);
  auto choose = [&](Value condition, Value a, Value b) -> Value {
    return arith::SelectOp::create(builder, loc, condition, a, b ? b : nothing);
  };

  // Within the run, registers in the order of their place along the line.
  auto where = registersByCoordinates(sums);
  auto lineOf = [&](int64_t r) {
    LinearLayout::Coordinates coords = whole.registerCoordinates(r);
    coords[dim] /= whole.core[dim];
    return where.at(coords);
  };
  SmallVector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](int64_t a, int64_t b) {
    return whole.registerCoordinates(a)[dim] < whole.registerCoordinates(b)[dim];
  });
  size_t lines = sums.registerCount();
  Registers total(lines), before(lines);
  for (int64_t r : order)
    values[r] = total[lineOf(r)] = add(total[lineOf(r)], values[r]);

  // Within the warp: of two neighbouring groups of lanes the upper one comes after
  // all that the lower one has.
  for (unsigned bit = 0; bit < kLaneBits; ++bit) {
    if (!whole.split(whole.lanes[bit])[dim])
      continue;
    Value mine = arith::AndIOp::create(builder, loc, thread, constantI32(int64_t{1} << bit));
    Value isUpper = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, mine, constantI32(0));
    for (size_t l = 0; l < lines; ++l) {
      Value other = butterfly(total[l], int64_t{1} << bit);
      before[l] = choose(isUpper, add(other, before[l]), before[l]);
      total[l] = add(total[l], other);
    }
  }

  // Between warps.
  SmallVector<unsigned> warpBits;
  for (unsigned bit = 0; bit < whole.warps.size(); ++bit)
    if (whole.split(whole.warps[bit])[dim])
      warpBits.push_back(bit);
  if (!warpBits.empty()) {
    WarpShares shares = shareBetweenWarps({total}, {element}, sums, warpBits);
    for (size_t l = 0; l < lines; ++l) {
      Value sum = loadShare(shares, 0, 0, l), earlier;
      for (int64_t p = 1; p < shares.parts; ++p) {
        Value isMine =
            arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, shares.number, constantI32(p));
        earlier = choose(isMine, sum, earlier);
        sum = add(sum, loadShare(shares, 0, p, l));
      }
      before[l] = add(earlier, before[l]);
      total[l] = sum;
    }
  }

  // Repeats of the core follow one another.
  std::map<LinearLayout::Coordinates, Value> carried;
  for (auto [coords, l] : where) { // ascending along every dimension
    LinearLayout::Coordinates line = coords;
    line[dim] = 0;
    Value &carry = carried[line];
    before[l] = add(carry, before[l]);
    carry = add(carry, total[l]);
  }
  for (auto [r, value] : llvm::enumerate(values))
    value = add(before[lineOf(r)], value);
  beginScratch(tile.bytes());
  storeShared(values, whole, tile);
  scratchWritten();
  tiles[op] = loadShared(element, layout, tile);
}
