//===- Expansions.h - One function per elementary function ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Math. Each emits the expansion of one function on f32 or f64
// values (scalar or vector). Methods and errors: nova/Math/ExpandMath.h.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_MATH_EXPANSIONS_H
#define NOVA_LIB_MATH_EXPANSIONS_H

#include "Emitter.h"

namespace nova::expand {

// ExpandExp.cpp
Num exp(const Num &x);
Num exp2(const Num &x);
/// exp2(x + low) for |low| < 2^-30.
Num exp2(const Num &x, const Num &low);
Num expm1(const Num &x);
/// exp(x) = p * scale for x in [-87, 88] (f32) or [-708, 709] (f64); p is NaN
/// where x is. What tanh and erf need, who fuse the product into a sum.
struct ScaledExp {
  Num p, scale;
};
ScaledExp expNormal(const Num &x);

// ExpandLog.cpp
Num log(const Num &x);
Num log2(const Num &x);
Num log1p(const Num &x);

/// x = 2^e * (1 + f), f in [-1/3, 1/3], for a normal x > 0.
struct LogParts {
  Num e, f;
};
LogParts splitNormal(const Num &x);
/// The same of any x > 0. e is -inf where x is 0 and inf where x is infinite;
/// where x is NaN or negative both are some numbers.
LogParts splitAny(const Num &x);

// ExpandTanhErf.cpp
Num tanh(const Num &x);
Num erf(const Num &x);

// ExpandTrig.cpp
Num sin(const Num &x);
Num cos(const Num &x);

// ExpandPow.cpp
Num pow(const Num &x, const Num &y);
/// x^n for a constant n, or nothing where multiplying would lose too much.
std::optional<Num> powConstant(const Num &x, double n);
/// x^n of integers, wrapping, n constant.
Num powInteger(const Num &x, int64_t n);
Num rsqrt(const Num &x);

} // namespace nova::expand

#endif // NOVA_LIB_MATH_EXPANSIONS_H
