//===- ImportIndexing.cpp - Gathers and scatters --------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

static bool isIndexType(DType dtype) {
  return dtype == DType::Int64 || dtype == DType::Int32;
}

static LogicalResult needIndexType(Call &call, StringRef name,
                                   mlir::Value index) {
  if (isIndexType(dtypeOf(index)))
    return success();
  return call.failAt(name, "got " + Twine(dtypeName(dtypeOf(index)).data()) +
                               ", expected int64 or int32");
}

/// An accumulating operation in the type PyTorch adds in, then rounded.
static mlir::Value put(Call &call, mlir::Value init,
                       ArrayRef<mlir::Value> indices, mlir::Value updates,
                       bool accumulate) {
  if (!init || !updates)
    return {};
  DType type = dtypeOf(init), math = accumulate ? computeType(type) : type;
  SmallVector<mlir::Value> operands{call.cast(init, math)};
  llvm::append_range(operands, indices);
  operands.push_back(call.cast(updates, math));
  SmallVector<NamedAttribute> attributes;
  if (accumulate)
    attributes.push_back(call.unitAttr("accumulate"));
  return call.cast(call.emit<IndexPutOp>(operands, attributes), type);
}

//===----------------------------------------------------------------------===//
// Advanced indexing
//===----------------------------------------------------------------------===//

namespace {
/// x[:, i, j] and its like: which dimensions are indexed, and by what.
struct Indexing {
  SmallVector<int64_t> dims;        ///< increasing
  SmallVector<mlir::Value> indices; ///< all of the common shape
  SmallVector<int64_t> shape;       ///< that shape
  /// The indexed dimensions are neighbours, so that the result has the common
  /// shape in their place; else it comes first.
  bool adjacent = true;
  /// Puts the indexed dimensions first, in order.
  SmallVector<int64_t> permutation;
};
} // namespace

static FailureOr<Indexing> readIndices(Call &call, mlir::Value x) {
  Indexing result;
  SmallVector<mlir::Value> given = call.tensors("indices");
  if (int64_t(given.size()) > rankOf(x))
    return call.failAt("indices", "got " + Twine(given.size()) +
                                      " of them, expected at most " +
                                      Twine(rankOf(x)) + " for shape " +
                                      shapeText(shapeOf(x)));
  for (auto [i, index] : llvm::enumerate(given)) {
    if (!index)
      continue;
    if (!isIndexType(dtypeOf(index)))
      return call.failAt(
          "indices", "index " + Twine(i) + ": got " +
                         dtypeName(dtypeOf(index)).data() +
                         ", expected int64 or int32 (a bool index has a size "
                         "that depends on data)");
    auto wide = broadcastShapes(result.shape, shapeOf(index));
    if (failed(wide))
      return call.failAt("indices", "index " + Twine(i) + " of shape " +
                                        shapeText(shapeOf(index)) +
                                        " does not broadcast with " +
                                        shapeText(result.shape));
    result.shape = *wide;
    result.adjacent &=
        result.dims.empty() || result.dims.back() + 1 == int64_t(i);
    result.dims.push_back(i);
    result.indices.push_back(index);
  }
  if (result.dims.empty())
    return call.failAt("indices", "got no index tensor, expected at least one");
  for (mlir::Value &index : result.indices)
    index = call.broadcast(index, result.shape);
  result.permutation = result.dims;
  for (int64_t dim : allDims(rankOf(x)))
    if (!llvm::is_contained(result.dims, dim))
      result.permutation.push_back(dim);
  return result;
}

static LogicalResult importIndex(Call &call) {
  mlir::Value x = call.tensor("self");
  auto indexing = readIndices(call, x);
  if (failed(indexing))
    return failure();
  SmallVector<int64_t> dims = indexing->dims;
  if (!indexing->adjacent) {
    x = call.transpose(x, indexing->permutation);
    dims = allDims(dims.size());
  }
  SmallVector<mlir::Value> operands{x};
  llvm::append_range(operands, indexing->indices);
  return call.result(
      call.emit<IndexOp>(operands, {call.listAttr("dims", dims)}));
}

/// self[mask] = value, one bool mask over leading dimensions and one value.
static LogicalResult putMasked(Call &call, mlir::Value x, mlir::Value mask,
                               mlir::Value value) {
  if (call.flag("accumulate") || typeOf(value).getNumElements() != 1 ||
      rankOf(mask) > rankOf(x) ||
      shapeOf(mask) != shapeOf(x).take_front(rankOf(mask)))
    return call.failAt("indices", "got a bool mask; only setting one value "
                                  "under a mask of leading dimensions is "
                                  "supported");
  SmallVector<int64_t> shape(shapeOf(mask));
  shape.resize(rankOf(x), 1);
  mlir::Value chosen = call.emit<SelectOp>(
      {call.reshape(mask, shape), call.reshape(value, {}), x});
  return call.result(chosen);
}

static LogicalResult importIndexPut(Call &call) {
  mlir::Value x = call.tensor("self"), values = call.tensor("values");
  if (dtypeOf(values) != dtypeOf(x))
    return call.failAt("values",
                       "got " + Twine(dtypeName(dtypeOf(values)).data()) +
                           ", expected " + dtypeName(dtypeOf(x)).data());
  SmallVector<mlir::Value> given = call.tensors("indices");
  if (given.size() == 1 && given[0] && dtypeOf(given[0]) == DType::Bool)
    return putMasked(call, x, given[0], values);
  auto indexing = readIndices(call, x);
  if (failed(indexing))
    return failure();
  // Values have the shape that indexing gives; the operation wants the indexed
  // part first, in the values as in the tensor.
  int64_t lead = indexing->adjacent ? indexing->dims.front() : 0;
  int64_t indexed = indexing->shape.size();
  SmallVector<int64_t> rest;
  for (int64_t dim : allDims(rankOf(x)))
    if (!llvm::is_contained(indexing->dims, dim))
      rest.push_back(shapeOf(x)[dim]);
  SmallVector<int64_t> shape(ArrayRef<int64_t>(rest).take_front(lead));
  llvm::append_range(shape, indexing->shape);
  llvm::append_range(shape, ArrayRef<int64_t>(rest).drop_front(lead));
  values = call.broadcast(values, shape);
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < indexed; ++i)
    order.push_back(lead + i);
  for (int64_t dim : allDims(shape.size()))
    if (dim < lead || dim >= lead + indexed)
      order.push_back(dim);
  values = call.transpose(values, order);
  mlir::Value result = put(call, call.transpose(x, indexing->permutation),
                           indexing->indices, values, call.flag("accumulate"));
  SmallVector<int64_t> back(indexing->permutation.size());
  for (auto [i, dim] : llvm::enumerate(indexing->permutation))
    back[dim] = i;
  return call.result(call.transpose(result, back));
}

static LogicalResult importIndexSelect(Call &call) {
  mlir::Value x = call.tensor("self"), index = call.tensor("index");
  auto dim = call.dim("dim", rankOf(x));
  if (failed(dim) || failed(needIndexType(call, "index", index)))
    return failure();
  if (rankOf(x) == 0 || rankOf(index) > 1)
    return call.failAt("index", "got shape " + shapeText(shapeOf(index)) +
                                    " for " + shapeText(shapeOf(x)) +
                                    ", expected rank 1, for a dimension");
  if (rankOf(index) == 0)
    index = call.reshape(index, {1});
  return call.result(
      call.emit<IndexOp>({x, index}, {call.listAttr("dims", {*dim})}));
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

static LogicalResult noFrequencies(Call &call) {
  if (!call.flag("scale_grad_by_freq"))
    return success();
  return call.failAt("scale_grad_by_freq", "got true, only false is supported");
}

static LogicalResult importEmbedding(Call &call) {
  mlir::Value weight = call.tensor("weight"), indices = call.tensor("indices");
  if (rankOf(weight) != 2)
    return call.failAt("weight",
                       "got rank " + Twine(rankOf(weight)) + ", expected 2");
  // The flags are about the gradient only.
  if (failed(needIndexType(call, "indices", indices)))
    return failure();
  return call.result(
      call.emit<IndexOp>({weight, indices}, {call.listAttr("dims", {0})}));
}

static LogicalResult importEmbeddingBackward(Call &call) {
  mlir::Value grad = call.tensor("grad_output"),
              indices = call.tensor("indices");
  if (failed(noFrequencies(call)) ||
      failed(needIndexType(call, "indices", indices)))
    return failure();
  if (rankOf(grad) < 1 || shapeOf(grad).drop_back() != shapeOf(indices))
    return call.failAt("grad_output", "got " + shapeText(shapeOf(grad)) +
                                          ", expected the shape of indices, " +
                                          shapeText(shapeOf(indices)) +
                                          ", and one dimension");
  int64_t rows = call.integer("num_weights"),
          padding = call.integer("padding_idx");
  if (rows < 0)
    return call.failAt("num_weights",
                       "got " + Twine(rows) + ", expected at least 0");
  if (padding >= 0) {
    // The row of the padding gets nothing: its index is sent outside.
    DType type = dtypeOf(indices);
    Number outside = Number::ofInt(rows);
    mlir::Value padded = call.compare(ComparePredicate::eq, indices,
                                      call.splat(Number::ofInt(padding), type));
    indices = call.emit<SelectOp>({padded, call.splat(outside, type), indices});
  }
  mlir::Value zeros =
      call.splat(0, dtypeOf(grad), {rows, shapeOf(grad).back()});
  return call.result(put(call, zeros, {indices}, grad, /*accumulate=*/true));
}

//===----------------------------------------------------------------------===//
// Along one dimension
//===----------------------------------------------------------------------===//

static FailureOr<int64_t> alongDim(Call &call, mlir::Value x) {
  if (rankOf(x) == 0)
    return call.failAt("self", "got a 0-d tensor, expected a dimension");
  if (failed(needIndexType(call, "index", call.tensor("index"))))
    return failure();
  return call.dim("dim", rankOf(x));
}

static LogicalResult importGather(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = alongDim(call, x);
  if (failed(dim))
    return failure();
  return call.result(call.emit<GatherOp>({x, call.tensor("index")},
                                         {call.intAttr("dim", *dim)}));
}

/// Writes `updates` (of at least the index's shape: the rest is not read).
static LogicalResult scatter(Call &call, mlir::Value updates, int64_t dim,
                             bool accumulate) {
  mlir::Value x = call.tensor("self"), index = call.tensor("index");
  DType type = dtypeOf(x), math = accumulate ? computeType(type) : type;
  if (dtypeOf(updates) != type)
    return call.failAt("src", "got " +
                                  Twine(dtypeName(dtypeOf(updates)).data()) +
                                  ", expected " + dtypeName(type).data());
  bool fits = rankOf(updates) == rankOf(index);
  for (int64_t i = 0; fits && i < rankOf(index); ++i)
    fits = shapeOf(index)[i] <= shapeOf(updates)[i];
  if (!fits)
    return call.failAt("src", "got " + shapeText(shapeOf(updates)) +
                                  ", expected at least the index's shape " +
                                  shapeText(shapeOf(index)));
  for (int64_t i = 0; i < rankOf(index); ++i)
    updates = call.sliceDim(updates, i, 0, shapeOf(index)[i]);
  SmallVector<NamedAttribute> attributes{call.intAttr("dim", dim)};
  if (accumulate)
    attributes.push_back(call.unitAttr("accumulate"));
  mlir::Value result = call.emit<ScatterOp>(
      {call.cast(x, math), index, call.cast(updates, math)}, attributes);
  return call.result(call.cast(result, type));
}

template <bool accumulate> static LogicalResult importScatterSrc(Call &call) {
  auto dim = alongDim(call, call.tensor("self"));
  if (failed(dim))
    return failure();
  return scatter(call, call.tensor("src"), *dim, accumulate);
}

static LogicalResult importScatterValue(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = alongDim(call, x);
  if (failed(dim))
    return failure();
  mlir::Value updates = call.splat(call.number("value"), dtypeOf(x),
                                   shapeOf(call.tensor("index")));
  return scatter(call, updates, *dim, /*accumulate=*/false);
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral
    indexSignature("(Tensor self, Tensor?[] indices)"),
    indexPut("(Tensor self, Tensor?[] indices, Tensor values, bool "
             "accumulate=False)"),
    noMask("no bool index"),
    oneMask("a bool index only to set one value under one mask"),
    scatterSrc("(Tensor self, int dim, Tensor index, Tensor src)");

llvm::ArrayRef<OpEntry> importer::indexingTable() {
  static const OpEntry table[] = {
      {"aten.index.Tensor", indexSignature, noMask, importIndex},
      {"aten._unsafe_index.Tensor", indexSignature, noMask, importIndex},
      {"aten.index_put.default", indexPut, oneMask, importIndexPut},
      {"aten._unsafe_index_put.default", indexPut, oneMask, importIndexPut},
      {"aten.index_select.default", "(Tensor self, int dim, Tensor index)", "",
       importIndexSelect},
      {"aten.embedding.default",
       "(Tensor weight, Tensor indices, int padding_idx=-1, bool "
       "scale_grad_by_freq=False, bool sparse=False)",
       "", importEmbedding},
      {"aten.embedding_dense_backward.default",
       "(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, "
       "bool scale_grad_by_freq)",
       "scale_grad_by_freq false", importEmbeddingBackward},
      {"aten.gather.default",
       "(Tensor self, int dim, Tensor index, *, bool sparse_grad=False)", "",
       importGather},
      {"aten.scatter.value",
       "(Tensor self, int dim, Tensor index, Scalar value)", "",
       importScatterValue},
      {"aten.scatter.src", scatterSrc, "", importScatterSrc<false>},
      {"aten.scatter_add.default", scatterSrc, "", importScatterSrc<true>},
  };
  return table;
}
