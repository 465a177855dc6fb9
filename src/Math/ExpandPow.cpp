//===- ExpandPow.cpp - pow, integer powers, rsqrt
//---------------------------===//
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
static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Num rsqrt(const Num &x) { return 1.0 / sqrt(x); }

/// |x|^y as a double, without the cases that depend on the sign or on y being
/// an integer. log2|x| has an error below 2^-36, so that y log2|x|, at most 150
/// where it counts, has one below 2^-29.
static Num powMagnitudeF32(const Num &x, const Num &y) {
  using namespace coefficients;
  Num a = toF64(abs(x)); // subnormals are normal here
  LogParts parts = splitNormal(a);
  Num log = fma(parts.f, horner(parts.f, kPowLog2F32), parts.e);
  log = select(a < kInf, log, a);
  log = select(a == 0.0, -kInf, log);
  Num product = y * log;
  Num t = atMost(atLeast(product, -200.0), 200.0);
  Rounded n = roundByMagic(t, formatOf(t).bias);
  Num p = horner(t - n.asFloat, kPowExp2F32);
  return p * asFloat(shl(asInt(n.biased), formatOf(t).mantissaBits), t);
}

/// The same on doubles: log2|x| as a sum of two, with an error below 2^-63.
// Every product whose rounding error is accounted for feeds an explicit fma, so
// that contraction cannot count an error twice.
static Num powMagnitudeF64(const Num &x, const Num &y) {
  using namespace coefficients;
  LogParts parts = splitAny(abs(x));
  const auto &[e, f] = parts;
  // s = f/(2+f), as sh + sl.
  Num dh = f + 2.0;
  Num dl = f - (dh - 2.0);
  Num inverse = 1.0 / dh;
  Num sh = f * inverse;
  Num sl = fma(-sh, dl, fma(-sh, dh, f)) * inverse;
  // z = s^2; u = 1 + z (1/3 + z P(z)), so that log(1+f) = 2 s u.
  Num zh = sh * sh;
  Num zl = fma(sh * 2.0, sl, fma(sh, sh, -zh));
  Num tail = horner(zh, kPowLogF64);
  Num qh = fma(zh, tail, kThird[0]);
  Num ql = fma(zh, tail, kThird[0] - qh) + kThird[1];
  Num uh = fma(zh, qh, 1.0);
  Num ul = fma(zh, qh, 1.0 - uh) + fma(zh, ql, zl * qh);
  // w = s u.
  Num wh = sh * uh;
  Num wl = fma(sh, uh, -wh) + fma(sh, ul, sl * uh);
  // log2|x| = e + 2/ln2 w. The mask keeps ph from being contracted into e + ph,
  // after which lh - e would no longer be exact.
  Num product = wh * kTwoLog2eF64[0];
  Num ph = asFloat(asInt(product) & bitsConstant(x, ~uint64_t(3)), x);
  Num pl = fma(wh, kTwoLog2eF64[0], -ph) +
           fma(wh, kTwoLog2eF64[1], wl * kTwoLog2eF64[0]);
  Num lh = e + ph;
  Num ll = (ph - (lh - e)) + pl;
  Num th = y * lh;
  Num tl = fma(y, ll, fma(y, lh, -th));
  tl = select(abs(th) < 1100.0, tl, constant(th, 0.0)); // NaN where th is inf
  return exp2(th, tl);
}

// The special cases of C99 Annex F.9.4.4, in the terms of x and y.
Num pow(const Num &x, const Num &y) {
  bool single = x.bits() == 32;
  Num magnitude =
      single ? toF32(powMagnitudeF32(x, toF64(y))) : powMagnitudeF64(x, y);
  // (+-1)^(+-inf), where the logarithm gives 0 * inf.
  magnitude = select(abs(x) == 1.0, 1.0, magnitude);
  // Infinities and all large values are even integers here.
  Num halfY = y * 0.5;
  Num isInteger = floor(y) == y;
  Num isOdd = isInteger & (floor(halfY) != halfY);
  uint64_t signBit = uint64_t(1) << (x.bits() - 1);
  Num sign = asInt(x) & bitsConstant(x, signBit);
  sign = select(isOdd, sign, bitsConstant(x, 0));
  Num result = asFloat(asInt(magnitude) | sign, x);
  // Negative and finite to a non-integer power.
  Num isFraction = floor(y) < y;
  Num undefined = (x < 0.0) & (x > -kInf) & isFraction;
  result = select(undefined, kNan, result);
  // NaN in, NaN out, but for x^0 and 1^y.
  result = select((x == x) & (y == y), result, constant(x, kNan));
  return select((x == 1.0) | (y == 0.0), 1.0, result);
}

std::optional<Num> powConstant(const Num &x, double n) {
  if (n == 0.0)
    return constant(x, 1.0);
  if (n == 1.0)
    return x;
  if (n == 2.0)
    return x * x;
  if (n == 3.0)
    return x * x * x;
  if (n == 4.0) {
    Num square = x * x;
    return square * square;
  }
  if (n == -1.0)
    return 1.0 / x;
  // The reciprocal first: squares may leave the normal range where the result
  // does not, and 1/x does not then.
  if (n == -2.0) {
    Num inverse = 1.0 / x;
    return inverse * inverse;
  }
  // pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf, unlike sqrt.
  if (n == 0.5 || n == -0.5) {
    Num root = sqrt(select(x == -kInf, kInf, x)) + 0.0;
    return n > 0 ? root : 1.0 / root;
  }
  return std::nullopt;
}

Num powInteger(const Num &x, int64_t n) {
  if (n < 0) {
    // 1^n = 1, (-1)^n = +-1; 0^n is undefined and every other quotient 0.
    Num unit = (x == 1) | (x == -1);
    Num value = n % 2 == 0 ? constant(x, 1) : x;
    return select(unit, value, constant(x, 0));
  }
  Num result = constant(x, 1);
  Num square = x;
  bool first = true;
  for (uint64_t rest = n; rest; rest >>= 1) {
    if (rest & 1) {
      result = first ? square : result * square;
      first = false;
    }
    if (rest > 1)
      square = square * square;
  }
  return result;
}

} // namespace nova::expand
