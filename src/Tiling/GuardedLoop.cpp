//===- GuardedLoop.cpp - Loops that pass over what contributes nothing ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of `select(condition, x, 0)` over an axis, where the condition compares
// data with a place in the result (the sum of all rows with a given index), is
// almost everywhere zero for one tile of the result. The axis is taken in chunks:
// one look at the condition on the whole chunk, and only where it holds somewhere
// the positions one by one, in their order. What is passed over would have added
// the identity: values are the same, but for the sign of a zero.
//
//===----------------------------------------------------------------------===//
#include "BodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

/// Positions that one look covers: one for each thread of a block of four warps.
static constexpr int64_t kChunk = 128;

/// `if any(condition) then body else carried`, in `scope`.
static FailureOr<SmallVector<Value>>
ifAny(ImplicitLocOpBuilder &builder, const Tile &condition, ValueRange carried,
      function_ref<FailureOr<SmallVector<Value>>(Block *)> body) {
  Value any = condition.axes.empty() ? condition.value
                                     : tile::AnyOp::create(builder, condition.value).getResult();
  auto branch = scf::IfOp::create(builder, carried.getTypes(), any, /*withElseRegion=*/true);
  auto results = body(&branch.getThenRegion().front());
  if (failed(results))
    return failure();
  builder.setInsertionPointToEnd(&branch.getThenRegion().front());
  scf::YieldOp::create(builder, *results);
  builder.setInsertionPointToEnd(&branch.getElseRegion().front());
  scf::YieldOp::create(builder, carried);
  return SmallVector<Value>(branch.getResults());
}

FailureOr<SmallVector<Value>> Emitter::guardedLoop(linalg::GenericOp op, Value guard, ArrayRef<AxisId> streamed,
                                                   Scope *scope, ValueRange init, ArrayRef<Operation *> targets,
                                                   Step body) {
  AxisId axis = streamed.back();
  AxisList order = axes.ofValue(op->getResult(0));
  order.push_back(axis);
  int64_t chunk = std::min<int64_t>(kChunk, powerOfTwoPart(ceilPowerOfTwo(axes[axis].extent)));
  auto look = [&](Scope *at) { return BodyEmitter(*this, op, at, order).get(guard); };

  // A position: its condition, and the body where that holds.
  auto position = [&](Scope *at, ValueRange carried) -> FailureOr<SmallVector<Value>> {
    auto condition = look(at);
    if (failed(condition))
      return failure();
    return ifAny(this->at(at), *condition, carried, [&](Block *block) {
      Scope inside;
      inside.parent = at;
      inside.block = block;
      inside.targets = at->targets;
      // What depends on the position is computed only here.
      inside.places[axis] = place(axis, at);
      return body(&inside, carried);
    });
  };
  auto chunks = [&](Scope *at, ValueRange carried) -> FailureOr<SmallVector<Value>> {
    auto condition = look(at);
    axes[axis].tile = 1;
    if (failed(condition))
      return failure();
    auto results = ifAny(this->at(at), *condition, carried, [&](Block *block) -> FailureOr<SmallVector<Value>> {
      Scope inside;
      inside.parent = at;
      inside.block = block;
      inside.targets = at->targets;
      Value from = place(axis, at).offset;
      Value end = arith::AddIOp::create(this->at(&inside), from, index(&inside, chunk));
      Value to = arith::MinSIOp::create(this->at(&inside), end, index(&inside, axes[axis].extent));
      auto loop = scf::ForOp::create(this->at(&inside), from, to, index(&inside, 1), carried);
      Scope each;
      each.parent = &inside;
      each.block = loop.getBody();
      each.targets = at->targets;
      each.places[axis] = {loop.getInductionVar(), 0};
      auto next = position(&each, loop.getRegionIterArgs());
      if (failed(next))
        return failure();
      scf::YieldOp::create(this->at(&each), *next);
      return SmallVector<Value>(loop.getResults());
    });
    axes[axis].tile = chunk;
    return results;
  };
  return loop(streamed.drop_back(), scope, init, targets, [&](Scope *outer, ValueRange carried) {
    axes[axis].tile = chunk;
    auto results = loop({axis}, outer, carried, targets, chunks);
    axes[axis].tile = 1;
    return results;
  });
}
