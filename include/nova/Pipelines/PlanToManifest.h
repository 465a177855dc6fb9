//===- PlanToManifest.h - A planned step as a bundle -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_PIPELINES_PLANTOMANIFEST_H
#define NOVA_PIPELINES_PLANTOMANIFEST_H

#include "nova/Bundle/Bundle.h"
#include "nova/GpuCodegen/KernelCompiler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace nova {

/// What the manifest says that the module does not.
struct ManifestFacts {
  std::string name;        ///< The graph's.
  std::string graphDigest; ///< "sha256:" + 64 digits.
  bundle::Producer producer;
  bundle::Numerics numerics;
};

/// The kernels of a planned module that some launch uses, by first launch.
std::vector<mlir::func::FuncOp> launchedKernels(mlir::ModuleOp module);

/// Machine code of one target for launchedKernels(): the symbol of kernel i is
/// its name.
struct TargetCode {
  std::string name = "host";
  std::string device = "x86-64-v3";
  std::string object; ///< The shared object of `host`.
  /// The kernels of a GPU, in the order of launchedKernels().
  std::vector<GpuKernelCode> kernels;
  uint64_t minDriver = 0, ptxVersion = 0; ///< As the manifest has them.
};

/// A bundle of this signature, without targets. `planned` is the step at stage
/// `plan`, for whichever device.
bundle::Bundle startBundle(mlir::ModuleOp planned, const ManifestFacts &facts);

/// Adds a target: kernels, launch list, arena, constants. `planned` is the step
/// at stage `plan` for the target's device. The first target decides the
/// gradient buckets (of at most 25 MB, in the order in which its gradients are
/// final).
void addTarget(bundle::Bundle &bundle, mlir::ModuleOp planned, TargetCode code);

} // namespace nova

#endif // NOVA_PIPELINES_PLANTOMANIFEST_H
