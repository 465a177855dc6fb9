//===- ImportBinary.cpp - Elementwise operations of several operands ------===//
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

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// lhs OP alpha * rhs, in the common type of lhs and rhs.
template <typename Op>
static LogicalResult arithmetic(Call &call, const Operand &lhs,
                                const Operand &rhs, const Number &alpha) {
  DType common = Call::resultType({lhs, rhs}), math = computeType(common);
  if (alpha.isFloat() && !graph::isFloating(common))
    return call.failAt("alpha", "got a floating number, expected an integer "
                                "for integer operands");
  mlir::Value a = call.materialize(lhs, common, math);
  mlir::Value b = call.materialize(rhs, common, math);
  if (alpha.asDouble() != 1)
    b = call.emit<MulOp>({b, call.splat(alpha, math)});
  if (common == DType::Bool) {
    // Arithmetic of bools is logic, and there is no subtraction.
    if (std::is_same_v<Op, SubOp>)
      return call.fail("got bool operands, expected numbers; aten.bitwise_xor "
                       "or aten.logical_not say what is meant");
    if (std::is_same_v<Op, AddOp>)
      return call.result(call.emit<OrOp>({a, b}));
    return call.result(call.emit<AndOp>({a, b}));
  }
  return call.result(call.cast(call.emit<Op>({a, b}), common));
}

template <typename Op> static LogicalResult withAlpha(Call &call) {
  return arithmetic<Op>(call, call.operand("self"), call.operand("other"),
                        call.number("alpha"));
}

static LogicalResult importRsub(Call &call) {
  return arithmetic<SubOp>(call, call.operand("other"), call.operand("self"),
                           call.number("alpha"));
}

static LogicalResult importMul(Call &call) {
  return arithmetic<MulOp>(call, call.operand("self"), call.operand("other"),
                           Number::ofInt(1));
}

/// An operation without alpha on two operands brought to their common type.
template <typename Op>
static LogicalResult combine(Call &call, const Operand &lhs, const Operand &rhs,
                             DType common) {
  DType math = computeType(common);
  return call.result(
      call.cast(call.emit<Op>({call.materialize(lhs, common, math),
                               call.materialize(rhs, common, math)}),
                common));
}

template <typename Op> static LogicalResult binary(Call &call) {
  Operand lhs = call.operand("self"), rhs = call.operand("other");
  return combine<Op>(call, lhs, rhs, Call::resultType({lhs, rhs}));
}

template <typename Op> static LogicalResult numericBinary(Call &call) {
  Operand lhs = call.operand("self"), rhs = call.operand("other");
  DType common = Call::resultType({lhs, rhs});
  if (common == DType::Bool)
    return call.fail("got bool operands, expected numbers");
  return combine<Op>(call, lhs, rhs, common);
}

/// True division: integers divide as float32.
static LogicalResult importDiv(Call &call) {
  Operand lhs = call.operand("self"), rhs = call.operand("other");
  DType common = Call::resultType({lhs, rhs});
  if (!graph::isFloating(common))
    common = DType::Float32;
  return combine<DivOp>(call, lhs, rhs, common);
}

static LogicalResult importDivMode(Call &call) {
  if (call.isNull("rounding_mode"))
    return importDiv(call);
  StringRef mode = call.text("rounding_mode");
  if (mode == "floor")
    return numericBinary<FloorDivOp>(call);
  if (mode == "trunc")
    return numericBinary<TruncDivOp>(call);
  return call.failAt("rounding_mode", "got \"" + mode +
                                          "\", expected null, \"floor\" or "
                                          "\"trunc\"");
}

static LogicalResult power(Call &call, const Operand &base,
                           const Operand &exponent) {
  DType common = Call::resultType({base, exponent});
  if (common == DType::Bool)
    return call.fail("got bool operands, expected numbers");
  if (!graph::isFloating(common) && !exponent.value &&
      exponent.number.integer < 0)
    return call.failAt("exponent", "got " + Twine(exponent.number.integer) +
                                       ", expected no negative exponent for "
                                       "integers");
  return combine<PowOp>(call, base, exponent, common);
}

static LogicalResult importPow(Call &call) {
  return power(call, call.operand("self"), call.operand("exponent"));
}

//===----------------------------------------------------------------------===//
// Bits and logic
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult bitwise(Call &call) {
  Operand lhs = call.operand("self"), rhs = call.operand("other");
  DType common = Call::resultType({lhs, rhs});
  if (graph::isFloating(common))
    return call.fail("got floating operands, expected bool or int");
  return combine<Op>(call, lhs, rhs, common);
}

template <typename Op> static LogicalResult logical(Call &call) {
  return call.result(call.emit<Op>(
      {call.truth(call.tensor("self")), call.truth(call.tensor("other"))}));
}

template <ComparePredicate predicate>
static LogicalResult comparison(Call &call) {
  Operand lhs = call.operand("self"), rhs = call.operand("other");
  DType common = Call::resultType({lhs, rhs}), math = computeType(common);
  return call.result(call.compare(predicate,
                                  call.materialize(lhs, common, math),
                                  call.materialize(rhs, common, math)));
}

//===----------------------------------------------------------------------===//
// Selection and limits
//===----------------------------------------------------------------------===//

static LogicalResult importWhere(Call &call) {
  mlir::Value condition = call.tensor("condition");
  if (dtypeOf(condition) != DType::Bool)
    return call.failAt("condition",
                       "got " + Twine(dtypeName(dtypeOf(condition)).data()) +
                           ", expected bool");
  Operand a = call.operand("self"), b = call.operand("other");
  DType common = Call::resultType({a, b});
  return call.result(
      call.emit<SelectOp>({condition, call.materialize(a, common, common),
                           call.materialize(b, common, common)}));
}

static LogicalResult importMaskedFill(Call &call) {
  mlir::Value x = call.tensor("self"), mask = call.tensor("mask");
  if (dtypeOf(mask) != DType::Bool)
    return call.failAt("mask", "got " + Twine(dtypeName(dtypeOf(mask)).data()) +
                                   ", expected bool");
  Operand value = call.operand("value");
  if (value.value && rankOf(value.value) != 0)
    return call.failAt("value", "got rank " + Twine(rankOf(value.value)) +
                                    ", expected a 0-d tensor");
  return call.result(call.emit<SelectOp>(
      {mask, call.materialize(value, dtypeOf(x), dtypeOf(x)), x}));
}

static LogicalResult limit(Call &call, bool hasMin, bool hasMax) {
  SmallVector<Operand> operands{call.operand("self")};
  if (hasMin)
    operands.push_back(call.operand("min"));
  if (hasMax)
    operands.push_back(call.operand("max"));
  if (operands.size() == 1)
    return call.fail("got neither min nor max, expected at least one");
  DType common = Call::resultType(operands), math = computeType(common);
  mlir::Value x = call.materialize(operands[0], common, math);
  if (hasMin)
    x = call.emit<MaximumOp>({x, call.materialize(operands[1], common, math)});
  if (hasMax)
    x = call.emit<MinimumOp>(
        {x, call.materialize(operands.back(), common, math)});
  return call.result(call.cast(x, common));
}

static LogicalResult importClamp(Call &call) {
  return limit(call, !call.isNull("min"), !call.isNull("max"));
}
static LogicalResult importClampMin(Call &call) {
  return limit(call, true, false);
}
static LogicalResult importClampMax(Call &call) {
  return limit(call, false, true);
}

//===----------------------------------------------------------------------===//
// Three operands, as optimizers write them
//===----------------------------------------------------------------------===//

/// self + value * (tensor1 OP tensor2).
template <typename Op> static LogicalResult addCombined(Call &call) {
  Operand x = call.operand("self"), a = call.operand("tensor1"),
          b = call.operand("tensor2");
  DType common = Call::resultType({x, a, b}), math = computeType(common);
  if (std::is_same_v<Op, DivOp> && !graph::isFloating(common))
    return call.fail("got integer operands, expected floating ones");
  mlir::Value inner = call.emit<Op>(
      {call.materialize(a, common, math), call.materialize(b, common, math)});
  Number value = call.number("value");
  if (value.asDouble() != 1)
    inner = call.emit<MulOp>({inner, call.splat(value, math)});
  mlir::Value sum =
      call.emit<AddOp>({call.materialize(x, common, math), inner});
  return call.result(call.cast(sum, common));
}

/// self + weight * (end - self), from the nearer end as PyTorch does.
static LogicalResult importLerp(Call &call) {
  Operand start = call.operand("self"), end = call.operand("end");
  DType common = Call::resultType({start, end}), math = computeType(common);
  mlir::Value a = call.materialize(start, common, math);
  mlir::Value b = call.materialize(end, common, math);
  mlir::Value way = call.emit<SubOp>({b, a});
  double weight = call.number("weight").asDouble();
  mlir::Value mixed =
      std::abs(weight) < 0.5
          ? call.emit<AddOp>(
                {a, call.emit<MulOp>({way, call.splat(weight, math)})})
          : call.emit<SubOp>(
                {b, call.emit<MulOp>({way, call.splat(1 - weight, math)})});
  return call.result(call.cast(mixed, common));
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral
    alphaTensor("(Tensor/Scalar self, Tensor/Scalar other, *, Scalar alpha=1)"),
    alphaScalar("(Tensor self, Scalar other, Scalar alpha=1)"),
    tensors("(Tensor/Scalar self, Tensor/Scalar other)"),
    scalar("(Tensor self, Scalar other)"),
    scalarFirst("(Scalar self, Tensor other)"),
    strict("(Tensor self, Tensor other)"),
    divMode("(Tensor/Scalar self, Tensor/Scalar other, *, str? "
            "rounding_mode)"),
    divModeScalar("(Tensor self, Scalar other, *, str? rounding_mode)"),
    addCombinedSignature(
        "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)");

// Each comparison and bitwise operation has these overloads.
#define BOTH(NAME, FUNCTION)                                                   \
  {"aten." NAME ".Tensor", tensors, "", FUNCTION}, {                           \
    "aten." NAME ".Scalar", scalar, "", FUNCTION                               \
  }

llvm::ArrayRef<OpEntry> importer::binaryTable() {
  static const OpEntry table[] = {
      {"aten.add.Tensor", alphaTensor, "", withAlpha<AddOp>},
      {"aten.add.Scalar", alphaScalar, "", withAlpha<AddOp>},
      {"aten.sub.Tensor", alphaTensor, "", withAlpha<SubOp>},
      {"aten.sub.Scalar", alphaScalar, "", withAlpha<SubOp>},
      {"aten.rsub.Tensor", alphaTensor, "", importRsub},
      {"aten.rsub.Scalar", alphaScalar, "", importRsub},
      BOTH("mul", importMul),
      BOTH("div", importDiv),
      {"aten.true_divide.Tensor", tensors, "", importDiv},
      {"aten.div.Tensor_mode", divMode, "", importDivMode},
      {"aten.div.Scalar_mode", divModeScalar, "", importDivMode},
      {"aten.floor_divide.default", tensors, "", numericBinary<FloorDivOp>},
      {"aten.floor_divide.Scalar", scalar, "", numericBinary<FloorDivOp>},
      BOTH("remainder", numericBinary<RemainderOp>),
      {"aten.remainder.Scalar_Tensor", scalarFirst, "",
       numericBinary<RemainderOp>},
      {"aten.pow.Tensor_Scalar", "(Tensor self, Scalar exponent)", "",
       importPow},
      {"aten.pow.Tensor_Tensor", "(Tensor self, Tensor/Scalar exponent)", "",
       importPow},
      {"aten.pow.Scalar", "(Scalar self, Tensor exponent)", "", importPow},
      {"aten.maximum.default", tensors, "", binary<MaximumOp>},
      {"aten.minimum.default", tensors, "", binary<MinimumOp>},
      {"aten.max.other", strict, "", binary<MaximumOp>},
      {"aten.min.other", strict, "", binary<MinimumOp>},
      BOTH("bitwise_and", bitwise<AndOp>),
      BOTH("bitwise_or", bitwise<OrOp>),
      BOTH("bitwise_xor", bitwise<XorOp>),
      BOTH("__and__", bitwise<AndOp>),
      BOTH("__or__", bitwise<OrOp>),
      BOTH("__xor__", bitwise<XorOp>),
      {"aten.logical_and.default", strict, "", logical<AndOp>},
      {"aten.logical_or.default", strict, "", logical<OrOp>},
      {"aten.logical_xor.default", strict, "", logical<XorOp>},
      BOTH("eq", comparison<ComparePredicate::eq>),
      BOTH("ne", comparison<ComparePredicate::ne>),
      BOTH("lt", comparison<ComparePredicate::lt>),
      BOTH("le", comparison<ComparePredicate::le>),
      BOTH("gt", comparison<ComparePredicate::gt>),
      BOTH("ge", comparison<ComparePredicate::ge>),
      {"aten.where.self",
       "(Tensor condition, Tensor/Scalar self, Tensor/Scalar other)", "",
       importWhere},
      {"aten.where.ScalarSelf",
       "(Tensor condition, Scalar self, Tensor/Scalar other)", "", importWhere},
      {"aten.where.ScalarOther",
       "(Tensor condition, Tensor/Scalar self, Scalar other)", "", importWhere},
      {"aten.where.Scalar", "(Tensor condition, Scalar self, Scalar other)", "",
       importWhere},
      {"aten.masked_fill.Scalar", "(Tensor self, Tensor mask, Scalar value)",
       "", importMaskedFill},
      {"aten.masked_fill.Tensor",
       "(Tensor self, Tensor mask, Tensor/Scalar value)", "", importMaskedFill},
      {"aten.clamp.default",
       "(Tensor self, Scalar? min=None, Scalar? max=None)", "", importClamp},
      {"aten.clamp.Tensor", "(Tensor self, Tensor? min=None, Tensor? max=None)",
       "", importClamp},
      {"aten.clamp_min.default", "(Tensor self, Scalar min)", "",
       importClampMin},
      {"aten.clamp_min.Tensor", "(Tensor self, Tensor min)", "",
       importClampMin},
      {"aten.clamp_max.default", "(Tensor self, Scalar max)", "",
       importClampMax},
      {"aten.clamp_max.Tensor", "(Tensor self, Tensor max)", "",
       importClampMax},
      {"aten.addcmul.default", addCombinedSignature, "", addCombined<MulOp>},
      {"aten.addcdiv.default", addCombinedSignature, "", addCombined<DivOp>},
      {"aten.lerp.Scalar", "(Tensor self, Tensor end, Scalar weight)", "",
       importLerp},
  };
  return table;
}
