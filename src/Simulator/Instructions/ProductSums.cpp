//===- ProductSums.cpp - Sums of products as a tensor core has them -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ProductSums.h"

#include "../Numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

using namespace nova::sim;

namespace {

typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(64)));
typedef int64_t Longs __attribute__((vector_size(64)));

/// Columns that are computed together.
constexpr unsigned kWide = 8;
/// Exponent of a zero: below all others, and below any sum of two.
constexpr int32_t kOfZero = -1000;

template <typename V, typename T> V load(const T *from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// The exponents that addends are aligned by, of a subnormal that of the
/// smallest normal number; and their range.
struct Exponents {
  int32_t smallest = 1000, largest = kOfZero;
  bool finite = true;

  void fill(const float *from, size_t count, int32_t least, int32_t *to) {
    int32_t top = 0;
    for (size_t k = 0; k < count; ++k) {
      uint32_t bits = std::bit_cast<uint32_t>(from[k]) & 0x7fffffff;
      auto field = static_cast<int32_t>(bits >> 23);
      int32_t e = field - 127 > least ? field - 127 : least;
      top = field > top ? field : top;
      to[k] = bits == 0 ? kOfZero : e;
      smallest = std::min(smallest, bits == 0 ? smallest : e);
      largest = std::max(largest, to[k]);
    }
    finite = top < 255;
  }
};

double powerOfTwo(int e) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + e) << 52);
}

/// Rounded to zero, but what is too large is infinite all the same.
float cutToFloat(double v) {
  if (v != v)
    return std::bit_cast<float>(kNan32);
  float nearest = static_cast<float>(v);
  // One step back where rounding to nearest went away from zero.
  bool away = std::fabs(double(nearest)) > std::fabs(v);
  return away && std::fabs(v) < 0x1p128
             ? std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) - 1)
             : nearest;
}

/// The same, but odd where something was cut off.
float cutToOdd(double v) {
  float cut = cutToFloat(v);
  return double(cut) == v || v != v || std::isinf(cut)
             ? cut
             : std::bit_cast<float>(std::bit_cast<uint32_t>(cut) | 1);
}

/// One row, whatever the exponents are.
void addRow(unsigned N, unsigned K, const float *a, const int32_t *ea,
            const float *b, const int32_t *eb, float *c, const int32_t *ec,
            bool finite, bool odd) {
  for (unsigned n = 0; n < N; ++n) {
    if (!finite) {
      double sum = c[n];
      for (unsigned k = 0; k < K; ++k)
        sum += double(a[k]) * b[k * N + n];
      c[n] = odd ? cutToOdd(sum) : cutToFloat(sum);
      continue;
    }
    int32_t top = std::max(ec[n], -700);
    for (unsigned k = 0; k < K; ++k)
      top = std::max(top, ea[k] + eb[k * N + n]);
    double up = powerOfTwo(25 - top), sum = std::trunc(c[n] * up);
    for (unsigned k = 0; k < K; ++k)
      sum += std::trunc(double(a[k]) * b[k * N + n] * up);
    sum *= powerOfTwo(top - 25);
    c[n] = odd ? cutToOdd(sum) : cutToFloat(sum);
  }
}

/// One row by integers: a product of two narrow elements is exact in float32,
/// and once scaled less than 2^27 in magnitude, so eight of them fit.
void addRowFast(unsigned N, unsigned K, const float *a, const int32_t *ea,
                const float *b, const int32_t *eb, float *c, const int32_t *ec,
                bool odd) {
  for (unsigned n = 0; n < N; n += kWide) {
    Ints top = load<Ints>(ec + n);
    const Ints floor = Ints{} - 100;
    top = top > floor ? top : floor;
    for (unsigned k = 0; k < K; ++k) {
      Ints e = load<Ints>(eb + k * N + n) + ea[k];
      top = top > e ? top : e;
    }
    Ints scale = (25 + 127 - top) << 23;
    Floats up;
    std::memcpy(&up, &scale, sizeof up);
    Doubles sum = __builtin_convertvector(
        __builtin_convertvector(load<Floats>(c + n) * up, Ints), Doubles);
    for (unsigned first = 0; first < K; first += 8) {
      Ints part{};
      for (unsigned k = first; k < std::min(first + 8, K); ++k)
        part += __builtin_convertvector(load<Floats>(b + k * N + n) * a[k] * up,
                                        Ints);
      sum += __builtin_convertvector(part, Doubles);
    }
    // Cut to the 24 bits of a float32.
    Longs bits;
    std::memcpy(&bits, &sum, sizeof bits);
    constexpr int64_t dropped = 0x1fffffff;
    if (odd)
      bits |= ((bits & dropped) + dropped) & (dropped + 1);
    bits &= ~dropped;
    std::memcpy(&sum, &bits, sizeof sum);
    Longs down = (__builtin_convertvector(top, Longs) + (1023 - 25)) << 52;
    Doubles unit;
    std::memcpy(&unit, &down, sizeof unit);
    Floats result = __builtin_convertvector(sum * unit, Floats);
    std::memcpy(c + n, &result, sizeof result);
  }
}

} // namespace

void nova::sim::addProducts(unsigned M, unsigned N, unsigned K, const float *a,
                            const float *b, float *c, int32_t least,
                            bool half) {
  thread_local std::vector<int32_t> all;
  all.resize(size_t(M) * K + size_t(K) * N + size_t(M) * N);
  int32_t *ea = all.data(), *eb = ea + size_t(M) * K, *ec = eb + size_t(K) * N;
  Exponents ofA, ofB, ofC;
  ofA.fill(a, size_t(M) * K, least, ea);
  ofB.fill(b, size_t(K) * N, least, eb);
  ofC.fill(c, size_t(M) * N, half ? -14 : -126, ec);
  bool finite = ofA.finite && ofB.finite && ofC.finite;
  // No product and no scaled addend leaves float32's normal numbers. Zeros do
  // not count.
  bool fast = finite && ofA.smallest + ofB.smallest >= -100 &&
              ofA.largest + ofB.largest <= 100 && ofC.smallest >= -100 &&
              ofC.largest <= 100;
  for (unsigned m = 0; m < M; ++m)
    if (fast)
      addRowFast(N, K, a + m * K, ea + m * K, b, eb, c + m * N, ec + m * N,
                 half);
    else
      addRow(N, K, a + m * K, ea + m * K, b, eb, c + m * N, ec + m * N, finite,
             half);
}
