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
#include "llvm/ADT/STLExtras.h"

#include <limits>

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

  size_t size() const { return choice ? choice->elements.size() + 1 : parts.size(); }
  linalg::GenericOp getOp() const { return op; }

private:
  bool prepareDot();
  SmallVector<Value> initSelection();
  FailureOr<SmallVector<Value>> stepSelection(Scope *scope, ValueRange accumulators);
  SmallVector<Value> selectAlong(ValueRange values, unsigned dim);
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
  std::optional<Selection> choice;
  AxisList loops;             ///< Along which it reduces, outermost first.
  AxisList out, reduced, all; ///< Of tiles; all = out, then reduced.
  /// Of a product: operands by row and column.
  bool isDot = false;
  Value lhs, rhs;
};
} // namespace nova::tiling

LogicalResult ReductionEmitter::prepare() {
  auto found = accumulations(op);
  auto chosen = failed(found) ? selection(op) : FailureOr<Selection>();
  if (succeeded(found))
    parts = *found;
  else if (succeeded(chosen))
    choice = *chosen;
  else
    return refuse(e.kernel, op) << "a reduction that is neither a sum, product, minimum, maximum or logical operation "
                                   "of what one position contributes nor the choice of one position";
  out = e.tileAxes(e.axes.ofValue(op->getResult(0)), order);
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      loops.push_back(e.axes.ofLoop(op, loop));
  reduced = e.tileAxes(loops, order);
  all = out;
  all.append(reduced);
  isDot = !choice && prepareDot();
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
  if (choice)
    return stepSelection(scope, accumulators);
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
  if (choice)
    for (auto [result, value] : llvm::zip_equal(op->getResults(), accumulated.drop_back()))
      home->values[result] = {value, out};
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

//===----------------------------------------------------------------------===//
// The choice of one position
//===----------------------------------------------------------------------===//
//
// The first of several equal ones wins, in whatever order they are compared: each
// candidate carries its position, and of two the earlier is the accumulator. What
// is outside has the position kNowhere and never wins.

static constexpr int64_t kNowhere = std::numeric_limits<int32_t>::max();

/// What the accumulation starts with comes before all positions.
SmallVector<Value> ReductionEmitter::initSelection() {
  SmallVector<Value> values;
  for (OpOperand &start : op.getDpsInitsMutable()) {
    auto tile = e.emit(start.get(), e.axes.ofOperand(start), home, out);
    if (failed(tile))
      return {};
    values.push_back(out.empty() ? tile->value : e.expanded(home, *tile, out));
  }
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

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LogicalResult Emitter::reduce(linalg::GenericOp op, Scope *scope, ArrayRef<AxisId> order) {
  AxisList streamed = streamedAxes(op, axes);
  std::vector<ReductionEmitter> members;
  SmallVector<Operation *> targets;
  if (streamed.empty())
    targets.push_back(op);
  else
    targets = loopMates(op, kernel, axes, scope->targets);
  for (Operation *target : targets) {
    auto member = cast<linalg::GenericOp>(target);
    AxisList own = axes.ofValue(member->getResult(0));
    members.emplace_back(*this, member, scope, member == op ? order : ArrayRef<AxisId>(own));
    if (failed(members.back().prepare()))
      return failure();
  }
  SmallVector<Value> accumulated;
  if (!streamed.empty())
    for (ReductionEmitter &member : members) {
      SmallVector<Value> start = member.init();
      if (start.size() != member.size())
        return failure();
      llvm::append_range(accumulated, start);
    }
  auto results = loop(streamed, scope, accumulated, targets,
                      [&](Scope *inner, ValueRange carried) -> FailureOr<SmallVector<Value>> {
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
                      });
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
