//===- Run.cpp - The command `run` ----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Runtime/Run.h"

#include "Session.h"
#include "Stopwatch.h"
#include "Text.h"
#include "Timing.h"

#include <ostream>

using namespace nova;
using namespace nova::run;

namespace {

/// Loss outputs with their index, in output order.
std::vector<std::pair<uint32_t, const Tensor *>>
lossesOf(const Session &session) {
  std::vector<std::pair<uint32_t, const Tensor *>> out;
  for (size_t i = 0; i < session.outputs.size(); ++i)
    if (session.outputs[i].role == "loss" && session.outputs[i].elements == 1)
      out.emplace_back(static_cast<uint32_t>(i), &session.outputs[i]);
  return out;
}

Status save(Session &session, const std::string &path) {
  std::vector<std::string> storage;
  std::vector<SafetensorsTensor> tensors;
  storage.reserve(session.outputs.size() + session.inputs.size());
  auto add = [&](std::string name, const Tensor &t,
                 Expected<std::string> bytes) -> Status {
    if (!bytes)
      return bytes.error();
    storage.push_back(std::move(*bytes));
    tensors.push_back({std::move(name),
                       std::string(safetensorsDtypeOf(t.dtypeName)), t.shape,
                       storage.back().data(), storage.back().size()});
    return Status::ok();
  };
  for (uint32_t i = 0; i < session.outputs.size(); ++i)
    if (Status s = add("out/" + std::to_string(i), session.outputs[i],
                       session.output(i));
        !s)
      return s;
  for (uint32_t i = 0; i < session.inputs.size(); ++i)
    if (Status s = add("in/" + session.inputs[i].name, session.inputs[i],
                       session.input(i));
        !s)
      return s;
  return writeSafetensors(path, std::move(tensors));
}

/// The losses of the last step, on a line for people and as JSON.
Status readLosses(Session &session, std::string &line, nlohmann::json &values) {
  values = nlohmann::json::array();
  for (auto [index, tensor] : lossesOf(session)) {
    Expected<std::string> bytes = session.output(index);
    if (!bytes)
      return bytes.error();
    double value = rt::loadElement(tensor->dtype, bytes->data());
    values.push_back(jsonNumber(value));
    line += "  loss ";
    line += numberText(tensor->dtype, value);
  }
  return Status::ok();
}

std::string whereText(const Session &session) {
  if (session.onGpu)
    return session.targetName + " (" + session.deviceName + ")";
  return session.targetName + ", " + std::to_string(session.threads()) +
         (session.threads() == 1 ? " thread" : " threads");
}

/// What both ways to run print at the end of `--json`.
nlohmann::json headOf(const RunOptions &options, const Session &session) {
  return {{"bundle", options.bundle},
          {"name", session.name},
          {"target", session.targetName},
          {"device", session.deviceName},
          {"threads", session.threads()}};
}

void printJson(const nlohmann::json &json, std::ostream &out) {
  out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
      << '\n';
}

Status runTimed(const RunOptions &options, Session &session,
                std::ostream &out) {
  Expected<Timings> timings = timeSteps(session, options.steps);
  if (!timings)
    return timings.error();
  std::string line = "step " + std::to_string(options.steps);
  nlohmann::json losses;
  if (Status s = readLosses(session, line, losses); !s)
    return s;
  if (options.out)
    if (Status s = save(session, *options.out); !s)
      return s;
  if (Status s = timeBinding(session, *timings); !s)
    return s;
  nlohmann::json json = toJson(*timings, session);
  if (options.json) {
    nlohmann::json head = headOf(options, session);
    head["launch"] = options.launch.empty() ? "graph" : options.launch;
    head["steps"] = {{{"step", options.steps}, {"losses", losses}}};
    head["timing"] = std::move(json);
    printJson(head, out);
    return Status::ok();
  }
  auto number = [](double v) {
    return numberText(rt::DType::F32, std::round(v * 1000) / 1000);
  };
  out << line << "\nstep, ms on " << whereText(session) << ": "
      << summary(timings->step)
      << "\nlaunch, us of CPU: " << summary(timings->launch);
  auto binding = [&](const char *when,
                     const std::optional<Timings::Binding> &b) {
    if (b)
      out << "\nbind and launch, us of CPU, " << when
          << ":\n  nothing changed: " << summary(b->unchanged)
          << "\n  two sets of buffers in turn: " << summary(b->alternating)
          << "\n  1 new address: " << summary(b->one)
          << "\n  16 new addresses: " << summary(b->sixteen)
          << "\n  every address new: " << summary(b->all);
  };
  binding("step after step", timings->loop);
  binding("on an idle GPU", timings->idle);
  out << "\nopen to first launch, ms: "
      << number(session.times.total() + timings->firstLaunch) << " (manifest "
      << number(session.times.open) << ", choose "
      << number(session.times.choose) << ", load " << number(session.times.load)
      << ", arena " << number(session.times.create) << ", buffers "
      << number(session.times.bind) << ", first launch "
      << number(timings->firstLaunch) << ")\n";
  return Status::ok();
}

} // namespace

Status run::run(const RunOptions &options, std::ostream &out,
                std::ostream &log) {
  if (options.data && options.seed)
    return Error{ErrorCode::Usage,
                 "inputs from a data file and from a seed, expected one",
                 {}};
  SessionOptions how;
  how.bundle = options.bundle;
  how.device = options.device;
  how.threads = options.threads;
  how.allowJit = options.allowJit;
  how.launch = options.launch;
  Expected<std::unique_ptr<Session>> opened = Session::open(how, log);
  if (!opened)
    return opened.error();
  Session &session = **opened;
  if (options.data) {
    Expected<SafetensorsFile> file = SafetensorsFile::open(*options.data);
    if (!file)
      return file.error();
    if (Status s = session.loadInputs(*file); !s)
      return s;
  } else {
    session.randomInputs(options.seed.value_or(0));
    if (!options.seed)
      log << "random inputs from seed 0\n";
  }
  for (const std::string &assignment : options.set)
    if (Status s = session.set(assignment); !s)
      return s;
  if (options.time)
    return runTimed(options, session, out);

  nlohmann::json steps = nlohmann::json::array();
  double busy = 0;
  if (Status s = session.upload(); !s)
    return s;
  for (uint64_t step = 1; step <= options.steps; ++step) {
    Stopwatch watch;
    if (Status s = session.step(); !s)
      return s;
    if (Status s = session.synchronize(); !s)
      return s;
    busy += watch.lap();
    nlohmann::json values;
    std::string line = "step " + std::to_string(step);
    if (Status s = readLosses(session, line, values); !s)
      return s;
    if (options.json)
      steps.push_back({{"step", step}, {"losses", values}});
    else
      out << line << std::endl; // seen while the next step runs
    // Updates are in place: what is left to do between steps.
    if (Status s = session.advance(); !s)
      return s;
  }
  if (options.out)
    if (Status s = save(session, *options.out); !s)
      return s;
  double each = options.steps ? busy / double(options.steps) : 0;
  if (options.json) {
    nlohmann::json json = headOf(options, session);
    json["milliseconds_per_step"] = each;
    json["steps"] = std::move(steps);
    printJson(json, out);
  }
  log << options.steps << (options.steps == 1 ? " step, " : " steps, ")
      << numberText(rt::DType::F32, std::round(each * 1000) / 1000)
      << " ms per step on " << whereText(session) << '\n';
  return Status::ok();
}
