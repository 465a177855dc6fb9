//===- Movement.cpp - Concatenation and scatters on tiles ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A grid point owns a tile of the output. It goes through the updates in their
// order and takes those that fall into its tile: no atomics, and sums are added
// in the order of the updates, bit for bit as one thread would.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate, ValueRange operands) {
  return arith::CmpIOp::create(b, loc, predicate, operands[0], operands[1]);
}

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

/// Each source is read where it would be if it began at 0, over both edges; of
/// the tile the source counts that the position falls into.
LogicalResult Emitter::concat(Operation *op, Scope *scope, ArrayRef<AxisId> order) {
  auto concatOp = cast<tensor::ConcatOp>(op);
  unsigned dim = concatOp.getDim();
  AxisList dims = axes.ofValue(concatOp.getResult());
  AxisId along = dims[dim];
  Tile result;
  int64_t begin = 0;
  for (Value input : concatOp.getInputs()) {
    int64_t extent = cast<RankedTensorType>(input.getType()).getDimSize(dim);
    if (extent == 0)
      continue;
    AxisList mine = isa<BlockArgument>(input) ? dims : axes.ofValue(input);
    if (extent == 1)
      mine[dim] = kNoAxis;
    Scope view;
    view.parent = scope;
    view.viewOf = scope;
    view.targets = scope->targets;
    if (AxisId own = mine[dim]; own != kNoAxis) {
      Value start = arith::SubIOp::create(at(scope), place(along, scope).offset, index(scope, begin));
      int64_t bounds = 2;
      if (axes[along].tile == 1) {
        // Along what is no dimension of the tile an access lies inside.
        start = arith::MaxSIOp::create(at(scope), start, index(scope, 0));
        start = arith::MinSIOp::create(at(scope), start, index(scope, extent - 1));
        bounds = 0;
      }
      view.places[own] = {start, bounds};
    }
    AxisList wanted(order);
    for (AxisId &axis : wanted)
      if (axis == along && mine[dim] != kNoAxis)
        axis = mine[dim];
    auto tile = emit(input, mine, &view, wanted);
    if (failed(tile))
      return failure();
    for (AxisId &axis : tile->axes)
      if (axis == mine[dim])
        axis = along;
    if (result.value) {
      Tile here = range(scope, along), from = number(scope, begin);
      Tile later = apply(scope, {here, from}, order, [&](ImplicitLocOpBuilder &b, ValueRange v) {
        return compare(b, b.getLoc(), arith::CmpIPredicate::sge, v);
      });
      result = apply(scope, {later, *tile, result}, order, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
        return arith::SelectOp::create(b, v[0], v[1], v[2]);
      });
    } else {
      result = *tile;
    }
    begin += extent;
  }
  if (failed(checkRank(op, result.axes)))
    return failure();
  scope->values[concatOp.getResult()] = result;
  return success();
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

FailureOr<Tile> Emitter::indices(Value value, ArrayRef<AxisId> dims, Scope *scope, int64_t wrap) {
  auto tile = emit(value, dims, scope, dims);
  if (failed(tile))
    return failure();
  Tile result = apply(scope, {*tile}, {}, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
    Type to = b.getIndexType();
    if (auto type = dyn_cast<RankedTensorType>(v[0].getType()))
      to = type.clone(to);
    return arith::IndexCastOp::create(b, to, v[0]);
  });
  if (!wrap)
    return result;
  return apply(scope, {result, number(scope, 0), number(scope, wrap)}, {},
               [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                 Value negative = compare(b, b.getLoc(), arith::CmpIPredicate::slt, v);
                 return arith::SelectOp::create(b, negative, arith::AddIOp::create(b, v[0], v[2]), v[0]);
               });
}

Value Emitter::folded(Scope *scope, Value tile, function_ref<Value(OpBuilder &, Value, Value)> combine) {
  auto type = cast<RankedTensorType>(tile.getType());
  Type element = type.getElementType();
  auto reduce = tile::ReduceOp::create(at(scope), TypeRange{type.clone(type.getShape().drop_back())}, ValueRange{tile},
                                       type.getRank() - 1);
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&reduce.getCombiner(), {}, {element, element},
                                       {builder.getLoc(), builder.getLoc()});
    tile::YieldOp::create(builder, ValueRange{combine(builder, block->getArgument(0), block->getArgument(1))});
  }
  if (type.getRank() > 1)
    return reduce->getResult(0);
  return tile::ScalarOp::create(at(scope), element, reduce->getResult(0));
}

LogicalResult Emitter::scatter(Operation *op, Scope *scope, ArrayRef<AxisId> order) {
  auto scatterOp = cast<ScatterOp>(op);
  Value result = scatterOp.getResult();
  AxisList dims = axes.ofValue(result), out = tileAxes(dims, order);
  if (failed(checkRank(op, out)))
    return failure();
  auto start = emit(scatterOp.getInit(), dims, scope, out);
  if (failed(start))
    return failure();
  unsigned dim = scatterOp.getDim();
  AxisId target = dims[dim], along = axes.ofLoop(op, 0);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(scatterOp.getIndex().getType()).getShape();
  if (llvm::is_contained(shape, 0)) {
    scope->values[result] = *start;
    return success();
  }
  bool whole = out.empty();
  auto body = [&](Scope *inner, ValueRange carried) -> FailureOr<SmallVector<Value>> {
    // Along other dimensions the positions may end before the result does.
    Scope view;
    view.parent = inner;
    view.viewOf = inner;
    view.targets = inner->targets;
    SmallVector<Tile> matches;
    AxisList positions = dims;
    positions[dim] = along;
    for (auto [d, axis] : llvm::enumerate(dims)) {
      if (d == dim || axis == kNoAxis || shape[d] == axes[axis].extent)
        continue;
      Place there = place(axis, inner);
      if (axes[axis].tile == 1)
        there.offset = arith::MinUIOp::create(at(inner), there.offset, index(inner, shape[d] - 1));
      else
        there.bounds = 1;
      view.places[axis] = there;
      matches.push_back(apply(inner, {range(inner, axis), number(inner, shape[d])}, out,
                              [](ImplicitLocOpBuilder &b, ValueRange v) {
                                return compare(b, b.getLoc(), arith::CmpIPredicate::ult, v);
                              }));
    }
    auto at = indices(scatterOp.getIndex(), positions, &view, 0);
    auto update = emit(scatterOp.getUpdates(), positions, &view, out);
    if (failed(at) || failed(update))
      return failure();
    Tile here = target == kNoAxis ? number(inner, 0) : range(inner, target);
    matches.push_back(apply(inner, {*at, here}, out, [](ImplicitLocOpBuilder &b, ValueRange v) {
      return compare(b, b.getLoc(), arith::CmpIPredicate::eq, v);
    }));
    Tile old{carried[0], out};
    return SmallVector<Value>{merged(inner, matches, *update, old, scatterOp.getAccumulate())};
  };
  Value initial = whole ? start->value : expanded(scope, *start, out);
  AxisList streamed;
  if (along != kNoAxis)
    streamed.push_back(along);
  auto done = loop(streamed, scope, initial, {op}, body);
  if (failed(done))
    return failure();
  scope->values[result] = {done->front(), out};
  return success();
}

Value Emitter::merged(Scope *scope, ArrayRef<Tile> matches, const Tile &update, const Tile &old, bool accumulate) {
  Tile all = matches[0];
  for (const Tile &match : matches.drop_front())
    all = apply(scope, {all, match}, old.axes, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
      return arith::AndIOp::create(b, v[0], v[1]);
    });
  return apply(scope, {all, update, old}, old.axes, [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
           Value fresh = v[1];
           if (accumulate)
             fresh = isa<FloatType>(getElementTypeOrSelf(fresh.getType()))
                         ? arith::AddFOp::create(b, v[2], fresh).getResult()
                         : arith::AddIOp::create(b, v[2], fresh).getResult();
           return arith::SelectOp::create(b, v[0], fresh, v[2]);
         }).value;
}

/// A chunk of indices is looked at at once. Those that fall into the tile are
/// then taken one by one, the first first, each with its row of updates.
LogicalResult Emitter::indexPut(Operation *op, Scope *scope, ArrayRef<AxisId> order) {
  auto put = cast<IndexPutOp>(op);
  Value result = put.getResult();
  AxisList dims = axes.ofValue(result), out = tileAxes(dims, order);
  if (failed(checkRank(op, out)))
    return failure();
  auto start = emit(put.getInit(), dims, scope, out);
  if (failed(start))
    return failure();
  // Without positions nothing is read, not even of indices.
  if (cast<RankedTensorType>(put.getIndices()[0].getType()).getNumElements() == 0) {
    scope->values[result] = *start;
    return success();
  }
  size_t indexed = put.getIndices().size();
  unsigned count = cast<RankedTensorType>(put.getIndices()[0].getType()).getRank();
  AxisList positions, streamed, updateDims;
  for (unsigned k = 0; k < 2 * count; ++k) {
    AxisId axis = axes.ofLoop(op, k);
    (k < count ? positions : updateDims).push_back(axis);
    if (k < count && axis != kNoAxis && axes[axis].streamed())
      streamed.push_back(axis);
  }
  llvm::append_range(updateDims, ArrayRef<AxisId>(dims).drop_front(indexed));
  AxisId last = count ? positions.back() : kNoAxis;
  auto extentOf = [&](size_t d) { return cast<RankedTensorType>(result.getType()).getDimSize(d); };

  // Takes the update at position `where` of the last dimension of positions.
  auto take = [&](Scope *inner, Value where, ArrayRef<Value> targets, Value old) -> FailureOr<Value> {
    Scope view;
    view.parent = inner;
    view.viewOf = inner;
    view.targets = inner->targets;
    for (unsigned k = 0; k < count; ++k)
      if (updateDims[k] != kNoAxis)
        view.places[updateDims[k]] = {k + 1 == count ? where : place(positions[k], inner).offset, 0};
    auto update = emit(put.getUpdates(), updateDims, &view, out);
    if (failed(update))
      return failure();
    SmallVector<Tile> matches;
    for (size_t d = 0; d < indexed; ++d) {
      Tile here = dims[d] == kNoAxis ? number(inner, 0) : range(inner, dims[d]);
      matches.push_back(apply(inner, {here, Tile{targets[d], {}}}, out, [](ImplicitLocOpBuilder &b, ValueRange v) {
        return compare(b, b.getLoc(), arith::CmpIPredicate::eq, v);
      }));
    }
    return merged(inner, matches, *update, {old, out}, put.getAccumulate());
  };

  auto body = [&](Scope *inner, ValueRange carried) -> FailureOr<SmallVector<Value>> {
    SmallVector<Tile> targets;
    Tile match;
    for (auto [d, value] : llvm::enumerate(put.getIndices())) {
      auto tile = indices(value, positions, inner, extentOf(d));
      if (failed(tile))
        return failure();
      targets.push_back(*tile);
      Tile from = dims[d] == kNoAxis ? number(inner, 0) : Tile{place(dims[d], inner).offset, {}};
      Tile size = number(inner, dims[d] == kNoAxis ? 1 : axes[dims[d]].tile);
      Tile fits = apply(inner, {*tile, from, size}, {}, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
        // One unsigned comparison tests both ends.
        Value relative = arith::SubIOp::create(b, v[0], v[1]);
        return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, relative, v[2]);
      });
      match = !match.value ? fits : apply(inner, {match, fits}, {}, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
        return arith::AndIOp::create(b, v[0], v[1]);
      });
    }
    if (last == kNoAxis || axes[last].tile == 1) {
      Value where = last == kNoAxis ? index(inner, 0) : place(last, inner).offset;
      SmallVector<Value> scalars;
      for (const Tile &tile : targets)
        scalars.push_back(tile.value);
      auto branch = scf::IfOp::create(at(inner), carried.getTypes(), match.value, /*withElseRegion=*/true);
      Scope then;
      then.parent = inner;
      then.block = branch.thenBlock();
      then.targets = inner->targets;
      Operation *after = std::exchange(inner->real()->before, branch.getOperation());
      auto fresh = take(&then, where, scalars, carried[0]);
      inner->real()->before = after;
      if (failed(fresh))
        return failure();
      scf::YieldOp::create(at(&then), *fresh);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(branch.elseBlock());
      scf::YieldOp::create(builder, carried);
      return SmallVector<Value>(branch.getResults());
    }
    AxisList chunk{last};
    Value hits = expanded(inner, match, chunk), where = range(inner, last).value;
    if (place(last, inner).bounds)
      hits = arith::AndIOp::create(at(inner), hits, inside(inner, last).value);
    Value none = expanded(inner, number(inner, axes[last].extent), chunk);
    Value zero = expanded(inner, number(inner, 0), chunk);
    Value ones = arith::SelectOp::create(at(inner), hits, expanded(inner, number(inner, 1), chunk), zero);
    auto sum = [&](OpBuilder &b, Value x, Value y) -> Value { return arith::AddIOp::create(b, op->getLoc(), x, y); };
    auto smaller = [&](OpBuilder &b, Value x, Value y) -> Value {
      return arith::MinUIOp::create(b, op->getLoc(), x, y);
    };
    Value number = folded(inner, ones, sum);
    Value initial[] = {carried[0], index(inner, 0)};
    auto done = this->count(
        index(inner, 0), number, 1, inner, initial, {op},
        [&](Scope *one, Value, ValueRange state) -> FailureOr<SmallVector<Value>> {
          Value next = expanded(one, {state[1], {}}, chunk);
          Value later = arith::CmpIOp::create(at(one), arith::CmpIPredicate::uge, where, next);
          later = arith::AndIOp::create(at(one), later, hits);
          Value first = folded(one, arith::SelectOp::create(at(one), later, where, none), smaller);
          Value isFirst = arith::CmpIOp::create(at(one), arith::CmpIPredicate::eq, where,
                                                expanded(one, {first, {}}, chunk));
          SmallVector<Value> scalars;
          for (const Tile &tile : targets)
            scalars.push_back(folded(
                one, arith::SelectOp::create(at(one), isFirst, expanded(one, tile, chunk), zero), sum));
          auto fresh = take(one, first, scalars, state[0]);
          if (failed(fresh))
            return failure();
          Value after = arith::AddIOp::create(at(one), first, index(one, 1));
          return SmallVector<Value>{*fresh, after};
        });
    if (failed(done))
      return failure();
    return SmallVector<Value>{done->front()};
  };
  Value initial = out.empty() ? start->value : expanded(scope, *start, out);
  auto done = loop(streamed, scope, initial, {op}, body);
  if (failed(done))
    return failure();
  scope->values[result] = {done->front(), out};
  return success();
}
