//===- Verify.cpp - The command `verify` ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Runtime/Run.h"

#include "VerifyParts.h"

#include <algorithm>
#include <ostream>

using namespace nova;
using namespace nova::run;
using Json = nlohmann::json;

static std::string nameOf(const Session &session, uint32_t output) {
  const Tensor &t = session.outputs[output];
  const Tensor &shown = t.updates ? session.inputs[*t.updates] : t;
  return shown.path.empty() ? shown.name : shown.path;
}

Expected<Reference> run::outputsOf(Session &session) {
  Reference outputs;
  for (uint32_t i = 0; i < session.outputs.size(); ++i) {
    Expected<std::string> bytes = session.output(i);
    if (!bytes)
      return bytes.error();
    outputs.push_back(std::move(*bytes));
  }
  return outputs;
}

Expected<Report> run::judgeStep(Session &session, const Reference &reference,
                                const VerifyOptions &options) {
  Report report;
  bool gpuCode = session.onGpu || session.simulated;
  report.column = columnOf(session.matmul, session.graph16bit, !gpuCode);
  report.target = session.targetName;
  if (gpuCode) {
    report.target += " (" + session.targetDevice + ")";
    report.device = session.deviceName;
  }
  if (options.tolerance) {
    report.standard = false;
    double tau = *options.tolerance;
    report.column = {report.column.name, tau, tau, tau};
  }
  // What updates replace is gone after the step.
  std::vector<std::string> before(session.outputs.size());
  for (size_t i = 0; i < session.outputs.size(); ++i)
    if (session.outputs[i].updates) {
      Expected<std::string> bytes = session.input(*session.outputs[i].updates);
      if (!bytes)
        return bytes.error();
      before[i] = std::move(*bytes);
    }
  if (Status s = session.step(); !s)
    return s.error();
  Expected<Reference> ours = outputsOf(session);
  if (!ours)
    return ours.error();
  for (uint32_t i = 0; i < session.outputs.size(); ++i) {
    const Tensor &t = session.outputs[i];
    report.rows.push_back(
        {i, nameOf(session, i), t.role, t.dtypeName, t.dtype, t.elements,
         judge(report.column, t.role == "loss", t.dtype, t.elements, (*ours)[i],
               reference[i], before[i])});
  }
  return report;
}

namespace {

Status conclude(const Report &report, const VerifyOptions &options,
                std::ostream &out) {
  if (options.json) {
    Json json = toJson(report);
    json["bundle"] = options.bundle;
    out << dump(json);
  } else {
    print(report, out);
  }
  out.flush();
  return statusOf(report);
}

SessionOptions sessionOptions(const VerifyOptions &options) {
  SessionOptions how;
  how.bundle = options.bundle;
  how.device = options.device;
  how.threads = options.threads;
  how.allowJit = options.allowJit;
  how.launch = options.launch;
  return how;
}

} // namespace

SessionOptions run::hostOptions(const std::string &bundle, unsigned threads) {
  SessionOptions how;
  how.bundle = bundle;
  how.device = "host";
  how.threads = threads;
  return how;
}

Expected<Reference> run::readReference(const SafetensorsFile &file,
                                       const Session &session) {
  Reference reference;
  for (size_t i = 0; i < session.outputs.size(); ++i) {
    Expected<std::string> bytes =
        readTensor(file, "out/" + std::to_string(i), session.outputs[i],
                   "output " + std::to_string(i));
    if (!bytes)
      return bytes.error();
    reference.push_back(std::move(*bytes));
  }
  return reference;
}

namespace {

Status verifyData(const VerifyOptions &options, std::ostream &out,
                  std::ostream &log) {
  auto session = Session::open(sessionOptions(options), log);
  if (!session)
    return session.error();
  Expected<SafetensorsFile> file = SafetensorsFile::open(*options.data);
  if (!file)
    return file.error();
  if (Status s = (*session)->loadInputs(*file); !s)
    return s;
  Expected<Reference> reference = readReference(*file, **session);
  if (!reference)
    return reference.error();
  Expected<Report> report = judgeStep(**session, *reference, options);
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

Status verifyAgainst(const VerifyOptions &options, std::ostream &out,
                     std::ostream &log) {
  auto session = Session::open(sessionOptions(options), log);
  if (!session)
    return session.error();
  auto other =
      Session::open(hostOptions(options.reference, options.threads), log);
  if (!other)
    return other.error();
  if (Status s = sameSignature(**session, **other, options); !s)
    return s;
  (*session)->randomInputs(*options.seed);
  (*other)->randomInputs(*options.seed);
  if (Status s = (*other)->step(); !s)
    return s;
  Expected<Reference> reference = outputsOf(**other);
  if (!reference)
    return reference.error();
  Expected<Report> report = judgeStep(**session, *reference, options);
  if (!report)
    return report.error();
  report->compared = "the host target of '" + options.reference +
                     "' on inputs from seed " + std::to_string(*options.seed);
  return conclude(*report, options, out);
}

/// The targets of the bundle that run on the GPU of the options; why the others
/// do not goes to `log`.
Expected<std::vector<uint32_t>> targetsHere(const VerifyOptions &options,
                                            std::ostream &log) {
  std::vector<uint32_t> here;
  if (options.device == "host")
    return here;
  nova_rt_bundle_t *bundle = nullptr;
  if (auto status = nova_rt_bundle_open(options.bundle.c_str(), &bundle))
    return abiError(status);
  std::unique_ptr<nova_rt_bundle_t, void (*)(nova_rt_bundle_t *)> closer(
      bundle, nova_rt_bundle_close);
  nova_rt_choose_options_t how = {};
  how.struct_size = sizeof how;
  how.allow_jit = options.allowJit;
  if (!options.device.empty()) {
    Expected<int32_t> device = deviceOf(options.device);
    if (!device)
      return device.error();
    how.device = *device;
  }
  nova_rt_target_t target = {};
  target.struct_size = sizeof target;
  std::optional<Error> refused;
  for (uint32_t i = 0; !nova_rt_bundle_target(bundle, i, &target); ++i) {
    if (std::string_view(target.name) == "host")
      continue;
    auto status = nova_rt_bundle_check(bundle, i, &how);
    if (!status) {
      here.push_back(i);
    } else {
      refused = abiError(status);
      log << "not verified here: " << refused->message << '\n';
    }
  }
  // A GPU that was asked for and not used is a failure.
  if (here.empty() && !options.device.empty())
    return refused ? *refused
                   : Error{ErrorCode::Missing,
                           "GPU " + options.device +
                               " was asked for, the bundle has no target for "
                               "a GPU",
                           "compile it again with --target"};
  return here;
}

/// Every target that runs here against the host target of the bundle.
Status verifyTargets(const VerifyOptions &options,
                     const std::vector<uint32_t> &targets, std::ostream &out,
                     std::ostream &log) {
  auto host = Session::open(hostOptions(options.bundle, options.threads), log);
  if (!host)
    return host.error();
  (*host)->randomInputs(*options.seed);
  if (Status s = (*host)->step(); !s)
    return s;
  Expected<Reference> reference = outputsOf(**host);
  if (!reference)
    return reference.error();
  Status result;
  Json reports = Json::array();
  for (uint32_t target : targets) {
    SessionOptions how = sessionOptions(options);
    how.target = target;
    if (how.device.empty())
      how.device = "0";
    auto session = Session::open(how, log);
    if (!session)
      return session.error();
    (*session)->randomInputs(*options.seed);
    Expected<Report> report = judgeStep(**session, *reference, options);
    if (!report)
      return report.error();
    report->compared =
        "the host target on inputs from seed " + std::to_string(*options.seed);
    if (options.json)
      reports.push_back(toJson(*report));
    else
      print(*report, out);
    if (Status s = statusOf(*report); !s && result)
      result = s;
  }
  if (options.json)
    out << dump({{"bundle", options.bundle},
                 {"seed", *options.seed},
                 {"passed", bool(result)},
                 {"targets", reports}});
  out.flush();
  return result;
}

/// A bundle whose only target that runs here is the reference itself: what is
/// left to check is that it repeats, bit for bit, with any number of threads.
/// That is no verification: Missing, after what was found.
Status verifyRepeats(const VerifyOptions &options, std::ostream &out,
                     std::ostream &log) {
  std::vector<std::string> first;
  unsigned counts[] = {1, options.threads, std::max(2u, options.threads)};
  unsigned most = 1;
  for (unsigned threads : counts) {
    auto session = Session::open(hostOptions(options.bundle, threads), log);
    if (!session)
      return session.error();
    (*session)->randomInputs(*options.seed);
    if (Status s = (*session)->step(); !s)
      return s;
    most = std::max(most, (*session)->threads());
    Expected<Reference> outputs = outputsOf(**session);
    if (!outputs)
      return outputs.error();
    if (first.empty())
      first = std::move(*outputs);
    else
      for (uint32_t i = 0; i < first.size(); ++i)
        if ((*outputs)[i] != first[i])
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
                 {"passed", false}});
  else
    out << "repeats: " << first.size()
        << " outputs have the same bits in three runs with 1 to " << most
        << " threads, on inputs from seed " << *options.seed << '\n';
  out.flush();
  return Error{ErrorCode::Missing,
               "not verified: host is the reference, and no other target of the "
               "bundle runs here: no numbers were compared",
               "compare with --data FILE, or a GPU target of the bundle by "
               "--simulate"};
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
  if (options.simulate)
    return verifySimulated(options, out, log);
  if (options.tolerance && !options.data && !options.seed)
    return Error{ErrorCode::Usage, "a tolerance, and no numbers to compare",
                 "give --data FILE or --seed S"};
  if (options.data)
    return verifyData(options, out, log);
  if (!options.seed)
    return verifyIntegrity(options, out);
  if (!options.reference.empty())
    return verifyAgainst(options, out, log);
  Expected<std::vector<uint32_t>> targets = targetsHere(options, log);
  if (!targets)
    return targets.error();
  if (targets->empty())
    return verifyRepeats(options, out, log);
  return verifyTargets(options, *targets, out, log);
}
