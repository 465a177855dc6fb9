//===- MovementToLoops.cpp - Copies, concat, cumsum and scatters as loops
//--===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LoopEmitter.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace nova::host {

/// Loops over `dims` outermost first; `body` gets all indices.
static void nest(LoopEmitter &e, ArrayRef<LoopDim> dims,
                 SmallVector<Value> &ivs, llvm::function_ref<void()> body) {
  if (ivs.size() == dims.size())
    return body();
  e.loop(e.getIndexAttr(0), dims[ivs.size()].size, 1, [&](Value iv) {
    ivs.push_back(iv);
    nest(e, dims, ivs, body);
    ivs.pop_back();
  });
}

void emitCopy(LoopEmitter &e, ArrayRef<LoopDim> dims, const Access &from,
              const Access &to) {
  for (const LoopDim &dim : dims)
    if (dim.maxSize == 0)
      return;
  const int64_t last = static_cast<int64_t>(dims.size()) - 1;
  auto reads = [&](int64_t stride) {
    return from.splat || from.coef[last] == stride || from.coef[last] == 0;
  };
  bool vectors = last >= 0 && to.coef[last] == 1 && reads(1) &&
                 dims[last].maxSize >= kVectorWidth;
  SmallVector<Value> ivs;
  auto copy = [&](Value iv, int64_t width) {
    if (iv)
      ivs.push_back(iv);
    Lanes value = e.load(from, e.offsetAt(from, ivs),
                         last < 0 ? 0 : from.coef[last], width);
    e.store(to, e.offsetAt(to, ivs), last < 0 ? 0 : to.coef[last], width,
            value);
    if (iv)
      ivs.pop_back();
  };
  if (last < 0)
    return copy(Value(), 1);
  nest(e, dims.drop_back(), ivs, [&] {
    OpFoldResult done = e.getIndexAttr(0), size = dims[last].size;
    if (vectors) {
      done = e.roundDown(size, kVectorWidth);
      e.loop(e.getIndexAttr(0), done, kVectorWidth,
             [&](Value iv) { copy(iv, kVectorWidth); });
    }
    e.loop(done, size, 1, [&](Value iv) { copy(iv, 1); });
  });
}

static AffineMap identityFor(LoopEmitter &e, Value value) {
  return e.getMultiDimIdentityMap(
      cast<RankedTensorType>(value.getType()).getRank());
}

void emitResultCopy(LoopEmitter &e, const ResultCopy &copy) {
  const Binding &binding = e.model.resultBinding[copy.result];
  SmallVector<LoopDim> dims;
  for (auto [extent, space] : llvm::zip_equal(
           cast<RankedTensorType>(copy.source.getType()).getShape(), binding))
    dims.push_back(e.dimFor(extent, space));
  // Of grid points that compute the same region, the first one writes it.
  Value first;
  for (size_t s = 0; s < e.model.space.size(); ++s) {
    if (e.model.tiles(s) <= 1 ||
        llvm::is_contained(binding, static_cast<int64_t>(s)))
      continue;
    Value zero = arith::CmpIOp::create(e, arith::CmpIPredicate::eq,
                                       e.tileIndex[s], e.index(0));
    first = first ? arith::AndIOp::create(e, first, zero).getResult() : zero;
  }
  auto body = [&] {
    emitCopy(e, dims, e.access(copy.source, identityFor(e, copy.source), dims),
             e.accessResult(copy.result, dims));
  };
  if (first)
    emitIf(e, first, body);
  else
    body();
}

void emitConcat(LoopEmitter &e, Operation *op) {
  auto concat = cast<tensor::ConcatOp>(op);
  const int64_t dim = concat.getDim();
  Value result = concat.getResult();
  int64_t at = 0;
  for (Value input : concat.getInputs()) {
    SmallVector<LoopDim> dims = e.regionOf(result);
    int64_t extent = cast<RankedTensorType>(input.getType()).getDimSize(dim);
    dims[dim].size = e.getIndexAttr(extent);
    dims[dim].maxSize = extent;
    Access to = e.access(result, identityFor(e, result), dims);
    to.base = e.addIndex(to.base, e.index(at * to.coef[dim]));
    emitCopy(e, dims, e.access(input, identityFor(e, input), dims), to);
    at += extent;
  }
}

void emitCumsum(LoopEmitter &e, Operation *op) {
  auto cumsum = cast<CumsumOp>(op);
  const int64_t dim = cumsum.getDim();
  Value result = cumsum.getResult();
  SmallVector<LoopDim> dims = e.regionOf(result);
  Access from =
      e.access(cumsum.getInput(), identityFor(e, cumsum.getInput()), dims);
  Access to = e.access(result, identityFor(e, result), dims);
  Type type = to.elementType;
  // Sums run in the result's type; short floats are carried in f32.
  Type wide = type.isF16() || type.isBF16() ? e.getF32Type() : type;
  SmallVector<LoopDim> outer(dims);
  outer[dim].size = e.getIndexAttr(1);
  SmallVector<Value> ivs;
  nest(e, outer, ivs, [&] {
    SmallVector<Value> at = ivs;
    Value zero = e.scalarConstant(e.getZeroAttr(wide));
    e.loop(e.getIndexAttr(0), dims[dim].size, 1, zero,
           [&](Value iv, ValueRange carried) {
             at[dim] = iv;
             Value x = e.loadScalar(from, e.offsetAt(from, at));
             if (isa<FloatType>(type)) {
               if (x.getType() != wide)
                 x = arith::ExtFOp::create(e, wide, x);
               x = arith::AddFOp::create(e, carried[0], x);
               Value narrow =
                   wide == type
                       ? x
                       : arith::TruncFOp::create(e, type, x).getResult();
               e.storeScalar(to, e.offsetAt(to, at), narrow);
             } else {
               x = arith::AddIOp::create(e, carried[0], x);
               e.storeScalar(to, e.offsetAt(to, at), x);
             }
             return SmallVector<Value>{x};
           });
  });
}

/// to[offset] = value, or += value.
static void update(LoopEmitter &e, const Access &to, Value offset, Value value,
                   bool accumulate) {
  if (accumulate) {
    Value old = e.loadScalar(to, offset);
    if (!isa<FloatType>(value.getType()))
      value = arith::AddIOp::create(e, old, value);
    else
      value = arith::AddFOp::create(e, old, value);
  }
  e.storeScalar(to, offset, value);
}

/// An index operand as a position in the tile's region of a dimension of
/// `extent`: `inside` is ANDed with "it falls into this tile". Negative indices
/// count from the end where `wrap`.
static Value position(LoopEmitter &e, Value raw, int64_t extent,
                      const LoopDim &dim, bool wrap, Value &inside) {
  Value at = raw.getType().isInteger(64)
                 ? raw
                 : arith::ExtSIOp::create(e, e.getI64Type(), raw).getResult();
  auto constant = [&](int64_t v) {
    return e.scalarConstant(e.getI64IntegerAttr(v));
  };
  if (wrap) {
    Value negative =
        arith::CmpIOp::create(e, arith::CmpIPredicate::slt, at, constant(0));
    Value wrapped = arith::AddIOp::create(e, at, constant(extent));
    at = arith::SelectOp::create(e, negative, wrapped, at);
  }
  Value start =
      dim.start
          ? arith::IndexCastOp::create(e, e.getI64Type(), dim.start).getResult()
          : constant(0);
  Value size =
      arith::IndexCastOp::create(e, e.getI64Type(), e.asValue(dim.size));
  at = arith::SubIOp::create(e, at, start);
  // One unsigned comparison tests both ends.
  Value fits = arith::CmpIOp::create(e, arith::CmpIPredicate::ult, at, size);
  inside = inside ? arith::AndIOp::create(e, inside, fits).getResult() : fits;
  return arith::IndexCastOp::create(e, e.getIndexType(), at);
}

void emitScatter(LoopEmitter &e, Operation *op) {
  auto scatter = cast<ScatterOp>(op);
  const int64_t dim = scatter.getDim();
  Value result = scatter.getResult();
  SmallVector<LoopDim> region = e.regionOf(result);
  Access to = e.access(result, identityFor(e, result), region);
  emitCopy(
      e, region,
      e.access(scatter.getInit(), identityFor(e, scatter.getInit()), region),
      to);

  // Positions of the index: along dim all of them, elsewhere this tile's.
  SmallVector<LoopDim> dims = region;
  auto indexType = cast<RankedTensorType>(scatter.getIndex().getType());
  for (int64_t i = 0; i < indexType.getRank(); ++i)
    if (i == dim || !dims[i].start)
      dims[i] = e.dimFor(indexType.getDimSize(i), kLocal);
  Access index = e.access(scatter.getIndex(), identityFor(e, result), dims);
  Access from = e.access(scatter.getUpdates(), identityFor(e, result), dims);
  int64_t extent = cast<RankedTensorType>(result.getType()).getDimSize(dim);
  SmallVector<Value> ivs;
  nest(e, dims, ivs, [&] {
    Value inside;
    Value at = position(e, e.loadScalar(index, e.offsetAt(index, ivs)), extent,
                        region[dim],
                        /*wrap=*/false, inside);
    emitIf(e, inside, [&] {
      SmallVector<Value> target = ivs;
      target[dim] = at;
      update(e, to, e.offsetAt(to, target),
             e.loadScalar(from, e.offsetAt(from, ivs)),
             scatter.getAccumulate());
    });
  });
}

void emitIndexPut(LoopEmitter &e, Operation *op) {
  auto put = cast<IndexPutOp>(op);
  Value result = put.getResult();
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<LoopDim> region = e.regionOf(result);
  Access to = e.access(result, identityFor(e, result), region);
  emitCopy(e, region,
           e.access(put.getInit(), identityFor(e, put.getInit()), region), to);

  const size_t indexed = put.getIndices().size();
  SmallVector<LoopDim> positions;
  for (int64_t extent :
       cast<RankedTensorType>(put.getIndices()[0].getType()).getShape())
    positions.push_back(e.dimFor(extent, kLocal));
  SmallVector<LoopDim> rest(region.begin() + indexed, region.end());
  SmallVector<LoopDim> all(positions);
  all.append(rest);
  SmallVector<Access> indices;
  for (Value index : put.getIndices())
    indices.push_back(e.access(index, identityFor(e, index), positions));
  Access from =
      e.access(put.getUpdates(), identityFor(e, put.getUpdates()), all);
  SmallVector<Value> at;
  nest(e, positions, at, [&] {
    Value inside;
    SmallVector<Value> target;
    for (auto [d, access] : llvm::enumerate(indices))
      target.push_back(position(e, e.loadScalar(access, e.offsetAt(access, at)),
                                type.getDimSize(d), region[d], /*wrap=*/true,
                                inside));
    emitIf(e, inside, [&] {
      // The row of updates, as vectors where both sides are contiguous.
      Access row = to, source = from;
      for (size_t d = 0; d < indexed; ++d)
        row.base = e.addIndex(row.base, e.mulIndex(target[d], to.coef[d]));
      for (size_t d = 0; d < positions.size(); ++d)
        source.base = e.addIndex(source.base, e.mulIndex(at[d], from.coef[d]));
      row.coef.erase(row.coef.begin(), row.coef.begin() + indexed);
      source.coef.erase(source.coef.begin(),
                        source.coef.begin() + positions.size());
      if (!put.getAccumulate())
        return emitCopy(e, rest, source, row);
      SmallVector<Value> ivs;
      nest(e, rest, ivs, [&] {
        update(e, row, e.offsetAt(row, ivs),
               e.loadScalar(source, e.offsetAt(source, ivs)), true);
      });
    });
  });
}

} // namespace nova::host
