//===- Selections.cpp - Reductions that choose one position ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first of several equal ones wins, in whatever order they are compared: each
// candidate carries its position, and of two the earlier is the accumulator. What
// is outside has the position kNowhere and never wins.
//
//===----------------------------------------------------------------------===//
#include "ReductionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

static constexpr int64_t kNowhere = std::numeric_limits<int32_t>::max();

/// What the accumulation starts with comes before all positions.
SmallVector<Value> ReductionEmitter::initSelection() {
  SmallVector<Value> values = initialTiles();
  if (values.empty())
    return values;
  Tile before = e.number(home, -1);
  values.push_back(out.empty() ? before.value : e.expanded(home, before, out));
  return values;
}

SmallVector<Value> ReductionEmitter::selectAlong(ValueRange values, unsigned dim) {
  SmallVector<Type> types, scalars;
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + dim);
    types.push_back(RankedTensorType::get(shape, type.getElementType()));
    scalars.push_back(type.getElementType());
  }
  size_t count = scalars.size();
  scalars.append(scalars.begin(), scalars.begin() + count);
  auto reduce = tile::ReduceOp::create(e.builder, TypeRange(types), values, (int64_t)dim);
  OpBuilder::InsertionGuard guard(e.builder);
  Block *block = e.builder.createBlock(&reduce.getCombiner(), {}, scalars,
                                       SmallVector<Location>(scalars.size(), op->getLoc()));
  ImplicitLocOpBuilder &b = e.builder;
  Value firstIsA = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, block->getArgument(count - 1),
                                         block->getArgument(2 * count - 1));
  SmallVector<Value> early, late;
  for (size_t i = 0; i < count; ++i) {
    Value x = block->getArgument(i), y = block->getArgument(count + i);
    early.push_back(arith::SelectOp::create(b, firstIsA, x, y));
    late.push_back(arith::SelectOp::create(b, firstIsA, y, x));
  }
  IRMapping mapping;
  mapping.map(op.getRegionOutputArgs(), ValueRange(early).drop_back());
  mapping.map(choice->elements, ValueRange(late).drop_back());
  for (Operation *step : choice->steps)
    b.clone(*step, mapping);
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, late.back(),
                                       arith::ConstantIndexOp::create(b, kNowhere));
  Value takes = arith::AndIOp::create(b, mapping.lookup(choice->takes), exists);
  SmallVector<Value> results;
  for (auto [x, y] : llvm::zip_equal(early, late))
    results.push_back(arith::SelectOp::create(b, takes, y, x));
  tile::YieldOp::create(b, results);
  return SmallVector<Value>(reduce->getResults());
}

FailureOr<SmallVector<Value>> ReductionEmitter::stepSelection(Scope *scope, ValueRange accumulators) {
  BodyEmitter body(e, op, scope, all);
  SmallVector<Value> values;
  for (Value element : choice->elements) {
    auto tile = body.get(element);
    if (failed(tile))
      return failure();
    values.push_back(all.empty() ? tile->value : e.expanded(scope, *tile, all));
  }
  Tile position = e.number(scope, 0);
  for (AxisId axis : loops)
    if (axis != kNoAxis)
      position = e.apply(scope, {position, e.number(scope, e.axes[axis].extent), e.range(scope, axis)}, all,
                         [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                           return arith::AddIOp::create(b, arith::MulIOp::create(b, v[0], v[1]), v[2]);
                         });
  values.push_back(masked(scope, position, all, reduced, e.builder.getIndexAttr(kNowhere), Value()));
  for (size_t dim = all.size(); dim-- > out.size();) {
    e.at(scope);
    values = selectAlong(values, dim);
  }
  if (!all.empty() && out.empty())
    for (Value &value : values)
      value = e.unwrapped(scope, value, {}).value;
  // This chunk comes after all before it.
  SmallVector<Value> olds(accumulators);
  if (olds.empty())
    olds = initSelection();
  if (olds.empty())
    return failure();
  BodyEmitter merge(e, op, scope, out);
  for (auto [argument, old] : llvm::zip_equal(op.getRegionOutputArgs(), ArrayRef<Value>(olds).drop_back()))
    merge.set(argument, {old, out});
  for (auto [element, value] : llvm::zip_equal(choice->elements, ArrayRef<Value>(values).drop_back()))
    merge.set(element, {value, out});
  auto takes = merge.get(choice->takes);
  if (failed(takes))
    return failure();
  Tile exists = e.apply(scope, {Tile{values.back(), out}, e.number(scope, kNowhere)}, out,
                        [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                          return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, v[0], v[1]);
                        });
  SmallVector<Value> results;
  for (auto [old, fresh] : llvm::zip_equal(olds, values))
    results.push_back(e.merged(scope, {*takes, exists}, {fresh, out}, {old, out}, /*accumulate=*/false));
  return results;
}
