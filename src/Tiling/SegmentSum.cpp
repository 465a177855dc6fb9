//===- SegmentSum.cpp - Sums of updates whose places in a list are known ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A grid point has one row and some of its columns. Most segments are short; of long
// ones several updates are on their way at once, while the additions stay in order.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "nova/IR/NovaKernelOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

/// Registers of a thread for updates that are on their way, and so many of them.
static constexpr int64_t kRegistersInFlight = 96, kMostInFlight = 16;

static Value sumOf(OpBuilder &b, Location loc, Value x, Value y) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return arith::AddFOp::create(b, loc, x, y);
  return arith::AddIOp::create(b, loc, x, y);
}

FailureOr<Value> Emitter::entry(Operation *op, Value list, Value where, Scope *scope) {
  auto argument = dyn_cast<BlockArgument>(list);
  if (!argument)
    return refuse(kernel, op) << "a list that is computed, expected an argument";
  auto type = RankedTensorType::get({}, getElementTypeOrSelf(list.getType()));
  Value tile = tile::LoadOp::create(at(scope), type, program.getArgument(argument.getArgNumber()), ValueRange{where},
                                    Value(), ArrayRef<int64_t>(), ArrayRef<int64_t>());
  Value number = unwrapped(scope, tile, {}).value;
  if (number.getType().isInteger(64)) {
    Value low = constant(scope, builder.getI64IntegerAttr(UINT32_MAX));
    number = arith::AndIOp::create(at(scope), number, low);
  }
  return arith::IndexCastOp::create(at(scope), builder.getIndexType(), number).getResult();
}

LogicalResult Emitter::segmentSum(Operation *op, Scope *scope, ArrayRef<AxisId> order) {
  auto sum = cast<SegmentSumOp>(op);
  Value result = sum.getResult();
  AxisList dims = axes.ofValue(result), out = tileAxes(dims, order);
  if (failed(checkRank(op, out)))
    return failure();
  auto start = emit(sum.getInit(), dims, scope, out);
  if (failed(start))
    return failure();
  auto type = cast<RankedTensorType>(result.getType());
  auto positions = cast<RankedTensorType>(sum.getUpdates().getType()).getShape().take_front(positionRank(sum));
  AxisList updateDims;
  for (unsigned k = 0; k < positions.size(); ++k)
    updateDims.push_back(axes.ofLoop(op, k));
  updateDims.append(dims.begin() + sum.getRows(), dims.end());

  // Sums of short floats are float32.
  Type element = type.getElementType();
  bool isShort = element.isBF16() || element.isF16();
  auto wide = [&](Scope *inner, Value value) -> Value {
    if (!isShort)
      return value;
    Type to = builder.getF32Type();
    if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
      to = tile.clone(to);
    return arith::ExtFOp::create(at(inner), to, value);
  };
  // Of entry j, or of the last one.
  int64_t entries = cast<RankedTensorType>(sum.getOrder().getType()).getDimSize(0);
  auto positionOf = [&](Scope *inner, Value j) {
    return entry(op, sum.getOrder(), arith::MinSIOp::create(at(inner), j, index(inner, entries - 1)), inner);
  };
  auto update = [&](Scope *inner, Value position) -> FailureOr<Value> {
    Scope view;
    view.parent = inner;
    view.viewOf = inner;
    view.targets = inner->targets;
    Value rest = position;
    for (unsigned k = positions.size(); k-- > 0;) {
      if (updateDims[k] == kNoAxis)
        continue;
      bool isFirst = llvm::all_of(positions.take_front(k), [](int64_t extent) { return extent == 1; });
      Value extent = index(inner, positions[k]);
      view.places[updateDims[k]] = {isFirst ? rest : arith::RemUIOp::create(at(inner), rest, extent).getResult(), 0};
      if (!isFirst)
        rest = arith::DivUIOp::create(at(inner), rest, extent);
    }
    auto tile = emit(sum.getUpdates(), updateDims, &view, out);
    if (failed(tile))
      return failure();
    return wide(inner, out.empty() ? tile->value : expanded(inner, *tile, out));
  };
  // Carries the positions of the next updates: they are known when these are waited for.
  auto taking = [&](Value from, Value to, int64_t count, Value before) -> FailureOr<Value> {
    auto positionsFrom = [&](Scope *inner, Value first, SmallVector<Value> &list) -> LogicalResult {
      for (int64_t i = 0; i < count; ++i) {
        Value j = i ? arith::AddIOp::create(at(inner), first, index(inner, i)).getResult() : first;
        auto position = positionOf(inner, j);
        if (failed(position))
          return failure();
        list.push_back(*position);
      }
      return success();
    };
    SmallVector<Value> start{before};
    if (failed(positionsFrom(scope, from, start)))
      return failure();
    auto sums = this->count(from, to, count, scope, start, {op},
                            [&](Scope *inner, Value first, ValueRange state) -> FailureOr<SmallVector<Value>> {
                              SmallVector<Value> updates, next{Value()};
                              for (Value position : state.drop_front()) {
                                auto tile = update(inner, position);
                                if (failed(tile))
                                  return failure();
                                updates.push_back(*tile);
                              }
                              Value after = arith::AddIOp::create(at(inner), first, index(inner, count));
                              if (failed(positionsFrom(inner, after, next)))
                                return failure();
                              next[0] = state[0];
                              for (Value tile : updates)
                                next[0] = sumOf(at(inner), op->getLoc(), next[0], tile);
                              return next;
                            });
    if (failed(sums))
      return failure();
    return sums->front();
  };

  Value row = index(scope, 0);
  for (auto [d, extent] : llvm::enumerate(type.getShape().take_front(sum.getRows())))
    if (dims[d] != kNoAxis) {
      row = arith::MulIOp::create(at(scope), row, index(scope, extent));
      row = arith::AddIOp::create(at(scope), row, place(dims[d], scope).offset);
    }
  auto from = entry(op, sum.getBounds(), row, scope);
  auto to = entry(op, sum.getBounds(), arith::AddIOp::create(at(scope), row, index(scope, 1)), scope);
  if (failed(from) || failed(to))
    return failure();
  int64_t elements = 1, threads = 32;
  for (AxisId axis : out)
    elements *= axes[axis].tile;
  if (auto warps = program->getAttrOfType<IntegerAttr>(tile::attr::warps))
    threads *= warps.getInt();
  int64_t most = std::clamp<int64_t>(kRegistersInFlight * threads / elements, 1, kMostInFlight);
  Value all = wide(scope, out.empty() ? start->value : expanded(scope, *start, out));
  Value next = *from;
  if (most > 1) {
    Value few = index(scope, most);
    Value length = arith::SubIOp::create(at(scope), *to, *from);
    length = arith::MulIOp::create(at(scope), arith::DivUIOp::create(at(scope), length, few), few);
    next = arith::AddIOp::create(at(scope), *from, length);
    auto sums = taking(*from, next, most, all);
    if (failed(sums))
      return failure();
    all = *sums;
  }
  auto sums = taking(next, *to, 1, all);
  if (failed(sums))
    return failure();
  all = *sums;
  if (isShort)
    all = arith::TruncFOp::create(at(scope), out.empty() ? element : tileType(out, element), all);
  scope->values[result] = {all, out};
  return success();
}
