//===- Schedule.cpp - Which reductions share a loop ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Schedule.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace nova::tiling;

void nova::tiling::sortLoops(SmallVectorImpl<AxisId> &list, const Axes &axes) {
  llvm::sort(list, [&](AxisId a, AxisId b) {
    return std::pair(axes[a].scanned, a) < std::pair(axes[b].scanned, b);
  });
}

AxisList nova::tiling::streamedAxes(Operation *op, const Axes &axes) {
  AxisList list;
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return list;
  for (auto [loop, kind] : llvm::enumerate(generic.getIteratorTypesArray())) {
    AxisId axis = axes.ofLoop(generic, loop);
    if (kind == utils::IteratorType::reduction && axis != kNoAxis && axes[axis].streamed())
      list.push_back(axis);
  }
  sortLoops(list, axes);
  return list;
}

static AxisList streamedResultAxes(Operation *op, const Axes &axes) {
  AxisList list;
  for (AxisId axis : axes.ofValue(op->getResult(0)))
    if (axis != kNoAxis && axes[axis].streamed())
      list.push_back(axis);
  sortLoops(list, axes);
  return list;
}

/// The longest chain of streamed reductions that ends with each op: an op never
/// needs another of its own level, so groups of one level cannot wait for one
/// another in a circle.
static DenseMap<Operation *, unsigned> levels(func::FuncOp kernel, const Axes &axes) {
  DenseMap<Operation *, unsigned> level;
  for (Operation &op : kernel.getBody().front()) {
    unsigned below = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        below = std::max(below, level[producer]);
    level[&op] = below + (streamedAxes(&op, axes).empty() ? 0 : 1);
  }
  return level;
}

SmallVector<Operation *> nova::tiling::loopMates(Operation *op, func::FuncOp kernel, const Axes &axes,
                                                 ArrayRef<Operation *> targets, unsigned above) {
  llvm::SetVector<Operation *> needed(targets.begin(), targets.end());
  for (size_t i = 0; i < needed.size(); ++i)
    for (Value operand : needed[i]->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        needed.insert(producer);
  auto level = levels(kernel, axes);
  SmallVector<Operation *> mates;
  for (Operation &other : kernel.getBody().front())
    if ((&other == op && !above) || (needed.contains(&other) && level[&other] == level[op] + above &&
                         streamedAxes(&other, axes) == streamedAxes(op, axes) &&
                         streamedResultAxes(&other, axes) == streamedResultAxes(op, axes)))
      mates.push_back(&other);
  return mates;
}
