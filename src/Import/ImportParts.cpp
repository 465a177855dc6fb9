//===- ImportParts.cpp - Slices, rows, splits -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;

/// A tensor with a dimension to cut along.
static FailureOr<int64_t> cutDim(Call &call, mlir::Value x) {
  if (rankOf(x) == 0)
    return call.failAt("self", "got a 0-d tensor, expected a dimension");
  return call.dim("dim", rankOf(x));
}

namespace {
/// Rows start, start + step, ...: `size` of them.
struct Rows {
  int64_t start, size, step;
};
} // namespace

/// start:end:step as in Python: from either end, cut to the tensor.
static FailureOr<Rows> readRows(Call &call, int64_t extent) {
  int64_t step = call.integer("step");
  if (step < 1)
    return call.failAt("step", "got " + Twine(step) + ", expected at least 1");
  auto place = [&](StringRef name, int64_t missing) {
    int64_t at = call.maybeInteger(name).value_or(missing);
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  int64_t start = place("start", 0), end = place("end", extent);
  int64_t length = std::max<int64_t>(end - start, 0);
  return Rows{start, length / step + (length % step != 0), step};
}

static LogicalResult importSlice(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  auto rows = readRows(call, shapeOf(x)[*dim]);
  if (failed(rows))
    return failure();
  return call.result(
      call.sliceDim(x, *dim, rows->start, rows->size, rows->step));
}

/// `x` with rows replaced by those of `source`.
static mlir::Value replaceRows(Call &call, mlir::Value x, mlir::Value source,
                               int64_t dim, Rows rows) {
  if (rows.size == 0)
    return x;
  source = call.cast(source, dtypeOf(x));
  int64_t extent = shapeOf(x)[dim];
  if (rows.step == 1 || rows.size == 1) {
    int64_t end = rows.start + rows.size;
    SmallVector<mlir::Value> beside;
    if (rows.start > 0)
      beside.push_back(call.sliceDim(x, dim, 0, rows.start));
    beside.push_back(source);
    if (end < extent)
      beside.push_back(call.sliceDim(x, dim, end, extent - end));
    return beside.size() == 1
               ? source
               : call.emit<ConcatOp>(beside, {call.intAttr("dim", dim)});
  }
  // Every step-th row: the dimension in front, and an index of rows.
  SmallVector<int64_t> order{dim}, back(rankOf(x));
  for (int64_t d = 0; d < rankOf(x); ++d)
    if (d != dim)
      order.push_back(d);
  for (auto [to, from] : llvm::enumerate(order))
    back[from] = to;
  mlir::Value index =
      call.iota(Number::ofInt(rows.start), Number::ofInt(rows.step),
                graph::DType::Int64, rows.size);
  mlir::Value put = call.emit<IndexPutOp>(
      {call.transpose(x, order), index, call.transpose(source, order)});
  return call.transpose(put, back);
}

/// `what` the source is put in the place of has the shape `expected`.
static LogicalResult checkSource(Call &call, ArrayRef<int64_t> expected,
                                 StringRef what) {
  ArrayRef<int64_t> got = shapeOf(call.tensor("src"));
  if (got == expected)
    return success();
  return call.failAt("src", "got " + shapeText(got) + ", expected the " + what +
                                "'s shape " + shapeText(expected));
}

static LogicalResult importSliceScatter(Call &call) {
  mlir::Value x = call.tensor("self"), source = call.tensor("src");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  auto rows = readRows(call, shapeOf(x)[*dim]);
  if (failed(rows))
    return failure();
  SmallVector<int64_t> expected(shapeOf(x));
  expected[*dim] = rows->size;
  if (failed(checkSource(call, expected, "slice")))
    return failure();
  return call.result(replaceRows(call, x, source, *dim, *rows));
}

/// The index of one row along a dimension, from either end.
static FailureOr<int64_t> rowIndex(Call &call, int64_t extent) {
  int64_t index = call.integer("index");
  if (index < -extent || index >= extent)
    return call.failAt("index", "got " + Twine(index) + ", expected one in [" +
                                    Twine(-extent) + ", " + Twine(extent) +
                                    ")");
  return index < 0 ? index + extent : index;
}

static LogicalResult importSelectScatter(Call &call) {
  mlir::Value x = call.tensor("self"), source = call.tensor("src");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  auto index = rowIndex(call, shapeOf(x)[*dim]);
  if (failed(index))
    return failure();
  SmallVector<int64_t> expected(shapeOf(x));
  expected.erase(expected.begin() + *dim);
  if (failed(checkSource(call, expected, "row")))
    return failure();
  return call.result(replaceRows(call, x, call.unsqueeze(source, *dim), *dim,
                                 Rows{*index, 1, 1}));
}

/// Along each of the dimensions from its end.
static LogicalResult importFlip(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dims = call.dimsInOrder("dims", rankOf(x));
  if (failed(dims))
    return failure();
  for (int64_t dim : *dims) {
    if (rankOf(x) == 0 || shapeOf(x)[dim] < 2)
      continue;
    int64_t extent = shapeOf(x)[dim];
    mlir::Value index =
        call.iota(Number::ofInt(extent - 1), Number::ofInt(-1),
                  graph::DType::Int64, extent);
    x = call.emit<IndexOp>({x, index}, {call.listAttr("dims", {dim})});
  }
  return call.result(x);
}

static LogicalResult importSelect(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  auto index = rowIndex(call, shapeOf(x)[*dim]);
  if (failed(index))
    return failure();
  return call.result(call.squeeze(call.sliceDim(x, *dim, *index, 1), *dim));
}

static LogicalResult importNarrow(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  int64_t start = call.integer("start"), length = call.integer("length"),
          extent = shapeOf(x)[*dim];
  int64_t first = start < 0 ? start + extent : start;
  if (first < 0 || length < 0 || first > extent || length > extent - first)
    return call.failAt("start", "got start " + Twine(start) + ", length " +
                                    Twine(length) + ", expected a part of " +
                                    Twine(extent));
  return call.result(call.sliceDim(x, *dim, first, length));
}

static LogicalResult parts(Call &call, mlir::Value x, int64_t dim,
                           ArrayRef<int64_t> sizes) {
  SmallVector<mlir::Value> values;
  int64_t start = 0;
  for (int64_t size : sizes) {
    values.push_back(call.sliceDim(x, dim, start, size));
    start += size;
  }
  return call.results(values);
}

/// The number of parts against the declared results, before they are made: it
/// may be large, and is not to be believed.
static LogicalResult needParts(Call &call, int64_t count) {
  if (int64_t(call.node().results.size()) == count)
    return success();
  return call.fail("got " + Twine(call.node().results.size()) +
                   " results, expected " + Twine(count));
}

/// Parts of `size`, the last one smaller.
static LogicalResult evenParts(Call &call, mlir::Value x, int64_t dim,
                               int64_t size) {
  int64_t extent = shapeOf(x)[dim];
  int64_t count = extent / size + (extent % size != 0);
  if (failed(needParts(call, std::max<int64_t>(count, 1))))
    return failure();
  SmallVector<int64_t> sizes;
  for (int64_t rest = extent; rest > 0; rest -= size)
    sizes.push_back(std::min(rest, size));
  if (sizes.empty())
    sizes.push_back(0);
  return parts(call, x, dim, sizes);
}

static LogicalResult importSplit(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  int64_t size = call.integer("split_size");
  if (size < 1 && !(size == 0 && shapeOf(x)[*dim] == 0))
    return call.failAt("split_size",
                       "got " + Twine(size) + ", expected at least 1");
  return evenParts(call, x, *dim, std::max<int64_t>(size, 1));
}

static LogicalResult importSplitWithSizes(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  SmallVector<int64_t> sizes = call.integers("split_sizes");
  int64_t total = 0;
  bool good = true;
  for (int64_t size : sizes)
    good &= size >= 0 && !__builtin_add_overflow(total, size, &total);
  if (!good || total != shapeOf(x)[*dim])
    return call.failAt("split_sizes", "got " + shapeText(sizes) +
                                          ", expected sizes that add up to " +
                                          Twine(shapeOf(x)[*dim]));
  return parts(call, x, *dim, sizes);
}

static LogicalResult importChunk(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  int64_t chunks = call.integer("chunks"), extent = shapeOf(x)[*dim];
  if (chunks < 1)
    return call.failAt("chunks",
                       "got " + Twine(chunks) + ", expected at least 1");
  if (extent == 0) {
    if (failed(needParts(call, chunks)))
      return failure();
    return parts(call, x, *dim, SmallVector<int64_t>(chunks, 0));
  }
  return evenParts(call, x, *dim, extent / chunks + (extent % chunks != 0));
}

static LogicalResult importUnbind(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = cutDim(call, x);
  if (failed(dim))
    return failure();
  if (failed(needParts(call, shapeOf(x)[*dim])))
    return failure();
  SmallVector<mlir::Value> values;
  for (int64_t i = 0; i < shapeOf(x)[*dim]; ++i)
    values.push_back(call.squeeze(call.sliceDim(x, *dim, i, 1), *dim));
  return call.results(values);
}

llvm::ArrayRef<OpEntry> importer::partTable() {
  static const OpEntry table[] = {
      {"aten.slice.Tensor",
       "(Tensor self, int dim=0, int? start=None, int? end=None, int step=1)",
       "", importSlice},
      {"aten.select.int", "(Tensor self, int dim, int index)", "",
       importSelect},
      {"aten.slice_scatter.default",
       "(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, "
       "int step=1)",
       "", importSliceScatter},
      {"aten.select_scatter.default",
       "(Tensor self, Tensor src, int dim, int index)", "",
       importSelectScatter},
      {"aten.flip.default", "(Tensor self, int[] dims)", "", importFlip},
      {"aten.narrow.default", "(Tensor self, int dim, int start, int length)",
       "", importNarrow},
      {"aten.split.Tensor", "(Tensor self, int split_size, int dim=0)", "",
       importSplit},
      {"aten.split_with_sizes.default",
       "(Tensor self, int[] split_sizes, int dim=0)", "", importSplitWithSizes},
      {"aten.chunk.default", "(Tensor self, int chunks, int dim=0)", "",
       importChunk},
      {"aten.unbind.int", "(Tensor self, int dim=0)", "", importUnbind},
  };
  return table;
}
