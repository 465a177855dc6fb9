//===- float64_test.cpp - Unary functions on double -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against long double, which has 11 more bits on x86; skipped where it is
// double, as there is then no reference.
//
//===----------------------------------------------------------------------===//

#include "Random.h"
#include "Sweep.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

using Real = long double;

struct Function {
  const char *op;
  Real (*reference)(Real);
  double bound;               // in ulp; what nova/Math/ExpandMath.h documents
  double low, high;           // where the values are not trivial
  std::vector<double> points; // where something changes
};

Real rsqrt(Real x) { return 1 / std::sqrt(x); }

const Function kFunctions[] = {
    {"exp",
     std::exp,
     1.5,
     -750,
     715,
     {709.782712893384, -708.39641853226, -745.1332191019412,
      0.34657359027997264}},
    {"exp2", std::exp2, 1.5, -1080, 1030, {1024, -1022, -1074, -1075, 0.5}},
    {"expm1",
     std::expm1,
     2.0,
     -40,
     715,
     {709.782712893384, -37.42994775023705, 0.34657359027997264}},
    {"log", std::log, 1.5, 0, 4, {1, 4. / 3, 2. / 3}},
    {"log2", std::log2, 2.0, 0, 4, {1, 4. / 3, 2. / 3}},
    {"log1p", std::log1p, 2.5, -1, 4, {1. / 3, -1. / 3, -1, 0x1p53}},
    {"tanh", std::tanh, 2.0, -21, 21, {0.625, 19.06154746539849, 20}},
    {"erf", std::erf, 2.0, -6.5, 6.5, {0.9375, 5.921587195794508, 6}},
    {"sin",
     std::sin,
     3.0,
     -100,
     100,
     {0x1p20, 0x1p53, 3.141592653589793, 6381956970095103 * 0x1p797}},
    {"cos",
     std::cos,
     3.0,
     -100,
     100,
     {0x1p20, 0x1p53, 1.5707963267948966, 6381956970095103 * 0x1p797}},
    {"rsqrt", rsqrt, 1.5, 0, 4, {1, 2}},
};

void PrintTo(const Function &f, std::ostream *stream) { *stream << f.op; }

class Float64 : public testing::TestWithParam<Function> {
protected:
  void SetUp() override {
    if (std::numeric_limits<Real>::digits < 64)
      GTEST_SKIP() << "long double has no more bits than double here";
  }

  static std::string body() {
    return std::string("%r = math.") + GetParam().op + " %a : VT";
  }

  template <typename Input>
  static void check(const char *what, bool contract, uint64_t total,
                    Input input) {
    const Function &f = GetParam();
    JitOptions options;
    options.type = "f64";
    options.contract = contract;
    JitKernel kernel(body(), options);
    auto reference = [&](double a, double) { return f.reference(a); };
    Worst worst = sweep<double, Real>(kernel, total, input, reference);
    std::printf("f64 %-6s %-10s %9llu values: %.4f ulp at %a (%.17g): got "
                "%.17g, reference %.17g\n",
                f.op, what, (unsigned long long)worst.count, worst.ulp, worst.a,
                worst.a, worst.got, worst.want);
    std::fflush(stdout);
    EXPECT_LE(worst.ulp, f.bound) << f.op << "(" << worst.a << ")";
  }
};

uint64_t samples() { return exhaustive ? 100'000'000 : 1'000'000; }

TEST_P(Float64, AllExponents) {
  for (bool contract : {false, true})
    check(contract ? "contracted" : "bits", contract, samples(),
          [](uint64_t i, double &a, double &b) {
            a = std::bit_cast<double>(random64(i));
            b = 0;
          });
}

TEST_P(Float64, UsualRange) {
  const Function &f = GetParam();
  check("range", false, samples(), [&](uint64_t i, double &a, double &b) {
    a = f.low + (f.high - f.low) * randomUnit(i);
    b = 0;
  });
  check("near 0", false, samples(), [&](uint64_t i, double &a, double &b) {
    a = (2 * randomUnit(i) - 1) * std::min(1.0, f.high);
    b = 0;
  });
}

TEST_P(Float64, Boundaries) {
  std::vector<double> points;
  auto around = [&](double center) {
    uint64_t bits = std::bit_cast<uint64_t>(center);
    for (uint64_t i = 0; i < 4096; ++i)
      points.push_back(std::bit_cast<double>(bits + i - 2048));
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (double x : {0.0, -0.0, inf, -inf, 0x1p-1022, -0x1p-1022, 1.0, -1.0,
                   std::numeric_limits<double>::quiet_NaN()})
    around(x);
  for (double x : GetParam().points) {
    around(x);
    around(-x);
  }
  check("boundaries", false, points.size(),
        [&](uint64_t i, double &a, double &b) {
          a = points[i];
          b = 0;
        });
}

TEST_P(Float64, CallsNothing) {
  for (unsigned lanes : {1u, 4u}) {
    JitOptions options;
    options.type = "f64";
    options.lanes = lanes;
    EXPECT_EQ(JitKernel(body(), options).undefined(),
              std::vector<std::string>());
  }
}

TEST_P(Float64, Cost) {
  if (!showCost && !showAssembly)
    GTEST_SKIP() << "--cost shows it";
  JitOptions options;
  options.type = "f64";
  options.lanes = 4;
  JitKernel kernel(body(), options);
  showCostOf<double>(GetParam().op, kernel, 0.01, 4.01);
}

INSTANTIATE_TEST_SUITE_P(Math, Float64, testing::ValuesIn(kFunctions),
                         [](const auto &info) {
                           return std::string(info.param.op);
                         });

} // namespace
