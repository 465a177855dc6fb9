//===- Reductions.cpp - Reductions and products on tiles -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ReductionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

LogicalResult ReductionEmitter::prepare(bool isEager) {
  eager = isEager;
  auto found = accumulations(op);
  auto chosen = failed(found) ? selection(op) : FailureOr<Selection>();
  if (succeeded(found))
    parts = *found;
  else if (succeeded(chosen))
    choice = *chosen;
  else
    folds = true;
  out = e.tileAxes(e.axes.ofValue(op->getResult(0)), order);
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      loops.push_back(e.axes.ofLoop(op, loop));
  reduced = e.tileAxes(loops, order);
  all = out;
  all.append(reduced);
  isDot = !choice && !folds && prepareDot();
  return isDot ? success() : e.checkRank(op, all);
}

/// A product of matrices: two factors, one axis of each in the result, one in
/// both that is reduced.
bool ReductionEmitter::prepareDot() {
  if (parts.size() != 1 || out.size() != 2 || reduced.size() != 1)
    return false;
  auto found = factors(parts[0]);
  Type sum = parts[0].identity.getType();
  if (!found || !(sum.isF32() || sum.isF64()))
    return false;
  std::tie(lhs, rhs) = *found;
  if (lhs.getType() != rhs.getType() || sum.isF64() != lhs.getType().isF64())
    return false;
  AxisList a = e.tileAxes(axesOf(lhs, op, e.axes), {}), b = e.tileAxes(axesOf(rhs, op, e.axes), {});
  AxisId k = reduced[0];
  if (a.size() != 2 || b.size() != 2 || !llvm::is_contained(a, k) || !llvm::is_contained(b, k))
    return false;
  AxisId m = a[0] == k ? a[1] : a[0], n = b[0] == k ? b[1] : b[0];
  if (m == n)
    return false;
  if (m != out[0])
    std::swap(lhs, rhs);
  return true;
}

SmallVector<Value> ReductionEmitter::init() {
  SmallVector<Value> values;
  if (choice)
    return initSelection();
  if (folds)
    return initialTiles();
  for (const Accumulation &part : parts) {
    Tile identity{e.constant(home, part.identity), {}};
    ArrayRef<AxisId> shape = isDot || eager ? out : all;
    values.push_back(shape.empty() ? identity.value : e.expanded(home, identity, shape));
  }
  return values;
}

Value ReductionEmitter::masked(Scope *scope, const Tile &tile, ArrayRef<AxisId> wanted, ArrayRef<AxisId> along,
                               TypedAttr identity, Value bodyValue) {
  if (wanted.empty())
    return tile.value;
  Value value = e.expanded(scope, tile, wanted);
  bool isZero = false;
  if (auto number = dyn_cast<FloatAttr>(identity))
    isZero = number.getValue().isZero();
  else if (auto number = dyn_cast<IntegerAttr>(identity))
    isZero = number.getValue().isZero();
  Value inside;
  for (AxisId axis : along) {
    if (e.place(axis, scope).bounds == 0 || (isZero && readsZeroOutside(bodyValue, axis, op, e.axes)))
      continue;
    Value one = e.expanded(scope, e.inside(scope, axis), wanted);
    inside = inside ? arith::AndIOp::create(e.at(scope), inside, one).getResult() : one;
  }
  if (!inside)
    return value;
  Value other = e.expanded(scope, {e.constant(scope, identity), {}}, wanted);
  return arith::SelectOp::create(e.at(scope), inside, value, other);
}

Value ReductionEmitter::combine(Scope *scope, const Accumulation &part, Value a, Value b) {
  bool first = part.combiner->getOperand(1) == part.contribution;
  IRMapping mapping;
  mapping.map(part.combiner->getOperand(0), first ? a : b);
  mapping.map(part.combiner->getOperand(1), first ? b : a);
  Operation *copy = e.at(scope).clone(*part.combiner, mapping);
  copy->getResult(0).setType(a.getType());
  return copy->getResult(0);
}

FailureOr<SmallVector<Value>> ReductionEmitter::step(Scope *scope, ValueRange accumulators) {
  e.builder.setLoc(op->getLoc());
  if (isDot)
    return stepDot(scope, accumulators);
  if (choice)
    return stepSelection(scope, accumulators);
  if (folds)
    return stepFold(scope, accumulators);
  BodyEmitter body(e, op, scope, all);
  SmallVector<Value> results;
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto tile = body.get(part.contribution);
    if (failed(tile))
      return failure();
    Value value = masked(scope, *tile, all, reduced, part.identity, part.contribution);
    if (eager)
      value = reduceTile(scope, value, part);
    results.push_back(accumulators.empty() ? value : combine(scope, part, accumulators[i], value));
  }
  return results;
}

SmallVector<Value> ReductionEmitter::initialTiles() {
  SmallVector<Value> values;
  for (OpOperand &start : op.getDpsInitsMutable()) {
    auto tile = e.emit(start.get(), e.axes.ofOperand(start), home, out);
    if (failed(tile))
      return {};
    values.push_back(out.empty() ? tile->value : e.expanded(home, *tile, out));
  }
  return values;
}

/// One position: the body as it stands.
FailureOr<SmallVector<Value>> ReductionEmitter::stepFold(Scope *scope, ValueRange accumulators) {
  SmallVector<Value> olds(accumulators);
  if (olds.empty())
    olds = initialTiles();
  if (olds.empty())
    return failure();
  BodyEmitter body(e, op, scope, out);
  for (auto [argument, old] : llvm::zip_equal(op.getRegionOutputArgs(), olds))
    body.set(argument, {old, out});
  SmallVector<Value> results;
  for (Value yielded : op.getBody()->getTerminator()->getOperands()) {
    auto tile = body.get(yielded);
    if (failed(tile))
      return failure();
    results.push_back(out.empty() ? tile->value : e.expanded(scope, *tile, out));
  }
  return results;
}

FailureOr<SmallVector<Value>> ReductionEmitter::stepDot(Scope *scope, ValueRange accumulators) {
  AxisId m = out[0], k = reduced[0], n = out[1];
  BodyEmitter body(e, op, scope, {m, k, n});
  auto left = body.get(lhs), right = body.get(rhs);
  if (failed(left) || failed(right))
    return failure();
  TypedAttr zero = cast<TypedAttr>(e.builder.getZeroAttr(lhs.getType()));
  Value a = masked(scope, *left, {m, k}, {k}, zero, lhs), b = masked(scope, *right, {k, n}, {k}, zero, rhs);
  Value accumulator = accumulators.empty() ? init()[0] : accumulators[0];
  Value result = tile::DotOp::create(e.at(scope), accumulator.getType(), a, b, accumulator, e.precision,
                                     tile::MultiplierAttr(), /*in_flight=*/false);
  return SmallVector<Value>{result};
}

Value ReductionEmitter::reduceTile(Scope *scope, Value value, const Accumulation &part) {
  if (all.empty())
    return value;
  for (size_t dim = all.size(); dim-- > out.size();)
    value = reduceAlong(scope, value, part, dim);
  return e.unwrapped(scope, value, out).value;
}

Value ReductionEmitter::reduceAlong(Scope *scope, Value value, const Accumulation &part, unsigned dim) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  auto reduce = tile::ReduceOp::create(e.at(scope), TypeRange{RankedTensorType::get(shape, type.getElementType())},
                                       ValueRange{value}, (int64_t)dim);
  OpBuilder::InsertionGuard guard(e.builder);
  Block *block = e.builder.createBlock(&reduce.getCombiner(), {}, {type.getElementType(), type.getElementType()},
                                       {op->getLoc(), op->getLoc()});
  IRMapping mapping;
  bool first = part.combiner->getOperand(1) == part.contribution;
  mapping.map(part.combiner->getOperand(0), block->getArgument(first ? 0 : 1));
  mapping.map(part.combiner->getOperand(1), block->getArgument(first ? 1 : 0));
  Operation *copy = e.builder.clone(*part.combiner, mapping);
  tile::YieldOp::create(e.builder, copy->getResults());
  return reduce->getResult(0);
}

LogicalResult ReductionEmitter::finish(ValueRange accumulated) {
  e.builder.setLoc(op->getLoc());
  if (choice || folds)
    for (auto [result, value] : llvm::zip(op->getResults(), accumulated))
      home->values[result] = {value, out};
  for (auto [i, part] : llvm::enumerate(parts)) {
    Tile result{accumulated[i], out};
    if (!isDot && !eager)
      result.value = reduceTile(home, result.value, part);
    if (leader && dependence(part.contribution, op, leader) == Dependence::Scaled) {
      // Minus infinity less itself is no number: where the maximum is that, neither
      // is the sum.
      Tile maximum = e.ordered(home, home->values.find(leader)->second, out);
      auto type = cast<FloatType>(part.identity.getType());
      Tile none = e.isMinusInfinity(home, maximum);
      Tile noNumber{e.constant(home, e.builder.getFloatAttr(type, APFloat::getNaN(type.getFloatSemantics()))), {}};
      result = e.apply(home, {none, noNumber, result}, out,
                       [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                         return arith::SelectOp::create(b, v[0], v[1], v[2]);
                       });
    }
    // What the accumulation starts with, if it is not the identity.
    OpOperand *start = op.getDpsInitOperand(i);
    auto fill = start->get().getDefiningOp<linalg::FillOp>();
    auto constant = fill ? fill.getInputs()[0].getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
    if (!constant || constant.getValue() != part.identity) {
      auto tile = e.emit(start->get(), e.axes.ofOperand(*start), home, out);
      if (failed(tile))
        return failure();
      result.value = combine(home, part, out.empty() ? tile->value : e.expanded(home, *tile, out), result.value);
    }
    home->values[op->getResult(i)] = result;
  }
  return success();
}
