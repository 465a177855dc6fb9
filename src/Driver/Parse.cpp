//===- Parse.cpp - CLI11, filled from the table of flags ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Driver/Options.h"
#include "nova/Graph/NearestNames.h"
#include "nova/Support/Version.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <deque>

using namespace nova;
using namespace nova::driver;

static Error usage(std::string message, std::string hint) {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

/// ", did you mean 'x' or 'y'?", or the empty string.
static std::string didYouMean(std::string_view name,
                              const std::vector<std::string_view> &known,
                              std::string_view prefix = {}) {
  std::string text;
  for (const std::string &near : graph::nearestNames(name, known, 2))
    text += (text.empty() ? ", did you mean '" : " or '") +
            std::string(prefix) + near + "'";
  return text.empty() ? text : text + "?";
}

static std::string seeHelp(const VerbInfo &info) {
  return "see `novac " + std::string(info.name) + " --help`";
}

static Expected<const VerbInfo *> findVerb(const std::string &name) {
  std::vector<std::string_view> known;
  for (const VerbInfo &info : verbs()) {
    if (info.name == name)
      return &info;
    known.push_back(info.name);
  }
  return usage("unknown verb '" + name + "'" + didYouMean(name, known),
               "see `novac --help`");
}

static Error unknownFlag(const VerbInfo &info, const std::string &argument) {
  size_t dashes = argument.starts_with("--") ? 2 : 1;
  std::string name = argument.substr(
      dashes, std::min(argument.find('='), argument.size()) - dashes);
  std::vector<std::string_view> known;
  const VerbInfo *elsewhere = nullptr;
  for (const Flag &flag : flags()) {
    if (flag.verbs.has(info.verb))
      known.push_back(flag.name);
    else if (flag.name == name)
      for (const VerbInfo &other : verbs())
        if (!elsewhere && flag.verbs.has(other.verb))
          elsewhere = &other;
  }
  std::string message = "unknown flag '" + argument.substr(0, dashes) + name +
                        "' of novac " + std::string(info.name);
  if (elsewhere)
    return usage(message + ", it is one of novac " +
                     std::string(elsewhere->name),
                 seeHelp(info));
  return usage(message + didYouMean(name, known, "--"), seeHelp(info));
}

Expected<Options>
driver::parseOptions(const std::vector<std::string> &arguments) {
  Options options;
  if (arguments.empty())
    return usage("no verb given", "see `novac --help`");
  if (arguments[0] == "--help" || arguments[0] == "-h" ||
      arguments[0] == "help") {
    options.help = true;
    // The general help belongs to no verb; `version` stands for that.
    options.verb = Verb::Version;
    return options;
  }
  Expected<const VerbInfo *> verb =
      findVerb(arguments[0] == "--version" ? "version" : arguments[0]);
  if (!verb)
    return verb.error();
  const VerbInfo &info = **verb;
  options.verb = info.verb;

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_option("operands", options.operands)
      ->expected(0, static_cast<int>(arguments.size()));
  // Values are collected as text first: then each flag is read in the order of
  // the table, whatever the order of the arguments.
  struct Given {
    const Flag *flag;
    std::vector<std::string> values;
    int64_t count = 0;
  };
  std::deque<Given> given;
  for (const Flag &flag : flags()) {
    if (!flag.verbs.has(info.verb))
      continue;
    Given &entry = given.emplace_back(Given{&flag, {}, 0});
    std::string names = "--" + std::string(flag.name);
    if (flag.letter)
      names += std::string(",-") + flag.letter;
    if (flag.value.empty())
      app.add_flag(names, entry.count);
    else
      app.add_option(names, entry.values)
          ->expected(1)
          ->allow_extra_args(false)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  // CLI11 wants the arguments last first.
  std::vector<std::string> rest(arguments.rbegin(), arguments.rend() - 1);
  try {
    app.parse(std::move(rest));
  } catch (const CLI::ParseError &error) {
    // The one mistake that is left to CLI11 to find.
    for (const Given &entry : given)
      if (std::string_view(error.what())
              .starts_with("--" + std::string(entry.flag->name) + ":"))
        return usage("flag '--" + std::string(entry.flag->name) +
                         "' needs a value: " + std::string(entry.flag->value),
                     seeHelp(info));
    return usage(error.what(), seeHelp(info));
  }

  for (Given &entry : given)
    if (entry.flag->name == "help" && entry.count) {
      options.help = true;
      return options;
    }
  if (!info.available)
    return usage("novac " + std::string(info.name) +
                     " is not in this version (" + versionString() + ")",
                 "see `novac --help`");
  for (const std::string &argument : app.remaining())
    if (argument != "--")
      return unknownFlag(info, argument);
  unsigned most = std::max(info.operandCount, info.operandLimit);
  if (options.operands.size() > most)
    return usage(
        "unexpected operand '" + options.operands[most] +
            "', novac " + std::string(info.name) + " takes " +
            (info.operandCount == 0 ? "none" : std::string(info.operands)),
        seeHelp(info));
  for (Given &entry : given) {
    const Flag &flag = *entry.flag;
    std::string name = "--" + std::string(flag.name);
    if (entry.values.empty() && !entry.count)
      continue;
    if (!flag.missing.empty())
      return Error{flag.missingCode, name + std::string(flag.missing), {}};
    if (entry.values.size() > 1 && !flag.repeatable)
      return usage("flag '" + name + "' is given " +
                       std::to_string(entry.values.size()) +
                       " times, expected once",
                   seeHelp(info));
    if (entry.count)
      entry.values.assign(1, "");
    for (const std::string &value : entry.values)
      if (std::string expected = flag.set(options, value); !expected.empty())
        return usage("flag '" + name + "': '" + value + "', expected " +
                         expected,
                     seeHelp(info));
  }
  if (options.operands.size() < info.operandCount)
    return usage("novac " + std::string(info.name) + " needs " +
                     std::string(info.operands),
                 seeHelp(info));
  return options;
}

//===----------------------------------------------------------------------===//
// Resolving
//===----------------------------------------------------------------------===//

static std::string listTargets() {
  std::string text;
  for (std::string_view name : target::targetNames())
    text += std::string(name) + " ";
  return text + "native";
}

static Status resolveStage(Options &options) {
  if (options.stopAfter.empty())
    return Status::ok();
  std::optional<Stage> stage = stageFromName(options.stopAfter);
  if (!stage) {
    std::vector<std::string_view> known;
    std::string list;
    for (const StageInfo &info : stages()) {
      known.push_back(info.name);
      list += (list.empty() ? "" : " ") + std::string(info.name);
    }
    return usage("unknown stage '" + options.stopAfter + "'" +
                     didYouMean(options.stopAfter, known),
                 "stages: " + list);
  }
  options.lastStage = stage;
  return Status::ok();
}

bool driver::asksForNative(const Options &options) {
  if (options.targets.empty())
    return options.verb == Verb::Compile || options.verb == Verb::Check;
  return std::find(options.targets.begin(), options.targets.end(), "native") !=
         options.targets.end();
}

/// What `native` stands for here; never nothing.
static std::vector<const target::Device *>
nativeDevices(const std::vector<LocalGpu> &gpus, std::string &note) {
  std::vector<const target::Device *> found;
  std::string names;
  for (const LocalGpu &gpu : gpus)
    if (const target::Device *device =
            target::deviceOf(gpu.arch, gpu.product))
      if (std::find(found.begin(), found.end(), device) == found.end()) {
        found.push_back(device);
        names += (names.empty() ? "" : ", ") + std::string(device->name);
      }
  if (!found.empty()) {
    note = "target native: " + names;
    return found;
  }
  note = gpus.empty() ? "target native: no GPU here, compiling for host"
                      : "target native: this build has no code generator for " +
                            gpus.front().product + " (" + gpus.front().arch +
                            "), compiling for host";
  return {target::findTarget("host")};
}

static Status resolveTargets(Options &options,
                             const std::vector<LocalGpu> &gpus,
                             std::string &note) {
  if (options.targets.empty())
    options.targets.push_back(asksForNative(options) ? "native" : "host");
  std::vector<std::string_view> known = target::targetNames();
  for (const std::string &name : options.targets) {
    std::vector<const target::Device *> meant = {target::findTarget(name)};
    if (name == "native")
      meant = nativeDevices(gpus, note);
    for (const target::Device *device : meant) {
      if (!device)
        return usage("unknown target '" + name + "'" + didYouMean(name, known),
                     "targets: " + listTargets());
      if (std::find(options.devices.begin(), options.devices.end(), device) ==
          options.devices.end())
        options.devices.push_back(device);
    }
  }
  return Status::ok();
}

/// What is written: a bundle, or what one stage holds.
static Status resolveEmit(Options &options) {
  if (options.emit == "bundle" && options.lastStage)
    return usage("--stop-after '" + options.stopAfter +
                     "' writes what that stage holds, --emit bundle asks for a "
                     "bundle",
                 "give one of them");
  if (options.emit == "ptx") {
    if (options.lastStage && options.lastStage != Stage::Ptx)
      return usage(
          "--emit ptx writes the stage 'ptx', --stop-after asks for '" +
              options.stopAfter + "'",
          "give one of them");
    options.lastStage = Stage::Ptx;
  }
  if (options.emit == "mlir") {
    if (!options.lastStage)
      options.lastStage = kLastStage;
    if (*options.lastStage > Stage::Nvvm)
      return usage("--emit mlir: the stage '" + options.stopAfter +
                       "' is no MLIR",
                   "leave --emit out");
  }
  if (!options.lastStage)
    return Status::ok();
  options.emitted = Emit::Stage;
  std::string stage(stageName(*options.lastStage));
  if (*options.lastStage > kLastStage)
    for (const target::Device *device : options.devices)
      if (device->kind == target::DeviceKind::Cpu)
        return usage("the target 'host' has no stage '" + stage +
                         "', its last is '" +
                         std::string(stageName(kLastStage)) + "'",
                     "name a GPU with --target, see `novac targets`");
  if (*options.lastStage > kLastSharedStage && options.devices.size() > 1)
    return usage("the stage '" + stage + "' is one target's, there are " +
                     std::to_string(options.devices.size()) + ": " +
                     std::string(options.devices[0]->name) + ", " +
                     std::string(options.devices[1]->name) +
                     (options.devices.size() > 2 ? ", ..." : ""),
                 "name one of them with --target");
  if (options.lastStage == Stage::Cubin && options.output.empty())
    return usage("the stage 'cubin' is no text to print",
                 "name a file with -o, or standard output with -o -");
  return Status::ok();
}

Status driver::resolve(Options &options, const std::vector<LocalGpu> &gpus,
                       std::string &note) {
  if (Status status = resolveStage(options); !status)
    return status;
  if (Status status = resolveTargets(options, gpus, note); !status)
    return status;
  if (Status status = resolveEmit(options); !status)
    return status;
  if (options.precision == "bf16")
    return Error{ErrorCode::Missing,
                 "--precision bf16: this build has no code generator that "
                 "multiplies float32 in bfloat16; host multiplies in f32",
                 {}};
  // host multiplies in float32 whatever is asked for.
  options.matmul = !options.forGpu()           ? "f32"
                   : options.precision.empty() ? "tf32"
                                               : options.precision;
  return Status::ok();
}
