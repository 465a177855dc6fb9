//===- Scan.cpp - Running sums ----------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// A layout in which a thread holds whole lines along `dim`.
static LinearLayout lines(const LinearLayout &layout, unsigned dim, int64_t warps) {
  std::vector<int64_t> others = layout.core;
  others[dim] = 1;
  std::vector<unsigned> order;
  for (unsigned d = layout.rank(); d-- > 0;)
    order.push_back(d);
  LinearLayout spread = LinearLayout::blocked(others, order, 1, warps);
  LinearLayout result(layout.core, layout.outer, {}, LinearLayout::Bases(kLaneBits, 0),
                      LinearLayout::Bases(spread.warps.size(), 0));
  auto place = [&](const LinearLayout::Bases &bases) {
    LinearLayout::Bases placed;
    for (int64_t basis : bases)
      placed.push_back(result.join(spread.split(basis)));
    return placed;
  };
  result.lanes = place(spread.lanes);
  result.warps = place(spread.warps);
  for (int64_t bit = 1; bit < layout.core[dim]; bit *= 2) {
    LinearLayout::Coordinates coords(layout.rank(), 0);
    coords[dim] = bit;
    result.registers.push_back(result.join(coords));
  }
  for (int64_t basis : place(spread.registers))
    result.registers.push_back(basis);
  return result;
}

/// The one line of a tile lies along the threads: neighbours in a thread, in the lanes,
/// in the warps, and again.
static bool runsAlongThreads(const LinearLayout &layout) {
  if (layout.rank() != 1)
    return false;
  int64_t next = 1;
  size_t r = 0;
  for (; r < layout.registers.size() && layout.registers[r] == next; ++r)
    next *= 2;
  for (const auto *bases : {&layout.lanes, &layout.warps})
    for (int64_t basis : *bases) {
      if (basis && basis != next)
        return false;
      next *= basis ? 2 : 1;
    }
  for (; r < layout.registers.size(); ++r, next *= 2)
    if (layout.registers[r] != next)
      return false;
  return true;
}

/// Registers at the start whose elements are neighbours.
static int64_t neighbours(const LinearLayout &layout) {
  int64_t count = 1;
  for (int64_t basis : layout.registers)
    if (basis == count)
      count *= 2;
  return count;
}

static Value sumOf(OpBuilder &builder, Location loc, Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(builder, loc, a, b);
  return arith::AddIOp::create(builder, loc, a, b);
}

Registers ThreadEmitter::scanTogether(const Registers &values, const LinearLayout &layout) {
  Type element = values[0].getType();
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  int64_t run = neighbours(layout), runs = values.size() / run;
  auto hasBit = [&](int64_t bit) -> Value {
    Value own = arith::AndIOp::create(builder, loc, thread, constantI32(int64_t{1} << bit));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, own, constantI32(0));
  };
  // Within each run of neighbours, then what the lanes before have, then the warps.
  Registers sums;
  SmallVector<Value> before, totals;
  for (int64_t i = 0; i < runs; ++i) {
    Value sum;
    for (int64_t r = i * run; r < (i + 1) * run; ++r)
      sums.push_back(sum = sum ? sumOf(builder, loc, sum, values[r]) : values[r]);
    Value lower = zero;
    for (unsigned bit = 0; bit < kLaneBits; ++bit) {
      if (!layout.lanes[bit])
        continue;
      // The other half comes before mine if my bit is set.
      Value other = butterfly(builder, loc, sum, int64_t{1} << bit);
      lower = arith::SelectOp::create(builder, loc, hasBit(bit), sumOf(builder, loc, other, lower), lower);
      sum = sumOf(builder, loc, sum, other);
    }
    before.push_back(lower);
    totals.push_back(sum);
  }
  std::vector<int64_t> images(kLaneBits + layout.warps.size(), 0);
  int64_t parts = 1;
  for (auto [bit, basis] : llvm::enumerate(layout.warps))
    if (basis)
      images[kLaneBits + bit] = std::exchange(parts, 2 * parts);
  if (parts > 1) {
    SharedTile share = sharedTileFor({runs * parts}, {1}, memoryBytes(element));
    Value mine = linearOfThread(images);
    auto address = [&](Value part, int64_t i) -> Value {
      Value at = arith::AddIOp::create(builder, loc, part, constantI32(i * parts));
      at = arith::MulIOp::create(builder, loc, at, constantI32(share.elementBytes));
      return LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), shared, ArrayRef<LLVM::GEPArg>{at});
    };
    int64_t others = (kWarpSize - 1) | layout.freeWarpBits() << kLaneBits;
    Value first = arith::AndIOp::create(builder, loc, thread, constantI32(others));
    beginScratch(share.bytes());
    when(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, first, constantI32(0)), [&] {
      for (int64_t i = 0; i < runs; ++i)
        LLVM::StoreOp::create(builder, loc, toMemory(totals[i]), address(mine, i), share.elementBytes);
    });
    scratchWritten();
    for (int64_t i = 0; i < runs; ++i) {
      Value lower = zero, all = zero;
      for (int64_t part = 0; part < parts; ++part) {
        Value other = LLVM::LoadOp::create(builder, loc, memoryType(element, builder), address(constantI32(part), i),
                                           share.elementBytes);
        other = fromMemory(other, element);
        Value isMine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, mine, constantI32(part));
        lower = arith::SelectOp::create(builder, loc, isMine, all, lower);
        all = sumOf(builder, loc, all, other);
      }
      before[i] = sumOf(builder, loc, lower, before[i]);
      totals[i] = all;
    }
  }
  for (int64_t i = 0; i < runs; ++i) {
    if (i) {
      before[i] = sumOf(builder, loc, totals[i - 1], before[i]);
      totals[i] = sumOf(builder, loc, totals[i - 1], totals[i]);
    }
    for (int64_t r = i * run; r < (i + 1) * run; ++r)
      sums[r] = sumOf(builder, loc, before[i], sums[r]);
  }
  return sums;
}

Registers ThreadEmitter::scanLines(const Registers &operand, const LinearLayout &layout, unsigned dim) {
  LinearLayout whole = lines(layout, dim, warps);
  Type element = operand[0].getType();
  SharedTile tile = sharedTileFor(layout.core, layout.outer, memoryBytes(element));
  beginScratch(tile.bytes());
  storeShared(operand, layout, tile);
  scratchWritten();
  Registers values = loadShared(element, whole, tile);

  // Registers in the order of their place along the line.
  SmallVector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  auto along = [&](int64_t r) { return whole.registerCoordinates(r)[dim]; };
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return along(a) < along(b); });
  std::map<LinearLayout::Coordinates, Value> sums; // by the line
  for (int64_t r : order) {
    LinearLayout::Coordinates line = whole.registerCoordinates(r);
    line[dim] = 0;
    Value &sum = sums[line];
    values[r] = sum = sum ? sumOf(builder, loc, sum, values[r]) : values[r];
  }
  beginScratch(tile.bytes());
  storeShared(values, whole, tile);
  scratchWritten();
  return loadShared(element, layout, tile);
}

void ThreadEmitter::emitScan(ScanOp op) {
  LinearLayout layout = layoutOf(op);
  Registers values = registers(op.getOperand());
  tiles[op] = runsAlongThreads(layout) ? scanTogether(values, layout) : scanLines(values, layout, op.getDim());
}
