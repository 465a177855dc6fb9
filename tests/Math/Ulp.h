//===- Ulp.h - Errors in units in the last place --------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The unit is that of the reference value in the tested type; below the normal
// range it is the spacing of the subnormals. Infinity counts as the next power
// of two after the largest finite value, so that the overflow threshold is held
// to the same bound. NaN must meet NaN and the sign of zero must be right.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_MATH_ULP_H
#define NOVA_TESTS_MATH_ULP_H

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace nova::test {

inline constexpr double kWrong = 1e30; // not an error but a wrong answer

/// Of a float against a double reference.
inline double ulpError(float got, double want) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : kWrong;
  if (std::signbit(got) != std::signbit(want))
    return kWrong;
  double g = std::isinf(got) ? 0x1p128 : std::fabs(double(got));
  double w = std::min(std::fabs(want), 0x1p128);
  int exponent = int(std::bit_cast<uint64_t>(w) >> 52) - 1023;
  exponent = std::clamp(exponent, -126, 127);
  double perUlp = std::bit_cast<double>(uint64_t(23 - exponent + 1023) << 52);
  return std::fabs(g - w) * perUlp;
}

/// Of a double against a long double reference (64 bits of mantissa on x86).
inline double ulpError(double got, long double want) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : kWrong;
  if (std::signbit(got) != std::signbit(want))
    return kWrong;
  long double g = std::isinf(got) ? 0x1p1024L : std::fabs((long double)got);
  long double w = std::min(std::fabs(want), 0x1p1024L);
  int exponent = w == 0 ? -1022 : std::clamp(std::ilogb(w), -1022, 1023);
  return double(std::ldexp(std::fabs(g - w), 52 - exponent));
}

} // namespace nova::test

#endif // NOVA_TESTS_MATH_ULP_H
