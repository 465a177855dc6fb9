//===- KernelContract.cpp - Reading the attributes of kernels
//--------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/KernelContract.h"

#include "nova/Transforms/KernelGroups.h"

using namespace mlir;

namespace nova {

func::FuncOp findStep(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (func->hasAttr(attr::graph))
      return func;
  return {};
}

SmallVector<int64_t> memberGridSizes(func::FuncOp kernel) {
  auto tile = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::tile);
  SmallVector<int64_t> sizes;
  for (ArrayRef<int64_t> space : memberSpaces(kernel)) {
    int64_t points = 1;
    for (auto [extent, size] : llvm::zip_equal(space, tile.asArrayRef()))
      points *= (extent + size - 1) / size;
    sizes.push_back(points);
  }
  return sizes;
}

int64_t gridSize(func::FuncOp kernel) {
  auto space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  auto tile = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::tile);
  if (!space || !tile)
    return 1;
  int64_t points = 0;
  for (int64_t member : memberGridSizes(kernel))
    points += member;
  return points;
}

SmallVector<int64_t> argumentStrides(func::FuncOp kernel, unsigned index) {
  if (auto strides =
          kernel.getArgAttrOfType<DenseI64ArrayAttr>(index, attr::strides))
    return SmallVector<int64_t>(strides.asArrayRef());
  return contiguousStrides(
      cast<RankedTensorType>(kernel.getArgumentTypes()[index]).getShape());
}

} // namespace nova
