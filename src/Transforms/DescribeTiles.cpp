//===- DescribeTiles.cpp - What the GPU's configurator is told -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DescribeTiles.h"

#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/ReductionBody.h"

#include <map>

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

static std::optional<config::ContractionDesc> contraction(linalg::GenericOp op, const Axes &axes) {
  auto parts = accumulations(op);
  if (failed(parts) || parts->size() != 1)
    return std::nullopt;
  auto product = factors((*parts)[0]);
  if (!product)
    return std::nullopt;
  AxisList a = axesOf(product->first, op, axes), b = axesOf(product->second, op, axes);
  AxisList out = axes.ofValue(op->getResult(0));
  config::ContractionDesc desc;
  for (AxisId axis : a)
    if (!llvm::is_contained(b, axis))
      desc.m.push_back(axis);
    else if (!llvm::is_contained(out, axis))
      desc.k.push_back(axis);
  for (AxisId axis : b)
    if (!llvm::is_contained(a, axis))
      desc.n.push_back(axis);
  if (desc.m.empty() || desc.n.empty() || desc.k.empty())
    return std::nullopt;
  return desc;
}

/// Bytes of memory in which each axis has each rank among the strides.
static std::vector<unsigned> innermost(func::FuncOp kernel, const Axes &axes) {
  std::vector<double> weight(axes.size(), 0);
  auto account = [&](AxisList dims, ArrayRef<int64_t> strides, int64_t elements) {
    // An axis next to memory gets the most, the next outwards half of it.
    SmallVector<unsigned> order;
    for (unsigned d = 0; d < dims.size(); ++d)
      if (dims[d] != kNoAxis && strides[d] != 0)
        order.push_back(d);
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return strides[a] < strides[b]; });
    double share = double(elements);
    for (unsigned d : order) {
      weight[dims[d]] += share;
      share /= 2;
    }
  };
  auto elementsOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); };
  kernel.walk([&](linalg::GenericOp op) {
    for (OpOperand *operand : op.getDpsInputOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand->get()))
        account(axes.ofOperand(*operand), argumentStrides(kernel, argument.getArgNumber()), elementsOf(argument));
  });
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    account(axes.ofValue(result), contiguousStrides(cast<RankedTensorType>(result.getType()).getShape()),
            elementsOf(result));
  std::vector<unsigned> order;
  for (unsigned i = 0; i < axes.size(); ++i)
    order.push_back(i);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return weight[a] > weight[b]; });
  return order;
}

config::TileProblem nova::describeTiles(func::FuncOp kernel, const Axes &axes) {
  config::TileProblem problem;
  // What has no tile of its own is shown as having nothing to divide.
  for (AxisId id = 0; id < (AxisId)axes.size(); ++id) {
    bool free = !axes[id].single && axes[id].partOf == kNoAxis;
    problem.axes.push_back({free ? axes[id].extent : 1, axes[id].local(), axes[id].reduced, axes[id].scanned, false});
  }
  kernel.walk([&](IndexPutOp op) {
    AxisList dims = axes.ofValue(op.getResult());
    for (AxisId axis : ArrayRef<AxisId>(dims).take_front(op.getIndices().size()))
      if (axis != kNoAxis)
        problem.axes[axis].selected = true;
  });
  kernel.walk([&](linalg::GenericOp op) {
    if (auto desc = contraction(op, axes))
      problem.contractions.push_back(*desc);
  });
  problem.innermost = innermost(kernel, axes);
  problem.tensors = kernel.getNumArguments() + kernel.getNumResults();
  return problem;
}
