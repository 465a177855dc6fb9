//===- KernelAxes.cpp - What runs together in a kernel ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/KernelAxes.h"

#include "nova/IR/Nova.h"
#include "nova/Transforms/ReductionBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

static int64_t extentOf(Value value, unsigned dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

unsigned tiling::positionRank(SegmentSumOp op) {
  auto rank = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank(); };
  return rank(op.getUpdates()) - (rank(op.getResult()) - op.getRows());
}

namespace {
using Key = std::pair<void *, unsigned>;

/// Collects equalities, then numbers the classes.
class Analysis {
public:
  explicit Analysis(func::FuncOp kernel) : kernel(kernel) {}

  LogicalResult collect();
  LogicalResult collectGeneric(linalg::GenericOp op);
  void collectConcat(tensor::ConcatOp op);
  void collectCumsum(CumsumOp op);
  void collectIndexPut(IndexPutOp op);
  void collectSegmentSum(SegmentSumOp op);
  LogicalResult collectScatter(ScatterOp op);
  /// Each dimension from `first` of `value`, unless it has no axes, is that of
  /// `other` `shift` further on.
  void sameDims(Value value, Value other, unsigned first = 0, int shift = 0);
  void collectResults();
  LogicalResult bind();
  void shareArguments();

  Key key(Value value, unsigned dim) { return add({value.getAsOpaquePointer(), dim}, extentOf(value, dim)); }
  Key key(linalg::GenericOp op, unsigned loop) {
    return add({op.getOperation(), loop}, op.getStaticLoopRanges()[loop]);
  }
  Key key(Operation *op, unsigned position, int64_t extent) { return add({op, position}, extent); }
  Key add(Key key, int64_t extent) {
    if (order.insert({key, (unsigned)order.size()}).second) {
      keys.push_back(key);
      classes.insert(key);
      extents[key] = extent;
    }
    return key;
  }
  Key leader(Key key) { return classes.getLeaderValue(key); }
  void equal(Key a, Key b) {
    if (extents[a] != 1 && extents[b] != 1)
      classes.unionSets(a, b);
  }

  func::FuncOp kernel;
  llvm::EquivalenceClasses<Key> classes;
  DenseMap<Key, unsigned> order;
  DenseMap<Key, int64_t> extents;
  SmallVector<Key> keys;
  DenseMap<Key, int64_t> space; ///< Of a leader.
  SmallVector<Key> reduced, scanned, single;
  SmallVector<std::pair<Key, Key>> parts; ///< Of whom each first is a part.
};
} // namespace

/// A value whose dimensions are axes: neither an argument, which may be read
/// along different axes by different readers, nor a value whose elements are
/// equal, which many share.
static bool hasAxes(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp>(op);
}

LogicalResult Analysis::collectGeneric(linalg::GenericOp op) {
  // A body of no known form accumulates one position after the other.
  bool folds = op.getNumReductionLoops() && failed(accumulations(op)) && failed(selection(op));
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    Key mine = key(op, loop);
    if (folds && kind == utils::IteratorType::reduction)
      single.push_back(mine);
  }
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Value result = op.isDpsInit(&operand) ? op.getTiedOpResult(&operand) : Value();
    for (auto [d, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      auto constant = dyn_cast<AffineConstantExpr>(expr);
      if (!dim && !(constant && constant.getValue() == 0))
        return refuse(kernel, op) << "indexing map " << AffineMapAttr::get(map) << ", expected dimensions and zeros";
      if (dim && hasAxes(operand.get()))
        equal(key(operand.get(), d), key(op, dim.getPosition()));
      if (dim && result)
        equal(key(result, d), key(op, dim.getPosition()));
    }
  }
  return success();
}

void Analysis::sameDims(Value value, Value other, unsigned first, int shift) {
  if (!hasAxes(value))
    return;
  for (int64_t d = first, e = cast<RankedTensorType>(value.getType()).getRank(); d < e; ++d)
    if (extentOf(value, d) == extentOf(other, d + shift))
      equal(key(value, d), key(other, d + shift));
}

void Analysis::collectConcat(tensor::ConcatOp op) {
  Key along = key(op.getResult(), op.getDim());
  for (Value input : op.getInputs()) {
    if (!hasAxes(input))
      continue;
    for (int64_t d = 0; d < op.getRank(); ++d)
      if (d != (int64_t)op.getDim())
        equal(key(input, d), key(op.getResult(), d));
    parts.push_back({key(input, op.getDim()), along});
  }
}

void Analysis::collectCumsum(CumsumOp op) {
  scanned.push_back(key(op.getResult(), op.getDim()));
  sameDims(op.getInput(), op.getResult());
}

void Analysis::collectIndexPut(IndexPutOp op) {
  Value result = op.getResult();
  auto positions = cast<RankedTensorType>(op.getIndices()[0].getType()).getShape();
  unsigned count = positions.size();
  for (unsigned k = 0; k < 2 * count; ++k) {
    Key mine = key(op, k, positions[k % count]);
    reduced.push_back(mine);
    // Updates are taken one by one; only the indices of the last dimension are
    // looked at by the tile.
    if (k + 1 != count)
      single.push_back(mine);
  }
  for (Value index : op.getIndices())
    for (unsigned k = 0; k < count && hasAxes(index); ++k)
      equal(key(index, k), Key{op.getOperation(), k});
  for (unsigned k = 0; k < count && hasAxes(op.getUpdates()); ++k)
    equal(key(op.getUpdates(), k), Key{op.getOperation(), count + k});
  sameDims(op.getUpdates(), result, count, (int)op.getIndices().size() - (int)count);
  sameDims(op.getInit(), result);
}

void Analysis::collectSegmentSum(SegmentSumOp op) {
  Value result = op.getResult();
  unsigned count = positionRank(op);
  for (unsigned k = 0; k < count; ++k) {
    Key mine = key(op, k, extentOf(op.getUpdates(), k));
    reduced.push_back(mine);
    single.push_back(mine);
    if (hasAxes(op.getUpdates()))
      equal(key(op.getUpdates(), k), mine);
  }
  // Each row has a segment of its own.
  for (unsigned d = 0; d < op.getRows(); ++d)
    single.push_back(key(result, d));
  sameDims(op.getUpdates(), result, count, (int)op.getRows() - (int)count);
  sameDims(op.getInit(), result);
}

LogicalResult Analysis::collectScatter(ScatterOp op) {
  unsigned dim = op.getDim();
  Key along = key(op, 0, extentOf(op.getIndex(), dim));
  reduced.push_back(along);
  single.push_back(along);
  for (Value value : {op.getIndex(), op.getUpdates()}) {
    if (!hasAxes(value))
      continue;
    for (int64_t d = 0, e = cast<RankedTensorType>(value.getType()).getRank(); d < e; ++d) {
      if (d != dim && extentOf(value, d) != extentOf(op.getResult(), d))
        return refuse(kernel, op) << "computed positions that are fewer than the result's along dimension " << d;
      equal(key(value, d), d == dim ? along : key(op.getResult(), d));
    }
  }
  sameDims(op.getInit(), op.getResult());
  return success();
}

LogicalResult Analysis::collect() {
  for (Operation &op : kernel.getBody().front()) {
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && hasAxes(result))
        for (int64_t d = 0; d < type.getRank(); ++d)
          key(result, d);
    LogicalResult ok =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](linalg::GenericOp generic) { return collectGeneric(generic); })
            .Case([&](tensor::ConcatOp concat) { return collectConcat(concat), success(); })
            .Case([&](CumsumOp cumsum) { return collectCumsum(cumsum), success(); })
            .Case([&](IndexPutOp put) { return collectIndexPut(put), success(); })
            .Case([&](ScatterOp scatter) { return collectScatter(scatter); })
            .Case([&](SegmentSumOp sum) { return collectSegmentSum(sum), success(); })
            .Case<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp, func::ReturnOp>([](auto) { return success(); })
            .Default([&](Operation *other) -> LogicalResult {
              return refuse(kernel, other) << "an operation that has no tile program";
            });
    if (failed(ok))
      return failure();
  }
  return success();
}

/// An argument that is returned has its own axes there.
void Analysis::collectResults() {
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    for (int64_t d = 0, e = cast<RankedTensorType>(result.getType()).getRank(); d < e; ++d)
      key(result, d);
}

LogicalResult Analysis::bind() {
  auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  if (!sizes)
    return refuse(kernel, kernel) << "expected attribute " << attr::space;
  Operation *back = kernel.getBody().front().getTerminator();
  for (OpOperand &operand : back->getOpOperands()) {
    unsigned r = operand.getOperandNumber();
    auto map = kernel.getResultAttrOfType<DenseI64ArrayAttr>(r, attr::map);
    int64_t rank = cast<RankedTensorType>(operand.get().getType()).getRank();
    if (!map || map.size() != rank)
      return refuse(kernel, kernel) << "result " << r << ": expected " << attr::map << " with " << rank << " entries";
    for (auto [d, dim] : llvm::enumerate(map.asArrayRef())) {
      int64_t extent = extentOf(operand.get(), d);
      Key mine = key(operand.get(), d);
      if (dim < 0 || extent == 1)
        continue;
      if (dim >= sizes.size() || sizes[dim] != extent)
        return refuse(kernel, kernel) << "result " << r << ": dimension " << d << " of extent " << extent
                                      << " is bound to " << dim << ", which is no dimension of that extent";
      auto [it, fresh] = space.insert({leader(mine), dim});
      if (!fresh && it->second != dim)
        return refuse(kernel, back) << "result " << r << ": dimension " << d << " runs along the space's dimensions "
                                    << it->second << " and " << dim;
    }
  }
  return success();
}

/// Local loops that read one dimension of an argument become one axis, so that
/// a tile of it is loaded once; not where a generic has both.
void Analysis::shareArguments() {
  auto together = [&](Key a, Key b) {
    bool found = false;
    kernel.walk([&](linalg::GenericOp op) {
      bool hasA = false, hasB = false;
      for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
        hasA |= leader({op.getOperation(), loop}) == a;
        hasB |= leader({op.getOperation(), loop}) == b;
      }
      found |= hasA && hasB;
    });
    return found;
  };
  DenseMap<Key, SmallVector<Key, 2>> readers;
  kernel.walk([&](linalg::GenericOp op) {
    for (OpOperand *operand : op.getDpsInputOperands()) {
      if (hasAxes(operand->get()))
        continue;
      for (auto [d, expr] : llvm::enumerate(op.getMatchingIndexingMap(operand).getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
          // A splat is read along nothing.
          if (!isa<BlockArgument>(operand->get()))
            continue;
          Key mine{op.getOperation(), dim.getPosition()};
          if (extents[mine] == 1 || space.contains(leader(mine)))
            continue;
          SmallVector<Key, 2> &others = readers[{operand->get().getAsOpaquePointer(), (unsigned)d}];
          for (Key other : others)
            if (leader(other) != leader(mine) && !together(leader(other), leader(mine)))
              classes.unionSets(other, mine);
          others.push_back(mine);
        }
    }
  });
}

FailureOr<Axes> Axes::analyse(func::FuncOp kernel, bool bound) {
  Analysis analysis(kernel);
  if (failed(analysis.collect()))
    return failure();
  analysis.collectResults();
  if (bound && failed(analysis.bind()))
    return failure();
  if (bound)
    analysis.shareArguments();
  Axes result;
  DenseMap<Key, AxisId> numbers;
  for (Key key : analysis.keys) {
    if (analysis.extents[key] == 1) {
      result.ids[key] = kNoAxis;
      continue;
    }
    Key leader = analysis.leader(key);
    auto [it, fresh] = numbers.insert({leader, (AxisId)result.axes.size()});
    if (fresh) {
      Axis axis;
      axis.extent = analysis.extents[key];
      auto bound = analysis.space.find(leader);
      axis.space = bound == analysis.space.end() ? -1 : bound->second;
      result.axes.push_back(axis);
    }
    result.ids[key] = it->second;
  }
  auto axisOf = [&](Key key) { return result.ids.lookup(key); };
  for (auto [keys, flag] : {std::pair(&analysis.reduced, &Axis::reduced), std::pair(&analysis.scanned, &Axis::scanned),
                            std::pair(&analysis.single, &Axis::single)})
    for (Key key : *keys)
      if (AxisId id = axisOf(key); id != kNoAxis)
        result[id].*flag = true;
  for (auto [part, whole] : analysis.parts)
    if (AxisId id = axisOf(part); id != kNoAxis && id != axisOf(whole))
      result[id].partOf = axisOf(whole);
  for (const Axis &axis : result.axes)
    if ((axis.reduced || axis.scanned) && !axis.local())
      return refuse(kernel, kernel) << "reduces along dimension " << axis.space << " of the space";
  WalkResult walk = kernel.walk([&](linalg::GenericOp op) {
    SmallVector<AxisId> seen;
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
      AxisId id = result.ofLoop(op, loop);
      if (id == kNoAxis)
        continue;
      if (llvm::is_contained(seen, id)) {
        refuse(kernel, op) << "loops along one axis of extent " << result[id].extent << " twice";
        return WalkResult::interrupt();
      }
      seen.push_back(id);
      if (kind == utils::IteratorType::parallel)
        continue;
      result[id].reduced = true;
      if (!result[id].local()) {
        refuse(kernel, op) << "reduces along dimension " << result[id].space << " of the space";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return result;
}

static bool isTileExtent(int64_t n) {
  while (n > 1 && n % 2 == 0)
    n /= 2;
  return n == 1 || n == 3 || n == 5 || n == 7;
}

LogicalResult Axes::readTiles(func::FuncOp kernel) {
  auto spaceTile = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::tile);
  auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  if (!spaceTile || spaceTile.size() != sizes.size())
    return refuse(kernel, kernel) << "expected attribute " << attr::tile << " with " << sizes.size() << " entries";
  for (int64_t tile : spaceTile.asArrayRef())
    if (tile < 1 || !isTileExtent(tile))
      return refuse(kernel, kernel) << attr::tile << " holds " << tile
                                    << ", expected a power of two times 1, 3, 5 or 7";
  for (Axis &axis : axes)
    if (!axis.local()) {
      axis.tile = spaceTile[axis.space];
      if (axis.single && axis.tile > 1)
        return refuse(kernel, kernel) << attr::tile << " holds " << axis.tile << " for dimension " << axis.space
                                      << " of the space, along which elements are taken one by one: expected 1";
    }
  auto localTile = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::localTile);
  AxisList local = localAxes();
  if (!localTile || localTile.size() != (int64_t)local.size())
    return refuse(kernel, kernel) << "expected attribute " << attr::localTile << " with " << local.size()
                                  << " entries";
  for (auto [id, tile] : llvm::zip_equal(local, localTile.asArrayRef())) {
    if (tile < 1 || !isTileExtent(tile))
      return refuse(kernel, kernel) << attr::localTile << " holds " << tile
                                    << ", expected a power of two times 1, 3, 5 or 7";
    axes[id].tile = tile;
  }
  for (Axis &axis : axes)
    if (axis.partOf != kNoAxis)
      axis.tile = axes[axis.partOf].tile;
  return success();
}

AxisId Axes::ofDim(Value value, unsigned dim) const {
  auto it = ids.find({value.getAsOpaquePointer(), dim});
  return it == ids.end() ? kNoAxis : it->second;
}

AxisId Axes::ofLoop(Operation *op, unsigned loop) const {
  auto it = ids.find({op, loop});
  return it == ids.end() ? kNoAxis : it->second;
}

AxisList Axes::ofOperand(OpOperand &operand) const {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  AxisList list;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    list.push_back(dim ? ofLoop(op, dim.getPosition()) : kNoAxis);
  }
  return list;
}

AxisList Axes::ofValue(Value value) const {
  AxisList list;
  for (int64_t d = 0, e = cast<RankedTensorType>(value.getType()).getRank(); d < e; ++d)
    list.push_back(ofDim(value, d));
  return list;
}

AxisList Axes::localAxes() const {
  AxisList list;
  for (auto [id, axis] : llvm::enumerate(axes))
    if (axis.local() && !axis.single && axis.partOf == kNoAxis)
      list.push_back(id);
  return list;
}
