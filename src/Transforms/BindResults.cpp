//===- BindResults.cpp - Result dimensions that may run over the grid -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/KernelAxes.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

namespace nova {
#define GEN_PASS_DEF_BINDRESULTS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

/// Would every grid point repeat a reduction, if there were more of them?
static bool reduces(func::FuncOp kernel) {
  return llvm::any_of(kernel.getBody().front().getOps<linalg::GenericOp>(),
                      [](linalg::GenericOp op) { return op.getNumReductionLoops() > 0; });
}

static LogicalResult bindResult(func::FuncOp kernel) {
  if (kernel.getNumResults() != 1 || reduces(kernel))
    return success();
  auto map = kernel.getResultAttrOfType<DenseI64ArrayAttr>(0, attr::map);
  auto space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  if (!map || !space)
    return success();
  auto axes = tiling::Axes::analyse(kernel);
  if (failed(axes))
    return failure();
  Value result = kernel.getBody().front().getTerminator()->getOperand(0);
  tiling::AxisList dims = axes->ofValue(result);
  SmallVector<int64_t> newMap, newSpace;
  int64_t boundBefore = 0;
  bool changed = false;
  for (auto [d, dim] : llvm::enumerate(map.asArrayRef())) {
    tiling::AxisId axis = dims[d];
    bool free = dim < 0 && axis != tiling::kNoAxis && !(*axes)[axis].reduced && !(*axes)[axis].scanned;
    changed |= free;
    boundBefore += dim >= 0;
    if (dim < 0 && !free) {
      newMap.push_back(-1);
      continue;
    }
    newMap.push_back(newSpace.size());
    newSpace.push_back(cast<RankedTensorType>(result.getType()).getDimSize(d));
  }
  // A dimension of the space that the result lacks keeps its place only if
  // nothing moves.
  if (!changed || boundBefore != space.size())
    return success();
  Builder builder(kernel.getContext());
  kernel->setAttr(attr::space, builder.getDenseI64ArrayAttr(newSpace));
  kernel.setResultAttr(0, attr::map, builder.getDenseI64ArrayAttr(newMap));
  return success();
}

namespace {
struct BindResults : ::nova::impl::BindResultsBase<BindResults> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (isKernel(kernel) && !kernel.isExternal() && failed(bindResult(kernel)))
      signalPassFailure();
  }
};
} // namespace
