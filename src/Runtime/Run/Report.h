//===- Report.h - What `verify` found, in words and as JSON ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime/Run.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_REPORT_H
#define NOVA_RUNTIME_RUN_REPORT_H

#include "Judge.h"
#include "Session.h"
#include "Text.h"

#include <algorithm>
#include <iosfwd>
#include <string>
#include <vector>

namespace nova::run {

/// One output. A report outlives the session that it is of.
struct Row {
  uint32_t index;
  std::string name; ///< With updates, of the input that it replaces.
  std::string role, dtypeName;
  rt::DType dtype;
  uint64_t elements;
  Judgement judgement;
};

struct Report {
  Column column;
  bool standard = true;
  std::string target, device; ///< What was judged: "sm_90a (h200)", its GPU.
  std::string compared;       ///< "the data file 'x'".
  std::vector<Row> rows;

  size_t count(Verdict verdict) const {
    return static_cast<size_t>(
        std::count_if(rows.begin(), rows.end(), [&](const Row &r) {
          return r.judgement.verdict == verdict;
        }));
  }
  /// The row that uses most of a bound, or null.
  const Row *worst() const {
    const Row *worst = nullptr;
    for (const Row &r : rows)
      if (!worst ||
          r.judgement.measure.largest() > worst->judgement.measure.largest())
        worst = &r;
    return worst;
  }
  bool passed() const {
    return count(Verdict::Failed) == 0 && anyUpdateTested();
  }
  bool anyUpdateTested() const {
    return std::any_of(rows.begin(), rows.end(), [](const Row &r) {
      return r.judgement.verdict == Verdict::Passed &&
             (r.role == "update" || r.role == "gradient");
    });
  }
};

/// One line per output, then the conclusion.
void print(const Report &report, std::ostream &out);
nlohmann::json toJson(const Report &report);
/// ErrorCode::Verification with the worst output, when the report fails.
Status statusOf(const Report &report);

/// One line of JSON.
std::string dump(const nlohmann::json &json);

inline Error verificationError(std::string message) {
  return {ErrorCode::Verification, std::move(message), {}};
}

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_REPORT_H
