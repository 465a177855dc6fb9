//===- VerifySimulated.cpp - `verify --simulate` --------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyParts.h"
#include "nova/Bundle/Bundle.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

using namespace nova;
using namespace nova::run;
using Json = nlohmann::json;

namespace {

/// The GPU targets of the bundle that were asked for.
Expected<std::vector<uint32_t>> simulatedTargets(const VerifyOptions &options) {
  Expected<bundle::Manifest> manifest = bundle::openManifest(options.bundle);
  if (!manifest)
    return manifest.error();
  std::vector<uint32_t> found;
  std::string there;
  for (uint32_t i = 0; i < manifest->targets.size(); ++i) {
    const bundle::Target &t = manifest->targets[i];
    there += (there.empty() ? "" : ", ") + t.name + " (" + t.device + ")";
    bool wanted = options.simulateTargets.empty();
    for (const std::string &name : options.simulateTargets)
      wanted |= name == t.name || name == t.device;
    if (wanted && t.name != "host")
      found.push_back(i);
  }
  if (found.empty())
    return badInput("--simulate: '" + options.bundle +
                        "' has no such GPU target: it has " +
                        (there.empty() ? "none" : there),
                    "compile it with --target, for instance sm_80,host");
  return found;
}

std::string speedOf(const sim::StepOutcome &step) {
  char text[200];
  double rate =
      step.counts.coreSeconds > 0
          ? double(step.counts.laneInstructions) / step.counts.coreSeconds
          : 0;
  std::snprintf(text, sizeof text,
                "%zu launches, %.1f million lane instructions in %.2f s, "
                "%.0f million a second and core",
                step.launches.size(),
                double(step.counts.laneInstructions) / 1e6, step.seconds,
                rate / 1e6);
  return text;
}

Json faultJson(const sim::Fault &fault) {
  return {{"kind", std::string(sim::nameOf(fault.kind))},
          {"kernel", fault.kernel},
          {"ptx_line", fault.line},
          {"instruction", fault.opcode},
          {"source", fault.source},
          {"block", fault.block},
          {"warp", fault.warp ? Json(*fault.warp) : Json()},
          {"lane", fault.lane ? Json(*fault.lane) : Json()},
          {"address", fault.address ? Json(*fault.address) : Json()},
          {"memory", fault.buffer},
          {"what", fault.what}};
}

/// What the numbers are compared with: a data file, or the host target.
struct Comparison {
  std::optional<SafetensorsFile> file;
  std::unique_ptr<Session> host;
  uint64_t seed = 0;
};

/// What came of a target.
struct Simulated {
  Status status; ///< Missing: it cannot be simulated.
  std::string name, line;
  std::optional<Report> report;
  Json json;
};

/// "85 outputs, 85 passed; largest used fraction 0.19 (out/4)".
std::string summaryOf(const Report &report) {
  char used[48] = "";
  if (const Row *worst = report.worst())
    std::snprintf(used, sizeof used, "; largest used fraction %.2g",
                  worst->judgement.measure.largest());
  return std::to_string(report.rows.size()) + " outputs, " +
         std::to_string(report.count(Verdict::Passed)) + " passed" + used;
}

Expected<Reference> referenceFor(Session &session, Comparison &with) {
  if (with.file) {
    if (Status s = session.loadInputs(*with.file); !s)
      return s.error();
    return readReference(*with.file, session);
  }
  session.randomInputs(with.seed);
  with.host->randomInputs(with.seed);
  if (Status s = with.host->step(); !s)
    return s.error();
  return outputsOf(*with.host);
}

/// One target, in as many orders of warps as are asked for.
Simulated simulateTarget(const VerifyOptions &options, uint32_t target,
                         Comparison &with, std::ostream &log) {
  Simulated done;
  Reference first;
  for (uint64_t order = 0; order < std::max<uint64_t>(options.interleavings, 1);
       ++order) {
    SessionOptions how;
    how.bundle = options.bundle;
    how.threads = options.threads;
    how.target = target;
    how.simulate = true;
    auto opened = Session::open(how, log);
    if (!opened) {
      done.status = opened.error();
      return done;
    }
    Session &session = **opened;
    session.simulation.seed = order;
    Expected<Reference> reference = referenceFor(session, with);
    if (!reference) {
      done.status = reference.error();
      return done;
    }
    Expected<Report> report = judgeStep(session, *reference, options);
    if (!report) {
      done.status = report.error();
      if (const auto &fault = session.simulatedStep.fault) {
        done.line = "fault: " + std::string(sim::nameOf(fault->kind)) +
                    " in kernel '" + fault->kernel + "'";
        done.json = {{"target", session.targetName},
                     {"passed", false},
                     {"fault", faultJson(*fault)}};
      }
      return done;
    }
    log << session.targetName
        << " simulated: " << speedOf(session.simulatedStep) << '\n';
    // Whatever the order of warps, the bits are the same: that is promised.
    Expected<Reference> ours = outputsOf(session);
    if (!ours) {
      done.status = ours.error();
      return done;
    }
    if (order) {
      for (size_t i = 0; i < first.size(); ++i)
        if (first[i] != (*ours)[i]) {
          done.status = Error{
              ErrorCode::Verification,
              session.targetName + ", simulated: out/" + std::to_string(i) +
                  " has other bits with interleaving " + std::to_string(order) +
                  " than with 0, expected the same",
              {}};
          done.line = "other bits with interleaving " + std::to_string(order);
          return done;
        }
      continue;
    }
    first = std::move(*ours);
    report->compared = with.file ? "the data file '" + *options.data + "'"
                                 : "the host target on inputs from seed " +
                                       std::to_string(with.seed);
    done.status = statusOf(*report);
    done.line = summaryOf(*report);
    done.json = run::toJson(*report);
    done.report = std::move(*report);
  }
  return done;
}

} // namespace

Status run::verifySimulated(const VerifyOptions &options, std::ostream &out,
                            std::ostream &log) {
  Expected<std::vector<uint32_t>> targets = simulatedTargets(options);
  if (!targets)
    return targets.error();
  Expected<bundle::Manifest> manifest = bundle::openManifest(options.bundle);
  if (!manifest)
    return manifest.error();
  Comparison with;
  with.seed = options.seed.value_or(0);
  if (options.data) {
    Expected<SafetensorsFile> opened = SafetensorsFile::open(*options.data);
    if (!opened)
      return opened.error();
    with.file.emplace(std::move(*opened));
  } else {
    auto session =
        Session::open(hostOptions(options.bundle, options.threads), log);
    if (!session) {
      Error error = session.error();
      error.hint =
          "numbers are compared with the host target of the bundle, or "
          "with --data FILE";
      return error;
    }
    with.host = std::move(*session);
  }
  std::optional<Error> failure, missing;
  Json reports = Json::array();
  std::string summary;
  bool any = false;
  for (uint32_t target : *targets) {
    const bundle::Target &t = manifest->targets[target];
    Simulated done = simulateTarget(options, target, with, log);
    std::string name = t.name + " (" + t.device + ")";
    if (!done.status && done.status.error().code == ErrorCode::Missing) {
      Error error = done.status.error();
      done.line = "not simulated: " + error.message +
                  (error.hint.empty() ? "" : "; " + error.hint);
      done.json = {{"target", t.name},
                   {"simulated", false},
                   {"reason", error.message},
                   {"instead", error.hint}};
      error.message =
          "target " + name + " cannot be simulated: " + error.message;
      // Others may be, unless it was this one that was asked for.
      std::optional<Error> &where =
          options.simulateTargets.empty() ? missing : failure;
      if (!where)
        where = error;
    } else {
      if (!done.status && done.json.is_null())
        return done.status;
      any = true;
      if (!done.status && !failure)
        failure = done.status.error();
    }
    if (done.report && !options.json)
      print(*done.report, out);
    reports.push_back(std::move(done.json));
    summary += name + ": " + done.line + '\n';
  }
  if (!failure && !any)
    failure = missing;
  Status result = failure ? Status(*failure) : Status::ok();
  if (options.json) {
    Json json = {{"bundle", options.bundle},
                 {"passed", bool(result)},
                 {"simulated", true},
                 {"targets", reports}};
    if (!with.file)
      json["seed"] = with.seed;
    out << dump(json);
  } else if (targets->size() > 1) {
    out << summary;
  }
  out.flush();
  return result;
}
