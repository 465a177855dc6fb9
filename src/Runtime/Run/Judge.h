//===- Judge.h - When is a result right? ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rule that Run.h states. Pure functions over row-major bytes: no bundle,
// no file.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_JUDGE_H
#define NOVA_RUNTIME_RUN_JUDGE_H

#include "../Elements.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace nova::run {

/// The tolerances of one column.
struct Column {
  const char *name;
  double tau, tau2, tauLoss;
};

/// By what multiplied (see Run.h). `host`: the results are of a host target.
Column columnOf(std::string_view matmul, bool graph16bit, bool host);

/// How far the bounds are used: 1 is exactly on the bound.
struct Measure {
  double element = 0; ///< Test 1, the largest over the elements.
  double norm = 0;    ///< Test 2.
  double loss = 0;    ///< Test 3 for a loss.
  /// Integers that differ, NaN and inf in the wrong places.
  uint64_t mismatches = 0;
  /// The element that is farthest off, or the first mismatch.
  uint64_t worst = 0;
  double got = 0, expected = 0;

  bool passed() const {
    return element <= 1 && norm <= 1 && loss <= 1 && mismatches == 0;
  }
  double largest() const;
};

enum class Verdict { Passed, Failed, Untested };

struct Judgement {
  Verdict verdict = Verdict::Passed;
  Measure measure;
};

/// One output: `in` is the value that an update replaces, empty otherwise. All
/// row-major, `count` elements of `dtype`.
Judgement judge(const Column &column, bool isLoss, rt::DType dtype,
                uint64_t count, std::string_view ours, std::string_view ref,
                std::string_view in);

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_JUDGE_H
