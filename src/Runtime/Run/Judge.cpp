//===- Judge.cpp - When is a result right? --------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Judge.h"

#include <algorithm>
#include <cmath>

using namespace nova;
using namespace nova::run;
using namespace nova::rt;

namespace {

/// `value` of `bound`, where nothing of nothing is nothing.
double used(long double value, long double bound) {
  if (value == 0)
    return 0;
  return bound > 0 ? static_cast<double>(value / bound)
                   : std::numeric_limits<double>::infinity();
}

/// What the bounds are relative to: one pass over reference and `in`.
struct Scale {
  double largest = 0; ///< max|d|
  long double norm = 0;
};

Scale scaleOf(DType dtype, uint64_t count, std::string_view ref,
              std::string_view in) {
  unsigned size = bytesOf(dtype);
  Scale scale;
  long double sum = 0; // 80 bits: squares of doubles do not overflow
  for (uint64_t i = 0; i < count; ++i) {
    double d = loadElement(dtype, ref.data() + i * size);
    if (!in.empty())
      d -= loadElement(dtype, in.data() + i * size);
    if (!std::isfinite(d))
      continue;
    scale.largest = std::max(scale.largest, std::fabs(d));
    sum += static_cast<long double>(d) * d;
  }
  scale.norm = std::sqrt(sum);
  return scale;
}

Measure measureIntegers(DType dtype, uint64_t count, std::string_view ours,
                        std::string_view ref) {
  unsigned size = bytesOf(dtype);
  Measure m;
  for (uint64_t i = 0; i < count; ++i) {
    const char *a = ours.data() + i * size, *b = ref.data() + i * size;
    if (std::equal(a, a + size, b))
      continue;
    if (m.mismatches++ == 0) {
      m.worst = i;
      m.got = loadElement(dtype, a);
      m.expected = loadElement(dtype, b);
    }
  }
  return m;
}

Measure measure(const Column &column, const Scale &scale, bool isLoss,
                DType dtype, uint64_t count, std::string_view ours,
                std::string_view ref) {
  if (!isFloat(dtype))
    return measureIntegers(dtype, count, ours, ref);
  unsigned size = bytesOf(dtype);
  Measure m;
  long double excessSum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double r = loadElement(dtype, ref.data() + i * size);
    double o = loadElement(dtype, ours.data() + i * size);
    if (!std::isfinite(r) || !std::isfinite(o)) {
      bool same = std::isnan(r) ? std::isnan(o) : o == r;
      if (!same && m.mismatches++ == 0) {
        m.worst = i;
        m.got = o;
        m.expected = r;
      }
      continue;
    }
    long double e = std::fabs(static_cast<long double>(o) - r);
    long double slack = 2 * static_cast<long double>(ulp(dtype, r));
    double fraction = used(e, slack + column.tau * scale.largest);
    if (fraction > m.element) {
      m.element = fraction;
      if (m.mismatches == 0) {
        m.worst = i;
        m.got = o;
        m.expected = r;
      }
    }
    if (e > slack)
      excessSum += (e - slack) * (e - slack);
    if (isLoss)
      m.loss = std::max(m.loss, used(e, column.tauLoss * std::fabs(r)));
  }
  m.norm = used(std::sqrt(excessSum), column.tau2 * scale.norm);
  return m;
}

} // namespace

double Measure::largest() const {
  if (mismatches)
    return std::numeric_limits<double>::infinity();
  return std::max({element, norm, loss});
}

Column run::columnOf(std::string_view matmul, bool graph16bit, bool host) {
  // The bf16 column and long sums are first guesses of the format, to be
  // calibrated on PyTorch's own distance between the precisions.
  static constexpr Column f32{"f32", 1e-5, 1e-5, 2e-6};
  static constexpr Column tf32{"tf32", 1e-2, 5e-3, 2e-5};
  static constexpr Column bf16{"bf16", 5e-2, 2e-2, 2e-3};
  if (graph16bit || matmul == "bf16")
    return bf16;
  return host || matmul == "f32" ? f32 : tf32;
}

Judgement run::judge(const Column &column, bool isLoss, DType dtype,
                     uint64_t count, std::string_view ours,
                     std::string_view ref, std::string_view in) {
  Scale scale = scaleOf(dtype, count, ref, in);
  auto measured = [&](std::string_view candidate) {
    return measure(column, scale, isLoss, dtype, count, candidate, ref);
  };
  Judgement judgement;
  judgement.measure = measured(ours);
  if (!judgement.measure.passed()) {
    judgement.verdict = Verdict::Failed;
    return judgement;
  }
  // Would a program that does nothing have passed?
  std::string zeros(count * bytesOf(dtype), '\0');
  if (measured(zeros).passed() || (!in.empty() && measured(in).passed()))
    judgement.verdict = Verdict::Untested;
  return judgement;
}
