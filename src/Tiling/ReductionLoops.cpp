//===- ReductionLoops.cpp - Loops over the chunks of what is reduced -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three things make loops fewer and shorter:
//
// - Reductions that do not need one another share a loop (Schedule.h).
// - A sum of exp(x - m) * y, where m is the maximum of the same chunks, needs not
//   wait for it: it is relative to the maximum so far, and rescaled when that
//   grows. What m is minus infinity for is excepted, as exp(-inf + inf) is NaN.
// - Where comparisons of positions say that nothing is contributed, nothing is
//   computed: the loop begins at the first chunk that counts and ends after the
//   last.
//
//===----------------------------------------------------------------------===//
#include "ReductionEmitter.h"
#include "Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

//===----------------------------------------------------------------------===//
// Running maxima
//===----------------------------------------------------------------------===//

/// The maximum that `op` is, if it starts at minus infinity.
static Value maximumOf(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || op->getNumResults() != 1)
    return {};
  auto parts = accumulations(generic);
  if (failed(parts) || !isa<arith::MaximumFOp, arith::MaxNumFOp>((*parts)[0].combiner))
    return {};
  auto fill = generic.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  auto start = fill ? fill.getInputs()[0].getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  return start && start.getValue() == (*parts)[0].identity ? op->getResult(0) : Value();
}

static bool follows(Operation *op, Value maximum, const Axes &axes) {
  auto generic = cast<linalg::GenericOp>(op);
  auto parts = accumulations(generic);
  if (failed(parts))
    return false;
  AxisList mine = axes.ofValue(op->getResult(0));
  for (AxisId axis : axes.ofValue(maximum))
    if (axis != kNoAxis && !llvm::is_contained(mine, axis))
      return false;
  return llvm::all_of(*parts, [&](const Accumulation &part) {
    Dependence how = dependence(part.contribution, generic, maximum);
    return isa<arith::AddFOp>(part.combiner) && part.identity.getType() == getElementTypeOrSelf(maximum.getType()) &&
           (how == Dependence::Scaled || how == Dependence::Guarded);
  });
}

SmallVector<Operation *> nova::tiling::followers(Operation *op, func::FuncOp kernel, const Axes &axes,
                                                 ArrayRef<Operation *> targets) {
  Value maximum = maximumOf(op);
  if (!maximum)
    return {};
  SmallVector<Operation *> mates = loopMates(op, kernel, axes, targets);
  SmallVector<Operation *> list;
  for (Operation *other : loopMates(op, kernel, axes, targets, /*above=*/1)) {
    // What else it needs must be there before the loop.
    bool waits = llvm::any_of(mates, [&](Operation *mate) {
      return mate != op && llvm::any_of(mate->getResults(), [&](Value result) {
               return needs(other->getResult(0), result);
             });
    });
    if (!waits && follows(other, maximum, axes))
      list.push_back(other);
  }
  return list;
}

SmallVector<Value> ReductionEmitter::rescaled(Scope *scope, ValueRange accumulators, const Tile &factor) {
  SmallVector<Value> results;
  const AxisList &shape = isDot ? out : all;
  for (Value accumulator : accumulators)
    results.push_back(e.apply(scope, {Tile{accumulator, shape}, factor}, shape,
                              [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                                return arith::MulFOp::create(b, v[0], v[1]);
                              })
                          .value);
  return results;
}

/// What sums relative to the maximum are multiplied by when it grows from
/// `before` to `after`; while it is minus infinity they are zero.
Tile Emitter::growth(Scope *scope, const Tile &before, const Tile &after) {
  Type element = getElementTypeOrSelf(before.value.getType());
  Tile one{constant(scope, builder.getFloatAttr(element, 1.0)), {}};
  Tile difference = apply(scope, {before, after}, before.axes, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
    return math::ExpOp::create(b, arith::SubFOp::create(b, v[0], v[1]));
  });
  return apply(scope, {isMinusInfinity(scope, before), one, difference}, before.axes,
               [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                 return arith::SelectOp::create(b, v[0], v[1], v[2]);
               });
}

Tile Emitter::isMinusInfinity(Scope *scope, const Tile &tile) {
  auto type = cast<FloatType>(getElementTypeOrSelf(tile.value.getType()));
  APFloat infinity = APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true);
  Tile lowest{constant(scope, builder.getFloatAttr(type, infinity)), {}};
  return apply(scope, {tile, lowest}, tile.axes, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, v[0], v[1]);
  });
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

SmallVector<HalfPlane> ReductionEmitter::idle() const {
  SmallVector<HalfPlane> planes;
  if (choice || folds)
    return planes;
  for (auto [i, part] : llvm::enumerate(parts)) {
    SmallVector<HalfPlane> mine = idleRegions(part, op, e.axes);
    if (i == 0)
      planes = mine;
    else
      llvm::erase_if(planes, [&](const HalfPlane &plane) { return !llvm::is_contained(mine, plane); });
  }
  return planes;
}

/// Begin and end of the loop along `axis` outside of which no member contributes.
std::pair<Value, Value> Emitter::bounds(AxisId axis, Scope *scope, ArrayRef<SmallVector<HalfPlane>> idle) {
  Value begin, end;
  bool cutsBegin = !idle.empty(), cutsEnd = !idle.empty();
  for (ArrayRef<HalfPlane> planes : idle) {
    Value first, last;
    for (const HalfPlane &plane : planes) {
      AxisId other = plane.a == axis ? plane.b : plane.a;
      if ((plane.a != axis && plane.b != axis) || axes[other].chunks() == 1 || !isPlaced(other, scope))
        continue;
      Value offset = place(other, scope).offset;
      if (plane.a == axis) { // Idle from the last position of the other's tile, plus c.
        Value from = arith::AddIOp::create(at(scope), offset, index(scope, axes[other].tile - 1 + plane.c));
        last = last ? arith::MinSIOp::create(at(scope), last, from).getResult() : from;
      } else { // Idle up to the first position of the other's tile, less c.
        Value from = arith::AddIOp::create(at(scope), offset, index(scope, 1 - plane.c));
        first = first ? arith::MaxSIOp::create(at(scope), first, from).getResult() : from;
      }
    }
    cutsBegin &= (bool)first;
    cutsEnd &= (bool)last;
    if (cutsBegin)
      begin = begin ? arith::MinSIOp::create(at(scope), begin, first).getResult() : first;
    if (cutsEnd)
      end = end ? arith::MaxSIOp::create(at(scope), end, last).getResult() : last;
  }
  Value zero = index(scope, 0), extent = index(scope, axes[axis].extent);
  if (cutsEnd)
    end = arith::MaxSIOp::create(at(scope), arith::MinSIOp::create(at(scope), end, extent), zero);
  if (cutsBegin) {
    begin = arith::MaxSIOp::create(at(scope), begin, zero);
    // Chunks stay where they are.
    if (axes[axis].tile > 1) {
      Value chunk = index(scope, axes[axis].tile);
      begin = arith::MulIOp::create(at(scope), arith::DivUIOp::create(at(scope), begin, chunk), chunk);
    }
  }
  return {cutsBegin ? begin : zero, cutsEnd ? end : extent};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The reduction among `mates` whose maximum others can follow; they come after.
static Operation *findLeader(ArrayRef<Operation *> mates, func::FuncOp kernel, const Axes &axes, Scope *scope,
                             SmallVector<Operation *> &list) {
  for (Operation *mate : mates) {
    list = followers(mate, kernel, axes, scope->targets);
    if (!list.empty())
      return mate;
  }
  return nullptr;
}

LogicalResult Emitter::reduce(linalg::GenericOp op, Scope *scope, ArrayRef<AxisId> order) {
  AxisList streamed = streamedAxes(op, axes);
  SmallVector<Operation *> targets{op}, following;
  Operation *leader = nullptr;
  if (!streamed.empty()) {
    auto isDone = [&](Operation *other) { return scope->values.count(other->getResult(0)) != 0; };
    // Whoever can follow a maximum is computed with it.
    for (Operation *mate : loopMates(op, kernel, axes, scope->targets))
      for (Operation &other : kernel.getBody().front())
        if (other.isBeforeInBlock(mate) && streamedAxes(&other, axes) == streamed && !isDone(&other) &&
            llvm::is_contained(followers(&other, kernel, axes, scope->targets), mate) &&
            failed(reduce(cast<linalg::GenericOp>(other), scope, axes.ofValue(other.getResult(0)))))
          return failure();
    if (isDone(op))
      return success();
    targets = loopMates(op, kernel, axes, scope->targets);
    llvm::erase_if(targets, isDone);
    leader = findLeader(targets, kernel, axes, scope, following);
    // The leader's step comes before those of its followers.
    llvm::append_range(targets, following);
  }

  std::vector<ReductionEmitter> members;
  members.reserve(targets.size());
  size_t leading = 0;
  SmallVector<SmallVector<HalfPlane>> idle;
  for (auto [i, target] : llvm::enumerate(targets)) {
    auto member = cast<linalg::GenericOp>(target);
    AxisList own = axes.ofValue(member->getResult(0));
    members.emplace_back(*this, member, scope, member == op ? order : ArrayRef<AxisId>(own));
    if (failed(members.back().prepare(/*isEager=*/target == leader)))
      return failure();
    if (llvm::is_contained(following, target))
      members.back().follow(leader->getResult(0));
    if (target == leader)
      leading = i;
    SmallVector<HalfPlane> planes = members.back().idle();
    if (!llvm::is_contained(idle, planes))
      idle.push_back(planes);
  }
  SmallVector<Value> accumulated;
  if (!streamed.empty())
    for (ReductionEmitter &member : members) {
      SmallVector<Value> start = member.init();
      if (start.size() != member.size())
        return failure();
      llvm::append_range(accumulated, start);
    }

  auto body = [&](Scope *inner, ValueRange carried) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> next;
    Tile factor;
    for (ReductionEmitter &member : members) {
      ValueRange mine = streamed.empty() ? ValueRange() : carried.take_front(member.size());
      SmallVector<Value> larger;
      if (member.getLeader()) {
        larger = member.rescaled(inner, mine, factor);
        mine = larger;
      }
      auto results = member.step(inner, mine);
      if (failed(results))
        return failure();
      llvm::append_range(next, *results);
      if (&member == &members[leading] && leader) {
        Tile before{mine[0], member.outAxes()}, after{results->front(), member.outAxes()};
        factor = growth(inner, before, after);
        // Nothing is subtracted while there is nothing: the sums stay zero.
        Type element = getElementTypeOrSelf(after.value.getType());
        Tile zero{constant(inner, cast<TypedAttr>(builder.getZeroAttr(element))), {}};
        inner->values[leader->getResult(0)] =
            apply(inner, {isMinusInfinity(inner, after), zero, after}, after.axes,
                  [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
                    return arith::SelectOp::create(b, v[0], v[1], v[2]);
                  });
        inner->replaced.push_back(leader->getResult(0));
      }
      if (!streamed.empty())
        carried = carried.drop_front(member.size());
    }
    return next;
  };
  auto results = loop(streamed, scope, accumulated, targets, body, idle);
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
