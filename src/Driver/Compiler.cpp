//===- Compiler.cpp - One graph through the stages to a bundle ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"

#include "BuildId.h"
#include "GraphCache.h"
#include "Log.h"
#include "Reproducer.h"
#include "nova/IR/Nova.h"
#include "nova/Support/Version.h"
#include "nova/Transforms/KernelGroups.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>

#include <unistd.h>

using namespace mlir;
using namespace nova;
using namespace nova::driver;

Status Compiler::read(const std::string &path) {
  return timing.time("read", [&]() -> Status {
    Expected<Frontend> frontend = Frontend::read(path);
    if (!frontend)
      return frontend.error();
    graph = std::move(*frontend);
    return Status::ok();
  });
}

MLIRContext &Compiler::context() {
  if (mlirContext)
    return *mlirContext;
  unsigned threads = options.jobs
                         ? *options.jobs
                         : llvm::hardware_concurrency().compute_thread_count();
  pool = std::make_unique<llvm::DefaultThreadPool>(
      llvm::hardware_concurrency(threads));
  mlirContext = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  mlirContext->printOpOnDiagnostic(false);
  if (threads > 1)
    mlirContext->setThreadPool(*pool);
  collected = std::make_unique<Diagnostics>(mlirContext.get());
  if (options.explain)
    collected->keepRemarks(*mlirContext);
  return *mlirContext;
}

std::string Compiler::name() const { return graph->name().value_or(mlirName); }

std::string Compiler::digest() const {
  return graph->digest().value_or(mlirDigest);
}

Error Compiler::rejected() const {
  collected->printErrors();
  return badInput(std::string());
}

Error Compiler::internalError(const std::string &message,
                              ModuleOp module) const {
  collected->printErrors();
  errorLine("error: internal: " + message);
  errorLine("  this is a defect of novac; the file named below reproduces it");
  errorLine(writeReproducer(printed(module)));
  return {ErrorCode::Internal, {}, {}};
}

Status Compiler::importGraph() {
  if (module)
    return Status::ok();
  Status imported = timing.time("import", [&]() -> Status {
    MLIRContext &mlir = context();
    module = graph->import(mlir);
    if (!module)
      return rejected();
    if (graph->name()) {
      recordDigest(*module, *graph->digest());
    } else {
      mlirName = moduleName(*module);
      mlirDigest = moduleDigest(*module);
      reached = stageOf(*module);
    }
    return Status::ok();
  });
  return imported ? dump(reached, *module, nullptr) : imported;
}

Status Compiler::runStage(Stage stage, ModuleOp module,
                          const target::Device *device) {
  PipelineOptions pipeline;
  pipeline.noFusion = options.noFusion;
  pipeline.noRaising = options.noRaising;
  pipeline.precision = options.matmul;
  if (device)
    pipeline.device = device->name;
  PassManager manager(&context(), ModuleOp::getOperationName());
  buildStage(manager, pipeline, stage);
  std::string reproducer, name(stageName(stage));
  reproduceFailuresOf(manager, reproducer);
  if (succeeded(timing.time(name, [&] { return manager.run(module); })))
    return Status::ok();
  collected->printErrors();
  errorLine("error: internal: the passes that make the stage '" + name +
            "' failed");
  errorLine("  this is a defect of novac; run nova-opt --run-reproducer "
            "on the file named below");
  errorLine(reproducer);
  return Error{ErrorCode::Internal, {}, {}};
}

Expected<ModuleOp> Compiler::runStages(Stage last,
                                       const target::Device *device) {
  if (Status status = importGraph(); !status)
    return status.error();
  auto advance = [&](ModuleOp step, Stage from, Stage to,
                     const target::Device *whose) -> Status {
    for (const StageInfo &info : stages()) {
      if (info.stage <= from || info.stage > to)
        continue;
      if (Status status = runStage(info.stage, step, whose); !status)
        return status;
      if (info.stage == Stage::Configured)
        recordDevice(step, *whose, options.matmul);
      if (Status status = dump(info.stage, step, whose); !status)
        return status;
    }
    return Status::ok();
  };
  if (last < reached)
    return badInput("the module holds the stage '" +
                        std::string(stageName(reached)) + "', '" +
                        std::string(stageName(last)) + "' comes before it",
                    "--stop-after " + std::string(stageName(reached)) +
                        " or a later one");
  Stage shared = std::min(last, kLastSharedStage);
  if (Status status = advance(*module, reached, shared, nullptr); !status)
    return status.error();
  reached = std::max(reached, shared);
  if (last <= kLastSharedStage)
    return *module;
  if (!device)
    device = options.devices.front();
  if (reached > kLastSharedStage)
    if (Status status = checkDevice(*module, *device, options.matmul); !status)
      return status.error();
  planned.emplace_back(device, module->clone());
  ModuleOp step = *planned.back().second;
  if (Status status =
          advance(step, reached, std::min(last, kLastStage), device);
      !status)
    return status.error();
  return step;
}

KeyBuilder Compiler::makeKey() const {
  KeyBuilder key;
  key.section("kind", "graph 1");
  key.section("graph", digest());
  addToKey(key, options);
  key.section("novac", versionString());
  key.section("llvm", llvmVersionString());
  key.section("toolchain", toolchainId());
  if (assembler)
    key.section("ptxas", assembler->version() + " " + assembler->digest());
  return key;
}

std::string Compiler::provenance() const {
  char when[32];
  std::time_t now = std::time(nullptr);
  std::tm utc;
  std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("cache", use == CacheUse::Hit    ? "hit"
                            : use == CacheUse::Miss ? "miss"
                                                    : "off");
    json.attribute("host", llvm::json::fixUTF8(host));
    json.attribute("key", keyText);
    json.attribute("novac", versionString());
    json.attribute("seconds", taken.count());
    json.attribute("toolchain", toolchainId());
    json.attribute("when", when);
  });
  return text + "\n";
}

std::vector<std::string> Compiler::explanation() const {
  std::vector<std::string> lines;
  if (!collected)
    return lines;
  lines = collected->remarks();
  for (const auto &[device, step] : planned) {
    // One target needs no name.
    std::string prefix =
        planned.size() > 1 ? std::string(device->name) + ": " : "";
    ModuleOp module = *step;
    for (func::FuncOp kernel : module.getOps<func::FuncOp>()) {
      auto reason = kernel->getAttrOfType<StringAttr>(attr::reason);
      auto tile = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::tile);
      auto space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
      if (!reason || !tile || !space)
        continue;
      std::string line;
      llvm::raw_string_ostream os(line);
      os << prefix << "kernel " << kernel.getSymName() << ": space "
         << describeSpaces(kernel) << ", tile [";
      llvm::interleaveComma(tile.asArrayRef(), os);
      os << "]: " << reason.getValue();
      lines.push_back(line);
    }
  }
  return lines;
}

Expected<bundle::Bundle> Compiler::build() {
  ManifestFacts facts;
  facts.producer.novac = versionString();
  facts.producer.llvm = llvmVersionString();
  if (assembler)
    facts.producer.ptxas = assembler->version();
  facts.producer.options["precision"] = options.matmul;
  facts.producer.options["no_fusion"] = options.noFusion;
  if (options.noRaising)
    facts.producer.options["no_raising"] = true;
  facts.numerics.matmul = options.matmul;
  std::optional<bundle::Bundle> result;
  for (const target::Device *device : options.devices) {
    Expected<ModuleOp> step = runStages(kLastStage, device);
    if (!step)
      return step.error();
    Expected<TargetCode> code = compileTarget(*step, *device);
    if (!code)
      return code.error();
    timing.time("manifest", [&] {
      facts.name = name();
      facts.graphDigest = digest();
      if (!result)
        result = startBundle(*step, facts);
      addTarget(*result, *step, std::move(*code));
    });
  }
  return std::move(*result);
}

Expected<bundle::Bundle> Compiler::compile() {
  // What makes the code is part of the key, and a machine that has none finds
  // out before the work.
  if (options.forGpu())
    if (Status status = needAssembler(); !status)
      return status.error();
  // A key needs the graph's canonical form, which MLIR has only as a module.
  if (!graph->digest())
    if (Status status = importGraph(); !status)
      return status.error();
  KeyBuilder key = timing.time("key", [&] { return makeKey(); });
  keyText = key.key();
  store = openStore(options);
  if (!store)
    return build();
  use = CacheUse::Miss;
  // What the passes would print or write is not in the cache.
  if (!options.explain && options.dumpStages.empty())
    if (std::optional<bundle::Bundle> found = timing.time(
            "cache", [&] { return findBundle(*store, keyText); })) {
      use = CacheUse::Hit;
      info("cache: found " + keyText + " in '" + store->folder() + "'");
      return std::move(*found);
    }
  info("cache: " + keyText + " is not in '" + store->folder() + "'");
  if (options.explainMiss)
    note("cache miss: " + store->explainMiss(kGraphKind, key));
  std::vector<std::pair<std::string, std::string>> madeWith = {
      {"novac", versionString()},
      {"llvm", llvmVersionString()},
      {"toolchain", toolchainId()}};
  if (assembler)
    madeWith.emplace_back("ptxas",
                          assembler->version() + " " + assembler->digest());
  kernelCache = std::make_unique<KernelCache>(*store, std::move(madeWith));
  Expected<bundle::Bundle> made = build();
  if (!made)
    return made;
  Status stored = timing.time("store", [&]() -> Status {
    if (Status status = storeBundle(*store, key, *made); !status)
      return status;
    return store->trim();
  });
  if (!stored)
    warning("the cache is not written: " + stored.error().message);
  return made;
}
