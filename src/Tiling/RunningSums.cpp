//===- RunningSums.cpp - Running sums on tiles, from chunk to chunk --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A running sum along a streamed axis carries what it has summed so far through
// the loop along that axis, whatever the loop is there for.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

SmallVector<Operation *> Emitter::runningSums(AxisId axis, ArrayRef<Operation *> targets) {
  SmallVector<Operation *> sums;
  for (auto sum : kernel.getBody().front().getOps<CumsumOp>())
    if (axes.ofDim(sum.getResult(), sum.getDim()) == axis && llvm::any_of(targets, [&](Operation *target) {
          return target == sum ||
                 llvm::any_of(target->getOperands(), [&](Value operand) { return needs(operand, sum.getResult()); });
        }))
      sums.push_back(sum);
  return sums;
}

/// The axes of a tile that holds the sums so far.
AxisList Emitter::carryAxes(Operation *sum) {
  AxisList dims = axes.ofValue(sum->getResult(0));
  AxisId along = dims[cast<CumsumOp>(sum).getDim()];
  llvm::erase(dims, along);
  return tileAxes(dims, dims);
}

LogicalResult Emitter::cumsum(Operation *op, Scope *scope, ArrayRef<AxisId> order) {
  auto cumsumOp = cast<CumsumOp>(op);
  AxisList dims = axes.ofValue(op->getResult(0)), carried = carryAxes(op);
  AxisId along = dims[cumsumOp.getDim()];
  Value input = cumsumOp.getInput();
  auto tile = emit(input, isa<BlockArgument>(input) ? dims : axes.ofValue(input), scope, order);
  if (failed(tile))
    return failure();
  if (along == kNoAxis) {
    scope->values[op->getResult(0)] = *tile;
    return success();
  }
  bool streamed = axes[along].streamed();
  if (streamed && !scope->carries.count(op))
    return refuse(kernel, op) << "a running sum of " << axes[along].extent << " elements in tiles of "
                              << axes[along].tile << ", in a loop along another axis";
  AxisList all = carried;
  bool scans = axes[along].tile > 1;
  if (scans)
    all.push_back(along);
  if (failed(checkRank(op, all)))
    return failure();
  // Short floats are summed in float32, as everywhere.
  Type narrow = getElementTypeOrSelf(op->getResult(0).getType());
  bool isShort = narrow.isBF16() || narrow.isF16();
  Tile value{all.empty() ? tile->value : expanded(scope, *tile, all), all};
  auto convert = [&](Tile from, Type to, auto &&build) {
    return apply(scope, {from}, all, [&](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
      auto type = dyn_cast<RankedTensorType>(v[0].getType());
      return build(b, type ? Type(type.clone(to)) : to, v[0]);
    });
  };
  if (isShort)
    value = convert(value, builder.getF32Type(), [](ImplicitLocOpBuilder &b, Type type, Value v) {
      return arith::ExtFOp::create(b, type, v).getResult();
    });
  auto sum = [](OpBuilder &b, Location loc, Value x, Value y) -> Value {
    return isa<FloatType>(getElementTypeOrSelf(x.getType())) ? arith::AddFOp::create(b, loc, x, y).getResult()
                                                             : arith::AddIOp::create(b, loc, x, y).getResult();
  };
  if (scans)
    value.value = tile::ScanOp::create(at(scope), value.value.getType(), value.value, (int64_t)carried.size());
  if (streamed) {
    Tile before{scope->carries[op], carried};
    value = apply(scope, {before, value}, all, [&](ImplicitLocOpBuilder &b, ValueRange v) {
      return sum(b, b.getLoc(), v[0], v[1]);
    });
    scope->carries[op] = scans ? lastOf(scope, value, along) : value.value;
  }
  if (isShort)
    value = convert(value, narrow, [](ImplicitLocOpBuilder &b, Type type, Value v) {
      return arith::TruncFOp::create(b, type, v).getResult();
    });
  scope->values[op->getResult(0)] = value;
  return success();
}

/// The last position along `axis` of a tile: the sum of it and zeros. What is
/// outside the axis comes after all that is carried on.
Value Emitter::lastOf(Scope *scope, const Tile &tile, AxisId axis) {
  Type element = getElementTypeOrSelf(tile.value.getType());
  Tile start{place(axis, scope).offset, {}}, last = number(scope, axes[axis].tile - 1);
  Tile zero{constant(scope, cast<TypedAttr>(builder.getZeroAttr(element))), {}};
  Tile position = apply(scope, {start, last}, {}, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
    return arith::AddIOp::create(b, v[0], v[1]);
  });
  Tile isLast = apply(scope, {range(scope, axis), position}, {}, [](ImplicitLocOpBuilder &b, ValueRange v) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, v[0], v[1]).getResult();
  });
  Tile only = apply(scope, {isLast, tile, zero}, tile.axes, [](ImplicitLocOpBuilder &b, ValueRange v) -> Value {
    return arith::SelectOp::create(b, v[0], v[1], v[2]);
  });
  return folded(scope, only.value, [&](OpBuilder &b, Value x, Value y) -> Value {
    return isa<FloatType>(element) ? arith::AddFOp::create(b, builder.getLoc(), x, y).getResult()
                                   : arith::AddIOp::create(b, builder.getLoc(), x, y).getResult();
  });
}
