//===- Verify.cpp - The command `verify` ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Runtime/Run.h"

#include "Judge.h"
#include "Session.h"
#include "Text.h"

#include <algorithm>
#include <ostream>

using namespace nova;
using namespace nova::run;
using Json = nlohmann::json;

namespace {

/// What the outputs should be, from a file or from another session.
struct Reference {
  std::vector<std::string> outputs; ///< Row-major bytes.
};

struct Row {
  uint32_t index;
  const Tensor *tensor;
  std::string name; ///< With updates, of the input that it replaces.
  Judgement judgement;
};

struct Report {
  Column column;
  bool standard = true;
  std::string compared; ///< "the data file 'x'".
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
  bool anyUpdateTested() const {
    return std::any_of(rows.begin(), rows.end(), [](const Row &r) {
      return r.judgement.verdict == Verdict::Passed &&
             (r.tensor->role == "update" || r.tensor->role == "gradient");
    });
  }
};

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
    bool isFloat = rt::isFloat(r.tensor->dtype);
    auto cell = [&](bool there, double value) {
      return padded(there ? fractionText(value) : "-", 9);
    };
    out << padded("out/" + std::to_string(r.index), 8)
        << padded(r.tensor->role, 10)
        << padded(verdictText(r.judgement.verdict), 10)
        << cell(isFloat, m.element) << cell(isFloat, m.norm)
        << cell(isFloat && r.tensor->role == "loss", m.loss) << r.name;
    if (m.mismatches)
      out << ": " << m.mismatches << " of " << r.tensor->elements
          << (isFloat ? " NaN or inf where the other is not"
                      : " elements differ");
    out << '\n';
  }
}

Json toJson(const Report &report) {
  Json rows = Json::array();
  for (const Row &r : report.rows) {
    const Measure &m = r.judgement.measure;
    bool isLoss = r.tensor->role == "loss";
    rows.push_back(
        {{"output", r.index},
         {"role", r.tensor->role},
         {"tensor", r.name},
         {"dtype", r.tensor->dtypeName},
         {"elements", r.tensor->elements},
         {"verdict", r.judgement.verdict == Verdict::Failed
                         ? "fail"
                         : verdictText(r.judgement.verdict)},
         {"used_tau", jsonNumber(m.element)},
         {"used_tau2", jsonNumber(m.norm)},
         {"used_tau_loss", isLoss ? jsonNumber(m.loss) : Json(nullptr)},
         {"mismatches", m.mismatches}});
  }
  const Row *worst = report.worst();
  return {{"compared_with", report.compared},
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

std::string dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string nameOf(const Session &session, uint32_t output) {
  const Tensor &t = session.outputs[output];
  const Tensor &shown = t.updates ? session.inputs[*t.updates] : t;
  return shown.path.empty() ? shown.name : shown.path;
}

Error verificationError(std::string message) {
  return {ErrorCode::Verification, std::move(message), {}};
}

/// One step of `session`, judged against `reference`; the inputs are there.
Expected<Report> judgeStep(Session &session, const Reference &reference,
                           const VerifyOptions &options) {
  Report report;
  report.column = columnOf(session.matmul, session.graph16bit,
                           session.targetName == "host");
  if (options.tolerance) {
    report.standard = false;
    double tau = *options.tolerance;
    report.column = {report.column.name, tau, tau, tau};
  }
  // What updates replace is gone after the step.
  std::vector<std::string> before(session.outputs.size());
  for (size_t i = 0; i < session.outputs.size(); ++i)
    if (session.outputs[i].updates)
      before[i] = session.input(*session.outputs[i].updates);
  if (Status s = session.step(); !s)
    return s.error();
  for (uint32_t i = 0; i < session.outputs.size(); ++i) {
    const Tensor &t = session.outputs[i];
    report.rows.push_back(
        {i, &t, nameOf(session, i),
         judge(report.column, t.role == "loss", t.dtype, t.elements,
               session.output(i), reference.outputs[i], before[i])});
  }
  return report;
}

Status conclude(const Report &report, const VerifyOptions &options,
                std::ostream &out) {
  size_t failed = report.count(Verdict::Failed);
  size_t tested = report.count(Verdict::Passed);
  bool passed = failed == 0 && report.anyUpdateTested();
  if (options.json) {
    Json json = toJson(report);
    json["bundle"] = options.bundle;
    json["passed"] = passed;
    out << dump(json);
  } else {
    printText(report, out);
    out << (passed ? "verified: " : "not verified: ") << report.rows.size()
        << " outputs, " << tested << " passed, "
        << report.count(Verdict::Untested) << " untested, " << failed
        << " failed";
    if (const Row *worst = report.worst())
      out << "; largest used fraction "
          << fractionText(worst->judgement.measure.largest()) << " (out/"
          << worst->index << ")";
    out << '\n';
  }
  out.flush();
  if (passed)
    return Status::ok();
  if (!failed)
    return verificationError("no update and no gradient is tested: zeros or "
                             "the inputs themselves would pass for each");
  const Row &worst = *report.worst();
  const Measure &m = worst.judgement.measure;
  return verificationError(
      std::to_string(failed) + " of " + std::to_string(report.rows.size()) +
      " outputs are wrong, the worst out/" + std::to_string(worst.index) +
      " (" + worst.tensor->role + " " + worst.name + "): element " +
      std::to_string(m.worst) + " is " +
      numberText(worst.tensor->dtype, m.got) + ", expected " +
      numberText(worst.tensor->dtype, m.expected) + "; it uses " +
      fractionText(m.largest()) + " of the bound");
}

Status verifyData(const VerifyOptions &options, std::ostream &out) {
  auto session =
      Session::open(options.bundle, options.device, options.threads, false);
  if (!session)
    return session.error();
  Expected<SafetensorsFile> file = SafetensorsFile::open(*options.data);
  if (!file)
    return file.error();
  if (Status s = (*session)->loadInputs(*file); !s)
    return s;
  Reference reference;
  for (size_t i = 0; i < (*session)->outputs.size(); ++i) {
    Expected<std::string> bytes =
        readTensor(*file, "out/" + std::to_string(i), (*session)->outputs[i],
                   "output " + std::to_string(i));
    if (!bytes)
      return bytes.error();
    reference.outputs.push_back(std::move(*bytes));
  }
  Expected<Report> report = judgeStep(**session, reference, options);
  if (!report)
    return report.error();
  report->compared = "the data file '" + *options.data + "'";
  return conclude(*report, options, out);
}

/// The same signature: the random inputs of one are those of the other.
Status sameSignature(const Session &a, const Session &b,
                     const VerifyOptions &options) {
  auto same = [](const std::vector<Tensor> &x, const std::vector<Tensor> &y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Tensor &s, const Tensor &t) {
                        return s.name == t.name && s.role == t.role &&
                               s.dtype == t.dtype && s.shape == t.shape &&
                               s.updates == t.updates;
                      });
  };
  if (same(a.inputs, b.inputs) && same(a.outputs, b.outputs))
    return Status::ok();
  return badInput("'" + options.reference + "' has another signature than '" +
                      options.bundle + "', expected the same graph",
                  "compile both from one graph");
}

Status verifyAgainst(const VerifyOptions &options, std::ostream &out) {
  auto session =
      Session::open(options.bundle, options.device, options.threads, false);
  if (!session)
    return session.error();
  auto other = Session::open(options.reference, "host", options.threads, false);
  if (!other)
    return other.error();
  if (Status s = sameSignature(**session, **other, options); !s)
    return s;
  (*session)->randomInputs(*options.seed);
  (*other)->randomInputs(*options.seed);
  if (Status s = (*other)->step(); !s)
    return s;
  Reference reference;
  for (uint32_t i = 0; i < (*other)->outputs.size(); ++i)
    reference.outputs.push_back((*other)->output(i));
  Expected<Report> report = judgeStep(**session, reference, options);
  if (!report)
    return report.error();
  report->compared = "the host target of '" + options.reference +
                     "' on inputs from seed " + std::to_string(*options.seed);
  return conclude(*report, options, out);
}

/// A bundle whose only target that runs here is the reference itself: what is
/// left to check is that it repeats, bit for bit, with any number of threads.
Status verifyRepeats(const VerifyOptions &options, std::ostream &out) {
  std::vector<std::string> first;
  unsigned counts[] = {1, options.threads, std::max(2u, options.threads)};
  unsigned most = 1;
  for (unsigned threads : counts) {
    auto session = Session::open(options.bundle, "host", threads, false);
    if (!session)
      return session.error();
    (*session)->randomInputs(*options.seed);
    if (Status s = (*session)->step(); !s)
      return s;
    most = std::max(most, (*session)->threads());
    std::vector<std::string> outputs;
    for (uint32_t i = 0; i < (*session)->outputs.size(); ++i)
      outputs.push_back((*session)->output(i));
    if (first.empty())
      first = std::move(outputs);
    else
      for (uint32_t i = 0; i < first.size(); ++i)
        if (outputs[i] != first[i])
          return verificationError(
              "out/" + std::to_string(i) + " (" + nameOf(**session, i) +
              ") has other bits with " + std::to_string((*session)->threads()) +
              " threads than with 1, expected the same");
  }
  if (options.json)
    out << dump({{"bundle", options.bundle},
                 {"compared_with", nullptr},
                 {"repeats", true},
                 {"threads", most},
                 {"seed", *options.seed},
                 {"passed", true}});
  else
    out << "host is the reference, and no other target of the bundle runs "
           "here: no numbers were compared\n"
        << "repeats: " << first.size()
        << " outputs have the same bits in three runs with 1 to " << most
        << " threads, on inputs from seed " << *options.seed << '\n';
  return Status::ok();
}

Status verifyIntegrity(const VerifyOptions &options, std::ostream &out) {
  nova_rt_bundle_t *bundle = nullptr;
  if (auto status = nova_rt_bundle_open(options.bundle.c_str(), &bundle))
    return abiError(status);
  std::unique_ptr<nova_rt_bundle_t, void (*)(nova_rt_bundle_t *)> closer(
      bundle, nova_rt_bundle_close);
  if (auto status = nova_rt_bundle_verify(bundle))
    return abiError(status);
  nova_rt_bundle_info_t info = {};
  info.struct_size = sizeof info;
  if (auto status = nova_rt_bundle_info(bundle, &info))
    return abiError(status);
  if (options.json)
    out << dump({{"bundle", options.bundle},
                 {"compared_with", nullptr},
                 {"blobs", info.blobs},
                 {"targets", info.targets},
                 {"passed", true}});
  else
    out << "verified: the plan of " << info.targets
        << (info.targets == 1 ? " target" : " targets")
        << " and the digests of " << info.blobs
        << (info.blobs == 1 ? " blob" : " blobs")
        << "\nno numbers were compared: give --data FILE or --seed S\n";
  return Status::ok();
}

} // namespace

Status run::verify(const VerifyOptions &options, std::ostream &out,
                   std::ostream &log) {
  if (options.simulate)
    return Error{ErrorCode::Missing,
                 "--simulate: this build has no simulator of GPU targets",
                 "verify on a machine that has the device"};
  if (options.data && options.seed)
    return Error{ErrorCode::Usage,
                 "inputs from a data file and from a seed, expected one",
                 {}};
  if (options.tolerance && !(*options.tolerance >= 0))
    return Error{ErrorCode::Usage,
                 "a tolerance of " +
                     numberText(rt::DType::F64, *options.tolerance) +
                     ", expected 0 or more",
                 {}};
  if (options.tolerance && !options.data && options.reference.empty())
    return Error{ErrorCode::Usage, "a tolerance, and no numbers to compare",
                 "give --data FILE"};
  if (options.data)
    return verifyData(options, out);
  if (!options.seed)
    return verifyIntegrity(options, out);
  if (!options.reference.empty())
    return verifyAgainst(options, out);
  return verifyRepeats(options, out);
}
