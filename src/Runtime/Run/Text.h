//===- Text.h - Numbers as text and JSON ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime/Run.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_TEXT_H
#define NOVA_RUNTIME_RUN_TEXT_H

#include "../Elements.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

namespace nova::run {

/// The shortest text that reads back as this value of this dtype.
inline std::string numberText(rt::DType dtype, double value) {
  char text[64];
  auto end =
      dtype == rt::DType::F64
          ? std::to_chars(text, text + sizeof text, value)
          : std::to_chars(text, text + sizeof text, static_cast<float>(value));
  return std::string(text, end.ptr);
}

/// Two digits: how much of a bound is used.
inline std::string fractionText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

/// JSON has no NaN and no infinity: they become "nan", "inf", "-inf".
inline nlohmann::json jsonNumber(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  return value;
}

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_TEXT_H
