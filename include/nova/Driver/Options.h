//===- Options.h - The command line: every verb and every flag, once ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two tables (src/Driver/Options.cpp). The parser is filled from them, `--help`
// is generated from them, and the graph key is built from them: a flag that is
// not declared cannot exist, and one that is must say whether it can change the
// output. Libraries below the driver never see an Options.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_DRIVER_OPTIONS_H
#define NOVA_DRIVER_OPTIONS_H

#include "nova/Pipelines/Pipelines.h"
#include "nova/Support/Error.h"
#include "nova/Support/Hash.h"
#include "nova/Target/Target.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nova::driver {

//===----------------------------------------------------------------------===//
// Verbs
//===----------------------------------------------------------------------===//

enum class Verb : uint8_t {
  Compile,
  Check,
  Inspect,
  Run,
  Verify,
  Explain,
  Diff,
  Cache,
  Targets,
  Ops,
  Version,
};

struct VerbInfo {
  Verb verb;
  std::string_view name;
  std::string_view operands; ///< As help shows them: "GRAPH".
  unsigned operandCount;
  std::string_view help;
  /// Whether this version has it.
  bool available = true;
  /// Where more operands may follow: how many there are at most.
  unsigned operandLimit = 0;
};

std::span<const VerbInfo> verbs();
const VerbInfo &verbInfo(Verb verb);

/// A set of verbs.
class VerbSet {
public:
  template <typename... V>
  constexpr VerbSet(V... verbs) : bits((0u | ... | (1u << unsigned(verbs)))) {}
  constexpr bool has(Verb verb) const { return bits >> unsigned(verb) & 1; }

private:
  unsigned bits;
};

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// A bundle, or what one stage holds.
enum class Emit : uint8_t { Bundle, Stage };

/// A command line, read. Defaults are what an absent flag means.
struct Options {
  Verb verb = Verb::Version;
  bool help = false;
  std::vector<std::string> operands;

  std::string output;
  std::string emit; // "" is "bundle", unless a stage is named.
  std::string stopAfter;
  std::vector<std::string> targets;
  std::string precision;
  bool noFusion = false;
  bool noRaising = false;
  bool nodes = false;
  std::string deviceProfile, schedules, ptxas;

  std::optional<unsigned> jobs;
  std::string cacheDir, cacheReadOnly;
  bool noCache = false;
  uint64_t cacheLimit = uint64_t{5} << 30; ///< Bytes.
  std::string depfile;
  std::string dumpStages;
  bool explain = false, explainMiss = false, timeReport = false;
  std::string timeTrace;
  bool json = false, verbose = false;
  std::string kernel, html;

  std::string data, out;
  std::optional<uint64_t> seed;
  uint64_t steps = 1, interleavings = 1;
  std::vector<std::string> set;
  std::string device;
  unsigned threads = 0;
  bool allowJit = false, simulate = false, time = false;
  std::string launch; // "" is "graph".
  std::optional<double> tolerance;

  /// Some target is a GPU.
  bool forGpu() const {
    for (const target::Device *target : devices)
      if (target->kind == target::DeviceKind::Gpu)
        return true;
    return false;
  }

  // Resolved from the above by resolve():
  Emit emitted = Emit::Bundle;
  std::optional<Stage> lastStage;
  std::vector<const target::Device *> devices;
  /// How float32 contractions multiply: "f32", "tf32", "bf16".
  std::string matmul;
};

/// Whether a flag can change the bytes of what is compiled.
enum class Effect : uint8_t { Undeclared, OutputChanging, Neutral };

enum class Category : uint8_t {
  Output,
  Codegen,
  Cache,
  Insight,
  Data,
  General
};

struct Flag {
  std::string_view name;  ///< Without its dashes.
  char letter;            ///< Short form, or 0.
  std::string_view value; ///< Placeholder of its value; empty: it takes none.
  std::string_view help;
  Category category;
  VerbSet verbs;
  Effect effect;
  /// Stores the value ("" for a flag without one). Returns what was expected,
  /// or an empty string.
  std::string (*set)(Options &, const std::string &value);
  /// For OutputChanging only: the value as the key has it, once resolved.
  std::string (*keyValue)(const Options &) = nullptr;
  /// May be given several times.
  bool repeatable = false;
  /// Not in this version: what to say, with the status it exits with.
  std::string_view missing = {};
  ErrorCode missingCode = ErrorCode::Usage;
};

std::span<const Flag> flags();

/// Reads a command line (without the program's name). Every error is
/// ErrorCode::Usage, or what `missingCode` of a flag says.
Expected<Options> parseOptions(const std::vector<std::string> &arguments);

/// A GPU of this machine: its product's name, and the architecture of its
/// compute capability ("sm_90a").
struct LocalGpu {
  std::string product, arch;
};

/// Whether the targets name `native`, or stand for it: then resolve() needs to
/// know the GPUs of this machine.
bool asksForNative(const Options &options);

/// Gives the names in the options their meaning: targets, stages, precision.
/// `gpus` are the GPUs of this machine, for the target `native`; `note`
/// receives a line that people should see, or stays empty.
Status resolve(Options &options, const std::vector<LocalGpu> &gpus,
               std::string &note);

/// Appends one section per flag that can change the output.
void addToKey(KeyBuilder &key, const Options &options);

/// `novac --help`, and `novac VERB --help`.
std::string generalHelp();
std::string verbHelp(Verb verb);

} // namespace nova::driver

#endif // NOVA_DRIVER_OPTIONS_H
