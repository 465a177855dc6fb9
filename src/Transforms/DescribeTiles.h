//===- DescribeTiles.h - What the GPU's configurator is told ---*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_DESCRIBETILES_H
#define NOVA_SRC_TRANSFORMS_DESCRIBETILES_H

#include "nova/Config/Tiles.h"
#include "nova/Transforms/KernelAxes.h"

namespace nova {

/// `precision`: how float32 operands enter products, "f32", "tf32" or "bf16".
config::TileProblem describeTiles(mlir::func::FuncOp kernel, const tiling::Axes &axes, llvm::StringRef precision);

/// Of a group of kernels (nova/Transforms/KernelGroups.h), of which `problem` is the
/// largest: what all have along `axis`.
void describeMembers(config::TileProblem &problem, unsigned axis, llvm::ArrayRef<int64_t> extents);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_DESCRIBETILES_H
