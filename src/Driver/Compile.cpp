//===- Compile.cpp - novac compile, novac check ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"
#include "Log.h"
#include "Output.h"
#include "Verbs.h"
#include "nova/Bundle/Bundle.h"
#include "nova/Support/File.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace mlir;
using namespace nova;
using namespace nova::driver;

//===----------------------------------------------------------------------===//
// What a compile says
//===----------------------------------------------------------------------===//

std::string driver::bytesText(uint64_t bytes) {
  static constexpr const char *units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  unsigned unit = 0;
  for (; value >= 999.5 && unit < 5; ++unit)
    value /= 1000;
  char text[32];
  int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", digits, value, units[unit]);
  return text;
}

static void printPhases(const Compiler &compiler) {
  const std::vector<Phases::Phase> &phases = compiler.phases().list;
  double total = 0;
  for (const Phases::Phase &phase : phases)
    total += phase.seconds;
  llvm::raw_ostream &os = llvm::errs();
  os << "phase          ms      %\n";
  for (const Phases::Phase &phase : phases)
    os << llvm::left_justify(phase.name, 12) << " "
       << llvm::format("%8.1f %5.1f\n", phase.seconds * 1e3,
                       total > 0 ? phase.seconds / total * 100 : 0.0);
  os << llvm::format("total        %8.1f\n", total * 1e3);
  if (compiler.kernels().empty())
    return;
  constexpr size_t kShown = 20;
  std::vector<KernelDone> kernels = compiler.kernels();
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const KernelDone &a, const KernelDone &b) {
                     return a.seconds > b.seconds;
                   });
  os << "kernel, slowest first                         ms     bytes\n";
  for (size_t i = 0; i < std::min(kernels.size(), kShown); ++i)
    os << llvm::left_justify(kernels[i].kernel, 38) << " "
       << llvm::format("%8.1f %9d\n", kernels[i].seconds * 1e3,
                       int(kernels[i].objectBytes));
  if (kernels.size() > kShown)
    os << "and " << kernels.size() - kShown << " more\n";
}

/// `prefix` makes comments of them where MLIR is on standard output too.
static void printExplanation(const Compiler &compiler,
                             const char *prefix = "") {
  for (const std::string &line : compiler.explanation())
    llvm::outs() << prefix << "remark: " << line << "\n";
}

static void printResult(const Options &options, Compiler &compiler,
                        const bundle::Manifest &manifest,
                        const std::string &output, bool changed) {
  llvm::json::OStream json(llvm::outs());
  json.object([&] {
    json.attribute("bundle", llvm::json::fixUTF8(output));
    json.attribute("cache", compiler.cacheUse() == CacheUse::Hit    ? "hit"
                            : compiler.cacheUse() == CacheUse::Miss ? "miss"
                                                                    : "off");
    json.attribute("changed", changed);
    json.attribute("graph_digest", manifest.graphDigest);
    json.attribute("kernels_compiled", int64_t(compiler.kernels().size() -
                                               compiler.kernelHits()));
    json.attribute("kernels_from_cache", int64_t(compiler.kernelHits()));
    json.attribute("key", compiler.key());
    json.attribute("name", llvm::json::fixUTF8(manifest.name));
    json.attributeArray("phases", [&] {
      for (const Phases::Phase &phase : compiler.phases().list)
        json.object([&] {
          json.attribute("name", phase.name);
          json.attribute("seconds", phase.seconds);
        });
    });
    if (options.explain)
      json.attributeArray("remarks", [&] {
        for (const std::string &line : compiler.explanation())
          json.value(llvm::json::fixUTF8(line));
      });
    json.attributeArray("targets", [&] {
      for (const bundle::Target &target : manifest.targets)
        json.object([&] {
          json.attribute("arena_bytes", int64_t(target.arena.size));
          json.attribute("arena_lower_bound", int64_t(target.arena.lowerBound));
          json.attribute("device", target.device);
          json.attribute("kernels", int64_t(target.kernels.size()));
          json.attribute("launches", int64_t(target.launches.size()));
          json.attribute("name", target.name);
        });
    });
  });
  llvm::outs() << "\n";
}

static std::string summary(const Compiler &compiler,
                           const bundle::Manifest &manifest,
                           const std::string &output, bool changed) {
  std::string text = output;
  for (const bundle::Target &target : manifest.targets)
    text += (&target == manifest.targets.data() ? ": " : "; ") + target.name +
            (target.name == "host" ? "" : " (" + target.device + ")") + ", " +
            std::to_string(target.launches.size()) + " launches of " +
            std::to_string(target.kernels.size()) + " kernels, arena " +
            bytesText(target.arena.size) + " (at least " +
            bytesText(target.arena.lowerBound) + ")";
  if (compiler.cacheUse() == CacheUse::Hit)
    text += ", from the cache";
  else if (size_t hits = compiler.kernelHits())
    text += ", " + std::to_string(hits) + " of " +
            std::to_string(compiler.kernels().size()) +
            " kernels from the cache";
  if (!changed)
    text += ", unchanged";
  return text;
}

//===----------------------------------------------------------------------===//
// Compile
//===----------------------------------------------------------------------===//

/// --emit mlir, --emit ptx, --stop-after: what one stage holds.
static Status emitStage(const Options &options, Compiler &compiler) {
  Expected<std::string> content = compiler.stageContent(*options.lastStage);
  if (!content)
    return content.error();
  bool print = options.output.empty() || options.output == "-";
  if (options.explain)
    printExplanation(compiler, print ? "// " : "");
  if (print) {
    llvm::outs() << *content;
    return Status::ok();
  }
  Expected<bool> written = writeIfChanged(options.output, *content);
  return written ? Status::ok() : Status(written.error());
}

static Status emitBundle(const Options &options, Compiler &compiler,
                         OutputFolder &output) {
  Expected<bundle::Bundle> bundle = compiler.compile();
  if (!bundle)
    return bundle.error();
  // MLIR says its name only now.
  if (output.path().empty())
    if (Status status = output.choose(compiler.name()); !status)
      return status;
  Expected<bool> changed = compiler.phases().time("publish", [&] {
    return bundle::publishBundle(output.path(), *bundle, compiler.provenance());
  });
  if (!changed)
    return changed.error();
  if (!options.depfile.empty())
    if (Status status =
            writeDepfile(options.depfile, bundle::manifestPath(output.path()),
                         compiler.frontend().files());
        !status)
      return status;
  output.keep();
  if (options.json) {
    printResult(options, compiler, bundle->manifest, output.path(), *changed);
    return Status::ok();
  }
  if (options.explain)
    printExplanation(compiler);
  note(summary(compiler, bundle->manifest, output.path(), *changed));
  return Status::ok();
}

Status driver::compileVerb(const Options &options) {
  Compiler compiler(options);
  if (options.emitted == Emit::Stage) {
    if (Status status = compiler.read(options.operands[0]); !status)
      return status;
    if (Status status = emitStage(options, compiler); !status)
      return status;
  } else {
    // Before anything else can fail: a failed compile leaves no bundle that
    // looks fresh.
    OutputFolder output;
    auto make = [&]() -> Status {
      if (!options.output.empty())
        if (Status status = output.choose(options.output, /*isPath=*/true);
            !status)
          return status;
      if (Status status = compiler.read(options.operands[0]); !status)
        return status;
      if (output.path().empty() && !compiler.name().empty())
        if (Status status = output.choose(compiler.name()); !status)
          return status;
      return emitBundle(options, compiler, output);
    };
    if (Status status = make(); !status) {
      // Then the last line is the reproducer's path.
      if (status.error().code == ErrorCode::Internal)
        output.sayNothing();
      return status;
    }
  }
  if (options.timeReport)
    printPhases(compiler);
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

Status driver::checkVerb(const Options &options) {
  Compiler compiler(options);
  Status status = compiler.read(options.operands[0]);
  std::string problem = status ? std::string() : status.error().message;
  if (status)
    status = compiler.check();
  if (!options.json) {
    if (!status)
      return status;
    if (options.nodes)
      if (Status printed = printNodes(options); !printed)
        return printed;
    llvm::outs() << compiler.name() << ": can be compiled for ";
    llvm::interleaveComma(options.devices, llvm::outs(),
                          [](const target::Device *device) {
                            llvm::outs() << device->arch;
                            if (device->kind != target::DeviceKind::Cpu)
                              llvm::outs() << " (" << device->name << ")";
                          });
    llvm::outs() << "\n";
    return status;
  }
  llvm::json::OStream json(llvm::outs());
  json.object([&] {
    json.attributeArray("errors", [&] {
      if (!problem.empty())
        json.object(
            [&] { json.attribute("message", llvm::json::fixUTF8(problem)); });
      if (compiler.diagnostics())
        for (const Diagnostics::Entry &entry : compiler.diagnostics()->errors())
          json.object([&] {
            if (!entry.where.empty())
              json.attribute("location", llvm::json::fixUTF8(entry.where));
            json.attribute("message", llvm::json::fixUTF8(entry.message));
          });
    });
    json.attribute("ok", bool(status));
    json.attributeArray("targets", [&] {
      for (const target::Device *device : options.devices)
        json.object([&] {
          json.attribute("device", llvm::StringRef(device->name));
          json.attribute("name", llvm::StringRef(device->arch));
        });
    });
  });
  llvm::outs() << "\n";
  return status;
}
