//===- Emitter.cpp - Write arithmetic on SSA values as formulas -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;

namespace nova::expand {

static Num splat(const Num &like, TypedAttr scalar) {
  Type type = typeLike(like.type(), scalar.getType());
  if (auto shaped = dyn_cast<ShapedType>(type))
    scalar = DenseElementsAttr::get(shaped, ArrayRef<Attribute>(scalar));
  return like.with(arith::ConstantOp::create(*like.b, scalar));
}

Num constant(const Num &like, double x) {
  Type element = like.elementType();
  if (!isa<FloatType>(element))
    return splat(like, IntegerAttr::get(element, int64_t(x)));
  return splat(like, FloatAttr::get(element, x));
}

Num bitsConstant(const Num &like, uint64_t x) {
  auto type = IntegerType::get(like.value.getContext(), like.bits());
  return splat(like,
               IntegerAttr::get(type, APInt(like.bits(), x, false, true)));
}

Num fromBits(const Num &like, uint64_t x) {
  auto type = cast<FloatType>(like.elementType());
  return splat(like, FloatAttr::get(type, APFloat(type.getFloatSemantics(),
                                                  APInt(like.bits(), x))));
}

template <typename FloatOp, typename IntOp>
static Num binary(const Num &a, const Num &c) {
  if (a.isFloat())
    return a.with(FloatOp::create(*a.b, a.value, c.value));
  return a.with(IntOp::create(*a.b, a.value, c.value));
}

Num operator+(const Num &a, const Num &c) {
  return binary<arith::AddFOp, arith::AddIOp>(a, c);
}
Num operator-(const Num &a, const Num &c) {
  return binary<arith::SubFOp, arith::SubIOp>(a, c);
}
Num operator*(const Num &a, const Num &c) {
  return binary<arith::MulFOp, arith::MulIOp>(a, c);
}
Num operator/(const Num &a, const Num &c) {
  return a.with(arith::DivFOp::create(*a.b, a.value, c.value));
}
Num operator-(const Num &a) {
  return a.with(arith::NegFOp::create(*a.b, a.value));
}
Num operator&(const Num &a, const Num &c) {
  return a.with(arith::AndIOp::create(*a.b, a.value, c.value));
}
Num operator|(const Num &a, const Num &c) {
  return a.with(arith::OrIOp::create(*a.b, a.value, c.value));
}
Num operator^(const Num &a, const Num &c) {
  return a.with(arith::XOrIOp::create(*a.b, a.value, c.value));
}

static Num compare(const Num &a, const Num &c, arith::CmpFPredicate f,
                   arith::CmpIPredicate i) {
  if (a.isFloat())
    return a.with(arith::CmpFOp::create(*a.b, f, a.value, c.value));
  return a.with(arith::CmpIOp::create(*a.b, i, a.value, c.value));
}
Num operator<(const Num &a, const Num &c) {
  return compare(a, c, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt);
}
Num operator<=(const Num &a, const Num &c) {
  return compare(a, c, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle);
}
Num operator>(const Num &a, const Num &c) {
  return compare(a, c, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
}
Num operator>=(const Num &a, const Num &c) {
  return compare(a, c, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge);
}
Num operator==(const Num &a, const Num &c) {
  return compare(a, c, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq);
}
Num operator!=(const Num &a, const Num &c) {
  return compare(a, c, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne);
}

Num shl(const Num &a, unsigned n) {
  return a.with(arith::ShLIOp::create(*a.b, a.value, constant(a, n).value));
}
Num shrLogical(const Num &a, unsigned n) {
  return a.with(arith::ShRUIOp::create(*a.b, a.value, constant(a, n).value));
}
Num shl(const Num &a, const Num &n) {
  return a.with(arith::ShLIOp::create(*a.b, a.value, n.value));
}
Num shrLogical(const Num &a, const Num &n) {
  return a.with(arith::ShRUIOp::create(*a.b, a.value, n.value));
}
Num shrArithmetic(const Num &a, unsigned n) {
  return a.with(arith::ShRSIOp::create(*a.b, a.value, constant(a, n).value));
}
Num maxSigned(const Num &a, const Num &c) {
  return a.with(arith::MaxSIOp::create(*a.b, a.value, c.value));
}

WideProduct mulWide(const Num &a, const Num &c) {
  auto op = arith::MulUIExtendedOp::create(*a.b, a.value, c.value);
  return {a.with(op.getLow()), a.with(op.getHigh())};
}
Num lessUnsigned(const Num &a, const Num &c) {
  return a.with(
      arith::CmpIOp::create(*a.b, arith::CmpIPredicate::ult, a.value, c.value));
}
Num zeroExtend(const Num &condition, const Num &like) {
  return condition.with(arith::ExtUIOp::create(
      *condition.b, typeLike(condition.type(), like.elementType()),
      condition.value));
}
Num truncInt(const Num &a, unsigned bits) {
  Type type = typeLike(a.type(), IntegerType::get(a.value.getContext(), bits));
  return a.with(arith::TruncIOp::create(*a.b, type, a.value));
}

Num fma(const Num &a, const Num &x, const Num &c) {
  return a.with(math::FmaOp::create(*a.b, a.value, x.value, c.value));
}
Num fma(const Num &a, double x, const Num &c) {
  return fma(a, constant(a, x), c);
}
Num fma(const Num &a, const Num &x, double c) {
  return fma(a, x, constant(a, c));
}
Num fma(const Num &a, double x, double c) {
  return fma(a, constant(a, x), constant(a, c));
}
Num sqrt(const Num &a) { return a.with(math::SqrtOp::create(*a.b, a.value)); }
Num abs(const Num &a) { return a.with(math::AbsFOp::create(*a.b, a.value)); }
Num floor(const Num &a) { return a.with(math::FloorOp::create(*a.b, a.value)); }
Num roundEven(const Num &a) {
  return a.with(math::RoundEvenOp::create(*a.b, a.value));
}
Num copySign(const Num &magnitude, const Num &sign) {
  return magnitude.with(
      math::CopySignOp::create(*magnitude.b, magnitude.value, sign.value));
}

Num select(const Num &condition, const Num &yes, const Num &no) {
  return yes.with(
      arith::SelectOp::create(*yes.b, condition.value, yes.value, no.value));
}
Num select(const Num &condition, double yes, const Num &no) {
  return select(condition, constant(no, yes), no);
}
Num select(const Num &condition, const Num &yes, double no) {
  return select(condition, yes, constant(yes, no));
}
// The comparison is false on NaN, so that `a` is what passes: on x86 this form
// is one maxps, where arith.maximumf would be five instructions.
Num atLeast(const Num &a, double low) {
  Num c = constant(a, low);
  return select(c > a, c, a);
}
Num atMost(const Num &a, double high) {
  Num c = constant(a, high);
  return select(c < a, c, a);
}

Num asInt(const Num &a) {
  Type type =
      typeLike(a.type(), IntegerType::get(a.value.getContext(), a.bits()));
  return a.with(arith::BitcastOp::create(*a.b, type, a.value));
}
Num asFloat(const Num &a, const Num &like) {
  Type type = typeLike(a.type(), like.elementType());
  return a.with(arith::BitcastOp::create(*a.b, type, a.value));
}

static Num convertFloat(const Num &a, FloatType to) {
  unsigned from = a.bits();
  if (from == to.getWidth())
    return a;
  Type type = typeLike(a.type(), to);
  if (from < to.getWidth())
    return a.with(arith::ExtFOp::create(*a.b, type, a.value));
  return a.with(arith::TruncFOp::create(*a.b, type, a.value));
}
Num toF64(const Num &a) { return convertFloat(a, a.b->getF64Type()); }
Num toF32(const Num &a) { return convertFloat(a, a.b->getF32Type()); }
Num intToFloat(const Num &a, const Num &like) {
  Type type = typeLike(a.type(), like.elementType());
  return a.with(arith::SIToFPOp::create(*a.b, type, a.value));
}

Num unsignedToFloat(const Num &a, const Num &like) {
  Type type = typeLike(a.type(), like.elementType());
  return a.with(arith::UIToFPOp::create(*a.b, type, a.value));
}

Num horner(const Num &x, ArrayRef<double> c) {
  if (c.size() == 1)
    return constant(x, c.front());
  Num sum = fma(x, c.back(), c[c.size() - 2]);
  for (double next : llvm::reverse(c.drop_back(2)))
    sum = fma(sum, x, next);
  return sum;
}

const Format &formatOf(const Num &a) {
  static const Format f32{23, 127, 0x1.fffffep127, 0x1p-126};
  static const Format f64{52, 1023, 0x1.fffffffffffffp1023, 0x1p-1022};
  return a.bits() == 32 ? f32 : f64;
}

static double magic(const Num &x, int offset) {
  return (x.bits() == 32 ? 0x1.8p23 : 0x1.8p52) + offset;
}
Rounded roundByMagic(const Num &x, int offset) {
  Num biased = x + magic(x, offset);
  return {biased - magic(x, offset), biased};
}
Rounded roundByMagic(const Num &x, double c, int offset) {
  Num biased = fma(x, c, magic(x, offset));
  return {biased - magic(x, offset), biased};
}

} // namespace nova::expand
