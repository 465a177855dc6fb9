//===- ImportUnary.cpp - Elementwise operations of one tensor, and casts --===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <limits>

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

/// Functions of real numbers: integers are computed in float32, the 16-bit
/// floats in float32 and rounded.
static DType realType(DType dtype) {
  return graph::isFloating(dtype) ? dtype : DType::Float32;
}

template <typename Op> static LogicalResult real(Call &call) {
  mlir::Value x = call.tensor("self");
  DType type = realType(dtypeOf(x));
  return call.result(
      call.cast(call.emit<Op>({call.cast(x, computeType(type))}), type));
}

/// Operations that keep the type; bool is not a number to PyTorch here.
template <typename Op> static LogicalResult numeric(Call &call) {
  mlir::Value x = call.tensor("self");
  if (dtypeOf(x) == DType::Bool)
    return call.failAt("self", "got bool, expected numbers");
  return call.result(call.emit<Op>({x}));
}

static LogicalResult importAbs(Call &call) {
  mlir::Value x = call.tensor("self");
  // |x| of the unsigned types is x.
  if (dtypeOf(x) == DType::Bool || dtypeOf(x) == DType::UInt8)
    return call.result(x);
  return call.result(call.emit<AbsOp>({x}));
}

static LogicalResult importSquare(Call &call) {
  mlir::Value x = call.tensor("self");
  DType type = dtypeOf(x) == DType::Bool ? DType::Int64 : dtypeOf(x);
  mlir::Value wide = call.cast(x, computeType(type));
  return call.result(call.cast(call.emit<MulOp>({wide, wide}), type));
}

static LogicalResult importBitwiseNot(Call &call) {
  mlir::Value x = call.tensor("self");
  if (graph::isFloating(dtypeOf(x)))
    return call.failAt("self", "got a floating tensor, expected bool or int");
  return call.result(call.emit<NotOp>({x}));
}

static LogicalResult importLogicalNot(Call &call) {
  return call.result(call.emit<NotOp>({call.truth(call.tensor("self"))}));
}

static LogicalResult importIsNan(Call &call) {
  mlir::Value x = call.tensor("self");
  return call.result(call.compare(ComparePredicate::ne, x, x));
}

/// How |x| compares with infinity; of whole numbers it is known.
template <ComparePredicate predicate>
static LogicalResult compareWithInfinity(Call &call) {
  mlir::Value x = call.tensor("self");
  if (!graph::isFloating(dtypeOf(x)))
    return call.result(call.splat(predicate == ComparePredicate::lt,
                                  DType::Bool, shapeOf(x)));
  mlir::Value infinity =
      call.splat(std::numeric_limits<double>::infinity(), dtypeOf(x));
  return call.result(call.compare(predicate, call.emit<AbsOp>({x}), infinity));
}

/// -1, 0 or 1; of NaN 0, as in PyTorch.
static LogicalResult importSign(Call &call) {
  mlir::Value x = call.tensor("self");
  DType type = dtypeOf(x);
  if (type == DType::Bool)
    return call.result(x);
  mlir::Value zero = call.splat(0, type);
  mlir::Value above =
      call.cast(call.compare(ComparePredicate::gt, x, zero), type);
  mlir::Value below =
      call.cast(call.compare(ComparePredicate::lt, x, zero), type);
  return call.result(call.emit<SubOp>({above, below}));
}

/// A whole number from a division by one, where x is not whole already: what
/// is larger than the significand counts, or infinite, or NaN, is itself.
template <typename Op, bool negated> static LogicalResult whole(Call &call) {
  mlir::Value x = call.tensor("self");
  DType type = dtypeOf(x);
  if (type == DType::Bool)
    return call.failAt("self", "got bool, expected numbers");
  if (!graph::isFloating(type))
    return call.result(x);
  DType math = computeType(type);
  mlir::Value wide = call.cast(x, math);
  mlir::Value limit =
      call.splat(math == DType::Float64 ? 0x1p52 : 0x1p23, math);
  mlir::Value small =
      call.compare(ComparePredicate::lt, call.emit<AbsOp>({wide}), limit);
  mlir::Value argument = negated ? call.emit<NegOp>({wide}) : wide;
  mlir::Value result = call.emit<Op>({argument, call.splat(1, math)});
  if (negated)
    result = call.emit<NegOp>({result});
  return call.result(
      call.cast(call.emit<SelectOp>({small, result, wide}), type));
}

/// log(1 + x) where 1 + x loses digits: with u = 1 + x rounded,
/// log(u) * x / (u - 1), and x where u is 1 (Kahan).
static LogicalResult importLog1p(Call &call) {
  mlir::Value x = call.tensor("self");
  DType type = realType(dtypeOf(x)), math = computeType(type);
  x = call.cast(x, math);
  mlir::Value one = call.splat(1, math), u = call.emit<AddOp>({x, one});
  mlir::Value log = call.emit<LogOp>({u});
  mlir::Value rest = call.emit<SubOp>({u, one});
  mlir::Value exact = call.emit<DivOp>({call.emit<MulOp>({log, x}), rest});
  // Infinity has no ratio: its logarithm is itself.
  mlir::Value infinite = call.compare(
      ComparePredicate::eq, u,
      call.splat(std::numeric_limits<double>::infinity(), math));
  mlir::Value none = call.compare(ComparePredicate::eq, u, one);
  mlir::Value result = call.emit<SelectOp>(
      {none, x, call.emit<SelectOp>({infinite, u, exact})});
  return call.result(call.cast(result, type));
}

/// e^x - 1 by the same means: with u = e^x rounded, (u - 1) * x / log(u); x
/// where u is 1, and u - 1 where that is -1 or so large that nothing is lost.
static LogicalResult importExpm1(Call &call) {
  mlir::Value x = call.tensor("self");
  DType type = realType(dtypeOf(x)), math = computeType(type);
  x = call.cast(x, math);
  mlir::Value one = call.splat(1, math), u = call.emit<ExpOp>({x});
  mlir::Value rest = call.emit<SubOp>({u, one});
  mlir::Value exact = call.emit<DivOp>(
      {call.emit<MulOp>({rest, x}), call.emit<LogOp>({u})});
  mlir::Value near = call.compare(ComparePredicate::lt, call.emit<AbsOp>({x}),
                                  call.splat(1, math));
  mlir::Value none = call.compare(ComparePredicate::eq, u, one);
  mlir::Value result = call.emit<SelectOp>(
      {none, x, call.emit<SelectOp>({near, exact, rest})});
  return call.result(call.cast(result, type));
}

/// The logarithm to another base.
static LogicalResult logarithm(Call &call, double scale) {
  mlir::Value x = call.tensor("self");
  DType type = realType(dtypeOf(x)), math = computeType(type);
  mlir::Value log = call.emit<LogOp>({call.cast(x, math)});
  return call.result(
      call.cast(call.emit<MulOp>({log, call.splat(scale, math)}), type));
}
static LogicalResult importLog2(Call &call) {
  return logarithm(call, 1.4426950408889634074);
}
static LogicalResult importLog10(Call &call) {
  return logarithm(call, 0.43429448190325182765);
}

/// Values of value, a number or a 0-d tensor, in the type and shape of self.
static LogicalResult importFill(Call &call) {
  mlir::Value self = call.tensor("self");
  Operand value = call.operand("value");
  if (!value.value)
    return call.result(
        call.splat(value.number, dtypeOf(self), shapeOf(self)));
  return call.result(
      call.broadcast(call.cast(value.value, dtypeOf(self)), shapeOf(self)));
}

/// Nothing but another name for the same values.
static LogicalResult importSame(Call &call) {
  return call.result(call.tensor("self"));
}

static LogicalResult importToCopy(Call &call) {
  mlir::Value x = call.tensor("self");
  return call.result(call.cast(x, call.dtype("dtype").value_or(dtypeOf(x))));
}

static LogicalResult importConvert(Call &call) {
  return call.result(call.cast(call.tensor("a"), *call.dtype("dtype")));
}

/// Values of src in the type and shape of self.
static LogicalResult importCopy(Call &call) {
  mlir::Value self = call.tensor("self");
  mlir::Value source = call.cast(call.tensor("src"), dtypeOf(self));
  return call.result(call.broadcast(source, shapeOf(self)));
}

static constexpr llvm::StringLiteral self("(Tensor self)");

llvm::ArrayRef<OpEntry> importer::unaryTable() {
  static const OpEntry table[] = {
      {"aten.exp.default", self, "", real<ExpOp>},
      {"aten.log.default", self, "", real<LogOp>},
      {"aten.sqrt.default", self, "", real<SqrtOp>},
      {"aten.rsqrt.default", self, "", real<RsqrtOp>},
      {"aten.reciprocal.default", self, "", real<ReciprocalOp>},
      {"aten.tanh.default", self, "", real<TanhOp>},
      {"aten.sigmoid.default", self, "", real<SigmoidOp>},
      {"aten.erf.default", self, "", real<ErfOp>},
      {"aten.sin.default", self, "", real<SinOp>},
      {"aten.cos.default", self, "", real<CosOp>},
      {"aten.neg.default", self, "", numeric<NegOp>},
      {"aten.relu.default", self, "", numeric<ReluOp>},
      {"aten.abs.default", self, "", importAbs},
      {"aten.square.default", self, "", importSquare},
      {"aten.bitwise_not.default", self, "", importBitwiseNot},
      {"aten.logical_not.default", self, "", importLogicalNot},
      {"aten.isnan.default", self, "", importIsNan},
      {"aten.isinf.default", self, "", compareWithInfinity<ComparePredicate::eq>},
      {"aten.isfinite.default", self, "", compareWithInfinity<ComparePredicate::lt>},
      {"aten.sign.default", self, "", importSign},
      {"aten.floor.default", self, "", whole<FloorDivOp, false>},
      {"aten.ceil.default", self, "", whole<FloorDivOp, true>},
      {"aten.trunc.default", self, "", whole<TruncDivOp, false>},
      {"aten.log1p.default", self, "", importLog1p},
      {"aten.expm1.default", self, "", importExpm1},
      {"aten.log2.default", self, "", importLog2},
      {"aten.log10.default", self, "", importLog10},
      {"aten.fill.Scalar", "(Tensor self, Tensor/Scalar value)", "",
       importFill},
      {"aten.fill.Tensor", "(Tensor self, Tensor/Scalar value)", "",
       importFill},
      {"aten.detach.default", self, "", importSame},
      {"aten.alias.default", self, "", importSame},
      {"aten.lift_fresh.default", self, "", importSame},
      {"aten.lift_fresh_copy.default", self, "", importSame},
      {"aten.positive.default", self, "", importSame},
      {"aten.clone.default",
       "(Tensor self, *, MemoryFormat? memory_format=None)", "", importSame},
      {"aten.contiguous.default",
       "(Tensor self, *, MemoryFormat memory_format=None)", "", importSame},
      {"aten._to_copy.default",
       "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None, bool non_blocking=False, "
       "MemoryFormat? memory_format=None)",
       "", importToCopy},
      {"aten.to.dtype",
       "(Tensor self, ScalarType dtype, bool non_blocking=False, bool "
       "copy=False, MemoryFormat? memory_format=None)",
       "", importToCopy},
      {"prims.convert_element_type.default", "(Tensor a, ScalarType dtype)", "",
       importConvert},
      {"aten.copy.default",
       "(Tensor self, Tensor src, bool non_blocking=False)", "", importCopy},
  };
  return table;
}
