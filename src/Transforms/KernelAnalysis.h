//===- KernelAnalysis.h - What a lowered kernel reads, writes and costs ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_KERNELANALYSIS_H
#define NOVA_SRC_TRANSFORMS_KERNELANALYSIS_H

#include "nova/Config/Configure.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/KernelCosts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace nova {

/// For every tensor in a kernel's body, the space dimension along which each of
/// its dimensions runs (-1: seen whole), propagated from the results backwards.
using KernelBindings = llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>>;
KernelBindings bindKernel(mlir::func::FuncOp kernel);

/// Along which space dimension each loop of a generic runs (-1: none), from the
/// bindings of its results.
llvm::SmallVector<int64_t> loopBinding(mlir::linalg::GenericOp op, const KernelBindings &bindings);

/// What the configurator is told of a kernel (lowered to linalg).
config::KernelDesc describeKernel(mlir::func::FuncOp kernel);

/// Pairs (argument, result) that may share memory: same type and layout, and a
/// grid point has read all it needs of the argument, at its own positions only,
/// before it writes there.
llvm::SmallVector<std::pair<unsigned, unsigned>> inplaceCandidates(mlir::func::FuncOp kernel);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_KERNELANALYSIS_H
