//===- ImportReductions.cpp - Sums, extremes, scans -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <cmath>

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;
using Dims = SmallVector<int64_t>;

/// The dimensions a reduction names; all where it has no such parameter.
static FailureOr<Dims> reducedDims(Call &call, mlir::Value x, bool hasDim) {
  if (!hasDim)
    return allDims(rankOf(x));
  return call.dims("dim", rankOf(x));
}

static int64_t countOf(mlir::Value x, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= shapeOf(x)[dim];
  return count;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// The type a sum has: what is asked for, else int64 for integers and bools.
static DType sumType(Call &call, mlir::Value x) {
  DType dtype = dtypeOf(x);
  return call.dtype("dtype").value_or(graph::isFloating(dtype) ? dtype
                                                               : DType::Int64);
}

template <bool hasDim> static LogicalResult importSum(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dims = reducedDims(call, x, hasDim);
  if (failed(dims))
    return failure();
  DType type = sumType(call, x);
  mlir::Value wide = call.cast(call.cast(x, type), computeType(type));
  bool keep = hasDim && call.flag("keepdim");
  return call.result(call.cast(call.sum(wide, *dims, keep), type));
}

/// Sum over `dims` divided by a count, in the type of `x`.
static mlir::Value average(Call &call, mlir::Value x, ArrayRef<int64_t> dims,
                           bool keep, double count) {
  if (!x)
    return {};
  return call.emit<DivOp>(
      {call.sum(x, dims, keep), call.splat(count, dtypeOf(x))});
}

template <bool hasDim> static LogicalResult importMean(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dims = reducedDims(call, x, hasDim);
  if (failed(dims))
    return failure();
  DType type = call.dtype("dtype").value_or(dtypeOf(x));
  if (!graph::isFloating(type))
    return call.failAt("self", "got " + Twine(dtypeName(type).data()) +
                                   ", expected floating numbers or a floating "
                                   "dtype");
  mlir::Value wide = call.cast(call.cast(x, type), computeType(type));
  bool keep = hasDim && call.flag("keepdim");
  return call.result(call.cast(
      average(call, wide, *dims, keep, double(countOf(x, *dims))), type));
}

/// Sum of squared distances from the mean over (count - correction).
static FailureOr<SmallVector<mlir::Value>> variance(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dims = reducedDims(call, x, true);
  if (failed(dims))
    return failure();
  DType type = dtypeOf(x);
  if (!graph::isFloating(type))
    return call.failAt("self", "got integers, expected floating numbers");
  double count = double(countOf(x, *dims));
  auto correction = call.maybeNumber("correction");
  double divisor =
      std::max(0.0, count - (correction ? correction->asDouble() : 1.0));
  mlir::Value wide = call.cast(x, computeType(type));
  mlir::Value mean = average(call, wide, *dims, /*keep=*/true, count);
  mlir::Value distance = call.emit<SubOp>({wide, mean});
  bool keep = call.flag("keepdim");
  mlir::Value var = average(call, call.emit<MulOp>({distance, distance}), *dims,
                            keep, divisor);
  if (!var)
    return failure();
  return SmallVector<mlir::Value>{var, call.reshape(mean, shapeOf(var))};
}

static LogicalResult importVar(Call &call) {
  auto both = variance(call);
  if (failed(both))
    return failure();
  DType type = dtypeOf(call.tensor("self"));
  return call.result(call.cast((*both)[0], type));
}
static LogicalResult importStd(Call &call) {
  auto both = variance(call);
  if (failed(both))
    return failure();
  DType type = dtypeOf(call.tensor("self"));
  return call.result(call.cast(call.emit<SqrtOp>({(*both)[0]}), type));
}
static LogicalResult importVarMean(Call &call) {
  auto both = variance(call);
  if (failed(both))
    return failure();
  DType type = dtypeOf(call.tensor("self"));
  return call.results(
      {call.cast((*both)[0], type), call.cast((*both)[1], type)});
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

template <typename Op>
static mlir::Value reduce(Call &call, mlir::Value x, ArrayRef<int64_t> dims,
                          bool keep) {
  if (dims.empty())
    return x;
  SmallVector<NamedAttribute> attributes{call.listAttr("dims", dims)};
  if (keep)
    attributes.push_back(call.unitAttr("keepdims"));
  return call.emit<Op>({x}, attributes);
}

static LogicalResult importVectorNorm(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dims = reducedDims(call, x, true);
  if (failed(dims))
    return failure();
  DType type = call.dtype("dtype").value_or(dtypeOf(x));
  if (!graph::isFloating(type))
    return call.failAt("self", "got integers, expected floating numbers");
  double order = call.number("ord").asDouble();
  bool keep = call.flag("keepdim");
  mlir::Value wide = call.cast(call.cast(x, type), computeType(type)), norm;
  if (order == 2)
    norm = call.emit<SqrtOp>(
        {call.sum(call.emit<MulOp>({wide, wide}), *dims, keep)});
  else if (order == 1)
    norm = call.sum(call.emit<AbsOp>({wide}), *dims, keep);
  else if (std::isinf(order) && order > 0 && countOf(x, *dims) > 0)
    norm = reduce<MaxOp>(call, call.emit<AbsOp>({wide}), *dims, keep);
  else
    return call.failAt("ord", "got " + numberText(order) +
                                  ", only 1, 2 and inf are supported");
  return call.result(call.cast(norm, type));
}

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

static LogicalResult needElements(Call &call, mlir::Value x,
                                  ArrayRef<int64_t> dims) {
  if (countOf(x, dims) > 0)
    return success();
  return call.failAt("self", "got " + shapeText(shapeOf(x)) +
                                 ", expected elements to reduce");
}

/// Extremes of bool are taken as uint8: a signless i1 has no order of its own.
template <typename Op>
static mlir::Value extreme(Call &call, mlir::Value x, ArrayRef<int64_t> dims,
                           bool keep) {
  DType type = dtypeOf(x);
  DType ordered = type == DType::Bool ? DType::UInt8 : type;
  return call.cast(reduce<Op>(call, call.cast(x, ordered), dims, keep), type);
}

template <typename Op, bool hasDim>
static LogicalResult importExtreme(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dims = reducedDims(call, x, hasDim);
  if (failed(dims) || failed(needElements(call, x, *dims)))
    return failure();
  return call.result(
      extreme<Op>(call, x, *dims, hasDim && call.flag("keepdim")));
}

/// Values and first indices along one dimension.
template <typename Op>
static SmallVector<mlir::Value> extremeAt(Call &call, mlir::Value x,
                                          int64_t dim, bool keep) {
  DType type = dtypeOf(x);
  DType ordered = type == DType::Bool ? DType::UInt8 : type;
  SmallVector<NamedAttribute> attributes{call.intAttr("dim", dim)};
  if (keep)
    attributes.push_back(call.unitAttr("keepdims"));
  auto values = call.emitAll<Op>({call.cast(x, ordered)}, attributes);
  if (!values.empty())
    values[0] = call.cast(values[0], type);
  return values;
}

template <typename Op> static LogicalResult importExtremeDim(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = call.dim("dim", rankOf(x));
  if (failed(dim))
    return failure();
  if (rankOf(x) == 0)
    return call.results({x, call.splat(0, DType::Int64)});
  if (failed(needElements(call, x, {*dim})))
    return failure();
  return call.results(extremeAt<Op>(call, x, *dim, call.flag("keepdim")));
}

template <typename Op> static LogicalResult importArgExtreme(Call &call) {
  mlir::Value x = call.tensor("self");
  bool keep = call.flag("keepdim");
  int64_t at = 0;
  SmallVector<int64_t> shape;
  if (call.isNull("dim")) {
    // Over all elements in row-major order.
    shape.assign(keep ? rankOf(x) : 0, 1);
    x = call.reshape(x, {typeOf(x).getNumElements()});
  } else {
    auto dim = call.dim("dim", rankOf(x));
    if (failed(dim))
      return failure();
    at = *dim;
    shape.assign(shapeOf(x).begin(), shapeOf(x).end());
    if (shape.empty())
      x = call.reshape(x, {1});
    else if (keep)
      shape[at] = 1;
    else
      shape.erase(shape.begin() + at);
  }
  if (failed(needElements(call, x, {at})))
    return failure();
  auto values = extremeAt<Op>(call, x, at, false);
  if (values.empty())
    return failure();
  return call.result(call.reshape(values[1], shape));
}

//===----------------------------------------------------------------------===//
// Any and all, by counting
//===----------------------------------------------------------------------===//

template <bool all, bool hasDim>
static LogicalResult importQuantifier(Call &call) {
  mlir::Value x = call.truth(call.tensor("self"));
  auto dims = reducedDims(call, x, hasDim);
  if (failed(dims))
    return failure();
  if (all)
    x = call.emit<NotOp>({x});
  mlir::Value count = call.sum(call.cast(x, DType::Int64), *dims,
                               hasDim && call.flag("keepdim"));
  return call.result(
      call.compare(all ? ComparePredicate::eq : ComparePredicate::ne, count,
                   call.splat(0, DType::Int64)));
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

static LogicalResult importCumsum(Call &call) {
  mlir::Value x = call.tensor("self");
  auto dim = call.dim("dim", rankOf(x));
  if (failed(dim))
    return failure();
  DType type = sumType(call, x);
  mlir::Value wide = call.cast(call.cast(x, type), computeType(type));
  if (rankOf(x) > 0)
    wide = call.emit<CumsumOp>({wide}, {call.intAttr("dim", *dim)});
  return call.result(call.cast(wide, type));
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral
    all("(Tensor self, *, ScalarType? dtype=None)"),
    overDims("(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
             "dtype=None)"),
    self("(Tensor self)"),
    extremeDims("(Tensor self, int[1] dim=[], bool keepdim=False)"),
    oneDim("(Tensor self, int dim, bool keepdim=False)"),
    maybeDim("(Tensor self, int? dim=None, bool keepdim=False)"),
    someDims("(Tensor self, int[]? dim=None, bool keepdim=False)"),
    corrected("(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
              "bool keepdim=False)");

llvm::ArrayRef<OpEntry> importer::reductionTable() {
  static const OpEntry table[] = {
      {"aten.sum.default", all, "", importSum<false>},
      {"aten.sum.dim_IntList", overDims, "", importSum<true>},
      {"aten.mean.default", all, "", importMean<false>},
      {"aten.mean.dim", overDims, "", importMean<true>},
      {"aten.var.correction", corrected, "", importVar},
      {"aten.std.correction", corrected, "", importStd},
      {"aten.var_mean.correction", corrected, "", importVarMean},
      {"aten.linalg_vector_norm.default",
       "(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
       "ScalarType? dtype=None)",
       "ord 1, 2 or inf", importVectorNorm},
      {"aten.amax.default", extremeDims, "", importExtreme<MaxOp, true>},
      {"aten.amin.default", extremeDims, "", importExtreme<MinOp, true>},
      {"aten.max.default", self, "", importExtreme<MaxOp, false>},
      {"aten.min.default", self, "", importExtreme<MinOp, false>},
      {"aten.max.dim", oneDim, "", importExtremeDim<ArgMaxOp>},
      {"aten.min.dim", oneDim, "", importExtremeDim<ArgMinOp>},
      {"aten.argmax.default", maybeDim, "", importArgExtreme<ArgMaxOp>},
      {"aten.argmin.default", maybeDim, "", importArgExtreme<ArgMinOp>},
      {"aten.any.default", self, "", importQuantifier<false, false>},
      {"aten.any.dim", oneDim, "", importQuantifier<false, true>},
      {"aten.any.dims", someDims, "", importQuantifier<false, true>},
      {"aten.all.default", self, "", importQuantifier<true, false>},
      {"aten.all.dim", oneDim, "", importQuantifier<true, true>},
      {"aten.all.dims", someDims, "", importQuantifier<true, true>},
      {"aten.cumsum.default",
       "(Tensor self, int dim, *, ScalarType? dtype=None)", "", importCumsum},
  };
  return table;
}
