//===- Reduction.cpp - Registers, lanes, warps -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include <algorithm>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

namespace {
/// One scalar for each operand of the reduction.
using Group = SmallVector<Value>;
} // namespace

/// The combiner applied to two groups of scalars.
static Group combine(OpBuilder &builder, ReduceOp op, const Group &a, const Group &b) {
  Block &body = op.getCombiner().front();
  IRMapping map;
  for (size_t i = 0; i < a.size(); ++i) {
    map.map(body.getArgument(i), a[i]);
    map.map(body.getArgument(a.size() + i), b[i]);
  }
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, map);
  Group result;
  for (Value value : body.getTerminator()->getOperands())
    result.push_back(map.lookupOrDefault(value));
  return result;
}

Value ThreadEmitter::butterfly(Value value, int64_t mask) {
  auto i32 = builder.getI32Type();
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
  };
  auto shuffle = [&](Value word) -> Value {
    return NVVM::ShflOp::create(builder, loc, word.getType(), constant(-1), word, constant(mask),
                                constant(31), NVVM::ShflKind::bfly, UnitAttr());
  };
  Type type = value.getType();
  if (type.isF32() || type.isInteger(32))
    return shuffle(value);
  Value bits = value;
  if (type.isIndex())
    bits = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), bits);
  else if (!isa<IntegerType>(type))
    bits = LLVM::BitcastOp::create(builder, loc,
                                   builder.getIntegerType(type.getIntOrFloatBitWidth()), bits);
  unsigned width = bits.getType().getIntOrFloatBitWidth();
  Value moved;
  if (width == 64) {
    auto pair = VectorType::get({2}, i32);
    Value halves = LLVM::BitcastOp::create(builder, loc, pair, bits);
    Value result = LLVM::UndefOp::create(builder, loc, pair);
    for (int64_t i : {0, 1}) {
      Value half = LLVM::ExtractElementOp::create(builder, loc, halves, constant(i));
      result = LLVM::InsertElementOp::create(builder, loc, result, shuffle(half), constant(i));
    }
    moved = LLVM::BitcastOp::create(builder, loc, builder.getI64Type(), result);
  } else {
    moved = shuffle(arith::ExtUIOp::create(builder, loc, i32, bits));
    moved = arith::TruncIOp::create(builder, loc, bits.getType(), moved);
  }
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, moved);
  if (!isa<IntegerType>(type))
    return LLVM::BitcastOp::create(builder, loc, type, moved);
  return moved;
}

ThreadEmitter::WarpShares ThreadEmitter::shareBetweenWarps(ArrayRef<Registers> values, ArrayRef<Type> elements,
                                                           const LinearLayout &layout,
                                                           ArrayRef<unsigned> warpBits) {
  WarpShares all;
  all.layout = layout;
  all.elements.assign(elements.begin(), elements.end());
  all.parts = int64_t{1} << warpBits.size();
  int64_t bytes = 0;
  for (Type element : elements) {
    SharedTile tile = sharedTileFor(layout.core, layout.outer, memoryBytes(element));
    tile.base = constantI32(bytes);
    bytes += llvm::alignTo(tile.bytes(), 16) * all.parts;
    all.tiles.push_back(tile);
  }
  std::vector<int64_t> images(kLaneBits + layout.warps.size(), 0);
  for (auto [i, bit] : llvm::enumerate(warpBits))
    images[kLaneBits + bit] = int64_t{1} << i;
  all.number = linearOfThread(images);
  // Threads that hold copies do not write; warps with parts of their own do.
  int64_t copies = layout.freeLaneBits() | layout.freeWarpBits() << kLaneBits;
  for (unsigned bit : warpBits)
    copies &= ~(int64_t{1} << (kLaneBits + bit));
  Value writes;
  if (copies)
    writes = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                   arith::AndIOp::create(builder, loc, thread, constantI32(copies)), constantI32(0));
  beginScratch(bytes);
  when(writes, [&] {
    for (auto [list, share] : llvm::zip_equal(values, all.tiles)) {
      SharedTile mine = share;
      int64_t size = llvm::alignTo(share.bytes(), 16);
      Value skip = arith::MulIOp::create(builder, loc, all.number, constantI32(size));
      mine.base = arith::AddIOp::create(builder, loc, share.base, skip);
      for (int64_t r = 0; r < layout.registerCount(); ++r)
        LLVM::StoreOp::create(builder, loc, toMemory(list[r]), sharedAddress(layout, mine, r), share.elementBytes);
    }
  });
  scratchWritten();
  return all;
}

Value ThreadEmitter::loadShare(const WarpShares &all, size_t i, int64_t part, int64_t reg) {
  SharedTile theirs = all.tiles[i];
  theirs.base = arith::AddIOp::create(builder, loc, theirs.base,
                                      constantI32(part * llvm::alignTo(theirs.bytes(), 16)));
  return loadSharedVector(all.elements[i], all.layout, theirs, reg, 1)[0];
}

LogicalResult ThreadEmitter::emitReduce(ReduceOp op) {
  unsigned dim = op.getDim();
  LinearLayout from = layoutOf(op.getOperands()[0]), to = layoutOf(op.getResult(0));
  auto along = [&](int64_t basis) { return from.split(basis)[dim]; };

  // Within the thread: pairs of pairs, in the order of the registers.
  auto where = registersByCoordinates(to);
  SmallVector<SmallVector<Group>> waiting(to.registerCount());
  for (int64_t r = 0; r < from.registerCount(); ++r) {
    LinearLayout::Coordinates coords = from.registerCoordinates(r);
    coords.erase(coords.begin() + dim);
    auto found = where.find(coords);
    if (found == where.end())
      return op.emitOpError("its result is not laid out as the operand's slice");
    Group group;
    for (Value operand : op.getOperands())
      group.push_back(registers(operand)[r]);
    waiting[found->second].push_back(std::move(group));
  }
  SmallVector<Group> partial;
  for (SmallVector<Group> &groups : waiting) {
    while (groups.size() > 1) {
      SmallVector<Group> next;
      for (size_t i = 0; i + 1 < groups.size(); i += 2)
        next.push_back(combine(builder, op, groups[i], groups[i + 1]));
      if (groups.size() % 2)
        next.push_back(groups.back());
      groups = std::move(next);
    }
    partial.push_back(groups[0]);
  }

  // Within the warp.
  for (unsigned bit = 0; bit < kLaneBits; ++bit) {
    if (!along(from.lanes[bit]))
      continue;
    for (Group &group : partial) {
      Group other;
      for (Value value : group)
        other.push_back(butterfly(value, int64_t{1} << bit));
      // The lower lane's value first: every lane computes the same.
      group = combine(builder, op, group, other);
    }
  }

  // Between warps: each writes what it has, all read and combine in one order.
  SmallVector<unsigned> warpBits;
  for (unsigned bit = 0; bit < from.warps.size(); ++bit)
    if (along(from.warps[bit]))
      warpBits.push_back(bit);
  if (!warpBits.empty()) {
    SmallVector<Registers> values(op.getNumOperands());
    for (const Group &group : partial)
      for (auto [list, value] : llvm::zip_equal(values, group))
        list.push_back(value);
    SmallVector<Type> elements;
    for (Value operand : op.getOperands())
      elements.push_back(cast<RankedTensorType>(operand.getType()).getElementType());
    WarpShares shares = shareBetweenWarps(values, elements, to, warpBits);
    SmallVector<Group> total(partial.size());
    for (int64_t p = 0; p < shares.parts; ++p)
      for (int64_t r = 0; r < to.registerCount(); ++r) {
        Group group;
        for (size_t i = 0; i < elements.size(); ++i)
          group.push_back(loadShare(shares, i, p, r));
        total[r] = p == 0 ? group : combine(builder, op, total[r], group);
      }
    partial = std::move(total);
  }

  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    Registers values;
    for (Group &group : partial)
      values.push_back(group[i]);
    tiles[result] = std::move(values);
  }
  return success();
}
