//===- Emitter.h - Write arithmetic on SSA values as formulas -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Math. `Num` is an SSA value of some float or integer type,
// scalar or vector, with operators that emit arith ops; constants take the
// type of the other operand and are splat over its shape. No op carries
// fast-math flags. A backend may contract a product and a sum into an FMA, so
// no product is ever an operand of a sum: it is written as an fma. That keeps
// values the same on every target, and rounding errors that are accounted for
// from being counted twice.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_MATH_EMITTER_H
#define NOVA_LIB_MATH_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace nova::expand {

/// A value and where to emit what is computed from it.
struct Num {
  mlir::Value value;
  mlir::ImplicitLocOpBuilder *b = nullptr;

  mlir::Type type() const { return value.getType(); }
  mlir::Type elementType() const { return mlir::getElementTypeOrSelf(type()); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(elementType()); }
  unsigned bits() const { return elementType().getIntOrFloatBitWidth(); }
  Num with(mlir::Value v) const { return {v, b}; }
};

/// The type of `like` with another element type.
inline mlir::Type typeLike(mlir::Type like, mlir::Type element) {
  if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(like))
    return shaped.clone(element);
  return element;
}

/// A float constant of the type of `like`; `x` must be exact in that type or
/// rounding it to the type must be what is wanted.
Num constant(const Num &like, double x);
/// An integer constant of the width of `like` (float or integer), from its
/// bits.
Num bitsConstant(const Num &like, uint64_t x);
/// The float constant with these bits, of the (float) type of `like`.
Num fromBits(const Num &like, uint64_t x);

Num operator+(const Num &a, const Num &c);
Num operator-(const Num &a, const Num &c);
Num operator*(const Num &a, const Num &c);
Num operator/(const Num &a, const Num &c);
Num operator-(const Num &a);
Num operator&(const Num &a, const Num &c);
Num operator|(const Num &a, const Num &c);
Num operator^(const Num &a, const Num &c);

/// Comparisons: ordered on floats (false on NaN), signed on integers.
Num operator<(const Num &a, const Num &c);
Num operator<=(const Num &a, const Num &c);
Num operator>(const Num &a, const Num &c);
Num operator>=(const Num &a, const Num &c);
Num operator==(const Num &a, const Num &c);
/// True on NaN.
Num operator!=(const Num &a, const Num &c);

/// The same with a constant, which takes the other side's type.
#define NOVA_MIXED(OP)                                                         \
  inline Num operator OP(const Num &a, double c) {                             \
    return a OP constant(a, c);                                                \
  }                                                                            \
  inline Num operator OP(double c, const Num &a) { return constant(a, c) OP a; }
NOVA_MIXED(+)
NOVA_MIXED(-)
NOVA_MIXED(*)
NOVA_MIXED(/)
NOVA_MIXED(<)
NOVA_MIXED(<=)
NOVA_MIXED(>)
NOVA_MIXED(>=)
NOVA_MIXED(==)
NOVA_MIXED(!=)
#undef NOVA_MIXED

/// Integer only: shifts by a constant and maximum.
Num shl(const Num &a, unsigned n);
Num shrLogical(const Num &a, unsigned n);
Num shl(const Num &a, const Num &n);
Num shrLogical(const Num &a, const Num &n);
Num shrArithmetic(const Num &a, unsigned n);
Num maxSigned(const Num &a, const Num &c);
/// Both halves of the unsigned product.
struct WideProduct {
  Num low, high;
};
WideProduct mulWide(const Num &a, const Num &c);
/// Unsigned a < c.
Num lessUnsigned(const Num &a, const Num &c);
/// 0 or 1 of a condition, in the integer type of `like`.
Num zeroExtend(const Num &condition, const Num &like);
/// The low `bits` bits.
Num truncInt(const Num &a, unsigned bits);

/// Float only. fma(a, x, c) = a*x + c, rounded once.
Num fma(const Num &a, const Num &x, const Num &c);
Num fma(const Num &a, double x, const Num &c);
Num fma(const Num &a, const Num &x, double c);
Num fma(const Num &a, double x, double c);
Num sqrt(const Num &a);
Num abs(const Num &a);
Num floor(const Num &a);
Num roundEven(const Num &a);
Num copySign(const Num &magnitude, const Num &sign);

Num select(const Num &condition, const Num &yes, const Num &no);
Num select(const Num &condition, double yes, const Num &no);
Num select(const Num &condition, const Num &yes, double no);
/// min/max against a constant that keep a NaN in `a`.
Num atLeast(const Num &a, double low);
Num atMost(const Num &a, double high);

/// Same bits, as the integer or float type of the same width.
Num asInt(const Num &a);
Num asFloat(const Num &a, const Num &like);

/// Conversions to float types.
Num toF64(const Num &a);
Num toF32(const Num &a);
/// Signed or unsigned integer to the float type of `like`.
Num intToFloat(const Num &a, const Num &like);
Num unsignedToFloat(const Num &a, const Num &like);

/// sum c[k] x^k by Horner's rule. `c` not empty.
Num horner(const Num &x, llvm::ArrayRef<double> c);

/// What differs between the two formats that the expansions compute in.
struct Format {
  unsigned mantissaBits; // without the hidden one
  int bias;              // also the largest exponent
  double maxFinite;
  double minNormal;
  uint64_t oneBits() const { return uint64_t(bias) << mantissaBits; }
};
/// Of an f32 or f64 value.
const Format &formatOf(const Num &a);

/// Round `x` (|x| < 2^(mantissaBits-2)) to the nearest integer, ties to even,
/// by adding 1.5*2^mantissaBits. `asFloat` is the integer; the low bits of the
/// bits of `biased` hold it plus `offset`, in two's complement.
struct Rounded {
  Num asFloat, biased;
};
Rounded roundByMagic(const Num &x, int offset = 0);
/// The same of x*c, the product not rounded on its own.
Rounded roundByMagic(const Num &x, double c, int offset = 0);

} // namespace nova::expand

#endif // NOVA_LIB_MATH_EMITTER_H
