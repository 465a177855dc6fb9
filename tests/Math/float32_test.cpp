//===- float32_test.cpp - Unary functions over float32 --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sweep.h"

#include <gtest/gtest.h>

using namespace nova::test;

namespace {

struct Function {
  const char *op;
  double (*reference)(double);
  double bound; // in ulp; what nova/Math/ExpandMath.h documents
  std::vector<float> thresholds; // where something changes
};

double rsqrt(double x) { return 1 / std::sqrt(x); }

const Function kFunctions[] = {
    {"exp", std::exp, 1.0, {88.72284f, -87.33655f, -103.97208f, 0.34657359f}},
    {"exp2", std::exp2, 1.0, {128, -126, -149, -150, 0.5f}},
    {"expm1", std::expm1, 2.0, {88.72284f, -17.32868f, 0.34657359f}},
    {"log", std::log, 1.0, {1, 4.f / 3, 2.f / 3, 0x1p-126f}},
    {"log2", std::log2, 1.5, {1, 4.f / 3, 2.f / 3, 0x1p-126f}},
    {"log1p", std::log1p, 2.0, {1.f / 3, -1.f / 3, -1, 0x1p24f}},
    {"tanh", std::tanh, 1.5, {0.625f, 9.0109f, 9.5f}},
    {"erf", std::erf, 1.5, {0.9375f, 3.8325f, 4}},
    {"sin", std::sin, 2.0, {0.78539816f, 3.1415927f, 0x1p44f, 0x1p65f}},
    {"cos", std::cos, 2.0, {0.78539816f, 1.5707964f, 0x1p44f, 0x1p65f}},
    {"rsqrt", rsqrt, 1.5, {1, 2, 0x1p-126f}},
};

void PrintTo(const Function &f, std::ostream *stream) { *stream << f.op; }

std::string body(const Function &f) {
  return std::string("%r = math.") + f.op + " %a : VT";
}

void expectWithin(const Worst &worst, const Function &f, const char *what) {
  std::printf("%-6s %-10s %11llu values: %.4f ulp at %a (%.9g): got %.9g, "
              "reference %.12g\n",
              f.op, what, (unsigned long long)worst.count, worst.ulp, worst.a,
              worst.a, worst.got, worst.want);
  std::fflush(stdout);
  EXPECT_LE(worst.ulp, f.bound) << f.op << "(" << worst.a << ") = " << worst.got
                                << ", expected " << worst.want;
}

/// On 262144 values of every exponent.
void expectSameBits(const Function &f, const JitKernel &first,
                    const JitKernel &second) {
  alignas(64) float a[kBlock], x[kBlock], y[kBlock];
  for (uint32_t block = 0; block < 64; ++block) {
    for (uint32_t i = 0; i < kBlock; ++i)
      a[i] = std::bit_cast<float>((block * uint32_t(kBlock) + i) * 16381u);
    first(a, a, x);
    second(a, a, y);
    for (uint32_t i = 0; i < kBlock; ++i)
      ASSERT_TRUE(std::bit_cast<uint32_t>(x[i]) ==
                      std::bit_cast<uint32_t>(y[i]) ||
                  (std::isnan(x[i]) && std::isnan(y[i])))
          << f.op << "(" << a[i] << "): " << x[i] << " and " << y[i];
  }
}

class Float32 : public testing::TestWithParam<Function> {};

TEST_P(Float32, StaysWithinTheDocumentedBound) {
  const Function &f = GetParam();
  JitKernel kernel(body(f), {});
  // 251 is prime: over 17 M values of every exponent and both signs.
  uint64_t stride = exhaustive ? 1 : 251;
  auto input = [&](uint64_t i, float &a, float &b) {
    a = std::bit_cast<float>(uint32_t(i * stride));
    b = 0;
  };
  auto reference = [&](float a, float) { return f.reference(a); };
  uint64_t total = ((uint64_t(1) << 32) + stride - 1) / stride;
  expectWithin(sweep<float, double>(kernel, total, input, reference), f,
               exhaustive ? "all" : "sample");
}

TEST_P(Float32, IsRightAtBoundaries) {
  const Function &f = GetParam();
  std::vector<uint32_t> points;
  auto around = [&](uint32_t center) {
    for (uint32_t i = 0; i < 8192; ++i)
      points.push_back(center + i - 4096);
  };
  for (uint32_t special :
       {0u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x00800000u, 0x80800000u,
        0x3f800000u, 0xbf800000u, 0x7fc00000u})
    around(special);
  for (float threshold : f.thresholds) {
    around(std::bit_cast<uint32_t>(threshold));
    around(std::bit_cast<uint32_t>(-threshold));
  }
  auto input = [&](uint64_t i, float &a, float &b) {
    a = std::bit_cast<float>(points[i]);
    b = 0;
  };
  auto reference = [&](float a, float) { return f.reference(a); };
  JitKernel kernel(body(f), {});
  expectWithin(sweep<float, double>(kernel, points.size(), input, reference), f,
               "boundaries");
}

// GPU targets contract products and sums by default: there must be nothing to
// contract, in what the pass writes, in PTX, and in values on this machine.
TEST_P(Float32, ContractionChangesNothing) {
  const Function &f = GetParam();
  for (const char *type : {"f32", "f64"}) {
    EXPECT_EQ(contractibleSums(body(f), type), 0u) << type;
    EXPECT_TRUE(ptxOf(body(f), type, true) == ptxOf(body(f), type, false))
        << type;
  }
  JitOptions options;
  options.contract = true;
  JitKernel contracted(body(f), options);
  expectSameBits(f, JitKernel(body(f), {}), contracted);
}

TEST_P(Float32, CallsNothing) {
  const Function &f = GetParam();
  for (unsigned lanes : {1u, 8u, 16u}) {
    JitOptions options;
    options.lanes = lanes;
    EXPECT_EQ(JitKernel(body(f), options).undefined(),
              std::vector<std::string>());
  }
}

// The same expansion is what a GPU thread runs.
TEST_P(Float32, CallsNothingOnGpu) {
  const Function &f = GetParam();
  for (const char *type : {"f32", "f64"}) {
    std::string ptx = ptxOf(body(f), type);
    EXPECT_EQ(ptx.find("call"), std::string::npos) << ptx;
    EXPECT_EQ(ptx.find(".extern"), std::string::npos);
    EXPECT_NE(ptx.find("kernel"), std::string::npos);
  }
}

// Otherwise ContractionChangesNothing would show nothing.
TEST(Contraction, IsDoneWhenAskedFor) {
  for (bool contract : {false, true}) {
    JitOptions options;
    options.contract = contract;
    JitKernel kernel("%m = arith.mulf %a, %b : VT\n"
                     "%r = arith.addf %m, %a : VT",
                     options);
    alignas(64) float a[kBlock], b[kBlock], out[kBlock];
    for (size_t i = 0; i < kBlock; ++i) {
      a[i] = 1 + 0x1p-23f * float(i + 1);
      b[i] = -1 - 0x1p-23f * float(i + 3);
    }
    kernel(a, b, out);
    size_t fused = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      volatile float product = a[i] * b[i];
      fused += out[i] != product + a[i];
    }
    EXPECT_EQ(fused != 0, contract);
  }
}

// Lanes must not change values: a graph computes the same however it is cut.
TEST_P(Float32, ScalarEqualsVector) {
  const Function &f = GetParam();
  JitOptions options;
  options.lanes = 1;
  JitKernel scalar(body(f), options);
  expectSameBits(f, JitKernel(body(f), {}), scalar);
}

TEST_P(Float32, Cost) {
  if (!showCost && !showAssembly)
    GTEST_SKIP() << "--cost shows it";
  JitKernel kernel(body(GetParam()), {});
  showCostOf<float>(GetParam().op, kernel, 0.01, 4.01);
}

INSTANTIATE_TEST_SUITE_P(Math, Float32, testing::ValuesIn(kFunctions),
                         [](const auto &info) {
                           return std::string(info.param.op);
                         });

} // namespace
