//===- Elements.h - One tensor element to a double and back ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime. Every floating element is exactly a double; stores
// round to nearest, ties to even.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_ELEMENTS_H
#define NOVA_RUNTIME_ELEMENTS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

namespace nova::rt {

enum class DType { F64, F32, BF16, F16, I64, I32, I16, I8, U8, Bool };

/// The dtype of a manifest's name.
inline std::optional<DType> dtypeOf(std::string_view name) {
  struct Row {
    std::string_view name;
    DType dtype;
  };
  static constexpr Row rows[] = {
      {"float64", DType::F64},   {"float32", DType::F32},
      {"bfloat16", DType::BF16}, {"float16", DType::F16},
      {"int64", DType::I64},     {"int32", DType::I32},
      {"int16", DType::I16},     {"int8", DType::I8},
      {"uint8", DType::U8},      {"bool", DType::Bool}};
  for (const Row &row : rows)
    if (row.name == name)
      return row.dtype;
  return std::nullopt;
}

inline bool isFloat(DType t) {
  return t == DType::F64 || t == DType::F32 || t == DType::BF16 ||
         t == DType::F16;
}

inline unsigned bytesOf(DType t) {
  switch (t) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::BF16:
  case DType::F16:
  case DType::I16:
    return 2;
  case DType::I8:
  case DType::U8:
  case DType::Bool:
    return 1;
  }
  return 0;
}

/// A binary floating format by its numbers: bits of the stored significand, and
/// the exponents of the smallest normal and of the largest value.
struct FloatFormat {
  int significand, minExponent, maxExponent;
};
inline FloatFormat formatOf(DType t) {
  switch (t) {
  case DType::F32:
    return {23, -126, 127};
  case DType::BF16:
    return {7, -126, 127};
  case DType::F16:
    return {10, -14, 15};
  default:
    return {52, -1022, 1023};
  }
}

/// The distance between neighbours of the format at a finite `value`.
inline double ulp(DType t, double value) {
  FloatFormat f = formatOf(t);
  int exponent = f.minExponent;
  if (value != 0)
    exponent = std::max(exponent, std::ilogb(value));
  return std::ldexp(1.0, exponent - f.significand);
}

/// `value` rounded to the format; beyond the largest, infinity.
inline double roundTo(DType t, double value) {
  if (t == DType::F64 || !std::isfinite(value) || value == 0)
    return value;
  if (t == DType::F32)
    return static_cast<float>(value);
  FloatFormat f = formatOf(t);
  double unit = ulp(t, value);
  // The quotient has few bits: exact, and rint rounds it ties to even.
  double rounded = std::rint(value / unit) * unit;
  double limit = std::ldexp(2.0, f.maxExponent);
  return std::fabs(rounded) >= limit
             ? std::copysign(std::numeric_limits<double>::infinity(), value)
             : rounded;
}

template <typename T> T loadAs(const void *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <typename T> void storeAs(void *p, T value) {
  std::memcpy(p, &value, sizeof value);
}

inline double halfToDouble(uint16_t h) {
  int exponent = (h >> 10) & 31;
  int fraction = h & 1023;
  double magnitude;
  if (exponent == 31)
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, -24);
  else
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}

inline uint16_t doubleToHalf(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return 0x7e00;
  value = std::fabs(roundTo(DType::F16, value));
  if (std::isinf(value))
    return sign | 0x7c00;
  if (value < std::ldexp(1.0, -14))
    return static_cast<uint16_t>(sign | int(std::ldexp(value, 24)));
  int exponent = std::ilogb(value);
  int fraction = int(std::ldexp(value, 10 - exponent)) - 1024;
  return static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction);
}

/// Integers beyond 2^53 lose bits here: compare those as bytes.
inline double loadElement(DType t, const void *p) {
  switch (t) {
  case DType::F64:
    return loadAs<double>(p);
  case DType::F32:
    return loadAs<float>(p);
  case DType::BF16: {
    uint32_t bits = uint32_t(loadAs<uint16_t>(p)) << 16;
    return loadAs<float>(&bits);
  }
  case DType::F16:
    return halfToDouble(loadAs<uint16_t>(p));
  case DType::I64:
    return static_cast<double>(loadAs<int64_t>(p));
  case DType::I32:
    return loadAs<int32_t>(p);
  case DType::I16:
    return loadAs<int16_t>(p);
  case DType::I8:
    return loadAs<int8_t>(p);
  case DType::U8:
  case DType::Bool:
    return loadAs<uint8_t>(p);
  }
  return 0;
}

/// Any integer type as its 64-bit value.
inline int64_t loadInteger(DType t, const void *p) {
  return t == DType::I64 ? loadAs<int64_t>(p)
                         : static_cast<int64_t>(loadElement(t, p));
}

/// Wraps to the width of the type; bool stores 0 or 1.
inline void storeInteger(DType t, void *p, int64_t value) {
  if (t == DType::Bool)
    value = value != 0;
  // Little-endian: the low bytes are the value modulo the width.
  std::memcpy(p, &value, bytesOf(t));
}

inline void storeElement(DType t, void *p, double value) {
  switch (t) {
  case DType::F64:
    return storeAs(p, value);
  case DType::F32:
    return storeAs(p, static_cast<float>(value));
  case DType::BF16: {
    uint16_t bits;
    if (std::isnan(value)) {
      bits = 0x7fc0;
    } else {
      // A double rounds to bfloat16 in one step, never through float.
      float exact = static_cast<float>(roundTo(DType::BF16, value));
      bits = static_cast<uint16_t>(loadAs<uint32_t>(&exact) >> 16);
    }
    return storeAs(p, bits);
  }
  case DType::F16:
    return storeAs(p, doubleToHalf(value));
  default:
    return storeInteger(t, p, std::llrint(value));
  }
}

/// Adds to one element between two steps; integers are rounded to nearest, and
/// wrap.
inline void advanceElement(DType t, void *p, double by) {
  if (isFloat(t))
    storeElement(t, p, loadElement(t, p) + by);
  else
    storeInteger(t, p,
                 static_cast<int64_t>(uint64_t(loadInteger(t, p)) +
                                      uint64_t(std::llrint(by))));
}

} // namespace nova::rt

#endif // NOVA_RUNTIME_ELEMENTS_H
