//===- ImportUnary.cpp - Elementwise operations of one tensor, and casts --===//
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

static LogicalResult importIsInf(Call &call) {
  mlir::Value x = call.tensor("self");
  if (!graph::isFloating(dtypeOf(x)))
    return call.result(call.splat(0, DType::Bool, shapeOf(x)));
  mlir::Value infinity =
      call.splat(std::numeric_limits<double>::infinity(), dtypeOf(x));
  return call.result(
      call.compare(ComparePredicate::eq, call.emit<AbsOp>({x}), infinity));
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
      {"aten.isinf.default", self, "", importIsInf},
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
