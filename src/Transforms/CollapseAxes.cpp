//===- CollapseAxes.cpp - One dimension of several -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three batches of 40 rows are 120 rows to whoever treats all alike: tiles of 64
// then waste little, and loads run across the batches. Axes a and b are one where
// every value and loop nest that has either has both, b directly inside a, and the
// memory of every argument read along them continues from row to row.
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/KernelAxes.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

/// Stands for a dimension that somebody looks at on its own.
static constexpr AxisId kApart = -2;

namespace {
class Collapser {
public:
  Collapser(func::FuncOp kernel, const Axes &axes) : kernel(kernel), axes(axes) {}

  /// Finds the pairs; false if there are none.
  bool analyse();
  CollapsedDims rewrite();

private:
  struct Read {
    BlockArgument argument;
    AxisList dims;
  };
  using Pair = std::pair<AxisId, AxisId>;

  void collect();
  void read(Value value, AxisList dims);
  void read(OpOperand &operand, AxisList dims);
  void setApart(AxisId axis) {
    if (axis >= 0)
      apart.insert(axis);
  }
  bool isLegal(Pair pair);
  bool isPair(ArrayRef<AxisId> dims, size_t second) const {
    return pairs.count({dims[second - 1], dims[second]}) != 0;
  }
  bool isSecond(AxisId axis) const {
    return llvm::any_of(pairs, [&](const Pair &pair) { return pair.second == axis; });
  }
  bool runTogether(Pair pair);
  /// For each dimension the one it becomes part of.
  SmallVector<unsigned> partsOf(ArrayRef<AxisId> dims) const;
  SmallVector<unsigned> partsOf(BlockArgument argument) const;
  static SmallVector<int64_t> merged(ArrayRef<int64_t> shape, ArrayRef<unsigned> parts);
  static RankedTensorType merged(Value value, ArrayRef<unsigned> parts) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.clone(merged(type.getShape(), parts));
  }
  Value uniform(OpBuilder &builder, Value value, RankedTensorType type);
  void rewrite(linalg::GenericOp op);
  void rewriteSpace(CollapsedDims &results);

  func::FuncOp kernel;
  const Axes &axes;
  std::set<Pair> pairs;
  std::set<AxisId> apart;
  SmallVector<AxisList, 0> lists; ///< Of values, reads and positions.
  std::vector<Read> reads;
  /// Splats that movements take, which have no dimensions of their own.
  std::vector<std::pair<OpOperand *, AxisList>> splats;
  DenseMap<Value, AxisList> dimsOf; ///< Of results of ops, as before the rewrite.
};
} // namespace

static bool isUniform(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp>(op);
}

void Collapser::read(Value value, AxisList dims) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    reads.push_back({argument, dims});
  if (!isUniform(value))
    lists.push_back(dims);
}

void Collapser::read(OpOperand &operand, AxisList dims) {
  if (isUniform(operand.get()))
    splats.push_back({&operand, dims});
  read(operand.get(), dims);
}

void Collapser::collect() {
  for (Operation &op : kernel.getBody().front()) {
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType()) && !isUniform(result)) {
        dimsOf[result] = axes.ofValue(result);
        lists.push_back(dimsOf[result]);
      }
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      for (OpOperand &operand : op.getOpOperands())
        if (isa<RankedTensorType>(operand.get().getType()))
          read(operand.get(), axes.ofOperand(operand));
      generic.walk([&](linalg::IndexOp index) { setApart(axes.ofLoop(generic, index.getDim())); });
      generic.walk([&](tensor::ExtractOp extract) {
        read(extract.getTensor(), AxisList(extract.getIndices().size(), kApart));
      });
    } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
      AxisList dims = axes.ofValue(op.getResult(0));
      setApart(dims[concat.getDim()]);
      dims[concat.getDim()] = kApart;
      for (OpOperand &input : concat->getOpOperands()) {
        if (!isa<BlockArgument>(input.get()))
          setApart(axes.ofDim(input.get(), concat.getDim()));
        read(input, dims);
      }
    } else if (auto cumsum = dyn_cast<CumsumOp>(op)) {
      AxisList dims = axes.ofValue(op.getResult(0));
      setApart(dims[cumsum.getDim()]);
      dims[cumsum.getDim()] = kApart;
      read(cumsum->getOpOperand(0), dims);
    } else if (auto put = dyn_cast<IndexPutOp>(op)) {
      AxisList dims = axes.ofValue(op.getResult(0)), positions, updates;
      size_t indexed = put.getIndices().size();
      unsigned count = cast<RankedTensorType>(put.getIndices()[0].getType()).getRank();
      for (unsigned k = 0; k < count; ++k) {
        positions.push_back(axes.ofLoop(&op, k));
        updates.push_back(axes.ofLoop(&op, count + k));
      }
      for (AxisId &axis : MutableArrayRef<AxisId>(dims).take_front(indexed)) {
        setApart(axis);
        axis = kApart;
      }
      updates.append(dims.begin() + indexed, dims.end());
      read(put.getInitMutable(), dims);
      for (OpOperand &index : put.getIndicesMutable())
        read(index, positions);
      read(put.getUpdatesMutable(), updates);
      lists.push_back(positions);
      lists.push_back(updates);
    } else if (auto sum = dyn_cast<SegmentSumOp>(op)) {
      AxisList dims = axes.ofValue(op.getResult(0)), positions;
      unsigned count = positionRank(sum);
      for (unsigned k = 0; k < count; ++k)
        positions.push_back(axes.ofLoop(&op, k));
      for (AxisId &axis : MutableArrayRef<AxisId>(dims).take_front(sum.getRows())) {
        setApart(axis);
        axis = kApart;
      }
      AxisList updates = positions;
      updates.append(dims.begin() + sum.getRows(), dims.end());
      read(sum.getInitMutable(), dims);
      read(sum.getUpdatesMutable(), updates);
      for (OpOperand *list : {&sum.getOrderMutable(), &sum.getBoundsMutable()})
        read(*list, {kApart});
      lists.push_back(positions);
    } else if (isa<ScatterOp>(op)) {
      for (AxisId axis : axes.ofValue(op.getResult(0)))
        setApart(axis);
      setApart(axes.ofLoop(&op, 0));
      for (OpOperand &operand : op.getOpOperands())
        read(operand, AxisList(cast<RankedTensorType>(operand.get().getType()).getRank(), kApart));
    } else if (isa<func::ReturnOp>(op)) {
      for (Value operand : op.getOperands())
        read(operand, axes.ofValue(operand));
    }
  }
}

/// Do both run along neighbouring dimensions of the space, along one, or along
/// none?
bool Collapser::runTogether(Pair pair) {
  int64_t first = -1, second = -1;
  for (OpOperand &result : kernel.getBody().front().getTerminator()->getOpOperands()) {
    auto map = kernel.getResultAttrOfType<DenseI64ArrayAttr>(result.getOperandNumber(), attr::map);
    for (auto [axis, dim] : llvm::zip_equal(axes.ofValue(result.get()), map.asArrayRef())) {
      if (axis == pair.first)
        first = std::max(first, dim);
      if (axis == pair.second)
        second = std::max(second, dim);
    }
  }
  return first < 0 ? second < 0 : second == first || second == first + 1;
}

bool Collapser::isLegal(Pair pair) {
  if (apart.count(pair.first) || apart.count(pair.second) || !runTogether(pair))
    return false;
  for (ArrayRef<AxisId> dims : lists)
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == pair.first && (d + 1 == dims.size() || dims[d + 1] != pair.second))
        return false;
      if (dims[d] == pair.second && (d == 0 || dims[d - 1] != pair.first))
        return false;
    }
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>()) {
    std::optional<utils::IteratorType> first, second;
    for (auto [loop, kind] : llvm::enumerate(generic.getIteratorTypesArray())) {
      if (axes.ofLoop(generic, loop) == pair.first)
        first = kind;
      if (axes.ofLoop(generic, loop) == pair.second)
        second = kind;
    }
    if (first != second)
      return false;
  }
  // An index_put takes an update where it takes an index.
  for (auto put : kernel.getBody().front().getOps<IndexPutOp>()) {
    unsigned count = cast<RankedTensorType>(put.getIndices()[0].getType()).getRank();
    for (unsigned k = 1; k < count; ++k)
      for (unsigned from : {0u, count}) {
        if (Pair{axes.ofLoop(put, from + k - 1), axes.ofLoop(put, from + k)} != pair)
          continue;
        unsigned other = count - from;
        if (!pairs.count({axes.ofLoop(put, other + k - 1), axes.ofLoop(put, other + k)}))
          return false;
      }
  }
  for (const Read &one : reads)
    for (size_t d = 1; d < one.dims.size(); ++d) {
      if (Pair{one.dims[d - 1], one.dims[d]} != pair)
        continue;
      SmallVector<int64_t> strides = argumentStrides(kernel, one.argument.getArgNumber());
      if (strides[d - 1] != strides[d] * cast<RankedTensorType>(one.argument.getType()).getDimSize(d))
        return false;
      for (const Read &other : reads)
        if (other.argument == one.argument && !isPair(other.dims, d))
          return false;
    }
  return true;
}

bool Collapser::analyse() {
  collect();
  for (ArrayRef<AxisId> dims : lists)
    for (size_t d = 1; d < dims.size(); ++d)
      if (dims[d - 1] >= 0 && dims[d] >= 0)
        pairs.insert({dims[d - 1], dims[d]});
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = pairs.begin(); it != pairs.end();) {
      if (isLegal(*it)) {
        ++it;
        continue;
      }
      it = pairs.erase(it);
      changed = true;
    }
  }
  return !pairs.empty();
}

SmallVector<unsigned> Collapser::partsOf(ArrayRef<AxisId> dims) const {
  SmallVector<unsigned> parts;
  for (size_t d = 0; d < dims.size(); ++d)
    parts.push_back(d == 0 ? 0 : parts.back() + !isPair(dims, d));
  return parts;
}

SmallVector<unsigned> Collapser::partsOf(BlockArgument argument) const {
  for (const Read &one : reads)
    if (one.argument == argument)
      return partsOf(one.dims);
  return partsOf(AxisList(cast<RankedTensorType>(argument.getType()).getRank(), kApart));
}

SmallVector<int64_t> Collapser::merged(ArrayRef<int64_t> shape, ArrayRef<unsigned> parts) {
  SmallVector<int64_t> result;
  for (auto [extent, part] : llvm::zip_equal(shape, parts)) {
    if (part == result.size())
      result.push_back(1);
    result.back() *= extent;
  }
  return result;
}

/// The same elements in another shape.
Value Collapser::uniform(OpBuilder &builder, Value value, RankedTensorType type) {
  Location loc = value.getLoc();
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    return splat ? arith::ConstantOp::create(builder, loc, splat.resizeSplat(type)).getResult() : value;
  }
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(builder, loc, fill.getInputs(), ValueRange{empty}).getResult(0);
  return empty;
}

void Collapser::rewrite(linalg::GenericOp op) {
  OpBuilder builder(op);
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray(), newKinds;
  SmallVector<unsigned> loopOf(kinds.size(), 0);
  for (auto [loop, kind] : llvm::enumerate(kinds))
    if (!isSecond(axes.ofLoop(op, loop))) {
      loopOf[loop] = newKinds.size();
      newKinds.push_back(kind);
    }
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    AxisList dims = axes.ofOperand(operand);
    SmallVector<unsigned> parts = partsOf(dims);
    SmallVector<AffineExpr> exprs;
    for (auto [d, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
      if (d > 0 && parts[d] == parts[d - 1])
        continue;
      auto dim = dyn_cast<AffineDimExpr>(expr);
      exprs.push_back(dim ? builder.getAffineDimExpr(loopOf[dim.getPosition()]) : expr);
    }
    maps.push_back(AffineMap::get(newKinds.size(), 0, exprs, builder.getContext()));
    if (isa<RankedTensorType>(operand.get().getType()) && isUniform(operand.get()))
      operand.set(uniform(builder, operand.get(), merged(operand.get(), parts)));
  }
  op.walk([&](linalg::IndexOp index) { index.setDim(loopOf[index.getDim()]); });
  op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  SmallVector<Attribute> iterators;
  for (utils::IteratorType kind : newKinds)
    iterators.push_back(linalg::IteratorTypeAttr::get(builder.getContext(), kind));
  op.setIteratorTypesAttr(builder.getArrayAttr(iterators));
}

/// Space and map after the results' dimensions.
void Collapser::rewriteSpace(CollapsedDims &results) {
  Builder builder(kernel.getContext());
  auto space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).asArrayRef();
  std::set<int64_t> joined; // To the dimension before.
  SmallVector<SmallVector<int64_t>> maps;
  for (auto [r, parts] : llvm::enumerate(results)) {
    auto map = kernel.getResultAttrOfType<DenseI64ArrayAttr>(r, attr::map).asArrayRef();
    SmallVector<int64_t> &now = maps.emplace_back();
    for (size_t d = 0; d < parts.size(); ++d) {
      if (parts[d] == now.size())
        now.push_back(map[d]);
      else if (map[d] > map[d - 1])
        joined.insert(map[d]);
    }
  }
  SmallVector<int64_t> newSpace;
  SmallVector<int64_t> number;
  for (auto [s, extent] : llvm::enumerate(space)) {
    if (joined.count(s))
      newSpace.back() *= extent;
    else
      newSpace.push_back(extent);
    number.push_back(newSpace.size() - 1);
  }
  kernel->setAttr(attr::space, builder.getDenseI64ArrayAttr(newSpace));
  for (auto [r, map] : llvm::enumerate(maps)) {
    for (int64_t &dim : map)
      dim = dim < 0 ? dim : number[dim];
    kernel.setResultAttr(r, attr::map, builder.getDenseI64ArrayAttr(map));
  }
}

CollapsedDims Collapser::rewrite() {
  Block &block = kernel.getBody().front();
  CollapsedDims results;
  for (Value result : block.getTerminator()->getOperands())
    results.push_back(partsOf(axes.ofValue(result)));
  // Attributes first: they are found through the types as they were.
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      rewrite(generic);
      continue;
    }
    if (op.getNumResults() != 1 || isUniform(op.getResult(0)))
      continue;
    SmallVector<unsigned> parts = partsOf(dimsOf[op.getResult(0)]);
    if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      concat.setDim(parts[concat.getDim()]);
    if (auto cumsum = dyn_cast<CumsumOp>(op))
      cumsum.setDim(parts[cumsum.getDim()]);
  }
  for (auto &[operand, dims] : splats) {
    OpBuilder builder(operand->getOwner());
    operand->set(uniform(builder, operand->get(), merged(operand->get(), partsOf(dims))));
  }
  SmallVector<std::pair<Value, RankedTensorType>> types;
  Builder builder(kernel.getContext());
  for (BlockArgument argument : block.getArguments()) {
    SmallVector<unsigned> parts = partsOf(argument);
    types.push_back({argument, merged(argument, parts)});
    unsigned number = argument.getArgNumber();
    if (auto strides = kernel.getArgAttrOfType<DenseI64ArrayAttr>(number, attr::strides)) {
      SmallVector<int64_t> now;
      for (auto [stride, part] : llvm::zip_equal(strides.asArrayRef(), parts)) {
        if (part == now.size())
          now.push_back(stride);
        now.back() = stride;
      }
      kernel.setArgAttr(number, attr::strides, builder.getDenseI64ArrayAttr(now));
    }
  }
  for (auto &[value, dims] : dimsOf)
    types.push_back({value, merged(value, partsOf(dims))});
  rewriteSpace(results);
  for (auto [value, type] : types)
    value.setType(type);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<tensor::EmptyOp, linalg::FillOp>(op) && op.use_empty())
      op.erase();
  kernel.setFunctionType(builder.getFunctionType(block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  return results;
}

std::optional<CollapsedDims> nova::tiling::collapseAxes(func::FuncOp kernel) {
  auto axes = Axes::analyse(kernel, /*bound=*/false);
  if (failed(axes))
    return std::nullopt;
  Collapser collapser(kernel, *axes);
  if (!collapser.analyse())
    return std::nullopt;
  return collapser.rewrite();
}
