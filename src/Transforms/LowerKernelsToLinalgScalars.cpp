//===- LowerKernelsToLinalgScalars.cpp - Elementwise operations on scalars
//-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Floats narrower than 32 bits are computed in float32 and every operation's
// result is rounded, as the graph says. Integers wrap; a quotient by zero is 0
// (the graph's own framework raises an error there), never a trap. On i1 the
// arithmetic is PyTorch's: + is or, * is and.
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;

namespace nova::lowering {

Type computeType(Type element) {
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(element.getContext());
  return element;
}

Value convertFloat(ImplicitLocOpBuilder &b, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth(),
           to = type.getIntOrFloatBitWidth();
  if (value.getType() == type)
    return value;
  FloatAttr known;
  if (from < to && matchPattern(value, m_Constant(&known))) {
    APFloat exact = known.getValue();
    bool losesInfo = false;
    exact.convert(cast<FloatType>(type).getFloatSemantics(),
                  APFloat::rmNearestTiesToEven, &losesInfo);
    return arith::ConstantOp::create(b, b.getFloatAttr(type, exact));
  }
  // bf16 and f16 meet in f32; f64 reaches them that way, as in PyTorch (and no
  // CPU converts it directly).
  if (from == to || (from == 64 && to == 16))
    return convertFloat(b, convertFloat(b, value, b.getF32Type()), type);
  if (from < to)
    return arith::ExtFOp::create(b, type, value);
  return arith::TruncFOp::create(b, type, value);
}

Value widen(ImplicitLocOpBuilder &b, Value value) {
  Type type = computeType(value.getType());
  return isa<FloatType>(type) ? convertFloat(b, value, type) : value;
}

Value constant(ImplicitLocOpBuilder &b, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  if (type.isInteger(1))
    return arith::ConstantOp::create(b, b.getBoolAttr(value != 0));
  return arith::ConstantOp::create(
      b, b.getIntegerAttr(type, static_cast<int64_t>(value)));
}

Value isNaN(ImplicitLocOpBuilder &b, Value value) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
}

namespace {

/// A scalar with operators, so that formulas read as they are written.
struct Num {
  ImplicitLocOpBuilder *b;
  Value v;

  Num of(double value) const { return {b, constant(*b, v.getType(), value)}; }
};
Num operator+(Num x, Num y) {
  return {x.b, arith::AddFOp::create(*x.b, x.v, y.v)};
}
Num operator-(Num x, Num y) {
  return {x.b, arith::SubFOp::create(*x.b, x.v, y.v)};
}
Num operator*(Num x, Num y) {
  return {x.b, arith::MulFOp::create(*x.b, x.v, y.v)};
}
Num operator/(Num x, Num y) {
  return {x.b, arith::DivFOp::create(*x.b, x.v, y.v)};
}
Num operator+(double x, Num y) { return y.of(x) + y; }
Num operator-(double x, Num y) { return y.of(x) - y; }
Num operator*(double x, Num y) { return y.of(x) * y; }
Num operator/(double x, Num y) { return y.of(x) / y; }
Num exp(Num x) { return {x.b, math::ExpOp::create(*x.b, x.v)}; }
Num erf(Num x) { return {x.b, math::ErfOp::create(*x.b, x.v)}; }
Num tanh(Num x) { return {x.b, math::TanhOp::create(*x.b, x.v)}; }
Num floor(Num x) { return {x.b, math::FloorOp::create(*x.b, x.v)}; }
Num neg(Num x) { return {x.b, arith::NegFOp::create(*x.b, x.v)}; }

constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
/// 2 / sqrt(pi).
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;
/// The cubic term of the tanh form.
constexpr double kGeluCubic = 0.044715;

Num gelu(Num x, GeluForm form) {
  if (form == GeluForm::erf)
    return x * x.of(0.5) * (1 + erf(x * x.of(kSqrtHalf)));
  Num inner = (std::numbers::sqrt2 * kTwoOverSqrtPi * 0.5) *
              (x + kGeluCubic * (x * x * x));
  return 0.5 * x * (1 + tanh(inner));
}

Num geluBackward(Num grad, Num x, GeluForm form) {
  if (form == GeluForm::erf) {
    Num cdf = 0.5 * (1 + erf(x * x.of(kSqrtHalf)));
    Num pdf = exp(-0.5 * x * x) * x.of(kTwoOverSqrtPi * kSqrtHalf * 0.5);
    return grad * (cdf + x * pdf);
  }
  constexpr double beta = std::numbers::sqrt2 * kTwoOverSqrtPi * 0.5;
  Num square = x * x;
  Num t = tanh(beta * (x + kGeluCubic * (square * x)));
  Num left = 0.5 * x, right = 1 + t;
  Num innerDerivative = beta * (1 + (3 * kGeluCubic) * square);
  return grad * (0.5 * right + left * (1 - t * t) * innerDerivative);
}

arith::CmpFPredicate floatPredicate(ComparePredicate p) {
  switch (p) {
  case ComparePredicate::eq:
    return arith::CmpFPredicate::OEQ;
  case ComparePredicate::ne:
    return arith::CmpFPredicate::UNE;
  case ComparePredicate::lt:
    return arith::CmpFPredicate::OLT;
  case ComparePredicate::le:
    return arith::CmpFPredicate::OLE;
  case ComparePredicate::gt:
    return arith::CmpFPredicate::OGT;
  case ComparePredicate::ge:
    return arith::CmpFPredicate::OGE;
  }
  llvm_unreachable("predicate");
}

arith::CmpIPredicate integerPredicate(ComparePredicate p, bool isUnsigned) {
  using P = arith::CmpIPredicate;
  switch (p) {
  case ComparePredicate::eq:
    return P::eq;
  case ComparePredicate::ne:
    return P::ne;
  case ComparePredicate::lt:
    return isUnsigned ? P::ult : P::slt;
  case ComparePredicate::le:
    return isUnsigned ? P::ule : P::sle;
  case ComparePredicate::gt:
    return isUnsigned ? P::ugt : P::sgt;
  case ComparePredicate::ge:
    return isUnsigned ? P::uge : P::sge;
  }
  llvm_unreachable("predicate");
}

Value castScalar(ImplicitLocOpBuilder &b, Value x, Type to) {
  Type from = x.getType();
  if (from == to)
    return x;
  if (isa<FloatType>(from) && isa<FloatType>(to))
    return convertFloat(b, x, to);
  if (isa<FloatType>(from)) {
    Value wide = widen(b, x);
    if (to.isInteger(1))
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, wide,
                                   constant(b, wide.getType(), 0));
    return arith::FPToSIOp::create(b, to, wide);
  }
  if (isa<FloatType>(to)) {
    // Narrow floats by way of f32: one instruction each on every target.
    Type wide = computeType(to);
    Value value = from.isInteger(1)
                      ? arith::UIToFPOp::create(b, wide, x).getResult()
                      : arith::SIToFPOp::create(b, wide, x).getResult();
    return convertFloat(b, value, to);
  }
  if (to.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, x,
                                 constant(b, from, 0));
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, to, x);
  if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, to, x);
  return arith::TruncIOp::create(b, to, x);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value equals(ImplicitLocOpBuilder &b, Value x, int64_t value) {
  return arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq, x,
      constant(b, x.getType(), static_cast<double>(value)));
}
Value isNegative(ImplicitLocOpBuilder &b, Value x) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x,
                               constant(b, x.getType(), 0));
}

/// lhs / rhs towards zero. Dividing by 0 or -1 can trap, so neither is done.
struct Quotient {
  Value quotient, remainder;
};
Quotient divide(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  Value zero = constant(b, lhs.getType(), 0);
  Value byZero = equals(b, rhs, 0), byMinusOne = equals(b, rhs, -1);
  Value special = arith::OrIOp::create(b, byZero, byMinusOne);
  Value divisor =
      arith::SelectOp::create(b, special, constant(b, lhs.getType(), 1), rhs);
  Value quotient = arith::DivSIOp::create(b, lhs, divisor);
  Value remainder = arith::SubIOp::create(
      b, lhs, arith::MulIOp::create(b, quotient, divisor));
  Value negated = arith::SubIOp::create(b, zero, lhs);
  quotient = arith::SelectOp::create(b, byMinusOne, negated, quotient);
  quotient = arith::SelectOp::create(b, byZero, zero, quotient);
  return {quotient, remainder};
}

/// Whether the quotient towards zero is one above the floor.
Value roundedUp(ImplicitLocOpBuilder &b, Value remainder, Value rhs) {
  Value inexact = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, remainder,
                                        constant(b, rhs.getType(), 0));
  Value signsDiffer =
      arith::XOrIOp::create(b, isNegative(b, remainder), isNegative(b, rhs));
  return arith::AndIOp::create(b, inexact, signsDiffer);
}

/// x ^ n by squaring, wrapping. A negative exponent gives 1 / x^|n| towards
/// zero.
Value integerPower(ImplicitLocOpBuilder &b, Value x, Value n) {
  if (matchPattern(n, m_Constant()))
    return math::IPowIOp::create(b, x, n);
  Type type = x.getType();
  Value one = constant(b, type, 1), zero = constant(b, type, 0);
  Value result = one, square = x;
  unsigned bits = type.getIntOrFloatBitWidth() - 1;
  for (unsigned i = 0; i < bits; ++i) {
    Value bit = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, n, constant(b, type, i)), one);
    Value product = arith::MulIOp::create(b, result, square);
    result = arith::SelectOp::create(b, equals(b, bit, 1), product, result);
    square = arith::MulIOp::create(b, square, square);
  }
  Value isOdd = equals(b, arith::AndIOp::create(b, n, one), 1);
  Value unit = arith::OrIOp::create(b, equals(b, x, 1), equals(b, x, -1));
  Value reciprocal = arith::SelectOp::create(
      b, unit, arith::SelectOp::create(b, isOdd, x, one).getResult(), zero);
  return arith::SelectOp::create(b, isNegative(b, n), reciprocal, result);
}

Value integerBinary(ImplicitLocOpBuilder &b, Operation *op, Value x, Value y) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AddOp>([&](auto) { return arith::AddIOp::create(b, x, y); })
      .Case<SubOp>([&](auto) { return arith::SubIOp::create(b, x, y); })
      .Case<MulOp>([&](auto) { return arith::MulIOp::create(b, x, y); })
      .Case<TruncDivOp>([&](auto) { return divide(b, x, y).quotient; })
      .Case<FloorDivOp>([&](auto) -> Value {
        Quotient q = divide(b, x, y);
        Value below =
            arith::SubIOp::create(b, q.quotient, constant(b, x.getType(), 1));
        return arith::SelectOp::create(b, roundedUp(b, q.remainder, y), below,
                                       q.quotient);
      })
      .Case<RemainderOp>([&](auto) -> Value {
        Quotient q = divide(b, x, y);
        Value shifted = arith::AddIOp::create(b, q.remainder, y);
        return arith::SelectOp::create(b, roundedUp(b, q.remainder, y), shifted,
                                       q.remainder);
      })
      .Case<PowOp>([&](auto) { return integerPower(b, x, y); })
      .Case<MaximumOp>([&](auto) { return arith::MaxSIOp::create(b, x, y); })
      .Case<MinimumOp>([&](auto) { return arith::MinSIOp::create(b, x, y); })
      .Default([](auto) { return Value(); });
}

/// i1: the values are 0 and 1, sums saturate, differences are exclusive or.
Value boolBinary(ImplicitLocOpBuilder &b, Operation *op, Value x, Value y) {
  if (isa<AddOp, MaximumOp>(op))
    return arith::OrIOp::create(b, x, y);
  if (isa<MulOp, MinimumOp, TruncDivOp, FloorDivOp>(op))
    return arith::AndIOp::create(b, x, y);
  if (isa<SubOp>(op))
    return arith::XOrIOp::create(b, x, y);
  Value one = constant(b, x.getType(), 1);
  if (isa<PowOp>(op)) // 0 only for 0 ^ 1.
    return arith::OrIOp::create(b, x, arith::XOrIOp::create(b, y, one));
  return isa<RemainderOp>(op) ? constant(b, x.getType(), 0) : Value();
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Num floatOp(ImplicitLocOpBuilder &b, Operation *op, ArrayRef<Num> in) {
  Num x = in[0], y = in.size() > 1 ? in[1] : Num();
  auto wrap = [&](Value value) { return Num{&b, value}; };
  return llvm::TypeSwitch<Operation *, Num>(op)
      .Case<NegOp>([&](auto) { return neg(x); })
      .Case<AbsOp>([&](auto) { return wrap(math::AbsFOp::create(b, x.v)); })
      .Case<ExpOp>([&](auto) { return exp(x); })
      .Case<LogOp>([&](auto) { return wrap(math::LogOp::create(b, x.v)); })
      .Case<SqrtOp>([&](auto) { return wrap(math::SqrtOp::create(b, x.v)); })
      .Case<RsqrtOp>([&](auto) { return wrap(math::RsqrtOp::create(b, x.v)); })
      .Case<ReciprocalOp>([&](auto) { return 1 / x; })
      .Case<TanhOp>([&](auto) { return tanh(x); })
      .Case<SigmoidOp>([&](auto) { return 1 / (1 + exp(neg(x))); })
      .Case<ErfOp>([&](auto) { return erf(x); })
      .Case<SinOp>([&](auto) { return wrap(math::SinOp::create(b, x.v)); })
      .Case<CosOp>([&](auto) { return wrap(math::CosOp::create(b, x.v)); })
      .Case<ReluOp>([&](auto) {
        Value zero = x.of(0).v;
        Value below =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x.v, zero);
        return wrap(arith::SelectOp::create(b, below, zero, x.v));
      })
      .Case<GeluOp>(
          [&](GeluOp gelu) { return lowering::gelu(x, gelu.getForm()); })
      .Case<GeluBackwardOp>([&](GeluBackwardOp back) {
        return geluBackward(x, y, back.getForm());
      })
      .Case<TanhBackwardOp>([&](auto) { return x * (1 - y * y); })
      .Case<SigmoidBackwardOp>([&](auto) { return x * (1 - y) * y; })
      .Case<ThresholdBackwardOp>([&](ThresholdBackwardOp back) {
        Value limit = y.of(back.getThreshold().convertToDouble()).v;
        Value below =
            arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, y.v, limit);
        return wrap(arith::SelectOp::create(b, below, x.of(0).v, x.v));
      })
      .Case<AddOp>([&](auto) { return x + y; })
      .Case<SubOp>([&](auto) { return x - y; })
      .Case<MulOp>([&](auto) { return x * y; })
      .Case<DivOp>([&](auto) { return x / y; })
      .Case<FloorDivOp>([&](auto) { return floor(x / y); })
      .Case<TruncDivOp>(
          [&](auto) { return wrap(math::TruncOp::create(b, (x / y).v)); })
      .Case<RemainderOp>([&](auto) { return x - floor(x / y) * y; })
      .Case<PowOp>(
          [&](auto) { return wrap(math::PowFOp::create(b, x.v, y.v)); })
      .Case<MaximumOp>(
          [&](auto) { return wrap(arith::MaximumFOp::create(b, x.v, y.v)); })
      .Case<MinimumOp>(
          [&](auto) { return wrap(arith::MinimumFOp::create(b, x.v, y.v)); })
      .Default([](auto) { return Num(); });
}

} // namespace

Value scalarOf(ImplicitLocOpBuilder &b, Operation *op, ValueRange in) {
  Type element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  // What does not depend on the type, or changes it.
  if (isa<CopyOp>(op))
    return in[0];
  if (isa<CastOp>(op))
    return castScalar(b, in[0], element);
  if (isa<SelectOp>(op))
    return arith::SelectOp::create(b, in[0], in[1], in[2]);
  if (isa<AndOp>(op))
    return arith::AndIOp::create(b, in[0], in[1]);
  if (isa<OrOp>(op))
    return arith::OrIOp::create(b, in[0], in[1]);
  if (isa<XorOp>(op))
    return arith::XOrIOp::create(b, in[0], in[1]);
  if (isa<NotOp>(op))
    return arith::XOrIOp::create(
        b, in[0], constant(b, element, element.isInteger(1) ? 1 : -1));
  if (auto compare = dyn_cast<CompareOp>(op)) {
    if (isa<FloatType>(in[0].getType()))
      return arith::CmpFOp::create(b, floatPredicate(compare.getPredicate()),
                                   widen(b, in[0]), widen(b, in[1]));
    bool isBool = in[0].getType().isInteger(1);
    return arith::CmpIOp::create(
        b, integerPredicate(compare.getPredicate(), isBool), in[0], in[1]);
  }
  if (isa<FloatType>(element)) {
    SmallVector<Num> wide;
    for (Value value : in)
      wide.push_back({&b, widen(b, value)});
    Value result = floatOp(b, op, wide).v;
    return result ? convertFloat(b, result, element) : Value();
  }
  if (in.size() == 2)
    return element.isInteger(1) ? boolBinary(b, op, in[0], in[1])
                                : integerBinary(b, op, in[0], in[1]);
  Value zero = constant(b, element, 0);
  if (element.isInteger(1) && isa<NegOp, AbsOp, ReluOp>(op))
    return in[0];
  if (isa<NegOp>(op))
    return arith::SubIOp::create(b, zero, in[0]);
  if (isa<AbsOp>(op))
    return arith::MaxSIOp::create(b, in[0],
                                  arith::SubIOp::create(b, zero, in[0]));
  if (isa<ReluOp>(op))
    return arith::MaxSIOp::create(b, in[0], zero);
  return {};
}

} // namespace nova::lowering
