//===- ExpandExp.cpp - exp, exp2, expm1
//-------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Coefficients.h"
#include "Expansions.h"

using namespace llvm;
namespace nova::expand {

namespace {
/// What the three functions need to know of a format.
struct ExpFormat {
  ArrayRef<double> exp, exp2, expm1; // tails, see Coefficients.h
  ArrayRef<double> ln2;              // head and tail
  double log2e;
  // Beyond these the result no longer changes: 0 or infinity, for exp and
  // exp2; -1 for expm1.
  double low, high, low2, high2, lowM1;
  double tiny; // expm1(x) == x below
};
} // namespace

static const ExpFormat &expFormatOf(const Num &x) {
  using namespace coefficients;
  static const ExpFormat f32{kExpF32,      kExp2F32, kExpm1F32, kLn2F32,
                             kLog2eF32[0], -104,     89,        -151,
                             129,          -17.5,    0x1p-30};
  static const ExpFormat f64{kExpF64,      kExp2F64, kExpm1F64, kLn2F64,
                             kLog2eF64[0], -746,     710,       -1076,
                             1025,         -38,      0x1p-60};
  return x.bits() == 32 ? f32 : f64;
}

/// p * 2^n for p in [1/2, 2], where `biased` (Rounded) holds n + 2*bias. 2^n
/// itself may be out of range while the product is not, so it is applied in two
/// halves: the first product is exact, the second rounds once into subnormals
/// or overflows.
static Num scaleInHalves(const Num &p, const Num &biased) {
  unsigned mantissa = formatOf(p).mantissaBits;
  Num sum = asInt(biased);
  Num half = shrLogical(sum, 1);
  Num first = asFloat(shl(half, mantissa), p);
  Num second = asFloat(shl(sum - half, mantissa), p);
  return p * first * second;
}

/// x = n ln2 + r: the Cody-Waite reduction. n*head is exact.
static Num reduce(const Num &x, const Num &n, const ExpFormat &f) {
  return fma(n, -f.ln2[1], fma(n, -f.ln2[0], x));
}

/// exp(r) = 1 + r + r^2 P(r).
static Num expReduced(const Num &r, const ExpFormat &f) {
  SmallVector<double> c{1.0, 1.0};
  c.append(f.exp.begin(), f.exp.end());
  return horner(r, c);
}

Num exp(const Num &x) {
  const ExpFormat &f = expFormatOf(x);
  Num clamped = atMost(atLeast(x, f.low), f.high);
  Rounded n = roundByMagic(clamped, f.log2e, 2 * formatOf(x).bias);
  return scaleInHalves(expReduced(reduce(clamped, n.asFloat, f), f), n.biased);
}

ScaledExp expNormal(const Num &x) {
  const ExpFormat &f = expFormatOf(x);
  Rounded n = roundByMagic(x, f.log2e, formatOf(x).bias);
  Num p = expReduced(reduce(x, n.asFloat, f), f);
  return {p, asFloat(shl(asInt(n.biased), formatOf(x).mantissaBits), x)};
}

/// exp2(n + r), `biased` holding n + 2*bias.
static Num exp2Reduced(const Num &r, const Num &biased, const ExpFormat &f) {
  SmallVector<double> c{1.0};
  c.append(f.exp2.begin(), f.exp2.end());
  return scaleInHalves(horner(r, c), biased);
}

Num exp2(const Num &x) {
  const ExpFormat &f = expFormatOf(x);
  Num clamped = atMost(atLeast(x, f.low2), f.high2);
  Rounded n = roundByMagic(clamped, 2 * formatOf(x).bias);
  return exp2Reduced(clamped - n.asFloat, n.biased, f);
}

Num exp2(const Num &x, const Num &low) {
  const ExpFormat &f = expFormatOf(x);
  Num clamped = atMost(atLeast(x, f.low2), f.high2);
  Rounded n = roundByMagic(clamped, 2 * formatOf(x).bias);
  return exp2Reduced(clamped - n.asFloat + low, n.biased, f);
}

// With s = 2^(n-1): expm1(x) = 2 (s (r + r^2 P) + s - 1/2). The halving keeps s
// finite at the top of the range; s*r is added to s - 1/2 before the small
// s r^2 P, so that cancellation near x = ln2/2 meets one rounding, not two.
Num expm1(const Num &x) {
  const ExpFormat &f = expFormatOf(x);
  Num clamped = atMost(atLeast(x, f.lowM1), f.high);
  Rounded n = roundByMagic(clamped, f.log2e, formatOf(x).bias - 1);
  Num r = reduce(clamped, n.asFloat, f);
  Num s = asFloat(shl(asInt(n.biased), formatOf(x).mantissaBits), x);
  Num tail = r * r * horner(r, f.expm1);
  Num half = fma(s, tail, fma(s, r, s - 0.5));
  // Also keeps -0 and what halving would lose of a subnormal.
  return select(abs(x) < f.tiny, x, half + half);
}

} // namespace nova::expand
