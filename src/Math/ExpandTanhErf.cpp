//===- ExpandTanhErf.cpp - tanh, erf
//----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Coefficients.h"
#include "Expansions.h"

using namespace llvm;
namespace nova::expand {

// Both compute on |x|, which makes them odd to the bit and keeps -0.

// Below 5/8 an odd polynomial, above 1 - 2/(exp(2|x|) + 1): there the quotient
// is below 0.45, so its errors count less than half.
Num tanh(const Num &x) {
  using namespace coefficients;
  bool single = x.bits() == 32;
  Num a = abs(x);
  Num z = a * a;
  Num p = single ? horner(z, kTanhF32) : horner(z, kTanhF64);
  Num small = fma(a * z, p, a);
  Num bounded = atMost(a, single ? 9.5 : 20.0); // tanh rounds to 1 before
  ScaledExp e = expNormal(bounded + bounded);
  Num large = 1.0 - 2.0 / fma(e.p, e.scale, 1.0);
  return copySign(select(a < 0.625, small, large), x);
}

// Below 15/16 an odd polynomial, above 1 - erfc(|x|) with ln erfc a polynomial:
// erfc is below 0.19 there, so the error of the exponential counts little.
static Num erfF32(const Num &x) {
  using namespace coefficients;
  Num a = abs(x);
  Num small = fma(a, horner(a * a, kErfF32), a);
  Num bounded = atMost(a, 4.0); // erf rounds to 1 before
  ScaledExp e = expNormal(horner(bounded, kErfcLogF32));
  Num large = fma(-e.p, e.scale, 1.0);
  return copySign(select(a < 0.9375, small, large), x);
}

// As above, with erfc(|x|) = exp(-x^2) P(t), t = (|x|-2)/(|x|+2).
static Num erfF64(const Num &x) {
  using namespace coefficients;
  Num a = abs(x);
  Num small = fma(a, horner(a * a, kErfF64), a);
  Num bounded = atMost(a, 6.0);
  Num t = (bounded - 2.0) / (bounded + 2.0);
  ScaledExp e = expNormal(-(bounded * bounded));
  Num large = fma(-(e.p * e.scale), horner(t, kErfcxF64), 1.0);
  return copySign(select(a < 0.9375, small, large), x);
}

Num erf(const Num &x) { return x.bits() == 32 ? erfF32(x) : erfF64(x); }

} // namespace nova::expand
