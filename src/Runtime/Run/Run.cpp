//===- Run.cpp - The command `run` ----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Runtime/Run.h"

#include "Session.h"
#include "Text.h"

#include <chrono>
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

Status save(const Session &session, const std::string &path) {
  std::vector<std::string> storage;
  std::vector<SafetensorsTensor> tensors;
  storage.reserve(session.outputs.size() + session.inputs.size());
  auto add = [&](std::string name, const Tensor &t, std::string bytes) {
    storage.push_back(std::move(bytes));
    tensors.push_back({std::move(name),
                       std::string(safetensorsDtypeOf(t.dtypeName)), t.shape,
                       storage.back().data(), storage.back().size()});
  };
  for (uint32_t i = 0; i < session.outputs.size(); ++i)
    add("out/" + std::to_string(i), session.outputs[i], session.output(i));
  for (uint32_t i = 0; i < session.inputs.size(); ++i)
    add("in/" + session.inputs[i].name, session.inputs[i], session.input(i));
  return writeSafetensors(path, std::move(tensors));
}

} // namespace

Status run::run(const RunOptions &options, std::ostream &out,
                std::ostream &log) {
  if (options.data && options.seed)
    return Error{ErrorCode::Usage,
                 "inputs from a data file and from a seed, expected one",
                 {}};
  Expected<std::unique_ptr<Session>> opened = Session::open(
      options.bundle, options.device, options.threads, options.allowJit);
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

  auto losses = lossesOf(session);
  nlohmann::json steps = nlohmann::json::array();
  std::chrono::duration<double, std::milli> busy{0};
  for (uint64_t step = 1; step <= options.steps; ++step) {
    auto begin = std::chrono::steady_clock::now();
    if (Status s = session.step(); !s)
      return s;
    busy += std::chrono::steady_clock::now() - begin;
    nlohmann::json values = nlohmann::json::array();
    std::string line = "step " + std::to_string(step);
    for (auto [index, tensor] : losses) {
      double value =
          rt::loadElement(tensor->dtype, session.output(index).data());
      values.push_back(jsonNumber(value));
      line += "  loss ";
      line += numberText(tensor->dtype, value);
    }
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
  double each = options.steps ? busy.count() / double(options.steps) : 0;
  if (options.json)
    out << nlohmann::json({{"bundle", options.bundle},
                           {"name", session.name},
                           {"target", session.targetName},
                           {"threads", session.threads()},
                           {"milliseconds_per_step", each},
                           {"steps", steps}})
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
        << '\n';
  log << options.steps << (options.steps == 1 ? " step, " : " steps, ")
      << numberText(rt::DType::F32, std::round(each * 1000) / 1000)
      << " ms per step on " << session.targetName << ", " << session.threads()
      << (session.threads() == 1 ? " thread" : " threads") << '\n';
  return Status::ok();
}
