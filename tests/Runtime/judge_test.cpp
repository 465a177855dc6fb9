//===- judge_test.cpp - The rule of rightness -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Run/Judge.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

using namespace nova::run;
using nova::rt::DType;

namespace {

const Column f32 = columnOf("f32", false, false);
const double inf = std::numeric_limits<double>::infinity();
const double notANumber = std::numeric_limits<double>::quiet_NaN();

std::string pack(DType t, const std::vector<double> &values) {
  std::string bytes(values.size() * nova::rt::bytesOf(t), '\0');
  for (size_t i = 0; i < values.size(); ++i)
    nova::rt::storeElement(t, &bytes[i * nova::rt::bytesOf(t)], values[i]);
  return bytes;
}

Judgement judged(const std::vector<double> &ours,
                 const std::vector<double> &ref,
                 const std::vector<double> &in = {}, bool isLoss = false,
                 DType t = DType::F32, const Column &column = f32) {
  return judge(column, isLoss, t, ref.size(), pack(t, ours), pack(t, ref),
               pack(t, in));
}

} // namespace

TEST(Judge, Columns) {
  EXPECT_STREQ(columnOf("f32", false, false).name, "f32");
  EXPECT_STREQ(columnOf("tf32", false, false).name, "tf32");
  EXPECT_STREQ(columnOf("tf32", false, true).name, "f32")
      << "host multiplies in float32";
  EXPECT_STREQ(columnOf("bf16", false, true).name, "bf16");
  EXPECT_STREQ(columnOf("f32", true, true).name, "bf16")
      << "the graph itself multiplies 16-bit tensors";
  EXPECT_EQ(f32.tau, 1e-5);
  EXPECT_EQ(f32.tau2, 1e-5);
  EXPECT_EQ(f32.tauLoss, 2e-6);
}

TEST(Judge, EqualUsesNothing) {
  Judgement j = judged({1, -2, 3}, {1, -2, 3});
  EXPECT_EQ(j.verdict, Verdict::Passed);
  EXPECT_EQ(j.measure.largest(), 0);
}

TEST(Judge, EachElementIsRelativeToTheLargest) {
  // Two of these are 1e-5 of the largest |d| off: a bit more than the bound of
  // the small one, which is all its own value.
  double off = 1e-5 * 100;
  Judgement j = judged({100, 0.001 + 0.9 * off}, {100, 0.001});
  EXPECT_EQ(j.verdict, Verdict::Passed);
  EXPECT_NEAR(j.measure.element, 0.9, 1e-3);
  j = judged({100, 0.001 + 1.1 * off}, {100, 0.001});
  EXPECT_EQ(j.verdict, Verdict::Failed);
  EXPECT_NEAR(j.measure.element, 1.1, 1e-3);
  EXPECT_EQ(j.measure.worst, 1u);
}

TEST(Judge, AsAWholeIsStricterThanEachElement) {
  // Every element at 0.9 of its own bound, of which only one is large.
  std::vector<double> ref(100, 0), ours(100, 0);
  ref[0] = ours[0] = 1;
  for (size_t i = 1; i < 100; ++i)
    ours[i] = 0.9e-5;
  Judgement j = judged(ours, ref);
  EXPECT_LT(j.measure.element, 1);
  EXPECT_NEAR(j.measure.norm, 0.9 * std::sqrt(99.0), 1e-2);
  EXPECT_EQ(j.verdict, Verdict::Failed);
}

TEST(Judge, TwoUlpAreFree) {
  // 1000 moved to 1000.5: the error of rounding the result itself is 2^-14.
  double u = 0x1p-14;
  Judgement j = judged({1000.5 + 2 * u}, {1000.5}, {1000});
  EXPECT_EQ(j.measure.norm, 0);
  EXPECT_NE(j.verdict, Verdict::Failed);
  j = judged({1000.5 + 3 * u}, {1000.5}, {1000});
  EXPECT_EQ(j.verdict, Verdict::Failed) << "d is 0.5: tau of it is 5e-6";
}

TEST(Judge, AnUpdateIsMeasuredByHowFarItMoves) {
  // Off by 1e-5 of the value, but by a tenth of what was to be added.
  Judgement j = judged({1.0011}, {1.001}, {1.0});
  EXPECT_EQ(j.verdict, Verdict::Failed);
  j = judged({1.0011}, {1.001}, {}, false, DType::F32,
             columnOf("tf32", false, false));
  EXPECT_EQ(j.verdict, Verdict::Passed) << "the same as an output, in tf32";
}

TEST(Judge, UntestedWhenDoingNothingWouldPass) {
  EXPECT_EQ(judged({1, 2}, {1, 2}, {1, 2}).verdict, Verdict::Untested);
  EXPECT_EQ(judged({0, 0}, {0, 0}).verdict, Verdict::Untested);
  EXPECT_EQ(judged({0, 0}, {0, 0}, {1, 1}).verdict, Verdict::Untested)
      << "zeros would pass";
  EXPECT_EQ(judged({2, 2}, {2, 2}, {1, 1}).verdict, Verdict::Passed);
  EXPECT_EQ(judged({}, {}).verdict, Verdict::Untested) << "nothing there";
  EXPECT_EQ(judged({3}, {3}, {3}, false, DType::I64).verdict,
            Verdict::Untested);
  // Failing comes before being untested.
  EXPECT_EQ(judged({1, 3}, {1, 2}, {1, 2}).verdict, Verdict::Failed);
}

TEST(Judge, NanAndInfWhereTheReferenceHasThem) {
  EXPECT_EQ(
      judged({notANumber, inf, -inf, 1}, {notANumber, inf, -inf, 1}).verdict,
      Verdict::Passed);
  for (const auto &ours :
       std::vector<std::vector<double>>{{1, inf, -inf, 1},
                                        {notANumber, -inf, -inf, 1},
                                        {notANumber, inf, 3e38, 1},
                                        {notANumber, inf, -inf, notANumber},
                                        {notANumber, inf, -inf, inf}}) {
    Judgement j = judged(ours, {notANumber, inf, -inf, 1});
    EXPECT_EQ(j.verdict, Verdict::Failed);
    EXPECT_EQ(j.measure.mismatches, 1u);
    EXPECT_EQ(j.measure.largest(), inf);
  }
}

TEST(Judge, Loss) {
  Judgement j = judged({5 * (1 + 1.5e-6)}, {5}, {}, true);
  EXPECT_EQ(j.verdict, Verdict::Passed);
  EXPECT_NEAR(j.measure.loss, 0.75, 0.05);
  j = judged({5 * (1 + 3e-6)}, {5}, {}, true);
  EXPECT_LT(j.measure.element, 1) << "within tau, not within tau_loss";
  EXPECT_EQ(j.verdict, Verdict::Failed);
}

TEST(Judge, IntegersAreEqual) {
  EXPECT_EQ(judged({1, 2, 3}, {1, 2, 3}, {}, false, DType::I32).verdict,
            Verdict::Passed);
  Judgement j = judged({1, 5, 4}, {1, 2, 3}, {}, false, DType::I64);
  EXPECT_EQ(j.verdict, Verdict::Failed);
  EXPECT_EQ(j.measure.mismatches, 2u);
  EXPECT_EQ(j.measure.worst, 1u);
  EXPECT_EQ(j.measure.got, 5);
  EXPECT_EQ(j.measure.expected, 2);
  // Beyond the 53 bits of a double.
  int64_t a = (int64_t(1) << 60) + 1, b = int64_t(1) << 60;
  auto bytes = [](int64_t &v) {
    return std::string_view(reinterpret_cast<char *>(&v), 8);
  };
  EXPECT_EQ(judge(f32, false, DType::I64, 1, bytes(a), bytes(b), {}).verdict,
            Verdict::Failed);
}

TEST(Judge, ZeroedNegatedAndScaledGradientsFail) {
  std::vector<double> g;
  for (int i = 0; i < 64; ++i)
    g.push_back((i * 37 % 64 - 31.5) * 1e-3);
  for (double scale : {0.0, -1.0, 1.1})
    for (const char *matmul : {"f32", "tf32", "bf16"}) {
      std::vector<double> ours = g;
      for (double &v : ours)
        v *= scale;
      EXPECT_EQ(
          judged(ours, g, {}, false, DType::F32, columnOf(matmul, false, false))
              .verdict,
          Verdict::Failed)
          << scale << " " << matmul;
    }
}
