//===- floats_test.cpp - Float arithmetic of tile programs ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ApplyElements.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace nova;
using namespace nova::test;

using Doubles = std::vector<double>;
using Floats = std::vector<float>;
using Halves = std::vector<uint16_t>; // bits of f16 or bf16

static const double inf = INFINITY, nan64 = NAN;

/// Equal, with NaN equal to NaN and zeros told apart.
template <typename T>
static void expectSame(const std::vector<T> &got, const std::vector<T> &want,
                       const std::string &what = "") {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    bool same = std::isnan(want[i])
                    ? std::isnan(got[i])
                    : got[i] == want[i] &&
                          std::signbit(got[i]) == std::signbit(want[i]);
    EXPECT_TRUE(same) << what << " at " << i << ": " << got[i] << ", expected "
                      << want[i];
  }
}

static Doubles numbersNear(double center, double spread) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(center - spread,
                                                 center + spread);
  Doubles numbers{0.0, -0.0, inf, -inf, nan64, 1, -1, 2.5, -2.5};
  while (numbers.size() < 64)
    numbers.push_back(uniform(random));
  return numbers;
}

struct UnaryCase {
  const char *name;
  double (*expected)(double);
};
static const UnaryCase unaryCases[] = {
    {"arith.negf", [](double x) { return -x; }},
    {"math.absf", [](double x) { return std::fabs(x); }},
    {"math.acos", [](double x) { return std::acos(x); }},
    {"math.acosh", [](double x) { return std::acosh(x); }},
    {"math.asin", [](double x) { return std::asin(x); }},
    {"math.asinh", [](double x) { return std::asinh(x); }},
    {"math.atan", [](double x) { return std::atan(x); }},
    {"math.atanh", [](double x) { return std::atanh(x); }},
    {"math.cbrt", [](double x) { return std::cbrt(x); }},
    {"math.ceil", [](double x) { return std::ceil(x); }},
    {"math.cos", [](double x) { return std::cos(x); }},
    {"math.cosh", [](double x) { return std::cosh(x); }},
    {"math.erf", [](double x) { return std::erf(x); }},
    {"math.erfc", [](double x) { return std::erfc(x); }},
    {"math.exp", [](double x) { return std::exp(x); }},
    {"math.exp2", [](double x) { return std::exp2(x); }},
    {"math.expm1", [](double x) { return std::expm1(x); }},
    {"math.floor", [](double x) { return std::floor(x); }},
    {"math.log", [](double x) { return std::log(x); }},
    {"math.log10", [](double x) { return std::log10(x); }},
    {"math.log1p", [](double x) { return std::log1p(x); }},
    {"math.log2", [](double x) { return std::log2(x); }},
    {"math.round", [](double x) { return std::round(x); }},
    {"math.roundeven", [](double x) { return std::rint(x); }},
    {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"math.sin", [](double x) { return std::sin(x); }},
    {"math.sinh", [](double x) { return std::sinh(x); }},
    {"math.sqrt", [](double x) { return std::sqrt(x); }},
    {"math.tan", [](double x) { return std::tan(x); }},
    {"math.tanh", [](double x) { return std::tanh(x); }},
    {"math.trunc", [](double x) { return std::trunc(x); }},
};

TEST(Floats, UnaryFunctions) {
  Doubles wide = numbersNear(0, 3);
  Floats narrow(wide.begin(), wide.end());
  for (const UnaryCase &unary : unaryCases) {
    Doubles want64;
    for (double x : wide)
      want64.push_back(unary.expected(x));
    expectSame(apply<double>(unary.name + std::string(" %a : T:f64"), "f64",
                             {"f64"}, wide),
               want64, unary.name);
    Floats want32; // Of double precision, rounded once.
    for (float x : narrow)
      want32.push_back(float(unary.expected(x)));
    expectSame(apply<float>(unary.name + std::string(" %a : T:f32"), "f32",
                            {"f32"}, narrow),
               want32, unary.name);
  }
}

TEST(Floats, BinaryFunctions) {
  struct Case {
    const char *name;
    float (*expected)(float, float);
  };
  // Float32 arithmetic of the host is correctly rounded.
  const Case cases[] = {
      {"arith.addf", [](float a, float b) { return a + b; }},
      {"arith.subf", [](float a, float b) { return a - b; }},
      {"arith.mulf", [](float a, float b) { return a * b; }},
      {"arith.divf", [](float a, float b) { return a / b; }},
      {"arith.remf", [](float a, float b) { return std::fmod(a, b); }},
      {"math.atan2",
       [](float a, float b) {
         return float(std::atan2(double(a), double(b)));
       }},
      {"math.copysign", [](float a, float b) { return std::copysign(a, b); }},
      {"math.powf",
       [](float a, float b) { return float(std::pow(double(a), double(b))); }},
  };
  Doubles base = numbersNear(0, 3);
  Floats a, b, want;
  for (double x : base)
    for (double y : base)
      a.push_back(x), b.push_back(y);
  a.insert(a.end(), {3e38f, 1e-38f, 1e-45f, 1e20f});
  b.insert(b.end(), {3e38f, 1e-3f, 0.5f, 1e20f});
  for (const Case &binary : cases) {
    want.clear();
    for (size_t i = 0; i < a.size(); ++i)
      want.push_back(binary.expected(a[i], b[i]));
    expectSame(apply<float>(binary.name + std::string(" %a, %b : T:f32"), "f32",
                            {"f32", "f32"}, a, b),
               want, binary.name);
  }
}

TEST(Floats, MaximumPropagatesNaNAndOrdersZeros) {
  Floats a{1, NAN, 1, NAN, 0.f, -0.f, -INFINITY},
      b{2, 1, NAN, NAN, -0.f, 0.f, 1};
  auto both = [&](const std::string &name) {
    return apply<float>("arith." + name + " %a, %b : T:f32", "f32",
                        {"f32", "f32"}, a, b);
  };
  expectSame(both("maximumf"), {2, NAN, NAN, NAN, 0.f, 0.f, 1});
  expectSame(both("minimumf"), {1, NAN, NAN, NAN, -0.f, -0.f, -INFINITY});
  expectSame(both("maxnumf"), {2, 1, 1, NAN, 0.f, 0.f, 1});
  expectSame(both("minnumf"), {1, 1, 1, NAN, -0.f, -0.f, -INFINITY});
}

TEST(Floats, FmaRoundsOnce) {
  float almost = 1 + std::numeric_limits<float>::epsilon();
  float square = -(almost * almost);
  Floats want{std::fma(almost, almost, square)};
  ASSERT_NE(want[0], 0);
  expectSame(apply<float>("math.fma %a, %b, %c : T:f32", "f32",
                          {"f32", "f32", "f32"}, Floats{almost}, Floats{almost},
                          Floats{square}),
             want);
  double near = 1 + std::numeric_limits<double>::epsilon();
  expectSame(apply<double>("math.fma %a, %b, %c : T:f64", "f64",
                           {"f64", "f64", "f64"}, Doubles{near}, Doubles{near},
                           Doubles{-(near * near)}),
             {std::fma(near, near, -(near * near))});
}

TEST(Floats, ClampPowerAndPredicates) {
  expectSame(apply<float>("math.clampf %a to [%b, %c] : T:f32", "f32",
                          {"f32", "f32", "f32"}, Floats{-3, 0.5, 7},
                          Floats{-1, -1, -1}, Floats{1, 1, 1}),
             {-1, 0.5, 1});
  expectSame(apply<double>("math.fpowi %a, %b : T:f64, T:i32", "f64",
                           {"f64", "i32"}, Doubles{2, -2, 4},
                           std::vector<int32_t>{10, 3, -1}),
             {1024, -8, 0.25});
  Floats a{1, INFINITY, -INFINITY, NAN};
  using Bools = std::vector<uint8_t>;
  auto is = [&](const std::string &what) {
    return apply<uint8_t>("math.is" + what + " %a : T:f32", "i1", {"f32"}, a);
  };
  EXPECT_EQ(is("finite"), (Bools{1, 0, 0, 0}));
  EXPECT_EQ(is("inf"), (Bools{0, 1, 1, 0}));
  EXPECT_EQ(is("nan"), (Bools{0, 0, 0, 1}));
}

TEST(Floats, Comparisons) {
  Floats a{1, 2, 2, NAN}, b{2, 1, 2, 1};
  // Less, greater, equal, unordered.
  const std::pair<const char *, std::vector<uint8_t>> cases[] = {
      {"false", {0, 0, 0, 0}}, {"oeq", {0, 0, 1, 0}}, {"ogt", {0, 1, 0, 0}},
      {"oge", {0, 1, 1, 0}},   {"olt", {1, 0, 0, 0}}, {"ole", {1, 0, 1, 0}},
      {"one", {1, 1, 0, 0}},   {"ord", {1, 1, 1, 0}}, {"ueq", {0, 0, 1, 1}},
      {"ugt", {0, 1, 0, 1}},   {"uge", {0, 1, 1, 1}}, {"ult", {1, 0, 0, 1}},
      {"ule", {1, 0, 1, 1}},   {"une", {1, 1, 0, 1}}, {"uno", {0, 0, 0, 1}},
      {"true", {1, 1, 1, 1}}};
  for (const auto &[predicate, want] : cases)
    EXPECT_EQ(apply<uint8_t>(std::string("arith.cmpf ") + predicate +
                                 ", %a, %b : T:f32",
                             "i1", {"f32", "f32"}, a, b),
              want)
        << predicate;
}

//===----------------------------------------------------------------------===//
// Narrow types
//===----------------------------------------------------------------------===//

static double halfValue(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                    : std::ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}
static double bfloatValue(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

static Halves allHalves() {
  Halves all(65536);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = i;
  return all;
}

TEST(Narrow, EveryValueExtends) {
  Floats f16 = apply<float>("arith.extf %a : T:f16 to T:f32", "f32", {"f16"},
                            allHalves());
  Floats bf16 = apply<float>("arith.extf %a : T:bf16 to T:f32", "f32", {"bf16"},
                             allHalves());
  Floats want16, wantB;
  for (uint16_t bits : allHalves())
    want16.push_back(halfValue(bits)), wantB.push_back(bfloatValue(bits));
  expectSame(f16, want16, "f16");
  expectSame(bf16, wantB, "bf16");
}

/// Whether `got` is the value of the type nearest to `x`, ties to even.
static bool isNearest(double x, uint16_t got, double (*value)(uint16_t),
                      uint16_t infinity) {
  if (std::isnan(x))
    return std::isnan(value(got));
  if (std::signbit(x) != (got >> 15))
    return false;
  uint16_t magnitude = got & 0x7fff;
  // What infinity would be if the exponent went on: where rounding overflows.
  auto at = [&](uint16_t bits) {
    return bits == infinity ? 2 * value(infinity - 1) - value(infinity - 2)
                            : value(bits);
  };
  x = std::fabs(x);
  if (std::isinf(x))
    return magnitude == infinity;
  if (magnitude > infinity)
    return false;
  double error = std::fabs(x - at(magnitude));
  bool even = magnitude % 2 == 0;
  if (magnitude < infinity) {
    double above = std::fabs(at(magnitude + 1) - x);
    if (above < error || (above == error && !even))
      return false;
  } else if (x > at(infinity)) {
    return true;
  }
  if (magnitude > 0) {
    double below = std::fabs(x - at(magnitude - 1));
    if (below < error || (below == error && !even))
      return false;
  }
  return true;
}

TEST(Narrow, TruncationRoundsToNearestEven) {
  std::mt19937_64 random(3);
  Doubles x{0.0,      -0.0,  inf,  nan64,  65504,
            65519.99, 65520, 1e30, 3.4e38, 3.39e38};
  for (int i = 0; i < 20000; ++i) {
    // Random numbers, and the middles between two neighbours.
    x.push_back(std::ldexp(std::uniform_real_distribution<>(-2, 2)(random),
                           int(random() % 60) - 40));
    uint16_t bits = random() % 0x7bff;
    x.push_back((halfValue(bits) + halfValue(bits + 1)) / 2);
    x.push_back((bfloatValue(bits) + bfloatValue(bits + 1)) / 2);
  }
  Halves f16 =
      apply<uint16_t>("arith.truncf %a : T:f64 to T:f16", "f16", {"f64"}, x);
  Halves bf16 =
      apply<uint16_t>("arith.truncf %a : T:f64 to T:bf16", "bf16", {"f64"}, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(isNearest(x[i], f16[i], halfValue, 0x7c00)) << x[i];
    EXPECT_TRUE(isNearest(x[i], bf16[i], bfloatValue, 0x7f80)) << x[i];
  }
}

TEST(Narrow, ArithmeticIsThatOfFloat32Rounded) {
  std::mt19937 random(5);
  Halves a, b;
  for (int i = 0; i < 4000; ++i)
    a.push_back(random()), b.push_back(random());
  for (const char *type : {"f16", "bf16"}) {
    auto value = type[0] == 'f' ? halfValue : bfloatValue;
    uint16_t infinity = type[0] == 'f' ? 0x7c00 : 0x7f80;
    std::string suffix = std::string(" %a, %b : T:") + type;
    Halves sum =
        apply<uint16_t>("arith.addf" + suffix, type, {type, type}, a, b);
    Halves quotient =
        apply<uint16_t>("arith.divf" + suffix, type, {type, type}, a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      float x = value(a[i]), y = value(b[i]);
      EXPECT_TRUE(isNearest(x + y, sum[i], value, infinity) || x + y == 0)
          << x << " + " << y;
      EXPECT_TRUE(isNearest(x / y, quotient[i], value, infinity))
          << x << " / " << y;
    }
  }
}

TEST(Narrow, FmaGoesThroughFloat32) {
  // (1 + 3/128)^2 - 1 = (1.5 + 9/512) / 32: were the product rounded, 1.5 / 32.
  EXPECT_EQ(apply<uint16_t>("math.fma %a, %b, %c : T:bf16", "bf16",
                            {"bf16", "bf16", "bf16"}, Halves{0x3f83},
                            Halves{0x3f83}, Halves{0xbf80}),
            (Halves{0x3d42}));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

TEST(Conversions, IntegersToFloatsRoundOnce) {
  // Rounded to double first, this would become a tie of float32.
  int64_t tricky = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  std::vector<int64_t> a{tricky, -tricky, 3, -3, INT64_MIN};
  Floats want(a.begin(), a.end());
  expectSame(
      apply<float>("arith.sitofp %a : T:i64 to T:f32", "f32", {"i64"}, a),
      want);
  expectSame(apply<float>("arith.uitofp %a : T:i8 to T:f32", "f32", {"i8"},
                          std::vector<int8_t>{-1, 5}),
             {255, 5});
  expectSame(apply<float>("arith.uitofp %a : T:i1 to T:f32", "f32", {"i1"},
                          std::vector<uint8_t>{1, 0}),
             {1, 0});
}

TEST(Conversions, FloatsToIntegersClamp) {
  EXPECT_EQ(apply<int8_t>("arith.fptosi %a : T:f32 to T:i8", "i8", {"f32"},
                          Floats{1.9, -1.9, 300, -300, NAN, INFINITY}),
            (std::vector<int8_t>{1, -1, 127, -128, 0, 127}));
  EXPECT_EQ(apply<uint8_t>("arith.fptoui %a : T:f32 to T:i8", "i8", {"f32"},
                           Floats{1.9, -1.9, 300, NAN}),
            (std::vector<uint8_t>{1, 0, 255, 0}));
}

TEST(Conversions, Integers) {
  using I8 = std::vector<int8_t>;
  EXPECT_EQ(apply<int32_t>("arith.extsi %a : T:i8 to T:i32", "i32", {"i8"},
                           I8{-1, 7}),
            (std::vector<int32_t>{-1, 7}));
  EXPECT_EQ(apply<int32_t>("arith.extui %a : T:i8 to T:i32", "i32", {"i8"},
                           I8{-1, 7}),
            (std::vector<int32_t>{255, 7}));
  EXPECT_EQ(
      apply<int32_t>("arith.extsi %a : T:i1 to T:i32", "i32", {"i1"}, I8{1, 0}),
      (std::vector<int32_t>{-1, 0}));
  EXPECT_EQ(apply<int8_t>("arith.trunci %a : T:i32 to T:i8", "i8", {"i32"},
                          std::vector<int32_t>{511, 128}),
            (I8{-1, -128}));
  EXPECT_EQ(apply<int64_t>("arith.index_cast %a : T:i32 to T:index", "index",
                           {"i32"}, std::vector<int32_t>{-3}),
            (std::vector<int64_t>{-3}));
  EXPECT_EQ(apply<int64_t>("arith.index_castui %a : T:i32 to T:index", "index",
                           {"i32"}, std::vector<int32_t>{-3}),
            (std::vector<int64_t>{0xfffffffd}));
}

TEST(Conversions, BitcastKeepsBits) {
  EXPECT_EQ(apply<uint32_t>("arith.bitcast %a : T:i32 to T:f32", "f32", {"i32"},
                            std::vector<uint32_t>{0x7f800001, 0xffc00123}),
            (std::vector<uint32_t>{0x7f800001, 0xffc00123}));
}

TEST(Conversions, OtherRoundingModesAreNotThere) {
  applyFails("arith.truncf at grid point 0: not an operation of tile programs",
             "arith.truncf %a upward : T:f64 to T:f32", "f32", {"f64"},
             Doubles{1});
}
