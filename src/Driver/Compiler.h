//===- Compiler.h - One graph through the stages to a bundle --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Errors. What users can mend is printed as it is found ("error: ...", one per
// problem); then the Error that is returned has an empty message, and its code
// is the exit status. A defect of novac writes a reproducer first.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_COMPILER_H
#define NOVA_LIB_DRIVER_COMPILER_H

#include "Diagnostics.h"
#include "Frontend.h"
#include "KernelCache.h"
#include "nova/Bundle/Bundle.h"
#include "nova/Cache/Store.h"
#include "nova/Driver/Options.h"
#include "nova/Pipelines/GpuBackend.h"
#include "nova/Pipelines/PlanToManifest.h"
#include "nova/Support/Hash.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/ThreadPool.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nova::driver {

/// Wall-clock time of named phases, in the order in which they began.
class Phases {
public:
  struct Phase {
    std::string name;
    double seconds;
  };
  template <typename Body> auto time(std::string name, Body &&body) {
    struct Stop {
      Phases &phases;
      std::string name;
      std::chrono::steady_clock::time_point start;
      ~Stop() {
        std::chrono::duration<double> taken =
            std::chrono::steady_clock::now() - start;
        phases.list.push_back({std::move(name), taken.count()});
      }
    } stop{*this, std::move(name), std::chrono::steady_clock::now()};
    return body();
  }
  std::vector<Phase> list;
};

/// The module as text, with a newline at the end.
std::string printed(mlir::ModuleOp module);

enum class CacheUse : uint8_t { Off, Hit, Miss };

class Compiler {
public:
  /// `options` are resolved.
  explicit Compiler(const Options &options) : options(options) {}

  /// Reads the graph. Must be called first.
  Status read(const std::string &path);

  /// Import and the passes to `last`, kLastStage at most, with dumps as the
  /// options say. Stages after kLastSharedStage are made for `device` (null:
  /// the first target), out of the module that all devices share.
  Expected<mlir::ModuleOp> runStages(Stage last,
                                     const target::Device *device = nullptr);

  /// Whether every target can have its code: as far as the nvvm stage for a GPU, the
  /// plan for host. Needs no assembler.
  Status check();

  /// What a stage holds for the first target: MLIR or PTX as text, or machine
  /// code; the last two of all kernels together.
  Expected<std::string> stageContent(Stage stage);

  /// The bundle, out of the cache or compiled (and then put there).
  Expected<bundle::Bundle> compile();

  const Frontend &frontend() const { return *graph; }
  /// Known after runStages() or compile(), for JSON graphs after read().
  std::string name() const;
  CacheUse cacheUse() const { return use; }
  const std::string &key() const { return keyText; }
  Phases &phases() { return timing; }
  const Phases &phases() const { return timing; }
  /// What was compiled, as it was done; names as "h200 NAME" for a GPU.
  const std::vector<KernelDone> &kernels() const { return compiledKernels; }
  /// How many of these came out of the cache.
  size_t kernelHits() const { return kernelCache ? kernelCache->hits() : 0; }
  /// What was emitted while the module was made.
  const Diagnostics *diagnostics() const { return collected.get(); }
  /// What the passes said of their decisions, one line each.
  std::vector<std::string> remarks() const {
    return collected ? collected->remarks() : std::vector<std::string>();
  }
  /// That, and the schedule of each kernel.
  std::vector<std::string> explanation() const;
  /// provenance.json: when, where, by which build, how long.
  std::string provenance() const;

private:
  mlir::MLIRContext &context();
  std::string digest() const;
  Status importGraph();
  KeyBuilder makeKey() const;
  /// Finds the assembler, once.
  Status needAssembler();
  /// `device` is null for the stages that all devices share.
  Status runStage(Stage stage, mlir::ModuleOp module,
                  const target::Device *device);
  /// DIR of --dump-stages; with several targets that of `device`, if not null.
  std::string dumpFolder(const target::Device *device) const;
  Status dump(Stage stage, mlir::ModuleOp module, const target::Device *device);
  KernelProgress reportTo(class ProgressLine &line, const std::string &prefix);
  GpuBackendOptions gpuOptions(const target::Device &device) const;
  /// The kernels of a GPU at a stage of the lowering, with diagnostics said.
  Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  lowerKernels(mlir::ModuleOp planned, const target::Device &device,
               KernelStage last);
  Expected<std::vector<GpuKernelCode>>
  compileKernels(mlir::ModuleOp planned, const target::Device &device);
  Status dumpKernels(mlir::ModuleOp planned, const target::Device &device,
                     Stage last, const std::vector<GpuKernelCode> &codes);
  Expected<TargetCode> compileTarget(mlir::ModuleOp planned,
                                     const target::Device &device);
  Expected<bundle::Bundle> build();
  /// What a back end's error means here: one of this machine's stays; any other
  /// is a defect of novac, for the graph was accepted.
  Error backEndError(const Error &error, mlir::ModuleOp planned) const;
  /// Ends a run whose module could not be made.
  Error rejected() const;
  Error internalError(const std::string &message, mlir::ModuleOp module) const;

  const Options &options;
  std::optional<Frontend> graph;
  std::unique_ptr<llvm::DefaultThreadPool> pool;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  std::unique_ptr<Diagnostics> collected;
  std::optional<Assembler> assembler;
  std::optional<cache::Store> store;
  std::unique_ptr<KernelCache> kernelCache; ///< In that store.
  /// The step up to kLastSharedStage, and the stage it is at.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Stage reached = Stage::Graph;
  /// The step after kLastSharedStage, per device.
  std::vector<
      std::pair<const target::Device *, mlir::OwningOpRef<mlir::ModuleOp>>>
      planned;
  std::string mlirName, mlirDigest;
  std::string keyText;
  CacheUse use = CacheUse::Off;
  Phases timing;
  std::vector<KernelDone> compiledKernels;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_COMPILER_H
