//===- ExpandMovements.cpp - Movements as generics --------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace nova {
#define GEN_PASS_DEF_EXPANDMOVEMENTS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

static Value constantIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}
static Value compare(OpBuilder &builder, Location loc, arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, predicate, a, b);
}

/// Each element reads the part that it comes from: all parts are kernel arguments.
static void expandConcat(tensor::ConcatOp concat) {
  OpBuilder builder(concat);
  Location loc = concat.getLoc();
  auto type = cast<RankedTensorType>(concat.getType());
  unsigned rank = type.getRank(), dim = concat.getDim();
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<AffineMap> maps{builder.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange(type), ValueRange(), ValueRange(empty), maps, kinds,
      [&](OpBuilder &inner, Location at, ValueRange) {
        SmallVector<Value> place;
        for (unsigned d = 0; d < rank; ++d)
          place.push_back(linalg::IndexOp::create(inner, at, d));
        Value along = place[dim], result;
        int64_t start = 0;
        for (Value part : concat.getInputs()) {
          int64_t extent = cast<RankedTensorType>(part.getType()).getDimSize(dim);
          if (extent == 0)
            continue;
          Value own = start ? arith::SubIOp::create(inner, at, along, constantIndex(inner, at, start)).getResult()
                            : along;
          // One unsigned comparison: a negative place is a large one.
          Value here = compare(inner, at, arith::CmpIPredicate::ult, own, constantIndex(inner, at, extent));
          place[dim] = arith::SelectOp::create(inner, at, here, own, constantIndex(inner, at, 0));
          Value element = tensor::ExtractOp::create(inner, at, part, place);
          result = result ? arith::SelectOp::create(inner, at, here, element, result).getResult() : element;
          start += extent;
        }
        linalg::YieldOp::create(inner, at, result);
      });
  concat.replaceAllUsesWith(generic.getResult(0));
  concat.erase();
}

/// result[v, b] = init[v, b] + sum over positions of (index[position] == v ?
/// update[position, b] : 0), in the order of the positions.
static void expandIndexPut(IndexPutOp put) {
  OpBuilder builder(put);
  Location loc = put.getLoc();
  MLIRContext *context = put.getContext();
  auto type = cast<RankedTensorType>(put.getType());
  auto indexType = cast<RankedTensorType>(put.getIndices()[0].getType());
  unsigned rank = type.getRank(), indexed = put.getIndices().size(), positions = indexType.getRank();
  unsigned loops = rank + positions;
  auto dims = [&](unsigned from, unsigned to) {
    SmallVector<AffineExpr> exprs;
    for (unsigned d = from; d < to; ++d)
      exprs.push_back(builder.getAffineDimExpr(d));
    return exprs;
  };
  SmallVector<Value> ins(put.getIndices());
  SmallVector<AffineMap> maps(indexed, AffineMap::get(loops, 0, dims(rank, loops), context));
  ins.push_back(put.getUpdates());
  SmallVector<AffineExpr> updates = dims(rank, loops);
  llvm::append_range(updates, dims(indexed, rank));
  maps.push_back(AffineMap::get(loops, 0, updates, context));
  maps.push_back(AffineMap::get(loops, 0, dims(0, rank), context));
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  kinds.append(positions, utils::IteratorType::reduction);
  bool isFloat = isa<FloatType>(type.getElementType());
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange(type), ins, ValueRange(put.getInit()), maps, kinds,
      [&](OpBuilder &inner, Location at, ValueRange values) {
        Value matches;
        for (unsigned d = 0; d < indexed; ++d) {
          // A negative index counts from the end; one outside matches no row.
          Value number = arith::IndexCastOp::create(inner, at, inner.getIndexType(), values[d]);
          Value below = compare(inner, at, arith::CmpIPredicate::slt, number, constantIndex(inner, at, 0));
          Value wrapped = arith::AddIOp::create(inner, at, number, constantIndex(inner, at, type.getDimSize(d)));
          Value row = arith::SelectOp::create(inner, at, below, wrapped, number);
          Value equal = compare(inner, at, arith::CmpIPredicate::eq, row, linalg::IndexOp::create(inner, at, d));
          matches = matches ? arith::AndIOp::create(inner, at, matches, equal).getResult() : equal;
        }
        Value zero = arith::ConstantOp::create(inner, at, inner.getZeroAttr(type.getElementType()));
        if (isFloat) // the identity of a float sum
          zero = arith::ConstantOp::create(
              inner, at, inner.getFloatAttr(type.getElementType(), 0.0));
        Value added = arith::SelectOp::create(inner, at, matches, values[indexed], zero);
        Value sum = isFloat ? arith::AddFOp::create(inner, at, values.back(), added).getResult()
                            : arith::AddIOp::create(inner, at, values.back(), added).getResult();
        linalg::YieldOp::create(inner, at, sum);
      });
  put.replaceAllUsesWith(generic.getResult(0));
  put.erase();
}

/// A dimension of the one result that nothing reduces is as parallel as any: it
/// becomes one of the space.
static void bindResult(func::FuncOp kernel) {
  if (kernel.getNumResults() != 1)
    return;
  auto map = kernel.getResultAttrOfType<DenseI64ArrayAttr>(0, attr::map);
  auto space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  if (!map || !space)
    return;
  auto type = cast<RankedTensorType>(kernel.getResultTypes()[0]);
  SmallVector<int64_t> bound(map.asArrayRef()), extents(space.asArrayRef());
  // Row-major as the result: its own order, where no dimension is bound twice.
  SmallVector<int64_t> order;
  for (int64_t dim : bound)
    if (dim >= 0)
      order.push_back(dim);
  if (order.size() != extents.size())
    return;
  SmallVector<int64_t> newSpace, newMap;
  for (auto [d, dim] : llvm::enumerate(bound)) {
    newMap.push_back(newSpace.size());
    newSpace.push_back(type.getDimSize(d));
  }
  OpBuilder builder(kernel);
  kernel->setAttr(attr::space, builder.getDenseI64ArrayAttr(newSpace));
  kernel.setResultAttr(0, attr::map, builder.getDenseI64ArrayAttr(newMap));
}

namespace {
struct ExpandMovements : ::nova::impl::ExpandMovementsBase<ExpandMovements> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!isKernel(kernel) || kernel.isExternal())
      return;
    SmallVector<tensor::ConcatOp> concats(kernel.getBody().front().getOps<tensor::ConcatOp>());
    for (tensor::ConcatOp concat : concats)
      if (llvm::all_of(concat.getInputs(), llvm::IsaPred<BlockArgument>))
        expandConcat(concat);
    bool rows = false;
    SmallVector<IndexPutOp> puts(kernel.getBody().front().getOps<IndexPutOp>());
    for (IndexPutOp put : puts) {
      if (!put.getAccumulate())
        continue;
      rows |= *put->user_begin() == kernel.getBody().front().getTerminator();
      expandIndexPut(put);
    }
    if (rows)
      bindResult(kernel);
  }
};
} // namespace
