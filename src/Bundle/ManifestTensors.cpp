//===- ManifestTensors.cpp - Sizes of tensors, and reals as text ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Bundle/Manifest.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

using namespace nova;

unsigned bundle::dtypeBytes(std::string_view dtype) {
  struct Row {
    std::string_view name;
    unsigned bytes;
  };
  static constexpr Row rows[] = {
      {"float64", 8}, {"float32", 4}, {"bfloat16", 2}, {"float16", 2},
      {"int64", 8},   {"int32", 4},   {"int16", 2},    {"int8", 1},
      {"uint8", 1},   {"bool", 1}};
  for (const Row &row : rows)
    if (row.name == dtype)
      return row.bytes;
  return 0;
}

std::optional<uint64_t>
bundle::tensorBytes(std::string_view dtype, const std::vector<int64_t> &shape,
                    const std::vector<int64_t> &strides) {
  unsigned element = dtypeBytes(dtype);
  if (element == 0 || shape.size() != strides.size())
    return std::nullopt;
  bool empty = false;
  uint64_t span = 1, count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || strides[i] < 0)
      return std::nullopt;
    empty |= shape[i] == 0;
    // The number of elements must be a number too: with 0 strides it may be
    // far larger than the memory.
    uint64_t extent = shape[i] ? static_cast<uint64_t>(shape[i]) : 1, reach;
    if (__builtin_mul_overflow(extent - 1, static_cast<uint64_t>(strides[i]),
                               &reach) ||
        __builtin_add_overflow(span, reach, &span) ||
        __builtin_mul_overflow(count, extent, &count))
      return std::nullopt;
  }
  // Signed 64 bits hold every byte offset, in every language that binds this.
  constexpr uint64_t most = std::numeric_limits<int64_t>::max();
  uint64_t bytes, dense;
  if (__builtin_mul_overflow(span, uint64_t(element), &bytes) ||
      __builtin_mul_overflow(count, uint64_t(element), &dense) ||
      bytes > most || dense > most)
    return std::nullopt;
  return empty ? 0 : bytes;
}

std::vector<int64_t>
bundle::contiguousStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * (shape[i] > 0 ? shape[i] : 1);
  return strides;
}

// to_chars and from_chars, not printf and strtod: those follow the locale.

std::string bundle::hexFloat(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof digits, std::fabs(value),
                           std::chars_format::hex);
  return std::string(std::signbit(value) ? "-0x" : "0x")
      .append(digits, end.ptr);
}

std::optional<double> bundle::parseHexFloat(std::string_view text) {
  bool negative = text.substr(0, 1) == "-";
  if (negative)
    text.remove_prefix(1);
  double value;
  if (text == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (text == "nan" && !negative) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (text.substr(0, 2) != "0x" || text.size() < 3 ||
        !std::isxdigit(static_cast<unsigned char>(text[2])))
      return std::nullopt;
    text.remove_prefix(2);
    auto end = std::from_chars(text.data(), text.data() + text.size(), value,
                               std::chars_format::hex);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size())
      return std::nullopt;
  }
  return negative ? -value : value;
}
