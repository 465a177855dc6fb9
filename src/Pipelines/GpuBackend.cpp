//===- GpuBackend.cpp - A planned step to machine code for a GPU ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Pipelines/GpuBackend.h"

#include "ForEachKernel.h"
#include "nova/GpuCodegen/PtxEmitter.h"
#include "nova/Pipelines/PlanToManifest.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace nova;

/// Blocks along x that a launch may have (CUDA's limit for every architecture).
static constexpr int64_t kMaxGridPoints = INT32_MAX;

static Expected<GpuKernelModule> lower(func::FuncOp kernel,
                                       const GpuBackendOptions &options) {
  int64_t points = gridSize(kernel);
  if (points > kMaxGridPoints)
    return Error{ErrorCode::Internal,
                 "kernel '" + kernel.getSymName().str() + "': a grid of " +
                     std::to_string(points) + " points, " +
                     std::string(options.device->name) + " has at most " +
                     std::to_string(kMaxGridPoints),
                 {}};
  if (points == 0)
    return emptyGpuKernel(kernel);
  return options.lower(kernel, *options.device, options.lowering);
}

Expected<std::vector<GpuKernelCode>>
nova::compileForGpu(ModuleOp planned, const GpuBackendOptions &options,
                    llvm::ThreadPoolInterface &pool,
                    const KernelProgress &progress) {
  loadGpuCodegenDialects(*planned.getContext());
  std::vector<func::FuncOp> kernels = launchedKernels(planned);
  Expected<std::vector<GpuKernelCode>> codes = forEachKernel<GpuKernelCode>(
      kernels, pool, progress,
      [&](func::FuncOp kernel) -> Expected<GpuKernelCode> {
        Expected<GpuKernelModule> lowered = lower(kernel, options);
        if (!lowered)
          return lowered.error();
        return compileGpuKernel(*lowered, kernel.getSymName(), *options.device,
                                options.assembler);
      },
      [](const GpuKernelCode &code) {
        return code.cubin.empty() ? code.ptx.size() : code.cubin.size();
      });
  if (!codes)
    return codes;
  // Only now, so that they come in the order of the kernels.
  for (auto [kernel, code] : llvm::zip_equal(kernels, *codes))
    for (const AssemblerWarning &warning : code.warnings)
      emitWarning(func::FuncOp(kernel).getLoc())
          << "kernel '" << func::FuncOp(kernel).getSymName() << "' for "
          << options.device->name << ": "
          << (warning.code.empty() ? "" : warning.code + ": ") << warning.text;
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
          [&](func::FuncOp kernel) { return lower(kernel, options); },
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
