//===- RunVerify.cpp - novac run, novac verify ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The work is nova::run's, on top of libnova_rt; nova-run is the same without
// a compiler.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"
#include "Log.h"
#include "Verbs.h"
#include "nova/Bundle/Bundle.h"
#include "nova/Runtime/Run.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

using namespace nova;
using namespace nova::driver;

Status driver::runVerb(const Options &options) {
  nova::run::RunOptions run;
  run.bundle = options.operands[0];
  if (!options.data.empty())
    run.data = options.data;
  run.seed = options.seed;
  run.steps = options.steps;
  run.set = options.set;
  if (!options.out.empty())
    run.out = options.out;
  run.device = options.device;
  run.threads = options.threads;
  run.allowJit = options.allowJit;
  run.launch = options.launch;
  run.time = options.time;
  run.json = options.json;
  return nova::run::run(run, std::cout, std::cerr);
}

namespace {
/// A folder that is gone when its owner is.
class TemporaryFolder {
public:
  static Expected<TemporaryFolder> create() {
    llvm::SmallString<128> model, created;
    llvm::sys::path::system_temp_directory(true, model);
    llvm::sys::path::append(model, "novac-verify");
    if (std::error_code error =
            llvm::sys::fs::createUniqueDirectory(model, created))
      return Error{ErrorCode::Missing,
                   "cannot make a temporary folder '" + model.str().str() +
                       "-...': " + error.message(),
                   {}};
    return TemporaryFolder(created.str().str());
  }
  TemporaryFolder(TemporaryFolder &&other) noexcept
      : path(std::move(other.path)) {
    other.path.clear();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty())
      std::filesystem::remove_all(path, ignored);
  }
  std::string path;

private:
  explicit TemporaryFolder(std::string path) : path(std::move(path)) {}
};
} // namespace

Status driver::verifyVerb(const Options &options) {
  nova::run::VerifyOptions verify;
  verify.bundle = options.operands[0];
  if (!options.data.empty())
    verify.data = options.data;
  verify.seed = options.seed;
  verify.tolerance = options.tolerance;
  verify.threads = options.threads;
  verify.json = options.json;
  verify.allowJit = options.allowJit;
  verify.launch = options.launch;
  verify.device = options.device;
  verify.simulate = options.simulate;
  verify.interleavings = options.interleavings;
  for (const target::Device *device : options.devices)
    if (device->kind == target::DeviceKind::Gpu)
      verify.simulateTargets.emplace_back(device->name);
  // A GPU that was named is not passed over where it is not here.
  if (verify.device.empty() && options.forGpu() && !options.simulate)
    verify.device = "0";
  std::error_code ignored;
  if (std::filesystem::is_directory(verify.bundle, ignored))
    return nova::run::verify(verify, std::cout, std::cerr);

  if (!verify.data && !verify.seed && !verify.simulate)
    return Error{ErrorCode::Usage,
                 "novac verify of a graph needs --data or --seed, of a bundle "
                 "neither",
                 "see `novac verify --help`"};
  // Without data a GPU is compared with the CPU, out of the same bundle.
  Options compiled = options;
  const target::Device *host = target::findTarget("host");
  if ((verify.seed || (verify.simulate && !verify.data)) && options.forGpu() &&
      std::find(compiled.devices.begin(), compiled.devices.end(), host) ==
          compiled.devices.end())
    compiled.devices.push_back(host);
  Compiler compiler(compiled);
  if (Status status = compiler.read(options.operands[0]); !status)
    return status;
  Expected<bundle::Bundle> bundle = compiler.compile();
  if (!bundle)
    return bundle.error();
  Expected<TemporaryFolder> folder = TemporaryFolder::create();
  if (!folder)
    return folder.error();
  verify.bundle = folder->path + "/" + "graph.nova";
  if (Expected<bool> published =
          bundle::publishBundle(verify.bundle, *bundle, compiler.provenance());
      !published)
    return published.error();
  return nova::run::verify(verify, std::cout, std::cerr);
}
