//===- KernelStructure.h - What kernels that differ in size share -*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_KERNELSTRUCTURE_H
#define NOVA_SRC_TRANSFORMS_KERNELSTRUCTURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>

namespace nova {

/// What a kernel does but for how many points the first dimension of its space has.
struct KernelStructure {
  /// Equal for kernels of which one program can be made: with collapsed axes the same
  /// operations on the same elements, strides and extents, but for the first
  /// dimension of the space, whose extent only allows accesses of the same width.
  std::string key;
  int64_t extent = 0; ///< Of that dimension.
  /// Whether argument i has elements along it.
  llvm::SmallVector<bool> along;
};

/// Nothing for a kernel that cannot be one of several in a launch: one that multiplies
/// matrices (each fills the device), moves elements, looks at positions along the
/// first dimension, or has a result without it. Failure after an error for a kernel
/// that breaks the contract.
mlir::FailureOr<std::optional<KernelStructure>> structureOf(mlir::func::FuncOp kernel);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_KERNELSTRUCTURE_H
