//===- ImportViews.cpp - Operations that only rearrange one tensor --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values are immutable here, so a view is the values it shows: strides of the
// producer do not matter, only shapes do.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// A size list with at most one -1, which takes what the others leave.
static FailureOr<SmallVector<int64_t>>
inferSizes(Call &call, StringRef name, ArrayRef<int64_t> sizes, int64_t count) {
  SmallVector<int64_t> shape(sizes);
  int64_t known = 1, *open = nullptr;
  for (int64_t &size : shape) {
    if (size == -1) {
      if (open)
        return call.failAt(name, "got " + shapeText(sizes) +
                                     ", expected at most one -1");
      open = &size;
      continue;
    }
    if (size < 0 || __builtin_mul_overflow(known, size, &known))
      return call.failAt(name, "got " + shapeText(sizes) +
                                   ", expected sizes >= 0, or one -1");
  }
  if (!open)
    return shape;
  if (known == 0 || count % known != 0)
    return call.failAt(name, "got " + shapeText(sizes) +
                                 ", expected sizes that divide " +
                                 Twine(count) + " elements");
  *open = count / known;
  return shape;
}

static LogicalResult importView(Call &call) {
  mlir::Value x = call.tensor("self");
  bool reshape = call.op() == "aten.reshape.default";
  StringRef name = reshape ? "shape" : "size";
  auto shape =
      inferSizes(call, name, call.integers(name), typeOf(x).getNumElements());
  if (failed(shape))
    return failure();
  return call.result(call.reshape(x, *shape));
}

static LogicalResult importFlatten(Call &call) {
  mlir::Value x = call.tensor("self");
  auto first = call.dim("start_dim", rankOf(x));
  auto last = call.dim("end_dim", rankOf(x));
  if (failed(first) || failed(last))
    return failure();
  if (rankOf(x) == 0)
    return call.result(call.reshape(x, {1}));
  if (*first > *last)
    return call.failAt("start_dim",
                       "got " + Twine(*first) +
                           ", expected at most end_dim = " + Twine(*last));
  ArrayRef<int64_t> old = shapeOf(x);
  SmallVector<int64_t> shape(old.take_front(*first));
  shape.push_back(1);
  for (int64_t extent : old.slice(*first, *last - *first + 1))
    shape.back() *= extent;
  llvm::append_range(shape, old.drop_front(*last + 1));
  return call.result(call.reshape(x, shape));
}

static LogicalResult importUnflatten(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = call.dim("dim", rankOf(x));
  if (failed(dim))
    return failure();
  if (rankOf(x) == 0)
    return call.failAt("self", "got a 0-d tensor, expected a dimension");
  auto sizes =
      inferSizes(call, "sizes", call.integers("sizes"), shapeOf(x)[*dim]);
  if (failed(sizes))
    return failure();
  SmallVector<int64_t> shape(shapeOf(x).take_front(*dim));
  llvm::append_range(shape, *sizes);
  llvm::append_range(shape, shapeOf(x).drop_front(*dim + 1));
  return call.result(call.reshape(x, shape));
}

static LogicalResult importUnsqueeze(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = call.dim("dim", rankOf(x) + 1);
  if (failed(dim))
    return failure();
  return call.result(call.unsqueeze(x, *dim));
}

/// Without the dimensions of size 1 among `dims`.
static LogicalResult squeezed(Call &call, ArrayRef<int64_t> dims) {
  mlir::Value x = call.tensor("self");
  SmallVector<int64_t> shape;
  for (auto [i, extent] : llvm::enumerate(shapeOf(x)))
    if (extent != 1 || !llvm::is_contained(dims, int64_t(i)))
      shape.push_back(extent);
  return call.result(call.reshape(x, shape));
}

static LogicalResult importSqueeze(Call &call) {
  return squeezed(call, allDims(rankOf(call.tensor("self"))));
}
static LogicalResult importSqueezeDim(Call &call) {
  auto dim = call.dim("dim", rankOf(call.tensor("self")));
  if (failed(dim))
    return failure();
  return squeezed(call, {*dim});
}
static LogicalResult importSqueezeDims(Call &call) {
  auto dims = call.dimsInOrder("dim", rankOf(call.tensor("self")));
  if (failed(dims))
    return failure();
  return squeezed(call, *dims);
}

//===----------------------------------------------------------------------===//
// Repetition
//===----------------------------------------------------------------------===//

static LogicalResult importExpand(Call &call) {
  mlir::Value x = call.tensor("self");
  SmallVector<int64_t> given = call.integers("size"), shape(given);
  int64_t lead = int64_t(shape.size()) - rankOf(x);
  if (lead < 0)
    return call.failAt("size", "got " + shapeText(given) +
                                   ", expected at least " + Twine(rankOf(x)) +
                                   " sizes for " + shapeText(shapeOf(x)));
  for (auto [i, size] : llvm::enumerate(shape)) {
    // -1 keeps a dimension that is there.
    if (size == -1 && int64_t(i) >= lead)
      size = shapeOf(x)[i - lead];
    if (size < 0)
      return call.failAt("size", "got " + shapeText(given) +
                                     ", expected sizes >= 0, or -1 for a "
                                     "dimension of " +
                                     shapeText(shapeOf(x)));
  }
  return call.result(call.broadcast(x, shape));
}

static LogicalResult importExpandAs(Call &call) {
  return call.result(
      call.broadcast(call.tensor("self"), shapeOf(call.tensor("other"))));
}

/// Tiles: [2] by [3] is [3,2] repeated, read as [6].
static LogicalResult importRepeat(Call &call) {
  mlir::Value x = call.tensor("self");
  SmallVector<int64_t> repeats = call.integers("repeats");
  int64_t lead = int64_t(repeats.size()) - rankOf(x);
  if (lead < 0 || llvm::any_of(repeats, [](int64_t r) { return r < 0; }))
    return call.failAt("repeats", "got " + shapeText(repeats) +
                                      ", expected at least " +
                                      Twine(rankOf(x)) + " numbers >= 0");
  SmallVector<int64_t> apart, tiled, whole;
  for (auto [i, repeat] : llvm::enumerate(repeats)) {
    int64_t extent = int64_t(i) < lead ? 1 : shapeOf(x)[i - lead];
    apart.append({1, extent});
    tiled.append({repeat, extent});
    if (__builtin_mul_overflow(repeat, extent, &whole.emplace_back()))
      return call.failAt("repeats", "got " + shapeText(repeats) +
                                        ", expected less than 2^63 elements");
  }
  return call.result(
      call.reshape(call.broadcast(call.reshape(x, apart), tiled), whole));
}

//===----------------------------------------------------------------------===//
// Order of dimensions
//===----------------------------------------------------------------------===//

static LogicalResult importPermute(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dims = call.dimsInOrder("dims", rankOf(x));
  if (failed(dims))
    return failure();
  if (int64_t(dims->size()) != rankOf(x))
    return call.failAt("dims", "got " + shapeText(*dims) + ", expected " +
                                   Twine(rankOf(x)) + " dimensions");
  return call.result(call.transpose(x, *dims));
}

static mlir::Value swapped(Call &call, mlir::Value x, int64_t a, int64_t b) {
  SmallVector<int64_t> permutation = allDims(rankOf(x));
  if (!permutation.empty())
    std::swap(permutation[a], permutation[b]);
  return call.transpose(x, permutation);
}

static LogicalResult importTranspose(Call &call) {
  mlir::Value x = call.tensor("self");
  auto a = call.dim("dim0", rankOf(x)), b = call.dim("dim1", rankOf(x));
  if (failed(a) || failed(b))
    return failure();
  return call.result(swapped(call, x, *a, *b));
}

static LogicalResult importT(Call &call) {
  mlir::Value x = call.tensor("self");
  if (rankOf(x) > 2)
    return call.failAt("self",
                       "got rank " + Twine(rankOf(x)) + ", expected at most 2");
  return call.result(rankOf(x) < 2 ? x : swapped(call, x, 0, 1));
}

static LogicalResult importMT(Call &call) {
  mlir::Value x = call.tensor("self");
  if (rankOf(x) < 2)
    return call.failAt("self", "got rank " + Twine(rankOf(x)) +
                                   ", expected at least 2");
  return call.result(swapped(call, x, rankOf(x) - 2, rankOf(x) - 1));
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral size("(Tensor self, int[] size)"),
    self("(Tensor self)");

llvm::ArrayRef<OpEntry> importer::viewTable() {
  static const OpEntry table[] = {
      {"aten.view.default", size, "", importView},
      {"aten._unsafe_view.default", size, "", importView},
      {"aten.reshape.default", "(Tensor self, int[] shape)", "", importView},
      {"aten.flatten.using_ints",
       "(Tensor self, int start_dim=0, int end_dim=-1)", "", importFlatten},
      {"aten.unflatten.int", "(Tensor self, int dim, int[] sizes)", "",
       importUnflatten},
      {"aten.unsqueeze.default", "(Tensor self, int dim)", "", importUnsqueeze},
      {"aten.squeeze.default", self, "", importSqueeze},
      {"aten.squeeze.dim", "(Tensor self, int dim)", "", importSqueezeDim},
      {"aten.squeeze.dims", "(Tensor self, int[] dim)", "", importSqueezeDims},
      {"aten.expand.default",
       "(Tensor self, int[] size, *, bool implicit=False)", "", importExpand},
      {"aten.expand_as.default", "(Tensor self, Tensor other)", "",
       importExpandAs},
      {"aten.repeat.default", "(Tensor self, int[] repeats)", "", importRepeat},
      {"aten.permute.default", "(Tensor self, int[] dims)", "", importPermute},
      {"aten.transpose.int", "(Tensor self, int dim0, int dim1)", "",
       importTranspose},
      {"aten.t.default", self, "", importT},
      {"aten.numpy_T.default", self, "rank at most 2", importT},
      {"aten.mT.default", self, "", importMT},
  };
  return table;
}
