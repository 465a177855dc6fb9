//===- Reductions.cpp - Reductions and products, in loops over chunks ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction is prepared (which axes its accumulators have), initialised,
// stepped once a chunk, and finished. Sums and the like accumulate element by
// element of the chunk's tile and combine along the tile only at the end: threads
// talk to one another once, not once a chunk.
//
//===----------------------------------------------------------------------===//
#include "BodyEmitter.h"
#include "nova/Transforms/ReductionBody.h"
#include "Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

namespace nova::tiling {
class ReductionEmitter {
public:
  ReductionEmitter(Emitter &emitter, linalg::GenericOp op, Scope *home, ArrayRef<AxisId> order)
      : e(emitter), op(op), home(home), order(order) {}

  LogicalResult prepare();
  SmallVector<Value> init();
  /// `accumulators` is empty where there is one chunk only.
  FailureOr<SmallVector<Value>> step(Scope *scope, ValueRange accumulators);
  LogicalResult finish(ValueRange accumulated);

  size_t size() const { return parts.size(); }
  /// Where the one contribution is the identity unless a condition holds, that
  /// condition (a value of the body); else null.
  Value guard();
  linalg::GenericOp getOp() const { return op; }

private:
  bool prepareDot();
  FailureOr<SmallVector<Value>> stepDot(Scope *scope, ValueRange accumulators);
  Value combine(Scope *scope, const Accumulation &part, Value a, Value b);
  Value reduceAlong(Value value, const Accumulation &part, unsigned dim);
  /// `tile` on `wanted`, with `identity` where one of `along` is outside.
  Value masked(Scope *scope, const Tile &tile, ArrayRef<AxisId> wanted, ArrayRef<AxisId> along, TypedAttr identity,
               Value bodyValue);

  Emitter &e;
  linalg::GenericOp op;
  Scope *home;
  AxisList order;
  SmallVector<Accumulation> parts;
  AxisList out, reduced, all; ///< Of tiles; all = out, then reduced.
  /// Of a product: operands by row and column.
  bool isDot = false;
  Value lhs, rhs;
};
} // namespace nova::tiling

LogicalResult ReductionEmitter::prepare() {
  auto found = accumulations(op);
  if (failed(found))
    return refuse(e.kernel, op) << "a reduction that is no sum, product, minimum, maximum or logical operation of "
                                   "what one position contributes";
  parts = *found;
  out = e.tileAxes(e.axes.ofValue(op->getResult(0)), order);
  AxisList loops;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      loops.push_back(e.axes.ofLoop(op, loop));
  reduced = e.tileAxes(loops, order);
  all = out;
  all.append(reduced);
  isDot = prepareDot();
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

Value ReductionEmitter::guard() {
  if (parts.size() != 1)
    return {};
  auto select = parts[0].contribution.getDefiningOp<arith::SelectOp>();
  Attribute otherwise;
  if (!select || !matchPattern(select.getFalseValue(), m_Constant(&otherwise)) || otherwise != parts[0].identity)
    return {};
  return select.getCondition();
}

SmallVector<Value> ReductionEmitter::init() {
  SmallVector<Value> values;
  for (const Accumulation &part : parts) {
    Tile identity{e.constant(home, part.identity), {}};
    ArrayRef<AxisId> shape = isDot ? out : all;
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
  BodyEmitter body(e, op, scope, all);
  SmallVector<Value> results;
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto tile = body.get(part.contribution);
    if (failed(tile))
      return failure();
    Value value = masked(scope, *tile, all, reduced, part.identity, part.contribution);
    results.push_back(accumulators.empty() ? value : combine(scope, part, accumulators[i], value));
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
  Value result = tile::DotOp::create(e.at(scope), accumulator.getType(), a, b, accumulator, e.precision);
  return SmallVector<Value>{result};
}

Value ReductionEmitter::reduceAlong(Value value, const Accumulation &part, unsigned dim) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  auto reduce = tile::ReduceOp::create(e.at(home), TypeRange{RankedTensorType::get(shape, type.getElementType())},
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
  for (auto [i, part] : llvm::enumerate(parts)) {
    Tile result{accumulated[i], out};
    if (!isDot && !all.empty()) {
      for (size_t dim = all.size(); dim-- > out.size();)
        result.value = reduceAlong(result.value, part, dim);
      result = e.unwrapped(home, result.value, out);
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

/// A body of any form: position by position, in order, the accumulators as the
/// body has them.
LogicalResult Emitter::fold(linalg::GenericOp op, Scope *scope, ArrayRef<AxisId> order) {
  AxisList out = tileAxes(axes.ofValue(op->getResult(0)), order);
  if (failed(checkRank(op, out)))
    return failure();
  SmallVector<Value> init;
  for (OpOperand &start : op.getDpsInitsMutable()) {
    auto tile = emit(start.get(), axes.ofOperand(start), scope, order);
    if (failed(tile))
      return failure();
    init.push_back(out.empty() ? tile->value : expanded(scope, *tile, out));
  }
  // While the loops are open their axes are taken one position at a time.
  AxisList reduced;
  SmallVector<int64_t> tiles;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (AxisId axis = axes.ofLoop(op, loop); kind == utils::IteratorType::reduction && axis != kNoAxis) {
      reduced.push_back(axis);
      tiles.push_back(std::exchange(axes[axis].tile, 1));
    }
  auto results = loop(reduced, scope, init, {op}, [&](Scope *inner, ValueRange carried) -> FailureOr<SmallVector<Value>> {
    BodyEmitter body(*this, op, inner, out);
    for (auto [argument, value] : llvm::zip_equal(op.getRegionOutputArgs(), carried))
      body.set(argument, {value, out});
    SmallVector<Value> next;
    for (Value yielded : op.getBody()->getTerminator()->getOperands()) {
      auto tile = body.get(yielded);
      if (failed(tile))
        return failure();
      next.push_back(out.empty() ? tile->value : expanded(inner, *tile, out));
    }
    return next;
  });
  for (auto [axis, tile] : llvm::zip_equal(reduced, tiles))
    axes[axis].tile = tile;
  if (failed(results))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *results))
    scope->values[result] = {value, out};
  return success();
}

LogicalResult Emitter::reduce(linalg::GenericOp op, Scope *scope, ArrayRef<AxisId> order) {
  if (failed(accumulations(op)))
    return fold(op, scope, order);
  AxisList streamed = streamedAxes(op, axes);
  SmallVector<ReductionEmitter> members;
  SmallVector<Operation *> targets;
  if (streamed.empty())
    targets.push_back(op);
  else
    targets = loopMates(op, kernel, axes, scope->targets);
  for (Operation *target : targets) {
    auto member = cast<linalg::GenericOp>(target);
    if (failed(accumulations(member)))
      continue; // folded when it is asked for
    AxisList own = axes.ofValue(member->getResult(0));
    members.emplace_back(*this, member, scope, member == op ? order : ArrayRef<AxisId>(own));
    if (failed(members.back().prepare()))
      return failure();
  }
  SmallVector<Value> accumulated;
  if (!streamed.empty())
    for (ReductionEmitter &member : members)
      llvm::append_range(accumulated, member.init());
  auto step = [&](Scope *inner, ValueRange carried) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> next;
    for (ReductionEmitter &member : members) {
      auto values = member.step(inner, carried.take_front(streamed.empty() ? 0 : member.size()));
      if (failed(values))
        return failure();
      llvm::append_range(next, *values);
      if (!streamed.empty())
        carried = carried.drop_front(member.size());
    }
    return next;
  };
  Value guard = members.size() == 1 ? members.front().guard() : Value();
  bool guarded = guard && !streamed.empty() && axes[streamed.back()].tile == 1;
  auto results = guarded ? guardedLoop(op, guard, streamed, scope, accumulated, targets, step)
                         : loop(streamed, scope, accumulated, targets, step);
  if (failed(results))
    return failure();
  ValueRange rest(*results);
  for (ReductionEmitter &member : members) {
    if (failed(member.finish(rest.take_front(member.size()))))
      return failure();
    rest = rest.drop_front(member.size());
  }
  return success();
}
