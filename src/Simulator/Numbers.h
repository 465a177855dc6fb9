//===- Numbers.h - Rounding to the formats of PTX -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Directed roundings and narrow formats by way of double: a result is computed
// to double rounded to odd (Boldo and Melquiond), which a second rounding to a
// format of at most 51 bits does not spoil.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_NUMBERS_H
#define NOVA_SIMULATOR_NUMBERS_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace nova::sim {

/// ISA 9.7.3 and 9.7.9.21: to nearest even, to zero, down, up, to nearest with
/// ties away from zero.
enum class Rounding : uint8_t { Rn, Rz, Rm, Rp, Rna };

/// Devices return this NaN from float32 arithmetic, 0x7fff from 16 bits.
constexpr uint32_t kNan32 = 0x7fffffff;
constexpr uint16_t kNan16 = 0x7fff;

inline float canonical(float v) {
  return v != v ? std::bit_cast<float>(kNan32) : v;
}
/// Of float64 a device returns a quiet NaN; which one is not documented.
inline double canonical(double v) { return v; }

inline float flush(float v) {
  uint32_t bits = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((bits & 0x7f800000) ? bits : bits & 0x80000000);
}
inline double flush(double v) { return v; }

/// [0, 1], NaN to +0.
template <typename T> inline T saturate(T v) {
  v = v > T(0) ? v : T(0);
  return v < T(1) ? v : T(1);
}

/// Bits of the format with `M` stored significand bits and `E` exponent bits
/// nearest to `value` in the sense of `mode`. NaN is all ones below the sign.
template <unsigned M, unsigned E>
inline uint32_t roundTo(double value, Rounding mode) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  bool negative = bits >> 63;
  uint32_t sign = negative ? uint32_t(1) << (M + E) : 0;
  constexpr int bias = (1 << (E - 1)) - 1;
  constexpr uint32_t inf = ((uint32_t(1) << E) - 1) << M;
  if (value != value)
    return (uint32_t(1) << (M + E)) - 1;
  if (std::isinf(value))
    return sign | inf;
  if (value == 0)
    return sign;
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  uint64_t significand = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  if (exponent == -1023) { // A double that is subnormal: far below all formats.
    significand &= ~(uint64_t(1) << 52);
    exponent = -1022;
  }
  int least = 1 - bias;
  int scale = exponent < least ? least : exponent;
  int drop = 52 - static_cast<int>(M) + (scale - exponent);
  uint64_t kept, rest, half;
  if (drop > 60) {
    kept = 0, rest = 1, half = 2;
  } else {
    kept = significand >> drop;
    rest = significand & ((uint64_t(1) << drop) - 1);
    half = uint64_t(1) << (drop - 1);
  }
  bool up = false;
  switch (mode) {
  case Rounding::Rn:
    up = rest > half || (rest == half && (kept & 1));
    break;
  case Rounding::Rna:
    up = rest >= half;
    break;
  case Rounding::Rz:
    break;
  case Rounding::Rm:
    up = negative && rest;
    break;
  case Rounding::Rp:
    up = !negative && rest;
    break;
  }
  kept += up;
  uint64_t result = kept;
  if (exponent >= least)
    result +=
        (static_cast<uint64_t>(exponent + bias) << M) - (uint64_t(1) << M);
  if (result >= inf) {
    bool toInfinity = mode == Rounding::Rn || mode == Rounding::Rna ||
                      (mode == Rounding::Rm && negative) ||
                      (mode == Rounding::Rp && !negative);
    result = toInfinity ? inf : inf - 1;
  }
  return sign | static_cast<uint32_t>(result);
}

inline float toFloat(double value, Rounding mode) {
  return mode == Rounding::Rn
             ? static_cast<float>(value)
             : std::bit_cast<float>(roundTo<23, 8>(value, mode));
}
inline uint16_t toHalf(double value, Rounding mode = Rounding::Rn) {
  return static_cast<uint16_t>(roundTo<10, 5>(value, mode));
}
inline uint16_t toBfloat(double value, Rounding mode = Rounding::Rn) {
  return static_cast<uint16_t>(roundTo<7, 8>(value, mode));
}

inline float fromBfloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}
inline float fromHalf(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00)
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // Scaling by 2^112 moves the exponent's bias, subnormals included.
  float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | sign);
}

/// `rounded` moved to the neighbour on the side of `error` if its last bit is
/// even: rounding to odd.
inline double toOdd(double rounded, double error) {
  uint64_t bits = std::bit_cast<uint64_t>(rounded);
  if (error == 0 || !(std::fabs(rounded) <= 0x1.fffffffffffffp1023) ||
      (bits & 1))
    return rounded;
  return std::bit_cast<double>((error > 0) == (rounded > 0) ? bits + 1
                                                            : bits - 1);
}

/// The sum of two doubles, rounded to odd; its sign if zero as `mode` says.
inline double addOdd(double a, double b, Rounding mode) {
  double sum = a + b;
  if (sum == 0)
    return mode == Rounding::Rm && std::signbit(a) != std::signbit(b) ? -0.0
                                                                      : sum;
  double part = sum - a;
  return toOdd(sum, (a - (sum - part)) + (b - part));
}

} // namespace nova::sim

#endif // NOVA_SIMULATOR_NUMBERS_H
