//===- Emitter.cpp - Scopes, and the program around what is computed -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "Schedule.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

Emitter::Emitter(func::FuncOp kernel, const Axes &axes, func::FuncOp program, tile::Precision precision,
                 std::optional<Members> given)
    : kernel(kernel), program(program), axes(axes), precision(precision), members(std::move(given)),
      memories(program.getArguments().begin(), program.getArguments().end()), builder(kernel.getLoc(), kernel.getContext()) {
  root.block = &program.getBody().front();
}

ImplicitLocOpBuilder &Emitter::at(Scope *scope) {
  scope = scope->real();
  if (scope->before)
    builder.setInsertionPoint(scope->before);
  else
    builder.setInsertionPointToEnd(scope->block);
  return builder;
}

Scope *Emitter::home(ArrayRef<AxisId> list, Scope *scope) {
  Scope *deepest = &root;
  for (AxisId axis : list) {
    if (axis == kNoAxis)
      continue;
    Scope *found = scope;
    while (found->parent && !found->places.count(axis))
      found = found->parent;
    if (found->depth() > deepest->depth())
      deepest = found;
  }
  return deepest;
}

const Place &Emitter::place(AxisId axis, Scope *scope) {
  while (!scope->places.count(axis)) {
    scope = scope->parent;
    assert(scope && "an axis without a place: its loop is not open");
  }
  return scope->places.find(axis)->second;
}

bool Emitter::isPlaced(AxisId axis, Scope *scope) {
  while (scope && !scope->places.count(axis))
    scope = scope->parent;
  return scope;
}

FailureOr<SmallVector<Value>>
Emitter::count(Value from, Value to, int64_t step, Scope *scope, ValueRange init, ArrayRef<Operation *> targets,
               function_ref<FailureOr<SmallVector<Value>>(Scope *, Value, ValueRange)> body) {
  Value by = index(scope, step);
  auto loop = scf::ForOp::create(at(scope), from, to, by, init);
  if (init.empty())
    loop.getBody()->getTerminator()->erase();
  Operation *after = std::exchange(scope->real()->before, loop.getOperation());
  Scope inner;
  inner.parent = scope;
  inner.block = loop.getBody();
  inner.targets.assign(targets.begin(), targets.end());
  auto results = body(&inner, loop.getInductionVar(), loop.getRegionIterArgs());
  scope->real()->before = after;
  if (failed(results))
    return failure();
  scf::YieldOp::create(at(&inner), *results);
  return SmallVector<Value>(loop.getResults());
}

FailureOr<SmallVector<Value>>
Emitter::loop(ArrayRef<AxisId> streamed, Scope *scope, ValueRange init, ArrayRef<Operation *> targets,
              function_ref<FailureOr<SmallVector<Value>>(Scope *, ValueRange)> body,
              ArrayRef<SmallVector<HalfPlane>> idle) {
  if (streamed.empty())
    return body(scope, init);
  const Axis &axis = axes[streamed.front()];
  // Running sums go from chunk to chunk, and miss none.
  SmallVector<Operation *> sums = runningSums(streamed.front(), targets);
  if (!sums.empty())
    idle = {};
  auto [from, to] = bounds(streamed.front(), scope, idle);
  SmallVector<Value> all(init);
  for (Operation *sum : sums) {
    Type element = getElementTypeOrSelf(sum->getResult(0).getType());
    bool isShort = element.isBF16() || element.isF16();
    Tile zero{constant(scope, cast<TypedAttr>(builder.getZeroAttr(isShort ? builder.getF32Type() : element))), {}};
    AxisList shape = carryAxes(sum);
    all.push_back(shape.empty() ? zero.value : expanded(scope, zero, shape));
  }
  auto results = count(from, to, axis.tile, scope, all, targets,
                       [&](Scope *inner, Value offset, ValueRange carried) -> FailureOr<SmallVector<Value>> {
                         inner->places[streamed.front()] = {offset, axis.ragged() ? 1 : 0};
                         for (auto [sum, carry] : llvm::zip_equal(sums, carried.drop_front(init.size())))
                           inner->carries[sum] = carry;
                         auto next = loop(streamed.drop_front(), inner, carried.take_front(init.size()), targets, body,
                                          idle);
                         for (Operation *sum : sums) {
                           AxisList dims = axes.ofValue(sum->getResult(0));
                           if (failed(next) || failed(emit(sum->getResult(0), dims, inner, dims)))
                             return failure();
                           next->push_back(inner->carries[sum]);
                         }
                         return next;
                       });
  if (succeeded(results))
    results->truncate(init.size());
  return results;
}

/// Which member's grid point this is, and that one's memory. What the members have in
/// common stays as it is.
void Emitter::openMembers() {
  const KernelGroup &group = members->group;
  auto member = tile::MemberOp::create(at(&root), tile::PointOp::create(at(&root)), members->starts);
  SmallVector<Value> parameters = std::exchange(memories, {});
  auto select = [&](llvm::function_ref<unsigned(unsigned)> parameterOf) {
    SmallVector<Value> choices;
    for (unsigned m = 0; m < group.members; ++m)
      choices.push_back(parameters[parameterOf(m)]);
    MemRefType type = tile::SelectOp::commonType(ValueRange(choices).getTypes());
    assert(type && "the members of a group differ in more than an extent");
    return tile::SelectOp::create(at(&root), type, member.getMember(), choices).getResult();
  };
  memories.append(parameters.begin(), parameters.begin() + group.shared);
  for (unsigned i = 0; i < group.arguments; ++i)
    memories.push_back(select([&](unsigned m) { return group.argument(m, group.shared + i); }));
  unsigned arguments = group.shared + group.members * group.arguments;
  for (unsigned r = 0; r < group.results; ++r)
    memories.push_back(select([&](unsigned m) { return arguments + group.result(m, r); }));
  ownPoint = member.getLocal();
}

/// The number, row-major, of the `number`th tile of planes of rows x columns tiles that
/// are gone through in bands of `band` rows, column by column: blocks that run at once
/// lie in a square of tiles rather than a row of them, and share what they read in L2.
Value Emitter::rasterBands(Value number, int64_t planes, int64_t rows, int64_t columns, int64_t band) {
  auto constant = [&](int64_t value) { return index(&root, value); };
  auto divide = [&](Value a, Value by) { return arith::DivUIOp::create(at(&root), a, by).getResult(); };
  auto remainder = [&](Value a, Value by) { return arith::RemUIOp::create(at(&root), a, by).getResult(); };
  auto scaled = [&](Value a, int64_t by) {
    Value factor = constant(by);
    return arith::MulIOp::create(at(&root), a, factor).getResult();
  };
  auto plus = [&](Value a, Value c) { return arith::AddIOp::create(at(&root), a, c).getResult(); };
  Value plane, in = number;
  if (planes > 1) {
    plane = divide(number, constant(rows * columns));
    in = remainder(number, constant(rows * columns));
  }
  band = std::min(band, rows);
  Value which = divide(in, constant(band * columns)), within = remainder(in, constant(band * columns));
  Value first = scaled(which, band), height = constant(band);
  if (rows % band)
    height = arith::MinUIOp::create(
        at(&root), height, arith::SubIOp::create(at(&root), constant(rows), first).getResult());
  Value row = plus(first, remainder(within, height)), column = divide(within, height);
  Value result = plus(scaled(row, columns), column);
  return plane ? plus(scaled(plane, rows * columns), result) : result;
}

/// Every axis that is not streamed has its place here.
void Emitter::openRoot() {
  auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).asArrayRef();
  auto tiles = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::tile).asArrayRef();
  if (members)
    openMembers();
  // Row-major: the last dimension runs fastest.
  Value rest = members ? ownPoint : tile::PointOp::create(at(&root)).getResult();
  point.assign(sizes.size(), Value());
  int64_t before = 1;
  SmallVector<int64_t> counts;
  for (auto [extent, tile] : llvm::zip_equal(sizes, tiles)) {
    counts.push_back((extent + tile - 1) / tile);
    before *= counts.back();
  }
  auto raster = kernel->getAttrOfType<IntegerAttr>(attr::rasterRows);
  size_t columns = counts.size();
  while (columns > 0 && counts[columns - 1] <= 1)
    --columns;
  // Dimension columns - 1 of the grid, and the one before it.
  size_t rows = columns > 0 ? columns - 1 : 0;
  while (rows > 0 && counts[rows - 1] <= 1)
    --rows;
  // Members differ in their number of rows.
  if (raster && raster.getInt() > 1 && rows > 0 && !members)
    rest = rasterBands(rest, before / (counts[rows - 1] * counts[columns - 1]), counts[rows - 1],
                       counts[columns - 1], raster.getInt());
  for (size_t s = sizes.size(); s-- > 0;) {
    int64_t count = counts[s];
    before /= std::max<int64_t>(count, 1);
    if (count <= 1) {
      point[s] = index(&root, 0);
      continue;
    }
    Value size = index(&root, count);
    point[s] = before > 1 ? arith::RemUIOp::create(at(&root), rest, size).getResult() : rest;
    if (before > 1)
      rest = arith::DivUIOp::create(at(&root), rest, size);
  }
  for (AxisId id = 0; id < (AxisId)axes.size(); ++id) {
    const Axis &axis = axes[id];
    int64_t bounds = axis.ragged() ? 1 : 0;
    if (axis.streamed())
      continue;
    if (axis.local() || axis.chunks() <= 1)
      root.places[id] = {index(&root, 0), bounds};
    else if (axis.tile == 1)
      root.places[id] = {point[axis.space], bounds};
    else
      root.places[id] = {arith::MulIOp::create(at(&root), point[axis.space], index(&root, axis.tile)), bounds};
  }
}

LogicalResult Emitter::run() {
  openRoot();
  if (failed(storeResults()))
    return failure();
  func::ReturnOp::create(at(&root));
  return success();
}

/// All of the results' tiles, then all stores: a result may share the memory of
/// an argument (nova.inplace) that another one still reads. Results with
/// streamed axes are computed and stored chunk by chunk; as what they share with
/// the others is computed before their loop opens, the others' stores come last.
LogicalResult Emitter::storeResults() {
  Operation *back = kernel.getBody().front().getTerminator();
  using Group = SmallVector<OpOperand *>;
  llvm::MapVector<SmallVector<AxisId>, Group, std::map<SmallVector<AxisId>, unsigned>> groups;
  for (OpOperand &result : back->getOpOperands()) {
    SmallVector<AxisId> streamed;
    for (AxisId axis : axes.ofValue(result.get()))
      if (axis != kNoAxis && axes[axis].streamed())
        streamed.push_back(axis);
    sortLoops(streamed, axes);
    groups[streamed].push_back(&result);
  }
  auto compute = [&](Group &group, Scope *scope) -> FailureOr<SmallVector<Tile>> {
    SmallVector<Tile> tiles;
    for (OpOperand *result : group) {
      AxisList dims = axes.ofValue(result->get());
      auto tile = emit(result->get(), dims, scope, dims);
      if (failed(tile))
        return failure();
      tiles.push_back(*tile);
    }
    return tiles;
  };
  root.targets.push_back(back);
  Group &whole = groups[{}];
  auto wholeTiles = compute(whole, &root);
  if (failed(wholeTiles))
    return failure();
  for (auto &[streamed, group] : groups) {
    if (streamed.empty())
      continue;
    SmallVector<Operation *> targets;
    for (OpOperand *result : group)
      if (Operation *op = result->get().getDefiningOp())
        targets.push_back(op);
    auto done = loop(streamed, &root, {}, targets, [&](Scope *scope, ValueRange) -> FailureOr<SmallVector<Value>> {
      auto tiles = compute(group, scope);
      if (failed(tiles))
        return failure();
      for (auto [result, tile] : llvm::zip_equal(group, *tiles))
        if (failed(store(*result, scope, tile)))
          return failure();
      return SmallVector<Value>();
    });
    if (failed(done))
      return failure();
  }
  for (auto [result, tile] : llvm::zip_equal(whole, *wholeTiles))
    if (failed(store(*result, &root, tile)))
      return failure();
  return success();
}

LogicalResult Emitter::store(OpOperand &result, Scope *scope, const Tile &tile) {
  builder.setLoc(result.getOwner()->getLoc());
  AxisList dims = axes.ofValue(result.get());
  AxisList along = tileAxes(dims, dims);
  if (failed(checkRank(result.getOwner(), along)))
    return failure();
  Value whole = expanded(scope, tile, along);
  SmallVector<Value> offsets;
  SmallVector<int64_t> memoryDims, bounds;
  for (AxisId axis : dims)
    offsets.push_back(axis == kNoAxis ? index(scope, 0) : place(axis, scope).offset);
  for (AxisId axis : along) {
    memoryDims.push_back(llvm::find(dims, axis) - dims.begin());
    bounds.push_back(place(axis, scope).bounds);
  }
  // Of grid points that compute the same region, the first one writes it.
  Value first;
  auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).asArrayRef();
  auto tiles = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::tile).asArrayRef();
  for (auto [s, extent] : llvm::enumerate(sizes)) {
    bool bound = llvm::any_of(dims, [&](AxisId axis) { return axis != kNoAxis && axes[axis].space == (int64_t)s; });
    if (bound || extent <= tiles[s])
      continue;
    Value zero = arith::CmpIOp::create(at(scope), arith::CmpIPredicate::eq, point[s], index(scope, 0));
    first = first ? arith::AndIOp::create(at(scope), first, zero).getResult() : zero;
  }
  Value to = memory(kernel.getNumArguments() + result.getOperandNumber());
  ImplicitLocOpBuilder &b = at(scope);
  if (first)
    b.setInsertionPointToStart(scf::IfOp::create(b, first, /*withElseRegion=*/false).thenBlock());
  tile::StoreOp::create(b, whole, to, offsets, memoryDims, bounds);
  return success();
}
