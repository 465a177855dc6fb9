//===- pow_test.cpp - Powers ----------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Random.h"
#include "Sweep.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T> JitOptions optionsFor(bool contract = false) {
  JitOptions options;
  options.type = sizeof(T) == 4 ? "f32" : "f64";
  options.contract = contract;
  return options;
}

const std::string kPow = "%r = math.powf %a, %b : VT";

/// `R` is the reference's type: double for float, long double for double.
template <typename T, typename R, typename Input>
void checkPow(const char *what, double bound, uint64_t total, Input input,
              const std::string &body = kPow, bool contract = false) {
  JitKernel kernel(body, optionsFor<T>(contract));
  EXPECT_EQ(kernel.undefined(), std::vector<std::string>());
  Worst worst = sweep<T, R>(kernel, total, input,
                            [](T a, T b) { return std::pow(R(a), R(b)); });
  std::printf("pow f%zu %-12s %9llu pairs: %.4f ulp at (%a, %a) = (%.17g, "
              "%.17g): got %.17g, reference %.17g\n",
              8 * sizeof(T), what, (unsigned long long)worst.count, worst.ulp,
              worst.a, worst.b, worst.a, worst.b, worst.got, worst.want);
  std::fflush(stdout);
  EXPECT_LE(worst.ulp, bound) << "pow(" << worst.a << ", " << worst.b << ")";
}

uint64_t samples() { return exhaustive ? 1'000'000'000 : 8'000'000; }

/// x of any exponent and a y that brings the result across the whole range.
template <typename T> void spread(uint64_t i, T &x, T &y) {
  constexpr int maxExponent = std::numeric_limits<T>::max_exponent;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  x = std::fabs(std::bit_cast<T>(Bits(random64(2 * i))));
  double target = (2.4 * randomUnit(2 * i + 1) - 1.2) * maxExponent;
  double log = std::log2(double(x));
  y = T(log != 0 && std::isfinite(log) ? target / log : target);
}

TEST(Pow, Float32Spread) {
  for (bool contract : {false, true})
    checkPow<float, double>(contract ? "contracted" : "spread", 1.0,
                            2 * samples(), spread<float>, kPow, contract);
}

TEST(Pow, ContractionChangesNothing) {
  for (const char *type : {"f32", "f64"}) {
    EXPECT_EQ(contractibleSums(kPow, type), 0u) << type;
    EXPECT_TRUE(ptxOf(kPow, type, true) == ptxOf(kPow, type, false)) << type;
  }
}

TEST(Pow, Float32NearOne) {
  checkPow<float, double>("near 1", 1.0, samples(),
                          [](uint64_t i, float &x, float &y) {
                            int step = int(random64(2 * i) % 4096) - 2048;
                            x = std::bit_cast<float>(0x3f800000 + step);
                            double log = std::log2(double(x));
                            double target = 300 * randomUnit(2 * i + 1) - 150;
                            y = float(log != 0 ? target / log : target);
                          });
}

TEST(Pow, Float32AnyBits) {
  checkPow<float, double>("any bits", 1.0, samples(),
                          [](uint64_t i, float &x, float &y) {
                            uint64_t r = random64(i);
                            x = std::bit_cast<float>(uint32_t(r));
                            y = std::bit_cast<float>(uint32_t(r >> 32));
                          });
}

TEST(Pow, Float64Spread) {
  for (bool contract : {false, true})
    checkPow<double, long double>(contract ? "contracted" : "spread", 1.5,
                                  samples() / 8, spread<double>, kPow,
                                  contract);
}

TEST(Pow, Float64NearOne) {
  checkPow<double, long double>(
      "near 1", 1.5, samples() / 8, [](uint64_t i, double &x, double &y) {
        x = 1 + (randomUnit(2 * i) - 0.5) * std::exp2(-50 * randomUnit(3 * i));
        double log = std::log2(x);
        double target = 2200 * randomUnit(2 * i + 1) - 1100;
        y = log != 0 ? target / log : target;
      });
}

/// C99 Annex F.9.4.4: every pair of special and ordinary values.
template <typename T> std::vector<T> specialValues() {
  using L = std::numeric_limits<T>;
  double integerLimit = std::ldexp(1.0, L::digits);
  std::vector<T> values;
  for (double v : {0.0,
                   0.25,
                   0.5,
                   1.0,
                   1.5,
                   2.0,
                   2.5,
                   3.0,
                   4.0,
                   7.0,
                   126.0,
                   149.0,
                   1023.0,
                   1074.0,
                   integerLimit / 2 - 0.5,
                   integerLimit / 2 + 1,
                   integerLimit - 1,
                   integerLimit,
                   integerLimit + 2,
                   double(L::max()),
                   double(L::min()),
                   double(L::denorm_min()),
                   1.0 + double(L::epsilon()),
                   1.0 - double(L::epsilon()) / 2,
                   kInf})
    for (double s : {1.0, -1.0})
      values.push_back(T(s * v));
  values.push_back(T(kNan));
  return values;
}

template <typename T, typename R> void checkSpecialPairs(double bound) {
  std::vector<T> values = specialValues<T>();
  checkPow<T, R>("special", bound, values.size() * values.size(),
                 [&](uint64_t i, T &x, T &y) {
                   x = values[i / values.size()];
                   y = values[i % values.size()];
                 });
}

TEST(Pow, Float32SpecialPairs) { checkSpecialPairs<float, double>(1.0); }
TEST(Pow, Float64SpecialPairs) { checkSpecialPairs<double, long double>(1.5); }

// Constant exponents that become products.
TEST(Pow, ConstantExponents) {
  struct {
    const char *exponent;
    double bound;
  } cases[] = {{"0.0", 0},    {"1.0", 0},    {"2.0", 0.5},  {"3.0", 1.5},
               {"4.0", 2.0},  {"-1.0", 0.5}, {"-2.0", 2.0}, {"0.5", 0.5},
               {"-0.5", 1.5}, {"5.0", 1.0},  {"-3.0", 1.0}, {"1.5", 1.0},
               {"10.0", 1.0}};
  for (auto [exponent, bound] : cases) {
    std::string body = std::string("%y = arith.constant dense<") + exponent +
                       "> : VT\n%r = math.powf %a, %y : VT";
    float y = std::stof(exponent);
    checkPow<float, double>(
        exponent, bound, uint64_t(1) << 22,
        [&](uint64_t i, float &a, float &b) {
          a = std::bit_cast<float>(uint32_t(i << 10));
          b = y;
        },
        body);
  }
}

TEST(Pow, FPowIConstantAndVariable) {
  for (int n : {-7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 31}) {
    std::string number = std::to_string(n);
    for (bool variable : {false, true}) {
      std::string body =
          "%n = arith.constant dense<" + number + "> : vector<8xi32>\n" +
          (variable ? "%z = arith.fptosi %b : VT to vector<8xi32>\n"
                      "%r = math.fpowi %a, %z : VT, vector<8xi32>"
                    : "%r = math.fpowi %a, %n : VT, vector<8xi32>");
      checkPow<float, double>(
          number.c_str(), 2.0, uint64_t(1) << 18,
          [&](uint64_t i, float &a, float &b) {
            a = std::bit_cast<float>(uint32_t(i << 14));
            b = float(n);
          },
          body);
    }
  }
}

// ipowi wraps; the float result carries integers of up to 24 bits.
TEST(Pow, IPowIConstant) {
  for (int n : {-3, -2, -1, 0, 1, 2, 3, 5, 6}) {
    std::string body = "%int = arith.fptosi %a : VT to vector<8xi32>\n"
                       "%n = arith.constant dense<" +
                       std::to_string(n) +
                       "> : vector<8xi32>\n"
                       "%p = math.ipowi %int, %n : vector<8xi32>\n"
                       "%r = arith.sitofp %p : vector<8xi32> to VT";
    JitKernel kernel(body, {});
    EXPECT_EQ(kernel.undefined(), std::vector<std::string>());
    alignas(64) static float a[kBlock], r[kBlock];
    for (size_t i = 0; i < kBlock; ++i)
      a[i] = float(int(i % 31) - 15);
    kernel(a, a, r);
    for (size_t i = 0; i < kBlock; ++i) {
      if (a[i] == 0 && n < 0)
        continue; // undefined
      double want = std::trunc(std::pow(double(a[i]), n));
      EXPECT_EQ(r[i], float(want)) << a[i] << "^" << n;
    }
  }
}

TEST(Pow, Cost) {
  if (!showCost && !showAssembly)
    GTEST_SKIP() << "--cost shows it";
  JitOptions doubles = optionsFor<double>();
  doubles.lanes = 4;
  showCostOf<float>("pow", JitKernel(kPow, optionsFor<float>()), 0.01, 4.01);
  showCostOf<double>("pow", JitKernel(kPow, doubles), 0.01, 4.01);
}

} // namespace
