//===- ExpandLog.cpp - log, log2, log1p
//-------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Coefficients.h"
#include "Expansions.h"

#include <limits>

using namespace llvm;
namespace nova::expand {

static constexpr double kInf = std::numeric_limits<double>::infinity();

namespace {
/// bits(x) = k * 2^mantissaBits + bits(1 + f), 1 + f in [2/3, 4/3).
struct BitSplit {
  Num biasedExponent; // (k + bias) * 2^mantissaBits, integer
  Num significand;    // 1 + f, float
};
} // namespace

static uint64_t twoThirdsBits(const Num &x) {
  return x.bits() == 32 ? 0x3f2aaaab : 0x3fe5555555555555;
}

static BitSplit splitBits(const Num &x) {
  const Format &format = formatOf(x);
  uint64_t start = twoThirdsBits(x);
  Num shifted = asInt(x) + bitsConstant(x, format.oneBits() - start);
  uint64_t mantissaMask = (uint64_t(1) << format.mantissaBits) - 1;
  Num significand =
      (shifted & bitsConstant(x, mantissaMask)) + bitsConstant(x, start);
  Num biased = shifted & bitsConstant(x, ~mantissaMask);
  return {biased, asFloat(significand, x)};
}

/// The exponent k as a float: put into the low bits of 2^mantissaBits, which
/// spares a conversion that f64 lacks on AVX2.
static Num exponentAsFloat(const Num &biasedExponent, const Num &like) {
  const Format &format = formatOf(like);
  uint64_t carrierBits = uint64_t(format.bias + format.mantissaBits)
                         << format.mantissaBits;
  Num field = shrLogical(biasedExponent, format.mantissaBits);
  Num carried = asFloat(field | bitsConstant(field, carrierBits), like);
  return carried - (double(uint64_t(1) << format.mantissaBits) + format.bias);
}

LogParts splitNormal(const Num &x) {
  BitSplit split = splitBits(x);
  return {exponentAsFloat(split.biasedExponent, x), split.significand - 1.0};
}

// Special values enter as terms that are 0 elsewhere: a select against 0 or
// against all ones is one AND or OR of the comparison's mask, while a select of
// two values costs three on current x86. They rely on the tail of ln 2 being
// positive (no inf - inf) and on f being finite whatever the bits of x.

/// e for log(x), with +-inf where x is infinite or 0.
static Num withInfinities(const Num &e, const Num &x, double zero) {
  Num r = e + select(x == zero, -kInf, constant(x, 0.0));
  return r + select(x == kInf, kInf, constant(x, 0.0));
}

/// NaN where x < low or x is NaN.
static Num withNan(const Num &result, const Num &x, double low) {
  uint64_t ones = x.bits() == 32 ? 0xffffffff : ~uint64_t(0);
  return select(x >= low, result, fromBits(x, ones));
}

// A subnormal is scaled up first.
LogParts splitAny(const Num &x) {
  const Format &format = formatOf(x);
  int shift = format.mantissaBits + 1;
  Num subnormal = x < format.minNormal;
  Num zero = constant(x, 0.0);
  double scaleLessOne = double(uint64_t(1) << shift) - 1;
  Num scaled = fma(x, select(subnormal, scaleLessOne, zero), x);
  BitSplit split = splitBits(scaled);
  Num e = exponentAsFloat(split.biasedExponent, x) -
          select(subnormal, double(shift), zero);
  return {withInfinities(e, x, 0.0), split.significand - 1.0};
}

/// e ln2 + log(1+f).
static Num logOfParts(const LogParts &parts) {
  using namespace coefficients;
  const auto &[e, f] = parts;
  if (f.bits() == 32) {
    // log(1+f) = f - f^2/2 + f^3 P(f).
    Num tail = f * f * fma(f, horner(f, kLogF32), -0.5);
    Num low = fma(e, kLn2F32[1], tail);
    return fma(e, kLn2F32[0], f + low);
  }
  // s = f/(2+f): log(1+f) = 2s + s R = f - (f^2/2 - s (f^2/2 + R)), R = z P(z),
  // z = s^2; the last form keeps f, which is exact, as the leading term.
  Num s = f / (f + 2.0);
  Num z = s * s;
  Num halfSquare = f * f * 0.5;
  Num tail = fma(s, fma(z, horner(z, kLogF64), halfSquare), -halfSquare);
  Num low = fma(e, kLn2F64[1], tail);
  return fma(e, kLn2F64[0], f + low);
}

Num log(const Num &x) { return withNan(logOfParts(splitAny(x)), x, 0.0); }

Num log2(const Num &x) {
  using namespace coefficients;
  LogParts parts = splitAny(x);
  const auto &[e, f] = parts;
  if (x.bits() == 32) {
    Num tail = f * f * horner(f, kLog2F32);
    Num p = fma(f, kLog2eF32[0], fma(f, kLog2eF32[1], tail));
    return withNan(e + p, x, 0.0);
  }
  Num s = f / (f + 2.0);
  Num z = s * s;
  Num halfSquare = f * f * 0.5;
  Num tail = fma(s, fma(z, horner(z, kLogF64), halfSquare), -halfSquare);
  Num p = fma(f, kLog2eF64[0], fma(tail, kLog2eF64[0], f * kLog2eF64[1]));
  return withNan(e + p, x, 0.0);
}

// The split is that of u = 1 + x, but f is taken from x itself, so that the
// rounding of u is not lost: with 2^k the scale of u, f = x 2^-k + (2^-k - 1),
// the products exact. k is 0 where x is small, so f = x there.
Num log1p(const Num &x) {
  const Format &format = formatOf(x);
  BitSplit split = splitBits(x + 1.0);
  uint64_t one = format.oneBits();
  Num scaledX =
      asFloat(asInt(x) - (split.biasedExponent - bitsConstant(x, one)), x);
  // 2^-k underflows to 0 for the largest x, where it no longer counts.
  Num scaleBits = maxSigned(bitsConstant(x, 2 * one) - split.biasedExponent,
                            bitsConstant(x, 0));
  Num f = scaledX + (asFloat(scaleBits, x) - 1.0);
  Num e = withInfinities(exponentAsFloat(split.biasedExponent, x), x, -1.0);
  Num r = logOfParts({e, f});
  // log1p(x) has the sign of x, also where x is -0 and f is not.
  Num sign = asInt(x) & bitsConstant(x, uint64_t(1) << (x.bits() - 1));
  return withNan(asFloat(asInt(r) | sign, x), x, -1.0);
}

} // namespace nova::expand
