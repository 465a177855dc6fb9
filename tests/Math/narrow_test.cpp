//===- narrow_test.cpp - f16 and bf16 are computed in f32 -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace nova::test;

namespace {

double rsqrt(double x) { return 1 / std::sqrt(x); }

const struct {
  const char *op;
  double (*reference)(double);
} kFunctions[] = {
    {"exp", std::exp},   {"exp2", std::exp2}, {"expm1", std::expm1},
    {"log", std::log},   {"log2", std::log2}, {"log1p", std::log1p},
    {"tanh", std::tanh}, {"erf", std::erf},   {"sin", std::sin},
    {"cos", std::cos},   {"rsqrt", rsqrt}};

float widen(uint16_t bits, bool brain) {
  if (brain)
    return std::bit_cast<float>(uint32_t(bits) << 16);
  _Float16 half;
  std::memcpy(&half, &bits, 2);
  return float(half);
}

/// Half a unit in the last place of the type at `x`, in f32's measure.
double halfUnit(double x, bool brain) {
  int exponent = x == 0 ? -1000 : std::ilogb(x);
  int least = brain ? -126 : -14, mantissa = brain ? 7 : 10;
  return std::ldexp(0.5, std::max(exponent, least) - mantissa);
}

// All 65536 values: within half a unit of the type, and a hundredth for the
// rounding in f32 that comes first.
void checkAll(const char *type, bool brain) {
  double largest = brain ? 0x1.fep127 : 65504;
  for (auto [op, reference] : kFunctions) {
    JitOptions options;
    options.type = type;
    JitKernel kernel(std::string("%r = math.") + op + " %a : VT", options);
    EXPECT_EQ(kernel.undefined(), std::vector<std::string>()) << op;
    alignas(64) uint16_t a[kBlock], r[kBlock];
    for (uint32_t block = 0; block < 65536; block += kBlock) {
      for (uint32_t i = 0; i < kBlock; ++i)
        a[i] = uint16_t(block + i);
      kernel(a, a, r);
      for (uint32_t i = 0; i < kBlock; ++i) {
        double x = widen(a[i], brain), got = widen(r[i], brain);
        double want = reference(x);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got)) << op << "(" << x << ") = " << got;
          continue;
        }
        double unit = halfUnit(std::min(std::fabs(want), largest), brain);
        if (std::fabs(want) > largest + unit)
          EXPECT_EQ(got, std::copysign(HUGE_VAL, want))
              << op << "(" << x << ")";
        else if (std::isinf(got))
          EXPECT_GE(std::fabs(want), largest + 0.99 * unit)
              << op << "(" << x << ")";
        else
          EXPECT_LE(std::fabs(got - want), 1.01 * unit)
              << op << "(" << x << ") = " << got << ", expected " << want;
        EXPECT_EQ(std::signbit(got), std::signbit(want))
            << op << "(" << x << ")";
      }
    }
  }
}

TEST(Narrow, Float16) { checkAll("f16", false); }
TEST(Narrow, BFloat16) { checkAll("bf16", true); }

} // namespace
