//===- GpuBackend.cpp - A planned step to machine code for a GPU ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Pipelines/GpuBackend.h"

#include "ForEachKernel.h"
#include "GpuKernelText.h"
#include "nova/GpuCodegen/PtxEmitter.h"
#include "nova/Pipelines/PlanToManifest.h"
#include "nova/Transforms/Candidates.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace nova;

/// Blocks along x that a launch may have (CUDA's limit for every architecture).
static constexpr int64_t kMaxGridPoints = INT32_MAX;

/// Losses of performance that another schedule may not have (ptxas calls them
/// warnings or remarks): wgmma made to wait for lack of registers, or for how its
/// operands are used.
static constexpr StringRef kRejected[] = {"C7504", "C7511", "C7512", "C7513", "C7514", "C7517"};

static Expected<GpuKernelModule> lower(func::FuncOp kernel,
                                       const GpuBackendOptions &options) {
  int64_t points = gridSize(kernel);
  if (points > kMaxGridPoints)
    return Error{ErrorCode::BadInput, // larger tiles make fewer
                 "kernel '" + kernel.getSymName().str() + "': a grid of " +
                     std::to_string(points) + " points, " +
                     std::string(options.device->name) + " has at most " +
                     std::to_string(kMaxGridPoints),
                 {}};
  if (points == 0)
    return emptyGpuKernel(kernel);
  return options.lower(kernel, *options.device, options.lowering);
}

namespace {
/// Tries a kernel's candidates one after the other, on a copy of it.
class Attempts {
public:
  Attempts(func::FuncOp kernel, const GpuBackendOptions &options)
      : options(options), candidates(candidatesOf(kernel)),
        copy(func::FuncOp(kernel.clone())) {}

  Expected<GpuKernelCode> compile();
  Expected<GpuKernelModule> lowerFirst();

private:
  size_t count() const { return std::max<size_t>(candidates.size(), 1); }
  func::FuncOp take(size_t candidate) {
    if (!candidates.empty())
      takeCandidate(*copy, candidates[candidate]);
    return *copy;
  }
  /// Is it the registers of a shape that was rejected for its registers?
  bool knownToFail(size_t candidate) const {
    return llvm::any_of(outOfRegisters, [&](size_t other) {
      return sameShape(candidates[candidate], candidates[other]);
    });
  }

  const GpuBackendOptions &options;
  SmallVector<DictionaryAttr> candidates;
  OwningOpRef<func::FuncOp> copy;
  SmallVector<size_t> outOfRegisters;
};
} // namespace

/// What is wrong with its use of registers; empty if nothing is.
static std::string registerTrouble(const GpuKernelCode &code) {
  if (code.spillBytes)
    return "ptxas spills " + std::to_string(code.spillBytes) +
           " bytes a thread";
  for (const AssemblerWarning &warning : code.warnings)
    if (llvm::is_contained(kRejected, StringRef(warning.code)))
      return "ptxas warns: " + warning.code + ": " + warning.text;
  return {};
}

Expected<GpuKernelCode> Attempts::compile() {
  std::optional<GpuKernelCode> least;
  std::optional<Error> refused;
  std::vector<Rejection> rejections;
  for (size_t i = 0; i < count(); ++i) {
    if (knownToFail(i))
      continue;
    func::FuncOp kernel = take(i);
    Expected<GpuKernelModule> lowered = lower(kernel, options);
    if (!lowered) {
      if (lowered.error().code != ErrorCode::BadInput)
        return lowered.error();
      rejections.push_back({i, lowered.error().message});
      if (!refused)
        refused = lowered.error();
      continue;
    }
    Expected<GpuKernelCode> code =
        compileGpuKernel(*lowered, kernel.getSymName(), *options.device,
                         options.assembler);
    if (!code)
      return code.error();
    code->candidate = i;
    std::string trouble = registerTrouble(*code);
    if (trouble.empty()) {
      code->rejections = std::move(rejections);
      return code;
    }
    rejections.push_back({i, trouble});
    outOfRegisters.push_back(i);
    code->trouble = std::move(trouble);
    if (!least || code->spillBytes < least->spillBytes)
      least = std::move(*code);
  }
  if (!least)
    return Error{ErrorCode::Internal, refused->message, refused->hint};
  // None is as it should be: what is least wrong was tried, not rejected.
  llvm::erase_if(rejections, [&](const Rejection &rejection) {
    return rejection.candidate == least->candidate;
  });
  least->rejections = std::move(rejections);
  return std::move(*least);
}

Expected<GpuKernelModule> Attempts::lowerFirst() {
  // From the schedule that the kernel has.
  size_t first = 0;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (llvm::all_of(candidates[i], [&](NamedAttribute attribute) {
          return (*copy)->getAttr(attribute.getName()) == attribute.getValue();
        })) {
      first = i;
      break;
    }
  std::optional<Error> refused;
  for (size_t i = first; i < count(); ++i) {
    Expected<GpuKernelModule> lowered = lower(take(i), options);
    if (lowered || lowered.error().code != ErrorCode::BadInput)
      return lowered;
    if (!refused)
      refused = lowered.error();
  }
  return Error{ErrorCode::Internal, refused->message, refused->hint};
}

/// Out of the store, if it is there.
static Expected<GpuKernelCode> compileOne(func::FuncOp kernel,
                                          const GpuBackendOptions &options) {
  if (!options.store)
    return Attempts(kernel, options).compile();
  KeyBuilder key = kernelKey(kernel, "gpu 1");
  key.section("device", options.device->name)
      .section("products", options.lowering.matmul);
  if (auto parts = options.store->find(key))
    if (auto code =
            readGpuKernel(std::move(*parts), candidatesOf(kernel).size()))
      return std::move(*code);
  Expected<GpuKernelCode> code = Attempts(kernel, options).compile();
  if (code)
    options.store->put(key, writeGpuKernel(*code));
  return code;
}

/// Only after all kernels are done, so that what is said comes in their order.
static void report(func::FuncOp kernel, const GpuKernelCode &code,
                   const target::Device &device) {
  SmallVector<DictionaryAttr> candidates = candidatesOf(kernel);
  std::string name = "kernel '" + kernel.getSymName().str() + "' for " +
                     std::string(device.name) + ": ";
  for (const Rejection &rejection : code.rejections)
    remark::missed(kernel.getLoc(),
                   remark::RemarkOpts::name("schedule-rejected")
                       .category("nova-compile-kernels"))
        << name << describeCandidate(candidates[rejection.candidate])
        << " rejected: " << rejection.why;
  if (!code.trouble.empty() && !candidates.empty())
    remark::missed(kernel.getLoc(),
                   remark::RemarkOpts::name("schedule-of-necessity")
                       .category("nova-compile-kernels"))
        << name << describeCandidate(candidates[code.candidate])
        << " taken though " << code.trouble
        << ": no candidate is without fault, and this one spills least";
  for (const AssemblerWarning &warning : code.warnings)
    emitWarning(kernel.getLoc())
        << name << (warning.code.empty() ? "" : warning.code + ": ")
        << warning.text;
}

Expected<std::vector<GpuKernelCode>>
nova::compileForGpu(ModuleOp planned, const GpuBackendOptions &options,
                    llvm::ThreadPoolInterface &pool,
                    const KernelProgress &progress) {
  loadGpuCodegenDialects(*planned.getContext());
  std::vector<func::FuncOp> kernels = launchedKernels(planned);
  Expected<std::vector<GpuKernelCode>> codes = forEachKernel<GpuKernelCode>(
      kernels, pool, progress,
      [&](func::FuncOp kernel) { return compileOne(kernel, options); },
      [](const GpuKernelCode &code) {
        return code.cubin.empty() ? code.ptx.size() : code.cubin.size();
      });
  if (!codes)
    return codes;
  for (auto [kernel, code] : llvm::zip_equal(kernels, *codes)) {
    report(kernel, code, *options.device);
    if (auto candidates = candidatesOf(kernel); !candidates.empty())
      takeCandidate(kernel, candidates[code.candidate]);
  }
  return codes;
}

Expected<OwningOpRef<ModuleOp>>
nova::lowerForGpu(ModuleOp planned, const GpuBackendOptions &options,
                  llvm::ThreadPoolInterface &pool) {
  loadGpuCodegenDialects(*planned.getContext());
  std::vector<func::FuncOp> kernels = launchedKernels(planned);
  Expected<std::vector<GpuKernelModule>> modules =
      forEachKernel<GpuKernelModule>(
          kernels, pool, {},
          [&](func::FuncOp kernel) { return Attempts(kernel, options).lowerFirst(); },
          [](const GpuKernelModule &) { return size_t(0); });
  if (!modules)
    return modules.error();
  OwningOpRef<ModuleOp> all = ModuleOp::create(planned.getLoc());
  for (auto [kernel, lowered] : llvm::zip_equal(kernels, *modules)) {
    ModuleOp module = lowered.module.release();
    module.setSymName(func::FuncOp(kernel).getSymName());
    all->getBody()->push_back(module);
  }
  return all;
}

unsigned nova::minimumDriver(const target::Device &device,
                             const Assembler *assembler) {
  const PtxTarget *ptx = findPtxTarget(device.arch);
  unsigned reads = ptx ? cudaOfPtx(ptx->ptxVersion) : 0;
  if (!assembler)
    return reads;
  return std::max(reads, assembler->cudaVersion() / 1000 * 1000);
}
