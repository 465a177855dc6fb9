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

void ThreadEmitter::emitScan(ScanOp op) {
  LinearLayout layout = layoutOf(op), whole = lines(layout, op.getDim(), warps);
  Type element = op.getType().getElementType();
  int64_t bytes = memoryBytes(element);
  SharedTile tile = sharedTileFor(layout.core, layout.outer, bytes);
  beginScratch(tile.bytes());
  storeShared(registers(op.getOperand()), layout, tile);
  scratchWritten();
  Registers values = loadShared(element, whole, tile);

  // Registers in the order of their place along the line.
  SmallVector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  auto along = [&](int64_t r) { return whole.registerCoordinates(r)[op.getDim()]; };
  llvm::stable_sort(order, [&](int64_t a, int64_t b) { return along(a) < along(b); });
  std::map<LinearLayout::Coordinates, Value> sums; // by the line
  for (int64_t r : order) {
    LinearLayout::Coordinates line = whole.registerCoordinates(r);
    line[op.getDim()] = 0;
    Value &sum = sums[line];
    if (!sum)
      sum = values[r];
    else if (isa<FloatType>(element))
      sum = arith::AddFOp::create(builder, loc, sum, values[r]);
    else
      sum = arith::AddIOp::create(builder, loc, sum, values[r]);
    values[r] = sum;
  }
  beginScratch(tile.bytes());
  storeShared(values, whole, tile);
  scratchWritten();
  tiles[op] = loadShared(element, layout, tile);
}
