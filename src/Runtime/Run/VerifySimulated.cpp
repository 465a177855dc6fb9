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

} // namespace

Status run::verifySimulated(const VerifyOptions &options, std::ostream &out,
                            std::ostream &log) {
  Expected<std::vector<uint32_t>> targets = simulatedTargets(options);
  if (!targets)
    return targets.error();
  std::optional<SafetensorsFile> file;
  std::unique_ptr<Session> host;
  uint64_t seed = options.seed.value_or(0);
  if (options.data) {
    Expected<SafetensorsFile> opened = SafetensorsFile::open(*options.data);
    if (!opened)
      return opened.error();
    file.emplace(std::move(*opened));
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
    host = std::move(*session);
  }
  Status result;
  Json reports = Json::array();
  for (uint32_t target : *targets) {
    Reference first;
    for (uint64_t order = 0;
         order < std::max<uint64_t>(options.interleavings, 1); ++order) {
      SessionOptions how;
      how.bundle = options.bundle;
      how.threads = options.threads;
      how.target = target;
      how.simulate = true;
      auto opened = Session::open(how, log);
      if (!opened)
        return opened.error();
      Session &session = **opened;
      session.simulation.seed = order;
      Expected<Reference> reference = Reference();
      if (file) {
        if (Status s = session.loadInputs(*file); !s)
          return s;
        reference = readReference(*file, session);
      } else {
        session.randomInputs(seed);
        host->randomInputs(seed);
        if (Status s = host->step(); !s)
          return s;
        reference = outputsOf(*host);
      }
      if (!reference)
        return reference.error();
      Expected<Report> report = judgeStep(session, *reference, options);
      if (!report) {
        if (!session.simulatedStep.fault || !options.json)
          return report.error();
        reports.push_back({{"target", session.targetName},
                           {"passed", false},
                           {"fault", faultJson(*session.simulatedStep.fault)}});
        result = report.error();
        break;
      }
      log << session.targetName
          << " simulated: " << speedOf(session.simulatedStep) << '\n';
      // Whatever the order of warps, the bits are the same: that is promised.
      Expected<Reference> ours = outputsOf(session);
      if (!ours)
        return ours.error();
      if (order) {
        for (size_t i = 0; i < first.size(); ++i)
          if (first[i] != (*ours)[i])
            return Error{
                ErrorCode::Verification,
                session.targetName + ", simulated: out/" + std::to_string(i) +
                    " has other bits with interleaving " +
                    std::to_string(order) + " than with 0, expected the same",
                {}};
        continue;
      }
      first = std::move(*ours);
      report->compared =
          file ? "the data file '" + *options.data + "'"
               : "the host target on inputs from seed " + std::to_string(seed);
      if (options.json)
        reports.push_back(run::toJson(*report));
      else
        print(*report, out);
      if (Status s = statusOf(*report); !s && result)
        result = s;
    }
  }
  if (options.json) {
    Json json = {{"bundle", options.bundle},
                 {"passed", bool(result)},
                 {"simulated", true},
                 {"targets", reports}};
    if (!file)
      json["seed"] = seed;
    out << dump(json);
  }
  out.flush();
  return result;
}
