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

/// A scalar of any type from the lane whose number differs in `mask`.
static Value butterfly(OpBuilder &builder, Location loc, Value value, int64_t mask) {
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
        other.push_back(butterfly(builder, loc, value, int64_t{1} << bit));
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
    int64_t parts = int64_t{1} << warpBits.size();
    SmallVector<SharedTile> shares;
    int64_t bytes = 0;
    for (Value operand : op.getOperands()) {
      Type element = cast<RankedTensorType>(operand.getType()).getElementType();
      SharedTile tile = sharedTileFor(to.core, to.outer, memoryBytes(element));
      tile.base = constantI32(bytes);
      bytes += llvm::alignTo(tile.bytes(), 16) * parts;
      shares.push_back(tile);
    }
    std::vector<int64_t> images(kLaneBits + from.warps.size(), 0);
    for (auto [i, bit] : llvm::enumerate(warpBits)) {
      images[kLaneBits + bit] = int64_t{1} << i;
    }
    Value number = linearOfThread(images); // of this warp's part
    // Threads that hold copies do not write; warps with parts of their own do.
    int64_t copies = to.freeLaneBits() | to.freeWarpBits() << kLaneBits;
    for (unsigned bit : warpBits)
      copies &= ~(int64_t{1} << (kLaneBits + bit));
    Value writes;
    if (copies)
      writes = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::eq,
          arith::AndIOp::create(builder, loc, thread, constantI32(copies)), constantI32(0));
    beginScratch(bytes);
    when(writes, [&] {
      for (auto [i, share] : llvm::enumerate(shares)) {
        SharedTile mine = share;
        int64_t size = llvm::alignTo(share.bytes(), 16);
        Value skip = arith::MulIOp::create(builder, loc, number, constantI32(size));
        mine.base = arith::AddIOp::create(builder, loc, share.base, skip);
        for (int64_t r = 0; r < to.registerCount(); ++r)
          LLVM::StoreOp::create(builder, loc, toMemory(partial[r][i]), sharedAddress(to, mine, r),
                                share.elementBytes);
      }
    });
    scratchWritten();
    SmallVector<Group> total(partial.size());
    for (int64_t p = 0; p < parts; ++p)
      for (int64_t r = 0; r < to.registerCount(); ++r) {
        Group group;
        for (auto [i, share] : llvm::enumerate(shares)) {
          SharedTile theirs = share;
          theirs.base = arith::AddIOp::create(
              builder, loc, share.base, constantI32(p * llvm::alignTo(share.bytes(), 16)));
          Type element =
              cast<RankedTensorType>(op.getOperands()[i].getType()).getElementType();
          group.push_back(loadSharedVector(element, to, theirs, r, 1)[0]);
        }
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
