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
#include "nova/Bundle/Bundle.h"
#include "nova/Driver/Options.h"
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

enum class CacheUse : uint8_t { Off, Hit, Miss };

class Compiler {
public:
  /// `options` are resolved.
  explicit Compiler(const Options &options) : options(options) {}

  /// Reads the graph. Must be called first.
  Status read(const std::string &path);

  /// Import and all passes to `last`, with dumps as the options say.
  Expected<mlir::ModuleOp> runStages(Stage last);

  /// The bundle, out of the cache or compiled (and then put there).
  Expected<bundle::Bundle> compile();

  const Frontend &frontend() const { return *graph; }
  /// Known after runStages() or compile(), for JSON graphs after read().
  std::string name() const;
  CacheUse cacheUse() const { return use; }
  const std::string &key() const { return keyText; }
  Phases &phases() { return timing; }
  /// What was emitted while the module was made.
  const Diagnostics *diagnostics() const { return collected.get(); }
  /// What the passes decided, and the schedule of each kernel; one line each.
  std::vector<std::string> explanation() const;
  /// provenance.json: when, where, by which build, how long.
  std::string provenance() const;

private:
  mlir::MLIRContext &context();
  std::string digest() const;
  Status importGraph();
  KeyBuilder makeKey() const;
  Expected<bundle::Bundle> build();
  /// Ends a run whose module could not be made.
  Error rejected() const;
  Error internalError(const std::string &message, mlir::ModuleOp module) const;

  const Options &options;
  std::optional<Frontend> graph;
  std::unique_ptr<llvm::DefaultThreadPool> pool;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  std::unique_ptr<Diagnostics> collected;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string mlirName, mlirDigest;
  std::string keyText;
  CacheUse use = CacheUse::Off;
  Phases timing;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_COMPILER_H
