//===- GpuBackend.h - A planned step to machine code for a GPU ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_PIPELINES_GPUBACKEND_H
#define NOVA_PIPELINES_GPUBACKEND_H

#include "nova/GpuCodegen/KernelCompiler.h"
#include "nova/Pipelines/KernelProgress.h"
#include "nova/Pipelines/KernelStore.h"

#include <functional>
#include <string>
#include <vector>

namespace llvm {
class ThreadPoolInterface;
} // namespace llvm

namespace nova {

/// lowerKernelToNvvm(), or what a test puts in its place.
using GpuLowering = std::function<Expected<GpuKernelModule>(
    mlir::func::FuncOp, const target::Device &, const GpuLoweringOptions &)>;

/// How to compile for one GPU.
struct GpuBackendOptions {
  const target::Device *device = nullptr;
  GpuLoweringOptions lowering;
  /// Null: PTX only.
  const Assembler *assembler = nullptr;
  GpuLowering lower = lowerKernelToNvvm;
  /// Null: everything is compiled.
  KernelStore *store = nullptr;
};

/// Compiles every kernel that the planned module launches, each once, on the
/// threads of `pool`; results in the order of their first launch, the same for
/// any number of threads.
///
/// Of a kernel's candidates (nova/Transforms/Candidates.h) the first is taken
/// whose lowering does not refuse it and whose registers ptxas neither spills nor
/// warns of (C7504, C7511 to C7514, C7517: registers or asynchrony of wgmma are lost); if there is none, the one with the least bytes
/// spilled, with a warning. Afterwards the kernels of `planned` have the schedules
/// of their code. What was rejected is a remark at the kernel's location, as
/// warnings of the assembler are warnings there. Without an assembler the first
/// that lowers is taken.
///
/// Of several kernels that fail, the first by launch counts; a crash inside one is
/// an Internal error that names it. Internal too: a grid of more than 2^31 - 1
/// points.
Expected<std::vector<GpuKernelCode>>
compileForGpu(mlir::ModuleOp planned, const GpuBackendOptions &options,
              llvm::ThreadPoolInterface &pool,
              const KernelProgress &progress = {});

/// The same kernels at options.lowering.last, each with the schedule it has or, if
/// that one is refused, the first after it that is not: one module that holds a
/// module of the kernel's name for each.
Expected<mlir::OwningOpRef<mlir::ModuleOp>>
lowerForGpu(mlir::ModuleOp planned, const GpuBackendOptions &options,
            llvm::ThreadPoolInterface &pool);

/// The driver that machine code of this assembler needs, as
/// cuDriverGetVersion() counts: one that reads the PTX, and of no older CUDA
/// generation than the assembler (NVIDIA, CUDA Compatibility, "Minor Version
/// Compatibility": within a major version any driver loads any cubin). Null:
/// for PTX alone.
unsigned minimumDriver(const target::Device &device,
                       const Assembler *assembler);

} // namespace nova

#endif // NOVA_PIPELINES_GPUBACKEND_H
