//===- Options.cpp - The tables of verbs and flags ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Driver/Options.h"

#include <array>
#include <charconv>

using namespace nova;
using namespace nova::driver;

//===----------------------------------------------------------------------===//
// Verbs
//===----------------------------------------------------------------------===//

static constexpr std::array kVerbs = {
    VerbInfo{Verb::Compile, "compile", "GRAPH", 1,
             "compile a training step into a bundle"},
    VerbInfo{Verb::Check, "check", "GRAPH", 1,
             "say whether a graph can be compiled, and everything that "
             "prevents it"},
    VerbInfo{Verb::Inspect, "inspect", "BUNDLE", 1, "show what is in a bundle"},
    VerbInfo{Verb::Run, "run", "BUNDLE", 1, "run steps of a bundle"},
    VerbInfo{Verb::Verify, "verify", "BUNDLE|GRAPH", 1,
             "check a bundle's digests and plan, and the numbers of a step"},
    VerbInfo{Verb::Explain, "explain", "GRAPH|BUNDLE", 1,
             "the schedule of each kernel, and why"},
    VerbInfo{Verb::Diff, "diff", "A.nova B.nova", 2,
             "what differs between two bundles", false},
    VerbInfo{Verb::Cache, "cache", "ACTION [FILE]", 1,
             "stats, list, verify; gc (to the limit), clear; export FILE, "
             "import FILE (a tar)",
             true, 2},
    VerbInfo{Verb::Targets, "targets", "", 0,
             "list the devices that novac knows"},
    VerbInfo{Verb::Ops, "ops", "", 0,
             "list the operations that a graph may use"},
    VerbInfo{Verb::Version, "version", "", 0, "print the version"},
};

std::span<const VerbInfo> driver::verbs() { return kVerbs; }

const VerbInfo &driver::verbInfo(Verb verb) {
  return kVerbs[static_cast<size_t>(verb)];
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// Stores text. An empty value is never meant.
template <std::string Options::*Member>
std::string text(Options &options, const std::string &value) {
  if (value.empty())
    return "a value that is not empty";
  options.*Member = value;
  return {};
}

template <bool Options::*Member>
std::string flag(Options &options, const std::string &) {
  options.*Member = true;
  return {};
}

template <auto Member, typename Number>
std::string number(Options &options, const std::string &value,
                   const char *expected) {
  Number parsed{};
  const char *end = value.data() + value.size();
  auto result = std::from_chars(value.data(), end, parsed);
  if (result.ec != std::errc() || result.ptr != end || value.empty())
    return expected;
  options.*Member = parsed;
  return {};
}

std::string setJobs(Options &options, const std::string &value) {
  std::string wrong = number<&Options::jobs, unsigned>(
      options, value, "a number of threads, 1 to 1024");
  if (wrong.empty() && (*options.jobs < 1 || *options.jobs > 1024))
    return "a number of threads, 1 to 1024";
  return wrong;
}

/// A number of bytes: "500M", "5G"; letters are powers of 1024.
std::string setCacheLimit(Options &options, const std::string &value) {
  constexpr const char *expected =
      "a number of bytes, or of units of 1024: 500M, 5G";
  const char *end = value.data() + value.size();
  uint64_t number = 0;
  auto result = std::from_chars(value.data(), end, number);
  unsigned shift = 0;
  if (result.ec == std::errc() && result.ptr + 1 == end) {
    size_t unit = std::string_view("KMGT").find(*result.ptr);
    if (unit == std::string_view::npos)
      return expected;
    shift = 10 * (static_cast<unsigned>(unit) + 1);
  } else if (result.ec != std::errc() || result.ptr != end) {
    return expected;
  }
  if (number > UINT64_MAX >> shift)
    return expected;
  options.cacheLimit = number << shift;
  return {};
}

std::string setSeed(Options &options, const std::string &value) {
  return number<&Options::seed, uint64_t>(options, value,
                                          "a whole number below 2^64");
}

std::string setInterleavings(Options &options, const std::string &value) {
  std::string wrong = number<&Options::interleavings, uint64_t>(
      options, value, "a number of orders, at least 1");
  if (wrong.empty() && options.interleavings == 0)
    return "a number of orders, at least 1";
  return wrong;
}

std::string setSteps(Options &options, const std::string &value) {
  std::string wrong = number<&Options::steps, uint64_t>(
      options, value, "a number of steps, at least 1");
  if (wrong.empty() && options.steps == 0)
    return "a number of steps, at least 1";
  return wrong;
}

std::string setThreads(Options &options, const std::string &value) {
  std::string wrong = number<&Options::threads, unsigned>(
      options, value, "a number of threads, 1 to 1024");
  if (wrong.empty() && (options.threads < 1 || options.threads > 1024))
    return "a number of threads, 1 to 1024";
  return wrong;
}

std::string setTolerance(Options &options, const std::string &value) {
  std::string wrong = number<&Options::tolerance, double>(
      options, value, "a number greater than 0");
  if (wrong.empty() && !(*options.tolerance > 0))
    return "a number greater than 0";
  return wrong;
}

std::string setPrecision(Options &options, const std::string &value) {
  if (value != "tf32" && value != "f32" && value != "bf16")
    return "tf32, f32 or bf16";
  options.precision = value;
  return {};
}

std::string setEmit(Options &options, const std::string &value) {
  if (value != "bundle" && value != "mlir" && value != "ptx")
    return "bundle, mlir or ptx";
  options.emit = value;
  return {};
}

std::string setDevice(Options &options, const std::string &value) {
  unsigned ordinal;
  const char *end = value.data() + value.size();
  auto result = std::from_chars(value.data(), end, ordinal);
  if (value != "host" && (result.ec != std::errc() || result.ptr != end))
    return "host, or the number of a GPU";
  options.device = value;
  return {};
}

std::string setLaunch(Options &options, const std::string &value) {
  if (value != "graph" && value != "chain" && value != "plain")
    return "graph, chain or plain";
  options.launch = value;
  return {};
}

std::string setAssignment(Options &options, const std::string &value) {
  size_t equals = value.find('=');
  if (equals == 0 || equals == value.npos || equals + 1 == value.size())
    return "NAME=VALUE";
  options.set.push_back(value);
  return {};
}

std::string setTargets(Options &options, const std::string &value) {
  for (size_t begin = 0; begin <= value.size();) {
    size_t end = std::min(value.find(',', begin), value.size());
    if (end == begin)
      return "names separated by commas";
    options.targets.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return {};
}

std::string targetKey(const Options &options) {
  std::string names;
  for (const target::Device *device : options.devices)
    names += std::string(device->arch) + "/" + std::string(device->name) + ";";
  return names;
}

constexpr std::string_view kNotInThisVersion = " is not in this version";

} // namespace

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static constexpr Flag kFlags[] = {
    // --- what is written, and where
    {"output", 'o', "OUT",
     "where to write: a bundle (default NAME.nova, of the graph's name), or "
     "the file of --emit mlir, --emit ptx and --stop-after (default -, "
     "standard "
     "output)",
     Category::Output, VerbSet(Verb::Compile), Effect::Neutral,
     text<&Options::output>},
    {"emit", 0, "bundle|ptx|mlir", "what to write (default bundle)",
     Category::Output, VerbSet(Verb::Compile), Effect::OutputChanging, setEmit,
     [](const Options &o) { return o.emit; }},
    {"stop-after", 0, "STAGE",
     "stop after this stage and write what it holds: graph, simplified, fused, "
     "configured, plan, and for a GPU tiled, pipelined, nvvm, ptx, cubin",
     Category::Output, VerbSet(Verb::Compile), Effect::OutputChanging,
     text<&Options::stopAfter>, [](const Options &o) { return o.stopAfter; }},
    {"dump-stages", 0, "DIR",
     "write every stage to DIR/STAGE.mlir, DIR/ptx/KERNEL.ptx and "
     "DIR/cubin/KERNEL.cubin; with several targets what is one target's to "
     "DIR/DEVICE/...",
     Category::Output, VerbSet(Verb::Compile), Effect::Neutral,
     text<&Options::dumpStages>},
    {"depfile", 0, "FILE",
     "write the files that were read as a make rule for the manifest",
     Category::Output, VerbSet(Verb::Compile), Effect::Neutral,
     text<&Options::depfile>},

    {"nodes", 0, "",
     "print each node's result, what it becomes, and the kernel that computes it",
     Category::Output, VerbSet(Verb::Check), Effect::Neutral, flag<&Options::nodes>},

    // --- code generation
    {"target", 0, "T,...",
     "chips (sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a), devices (see `novac "
     "targets`), host or native (default native; verify, explain: host)",
     Category::Codegen, VerbSet(Verb::Compile, Verb::Check, Verb::Verify, Verb::Explain),
     Effect::OutputChanging, setTargets, targetKey, true},
    {"precision", 0, "tf32|f32|bf16",
     "how float32 contractions multiply (default tf32; host multiplies in f32 "
     "for both tf32 and f32)",
     Category::Codegen, VerbSet(Verb::Compile, Verb::Check, Verb::Explain), Effect::OutputChanging,
     setPrecision, [](const Options &o) { return o.matmul; }},
    {"no-fusion", 0, "", "one kernel per operation", Category::Codegen,
     VerbSet(Verb::Compile, Verb::Check, Verb::Explain), Effect::OutputChanging, flag<&Options::noFusion>,
     [](const Options &o) { return std::string(o.noFusion ? "1" : "0"); }},
    {"no-raising", 0, "", "composites stay in the parts that the graph has", Category::Codegen,
     VerbSet(Verb::Compile, Verb::Check, Verb::Explain), Effect::OutputChanging, flag<&Options::noRaising>,
     [](const Options &o) { return std::string(o.noRaising ? "1" : "0"); }},
    {"device-profile", 0, "FILE", "a device beside those of the table",
     Category::Codegen, VerbSet(Verb::Compile), Effect::OutputChanging,
     text<&Options::deviceProfile>,
     [](const Options &o) { return o.deviceProfile; }, false,
     kNotInThisVersion},
    {"schedules", 0, "FILE", "schedules that replace the derived ones",
     Category::Codegen, VerbSet(Verb::Compile), Effect::OutputChanging,
     text<&Options::schedules>, [](const Options &o) { return o.schedules; },
     false, kNotInThisVersion},
    // Its path changes nothing; its content is a section of the key.
    {"ptxas", 0, "PATH",
     "the assembler for GPU targets (default: ptxas in $CUDA_HOME/bin, "
     "$CUDA_PATH/bin, $PATH, /usr/local/cuda/bin)",
     Category::Codegen, VerbSet(Verb::Compile, Verb::Verify, Verb::Explain), Effect::Neutral,
     text<&Options::ptxas>},

    // --- the cache
    {"cache-dir", 0, "DIR",
     "the cache (default $NOVAC_CACHE_DIR, $XDG_CACHE_HOME/novac or "
     "~/.cache/novac)",
     Category::Cache, VerbSet(Verb::Compile, Verb::Verify, Verb::Cache),
     Effect::Neutral, text<&Options::cacheDir>},
    {"cache-limit", 0, "SIZE",
     "the bytes that the cache may have, as 500M or 5G (default 5G): what was "
     "not used for longest goes",
     Category::Cache, VerbSet(Verb::Compile, Verb::Verify, Verb::Cache),
     Effect::Neutral, setCacheLimit},
    {"no-cache", 0, "", "neither read nor write a cache", Category::Cache,
     VerbSet(Verb::Compile, Verb::Verify), Effect::Neutral,
     flag<&Options::noCache>},
    {"cache-read-only", 0, "DIR", "a cache to look in after --cache-dir",
     Category::Cache, VerbSet(Verb::Compile), Effect::Neutral,
     text<&Options::cacheReadOnly>},
    {"explain-miss", 0, "", "say what differs from the nearest cache entry",
     Category::Cache, VerbSet(Verb::Compile), Effect::Neutral,
     flag<&Options::explainMiss>},

    // --- insight
    {"explain", 0, "", "print the decisions of the passes", Category::Insight,
     VerbSet(Verb::Compile), Effect::Neutral, flag<&Options::explain>},
    {"time-report", 0, "", "print the time of every phase", Category::Insight,
     VerbSet(Verb::Compile), Effect::Neutral, flag<&Options::timeReport>},
    {"time-trace", 0, "FILE", "write a trace for chrome://tracing",
     Category::Insight, VerbSet(Verb::Compile), Effect::Neutral,
     text<&Options::timeTrace>, nullptr, false, kNotInThisVersion},
    {"kernel", 0, "K", "one kernel, by its name or the beginning of it",
     Category::Insight, VerbSet(Verb::Inspect, Verb::Explain), Effect::Neutral,
     text<&Options::kernel>},
    {"html", 0, "FILE", "write a page to look at", Category::Insight,
     VerbSet(Verb::Inspect), Effect::Neutral, text<&Options::html>, nullptr,
     false, kNotInThisVersion},

    // --- running
    {"data", 0, "FILE",
     "inputs `in/NAME`, and for verify the expected `out/I`, in a safetensors "
     "file",
     Category::Data, VerbSet(Verb::Run, Verb::Verify), Effect::Neutral,
     text<&Options::data>},
    {"seed", 0, "S", "random inputs from this seed (run: default 0)",
     Category::Data, VerbSet(Verb::Run, Verb::Verify), Effect::Neutral,
     setSeed},
    {"steps", 0, "N", "how many steps (default 1)", Category::Data,
     VerbSet(Verb::Run), Effect::Neutral, setSteps},
    {"set", 0, "NAME=VALUE", "a scalar input; may be repeated", Category::Data,
     VerbSet(Verb::Run), Effect::Neutral, setAssignment, nullptr, true},
    {"out", 0, "FILE", "write outputs and final inputs as safetensors",
     Category::Data, VerbSet(Verb::Run), Effect::Neutral, text<&Options::out>},
    {"device", 0, "N|host", "the CPU, or the number of a GPU", Category::Data,
     VerbSet(Verb::Run, Verb::Verify), Effect::Neutral, setDevice},
    {"threads", 0, "N", "threads on the CPU (default one per usable CPU)",
     Category::Data, VerbSet(Verb::Run, Verb::Verify), Effect::Neutral,
     setThreads},
    {"allow-jit", 0, "", "PTX may go to the driver's compiler", Category::Data,
     VerbSet(Verb::Run, Verb::Verify), Effect::Neutral,
     flag<&Options::allowJit>},
    {"launch", 0, "HOW",
     "how launches get onto a GPU: graph (default), chain (a graph, one after "
     "the other) or plain (a call each)",
     Category::Data, VerbSet(Verb::Run, Verb::Verify), Effect::Neutral,
     setLaunch},
    {"time", 0, "", "run back to back, measure, and print the times",
     Category::Data, VerbSet(Verb::Run), Effect::Neutral, flag<&Options::time>},
    {"tolerance", 0, "TAU", "instead of the standard rule", Category::Data,
     VerbSet(Verb::Verify), Effect::Neutral, setTolerance},
    {"simulate", 0, "",
     "execute GPU targets (those of --target, or all) on the CPU, from their "
     "PTX",
     Category::Data, VerbSet(Verb::Verify), Effect::Neutral,
     flag<&Options::simulate>},
    {"interleavings", 0, "N", "orders of warps to simulate (default 1)",
     Category::Data, VerbSet(Verb::Verify), Effect::Neutral, setInterleavings},

    // --- everywhere
    {"jobs", 'j', "N",
     "threads (default one per usable CPU); never changes the output",
     Category::General, VerbSet(Verb::Compile, Verb::Check, Verb::Verify, Verb::Explain),
     Effect::Neutral, setJobs},
    {"verbose", 'v', "", "say what is being done", Category::General,
     VerbSet(Verb::Compile, Verb::Check, Verb::Verify), Effect::Neutral,
     flag<&Options::verbose>},
    {"json", 0, "", "print one JSON object", Category::General,
     VerbSet(Verb::Compile, Verb::Check, Verb::Inspect, Verb::Explain, Verb::Run, Verb::Verify,
             Verb::Cache, Verb::Targets, Verb::Ops, Verb::Version),
     Effect::Neutral, flag<&Options::json>},
    {"help", 'h', "", "print this", Category::General,
     VerbSet(Verb::Compile, Verb::Check, Verb::Inspect, Verb::Run, Verb::Verify,
             Verb::Explain, Verb::Diff, Verb::Cache, Verb::Targets, Verb::Ops,
             Verb::Version),
     Effect::Neutral, flag<&Options::help>},
};

static constexpr bool everyFlagIsDeclared() {
  for (const Flag &flag : kFlags)
    if (flag.effect == Effect::Undeclared ||
        (flag.effect == Effect::OutputChanging) != (flag.keyValue != nullptr))
      return false;
  return true;
}
static_assert(everyFlagIsDeclared(),
              "a flag says whether it changes the output, and with which value "
              "it enters the key");

std::span<const Flag> driver::flags() { return kFlags; }

void driver::addToKey(KeyBuilder &key, const Options &options) {
  for (const Flag &flag : kFlags)
    if (flag.effect == Effect::OutputChanging && flag.verbs.has(Verb::Compile))
      key.section("option " + std::string(flag.name), flag.keyValue(options));
}
