//===- Values.cpp - Loads, and bodies of generics on tiles -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BodyEmitter.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

//===----------------------------------------------------------------------===//
// Values of the kernel
//===----------------------------------------------------------------------===//

FailureOr<Tile> Emitter::uniform(Value value, Scope *scope) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    Value scalar = fill.getInputs()[0];
    if (auto constantOp = scalar.getDefiningOp<arith::ConstantOp>())
      return Tile{constant(scope, constantOp.getValue()), {}};
    return failure();
  }
  if (auto constantOp = value.getDefiningOp<arith::ConstantOp>()) {
    if (auto splat = dyn_cast<SplatElementsAttr>(constantOp.getValue()))
      return Tile{constant(scope, splat.getSplatValue<TypedAttr>()), {}};
    return failure();
  }
  // Nobody may depend on what is in there.
  if (value.getDefiningOp<tensor::EmptyOp>())
    return Tile{constant(scope, builder.getZeroAttr(getElementTypeOrSelf(value))), {}};
  return failure();
}

FailureOr<Tile> Emitter::emit(Value value, ArrayRef<AxisId> dims, Scope *scope, ArrayRef<AxisId> order) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return load(argument, dims, scope, order);
  Operation *op = value.getDefiningOp();
  if (isa<linalg::FillOp, arith::ConstantOp, tensor::EmptyOp>(op)) {
    auto tile = uniform(value, scope);
    if (failed(tile))
      return refuse(kernel, op) << "elements that differ, expected one constant for all";
    return tile;
  }
  Scope *place = home(dims, scope);
  for (Scope *inner = scope; inner != place; inner = inner->parent)
    if (llvm::any_of(inner->replaced, [&](Value other) { return needs(value, other); })) {
      place = inner;
      break;
    }
  if (!place->values.count(value)) {
    Location outside = builder.getLoc();
    builder.setLoc(op->getLoc());
    LogicalResult ok =
        llvm::TypeSwitch<Operation *, LogicalResult>(op)
            .Case([&](linalg::GenericOp generic) {
              return generic.getNumReductionLoops() ? reduce(generic, place, order)
                                                    : elementwise(generic, place, order);
            })
            .Case([&](tensor::ConcatOp) { return concat(op, place, order); })
            .Case([&](CumsumOp) { return cumsum(op, place, order); })
            .Case([&](ScatterOp) { return scatter(op, place, order); })
            .Case([&](SegmentSumOp) { return segmentSum(op, place, order); })
            .Case([&](IndexPutOp) { return indexPut(op, place, order); });
    if (failed(ok))
      return failure();
    builder.setLoc(outside);
  }
  return ordered(place, place->values.find(value)->second, order);
}

FailureOr<Tile> Emitter::load(BlockArgument argument, ArrayRef<AxisId> dims, Scope *scope, ArrayRef<AxisId> order) {
  scope = home(dims, scope);
  std::vector<int64_t> key{argument.getArgNumber()};
  key.insert(key.end(), dims.begin(), dims.end());
  if (auto it = scope->loads.find(key); it != scope->loads.end())
    return ordered(scope, it->second, order);
  AxisList along = tileAxes(dims, order);
  if (failed(checkRank(kernel, along)))
    return failure();
  SmallVector<Value> offsets;
  for (auto [d, axis] : llvm::enumerate(dims)) {
    offsets.push_back(axis == kNoAxis ? index(scope, 0) : place(axis, scope).offset);
    if (axis != kNoAxis && axes[axis].tile > 1 && llvm::is_contained(dims.drop_front(d + 1), axis))
      return refuse(kernel, kernel) << "reads the diagonal of argument " << argument.getArgNumber()
                                    << ", which no tile is";
  }
  SmallVector<int64_t> memoryDims, bounds;
  for (AxisId axis : along) {
    memoryDims.push_back(llvm::find(dims, axis) - dims.begin());
    bounds.push_back(place(axis, scope).bounds);
  }
  Type element = getElementTypeOrSelf(argument.getType());
  Value value = tile::LoadOp::create(at(scope), tileType(along, element),
                                     memory(argument.getArgNumber()), offsets, Value(), memoryDims,
                                     bounds);
  return scope->loads[key] = unwrapped(scope, value, along);
}

LogicalResult Emitter::elementwise(linalg::GenericOp op, Scope *scope, ArrayRef<AxisId> order) {
  BodyEmitter body(*this, op, scope, order);
  for (auto [result, yielded] : llvm::zip_equal(op->getResults(), op.getBody()->getTerminator()->getOperands())) {
    auto tile = body.get(yielded);
    if (failed(tile))
      return failure();
    scope->values[result] = *tile;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values of a body
//===----------------------------------------------------------------------===//

FailureOr<Tile> BodyEmitter::get(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  FailureOr<Tile> tile = failure();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    OpOperand *operand = op.getMatchingOpOperand(argument);
    tile = e.emit(operand->get(), e.axes.ofOperand(*operand), scope, order);
  } else {
    tile = compute(value.getDefiningOp());
  }
  if (succeeded(tile))
    known[value] = *tile;
  return tile;
}

FailureOr<Tile> BodyEmitter::compute(Operation *inner) {
  if (auto indexOp = dyn_cast<linalg::IndexOp>(inner)) {
    AxisId axis = e.axes.ofLoop(op, indexOp.getDim());
    return axis == kNoAxis ? Tile{e.index(scope, 0), {}} : e.range(scope, axis);
  }
  if (auto extractOp = dyn_cast<tensor::ExtractOp>(inner))
    return extract(extractOp);
  // Not isPure: an integer division is not to be speculated, but nothing is here that
  // the body would not have done for the element, and beyond an axis' end it divides
  // what memory's fill is, by what the body makes of that.
  if (inner->getNumRegions() != 0 || inner->getNumResults() != 1 || !isMemoryEffectFree(inner) ||
      llvm::any_of(inner->getOperandTypes(), llvm::IsaPred<ShapedType>))
    return refuse(e.kernel, inner) << "expected arithmetic on scalars";
  SmallVector<Tile> operands;
  AxisList all;
  for (Value operand : inner->getOperands()) {
    auto tile = get(operand);
    if (failed(tile))
      return failure();
    operands.push_back(*tile);
    all.append(tile->axes);
  }
  all = e.tileAxes(all, order);
  if (failed(e.checkRank(inner, all)))
    return failure();
  IRMapping mapping;
  for (auto [operand, tile] : llvm::zip_equal(inner->getOperands(), operands))
    mapping.map(operand, all.empty() ? tile.value : e.expanded(scope, tile, all));
  Operation *copy = e.at(scope).clone(*inner, mapping);
  if (!all.empty())
    copy->getResult(0).setType(e.tileType(all, inner->getResult(0).getType()));
  return Tile{copy->getResult(0), all};
}

/// Where the indices that are no scalars run straight along axes this is a
/// load, else a gather.
FailureOr<Tile> BodyEmitter::extract(tensor::ExtractOp inner) {
  auto argument = dyn_cast<BlockArgument>(inner.getTensor());
  if (!argument || argument.getOwner() != &e.kernel.getBody().front())
    return refuse(e.kernel, inner) << "reads a value that is no kernel argument";
  SmallVector<Tile> indices;
  AxisList all, straight;
  SmallVector<int64_t> memoryDims;
  bool isLoad = true;
  for (auto [d, value] : llvm::enumerate(inner.getIndices())) {
    auto tile = get(value);
    if (failed(tile))
      return failure();
    indices.push_back(*tile);
    all.append(tile->axes);
    if (tile->axes.empty())
      continue;
    isLoad &= tile->axes.size() == 1 && e.range(scope, tile->axes[0]).value == tile->value &&
              !llvm::is_contained(straight, tile->axes[0]);
    straight.push_back(tile->axes[0]);
    memoryDims.push_back(d);
  }
  all = e.tileAxes(all, order);
  if (failed(e.checkRank(inner, all)))
    return failure();
  Value memory = e.memory(argument.getArgNumber());
  RankedTensorType type = e.tileType(all, inner.getType());
  SmallVector<Value> at;
  if (isLoad) {
    SmallVector<int64_t> along, bounds;
    for (const Tile &tile : indices)
      at.push_back(tile.axes.empty() ? tile.value : e.place(tile.axes[0], scope).offset);
    for (AxisId axis : all) {
      along.push_back(memoryDims[llvm::find(straight, axis) - straight.begin()]);
      bounds.push_back(e.place(axis, scope).bounds);
    }
    return e.unwrapped(scope, tile::LoadOp::create(e.at(scope), type, memory, at, Value(), along, bounds), all);
  }
  for (const Tile &tile : indices)
    at.push_back(tile.axes.empty() ? tile.value : e.expanded(scope, tile, all));
  Value mask = e.mask(scope, all);
  return Tile{tile::GatherOp::create(e.at(scope), type, memory, at, mask), all};
}
