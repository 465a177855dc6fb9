//===- Report.cpp - What `verify` found, in words and as JSON -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include <ostream>

using namespace nova;
using namespace nova::run;
using Json = nlohmann::json;

namespace {

const char *verdictText(Verdict v) {
  switch (v) {
  case Verdict::Passed:
    return "pass";
  case Verdict::Failed:
    return "FAIL";
  case Verdict::Untested:
    return "untested";
  }
  return "";
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width)
    text.append(width - text.size(), ' ');
  return text;
}

void printText(const Report &report, std::ostream &out) {
  if (!report.device.empty())
    out << report.target << " on " << report.device << '\n';
  out << "compared with " << report.compared << '\n';
  if (report.standard)
    out << "column " << report.column.name << ": tau "
        << fractionText(report.column.tau) << ", tau2 "
        << fractionText(report.column.tau2) << ", tau_loss "
        << fractionText(report.column.tauLoss) << '\n';
  else
    out << "not the standard rule: tolerance "
        << fractionText(report.column.tau) << " given by hand\n";
  out << "output  role      verdict   of tau   of tau2  of loss  tensor\n";
  for (const Row &r : report.rows) {
    const Measure &m = r.judgement.measure;
    bool isFloat = rt::isFloat(r.dtype);
    auto cell = [&](bool there, double value) {
      return padded(there ? fractionText(value) : "-", 9);
    };
    out << padded("out/" + std::to_string(r.index), 8)
        << padded(r.role, 10)
        << padded(verdictText(r.judgement.verdict), 10)
        << cell(isFloat, m.element) << cell(isFloat, m.norm)
        << cell(isFloat && r.role == "loss", m.loss) << r.name;
    if (m.mismatches)
      out << ": " << m.mismatches << " of " << r.elements
          << (isFloat ? " NaN or inf where the other is not"
                      : " elements differ");
    out << '\n';
  }
}

} // namespace

Json run::toJson(const Report &report) {
  Json rows = Json::array();
  for (const Row &r : report.rows) {
    const Measure &m = r.judgement.measure;
    bool isLoss = r.role == "loss";
    rows.push_back(
        {{"output", r.index},
         {"role", r.role},
         {"tensor", r.name},
         {"dtype", r.dtypeName},
         {"elements", r.elements},
         {"verdict", r.judgement.verdict == Verdict::Failed
                         ? "fail"
                         : verdictText(r.judgement.verdict)},
         {"used_tau", jsonNumber(m.element)},
         {"used_tau2", jsonNumber(m.norm)},
         {"used_tau_loss", isLoss ? jsonNumber(m.loss) : Json(nullptr)},
         {"mismatches", m.mismatches}});
  }
  const Row *worst = report.worst();
  return {{"target", report.target},
          {"device", report.device.empty() ? Json() : Json(report.device)},
          {"passed", report.passed()},
          {"compared_with", report.compared},
          {"column", report.standard ? Json(report.column.name) : Json()},
          {"standard_rule", report.standard},
          {"tau", report.column.tau},
          {"tau2", report.column.tau2},
          {"tau_loss", report.column.tauLoss},
          {"outputs", rows},
          {"tested", report.count(Verdict::Passed)},
          {"untested", report.count(Verdict::Untested)},
          {"failed", report.count(Verdict::Failed)},
          {"largest_used",
           jsonNumber(worst ? worst->judgement.measure.largest() : 0)}};
}

std::string run::dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void run::print(const Report &report, std::ostream &out) {
  printText(report, out);
  out << (report.passed() ? "verified: " : "not verified: ")
      << report.rows.size() << " outputs, " << report.count(Verdict::Passed)
      << " passed, " << report.count(Verdict::Untested) << " untested, "
      << report.count(Verdict::Failed) << " failed";
  if (const Row *worst = report.worst())
    out << "; largest used fraction "
        << fractionText(worst->judgement.measure.largest()) << " (out/"
        << worst->index << ")";
  out << '\n';
}

Status run::statusOf(const Report &report) {
  if (report.passed())
    return Status::ok();
  size_t failed = report.count(Verdict::Failed);
  std::string on = report.device.empty() ? "" : report.target + ": ";
  if (!failed)
    return verificationError(on +
                             "no update and no gradient is tested: zeros or "
                             "the inputs themselves would pass for each");
  const Row &worst = *report.worst();
  const Measure &m = worst.judgement.measure;
  return verificationError(
      on + std::to_string(failed) + " of " +
      std::to_string(report.rows.size()) +
      " outputs are wrong, the worst out/" + std::to_string(worst.index) +
      " (" + worst.role + " " + worst.name + "): element " +
      std::to_string(m.worst) + " is " +
      numberText(worst.dtype, m.got) + ", expected " +
      numberText(worst.dtype, m.expected) + "; it uses " +
      fractionText(m.largest()) + " of the bound");
}
