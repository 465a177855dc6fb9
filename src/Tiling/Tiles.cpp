//===- Tiles.cpp - Shapes, broadcasts and masks of tiles -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova::tiling;
namespace tile = nova::tile;

/// Tiles have no more dimensions than this (TileDialect.td).
static constexpr size_t kMaxRank = 3;

Value Emitter::index(Scope *scope, int64_t value) {
  return arith::ConstantIndexOp::create(at(scope), value);
}

Value Emitter::constant(Scope *scope, TypedAttr value) {
  return arith::ConstantOp::create(at(scope), value);
}

RankedTensorType Emitter::tileType(ArrayRef<AxisId> list, Type element) {
  SmallVector<int64_t> shape;
  for (AxisId axis : list)
    shape.push_back(axes[axis].tile);
  return RankedTensorType::get(shape, element);
}

AxisList Emitter::tileAxes(ArrayRef<AxisId> list, ArrayRef<AxisId> order) {
  AxisList result;
  for (AxisId axis : list)
    if (axis != kNoAxis && axes[axis].tile > 1 && !llvm::is_contained(result, axis))
      result.push_back(axis);
  // Those the order does not name follow, by number.
  auto rank = [&](AxisId axis) -> size_t {
    auto it = llvm::find(order, axis);
    return it == order.end() ? order.size() + axis : it - order.begin();
  };
  llvm::sort(result, [&](AxisId a, AxisId b) { return rank(a) < rank(b); });
  return result;
}

LogicalResult Emitter::checkRank(Operation *op, ArrayRef<AxisId> list) {
  if (list.size() <= kMaxRank)
    return success();
  return refuse(kernel, op) << "needs a tile of rank " << list.size() << ", expected at most " << kMaxRank;
}

Tile Emitter::ordered(Scope *scope, Tile tile, ArrayRef<AxisId> order) {
  AxisList wanted = tileAxes(tile.axes, order);
  if (wanted == tile.axes)
    return tile;
  return {expanded(scope, tile, wanted), wanted};
}

Value Emitter::expanded(Scope *scope, const Tile &tile, ArrayRef<AxisId> wanted) {
  if (tile.axes.empty())
    return tile::SplatOp::create(at(scope), tileType(wanted, tile.value.getType()), tile.value);
  if (ArrayRef<AxisId>(tile.axes) == wanted)
    return tile.value;
  SmallVector<int64_t> dims;
  for (AxisId axis : tile.axes)
    dims.push_back(llvm::find(wanted, axis) - wanted.begin());
  Type element = cast<RankedTensorType>(tile.value.getType()).getElementType();
  return tile::BroadcastOp::create(at(scope), tileType(wanted, element), tile.value, dims);
}

Tile Emitter::unwrapped(Scope *scope, Value value, ArrayRef<AxisId> list) {
  if (!list.empty())
    return {value, AxisList(list)};
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  return {tile::ScalarOp::create(at(scope), element, value), {}};
}

Tile Emitter::apply(Scope *scope, ArrayRef<Tile> operands, ArrayRef<AxisId> order, Build build) {
  AxisList all;
  for (const Tile &operand : operands)
    all.append(operand.axes);
  all = tileAxes(all, order);
  SmallVector<Value> values;
  for (const Tile &operand : operands)
    values.push_back(all.empty() ? operand.value : expanded(scope, operand, all));
  return {build(at(scope), values), all};
}

Tile Emitter::number(Scope *scope, int64_t value) { return {index(scope, value), {}}; }

Tile Emitter::range(Scope *scope, AxisId axis) {
  const Place &where = place(axis, scope);
  if (axes[axis].tile == 1)
    return {where.offset, {}};
  scope = home({axis}, scope);
  Tile &known = scope->ranges[axis];
  if (!known.value)
    known = {tile::RangeOp::create(at(scope), tileType({axis}, builder.getIndexType()), where.offset), {axis}};
  return known;
}

Tile Emitter::inside(Scope *scope, AxisId axis) {
  scope = home({axis}, scope);
  if (Tile known = scope->insides.lookup(axis); known.value)
    return known;
  Value positions = range(scope, axis).value;
  Tile extent{index(scope, axes[axis].extent), {}};
  // One unsigned comparison tests both ends.
  Value result = arith::CmpIOp::create(at(scope), arith::CmpIPredicate::ult, positions,
                                       expanded(scope, extent, {axis}));
  return scope->insides[axis] = {result, {axis}};
}

Value Emitter::mask(Scope *scope, ArrayRef<AxisId> list) {
  Value all;
  for (AxisId axis : list) {
    if (place(axis, scope).bounds == 0)
      continue;
    Value one = expanded(scope, inside(scope, axis), list);
    all = all ? arith::AndIOp::create(at(scope), all, one).getResult() : one;
  }
  return all;
}
