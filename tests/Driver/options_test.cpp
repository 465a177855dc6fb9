//===- options_test.cpp - The tables, the parser, help and the key --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Driver/Options.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

using namespace nova;
using namespace nova::driver;

namespace {

std::vector<std::string> split(const std::string &line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

/// Parsed and resolved, with no GPU in the machine.
Options parsed(const std::string &line) {
  Expected<Options> options = parseOptions(split(line));
  EXPECT_TRUE(options) << line << ": "
                       << (options ? "" : options.error().message);
  if (!options)
    return {};
  std::string note;
  Status status = resolve(*options, {}, note);
  EXPECT_TRUE(status) << line << ": " << (status ? "" : status.error().message);
  return *options;
}

std::string keyOf(const std::string &line) {
  KeyBuilder key;
  addToKey(key, parsed(line));
  return key.text();
}

/// A value that the flag accepts and that is not its default.
std::string exampleOf(const Flag &flag) {
  const std::map<std::string_view, std::string> values = {
      {"target", "host"},      {"precision", "f32"}, {"emit", "mlir"},
      {"stop-after", "fused"}, {"jobs", "3"},        {"seed", "7"},
      {"steps", "2"},          {"threads", "2"},     {"tolerance", "0.5"},
      {"device", "host"},      {"set", "lr=1"},      {"launch", "plain"},
      {"cache-limit", "500M"}};
  auto it = values.find(flag.name);
  return it == values.end() ? "some/path" : it->second;
}

} // namespace

TEST(Options, VerbsAreInTheOrderOfTheirEnum) {
  for (size_t i = 0; i < verbs().size(); ++i)
    EXPECT_EQ(static_cast<size_t>(verbs()[i].verb), i) << verbs()[i].name;
}

TEST(Options, AFlagStandsOnceAndIsDeclared) {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (const Flag &flag : flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    if (flag.letter) {
      EXPECT_TRUE(letters.insert(flag.letter).second) << flag.letter;
    }
    EXPECT_NE(flag.effect, Effect::Undeclared) << flag.name;
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_NE(flag.set, nullptr) << flag.name;
  }
}

TEST(Options, TheFlagsOfTheDesignAreThere) {
  const std::map<std::string, std::string> design = {
      {"compile",
       "output target precision jobs cache-dir no-cache depfile stop-after "
       "dump-stages emit explain explain-miss time-report time-trace json "
       "device-profile schedules ptxas no-fusion cache-read-only"},
      {"inspect", "kernel json html"},
      {"run", "data seed out steps set device allow-jit launch time"},
      {"verify", "data seed target tolerance simulate interleavings device allow-jit launch"},
      {"explain", "kernel"},
      {"targets", "json"},
      {"ops", "json"},
      {"version", "json"}};
  for (const auto &[verb, names] : design)
    for (const std::string &name : split(names)) {
      bool found = false;
      for (const Flag &flag : flags())
        for (const VerbInfo &info : verbs())
          found |= info.name == verb && flag.name == name &&
                   flag.verbs.has(info.verb);
      EXPECT_TRUE(found) << verb << " --" << name;
    }
}

TEST(Options, HelpNamesEveryFlagOfAVerbAndNoOther) {
  for (const VerbInfo &info : verbs()) {
    std::string help = verbHelp(info.verb);
    for (const Flag &flag : flags()) {
      bool named = false;
      std::istringstream lines(help);
      for (std::string line; std::getline(lines, line);)
        named |= line.find("--" + std::string(flag.name) + " ") == 6 ||
                 line.substr(std::min<size_t>(6, line.size())) ==
                     "--" + std::string(flag.name);
      EXPECT_EQ(named, flag.verbs.has(info.verb)) << info.name << flag.name;
    }
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80u) << line;
    EXPECT_NE(generalHelp().find("\n  " + std::string(info.name) + " "),
              std::string::npos);
  }
}

TEST(Options, TheKeyHoldsWhatChangesTheOutputAndNothingElse) {
  std::string base = keyOf("compile g.json --target host");
  for (const Flag &flag : flags()) {
    if (!flag.verbs.has(Verb::Compile) || flag.name == "help" ||
        flag.name == "target" || flag.name == "precision" ||
        !flag.missing.empty())
      continue;
    std::string line =
        "compile g.json --target host --" + std::string(flag.name);
    if (!flag.value.empty())
      line += " " + exampleOf(flag);
    EXPECT_EQ(keyOf(line) != base, flag.effect == Effect::OutputChanging)
        << line;
  }
  // On host these are the same multiplication.
  EXPECT_EQ(keyOf("compile g.json --target host --precision tf32"), base);
  EXPECT_EQ(keyOf("compile g.json --target host --precision f32"), base);
  // Names of the same device.
  EXPECT_EQ(keyOf("compile g.json --target native"), base);
  EXPECT_EQ(keyOf("compile g.json --target host,host"), base);
  EXPECT_EQ(keyOf("compile other.json -o out.nova -j 2 --target host"), base);
  for (const Flag &flag : flags())
    EXPECT_EQ(base.find("option " + std::string(flag.name) + ":") !=
                  std::string::npos,
              flag.effect == Effect::OutputChanging)
        << flag.name;
}

TEST(Options, ValuesAreRead) {
  Options o = parsed("compile -j2 g.json -o x.nova --target=host --explain "
                     "--dump-stages d");
  EXPECT_EQ(o.verb, Verb::Compile);
  EXPECT_EQ(o.operands, std::vector<std::string>{"g.json"});
  EXPECT_EQ(o.output, "x.nova");
  EXPECT_EQ(o.jobs, 2u);
  EXPECT_EQ(o.dumpStages, "d");
  EXPECT_TRUE(o.explain);
  EXPECT_EQ(o.emitted, Emit::Bundle);
  ASSERT_EQ(o.devices.size(), 1u);
  EXPECT_EQ(o.devices[0]->name, "x86-64-v3");
  EXPECT_EQ(o.matmul, "f32");

  EXPECT_EQ(parsed("compile - --target host").operands[0], "-");
  o = parsed("compile g.json --target host --stop-after fused");
  EXPECT_EQ(o.emitted, Emit::Stage);
  EXPECT_EQ(o.lastStage, Stage::Fused);
  EXPECT_EQ(parsed("compile g.json --target host --emit mlir").lastStage,
            Stage::Plan);

  Expected<Options> run =
      parseOptions(split("run b.nova --set a=1 --set b=-2e3 --seed 9"));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->set, (std::vector<std::string>{"a=1", "b=-2e3"}));
  EXPECT_EQ(run->seed, 9u);
}

TEST(Options, NativeSaysWhatItStandsFor) {
  Expected<Options> options = parseOptions({"compile", "g.json"});
  ASSERT_TRUE(options);
  std::string note;
  ASSERT_TRUE(resolve(*options, {}, note));
  EXPECT_EQ(note, "target native: no GPU here, compiling for host");
  options = parseOptions({"compile", "g.json"});
  ASSERT_TRUE(resolve(*options, {{"Tesla T4", "sm_75"}}, note));
  EXPECT_EQ(note, "target native: this build has no code generator for Tesla "
                  "T4 (sm_75), compiling for host");
}

TEST(Options, SeveralTargetsAndWhatTheyMultiplyIn) {
  Options o =
      parsed("compile g.json --target sm_90a,host --target rtx4090,h200");
  std::string names;
  for (const target::Device *device : o.devices)
    names += std::string(device->name) + " ";
  EXPECT_EQ(names, "h200 x86-64-v3 rtx4090 "); // h200 is what sm_90a stands for
  EXPECT_EQ(o.matmul, "tf32");
  EXPECT_TRUE(o.forGpu());
  EXPECT_EQ(parsed("compile g.json --target a100 --precision f32").matmul,
            "f32");
  EXPECT_FALSE(parsed("compile g.json --target host").forGpu());
  EXPECT_NE(keyOf("compile g.json --target h200"),
            keyOf("compile g.json --target h100"));
  EXPECT_NE(keyOf("compile g.json --target h200"),
            keyOf("compile g.json --target h200 --precision f32"));
}

TEST(Options, StagesOfAGpu) {
  Options o = parsed("compile g.json --target h100 --emit ptx");
  EXPECT_EQ(o.emitted, Emit::Stage);
  EXPECT_EQ(o.lastStage, Stage::Ptx);
  EXPECT_EQ(parsed("compile g.json --target h100 --emit mlir --stop-after nvvm")
                .lastStage,
            Stage::Nvvm);
  // What all targets share may be looked at for several.
  EXPECT_EQ(
      parsed("compile g.json --target h100,host --stop-after fused").lastStage,
      Stage::Fused);
}

TEST(Options, NativeIsAskedForOnlyWhereItIsMeant) {
  auto asks = [](const char *line) {
    Expected<Options> options = parseOptions(split(line));
    EXPECT_TRUE(options) << line;
    return options && asksForNative(*options);
  };
  EXPECT_TRUE(asks("compile g.json"));
  EXPECT_TRUE(asks("compile g.json --target host,native"));
  EXPECT_TRUE(asks("verify g.json --target native --seed 1"));
  EXPECT_FALSE(asks("compile g.json --target host"));
  EXPECT_FALSE(asks("verify g.json --seed 1"));
}

TEST(Options, NativeIsEveryGpuOfThisMachineOnce) {
  Expected<Options> options = parseOptions({"compile", "g.json"});
  ASSERT_TRUE(options);
  std::string note;
  ASSERT_TRUE(resolve(*options,
                      {{"NVIDIA H200", "sm_90a"},
                       {"NVIDIA H200", "sm_90a"},
                       {"NVIDIA L40S", "sm_89"}},
                      note));
  EXPECT_EQ(note, "target native: h200, rtx6000-ada");
  EXPECT_EQ(options->devices.size(), 2u);
}

TEST(Options, WordsAndValuesOfFlagsAreRefused) {
  for (const char *line :
       {"compile g.json --jobs", "compile g.json -j x", "compile g.json -j",
        "compile g.json -j 2000", "compile g.json --target ,host",
        "compile g.json --emit cubin", "run b.nova --seed 1.5",
        "run b.nova --steps 18446744073709551616", "run b.nova --set =1",
        "run b.nova --device gpu", "run b.nova --launch fast",
        "verify b.nova --tolerance 0", "verify b.nova --tolerance nan",
        "version 1.0", "ops --verbose", "compile g.json --kernel k",
        "compile g.json -x", "targets --js"}) {
    Expected<Options> options = parseOptions(split(line));
    ASSERT_FALSE(options) << line;
    EXPECT_EQ(options.error().code, ErrorCode::Usage) << line;
    EXPECT_FALSE(options.error().message.empty()) << line;
  }
}

TEST(Stages, NamesAreThoseOfTheDesign) {
  std::string names;
  for (const StageInfo &info : stages()) {
    EXPECT_EQ(stageFromName(info.name), info.stage);
    EXPECT_EQ(stageName(info.stage), info.name);
    names += std::string(info.name) + " ";
  }
  EXPECT_EQ(names, "graph simplified fused configured plan tiled pipelined "
                   "nvvm ptx cubin ");
  EXPECT_EQ(stageFromName("Graph"), std::nullopt);
}
