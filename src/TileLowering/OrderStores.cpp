//===- OrderStores.cpp - Element by element instead of operation by operation -===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile program computes operation by operation, each on all of a thread's
// elements, and so would need registers for all elements of every value that a
// long chain has alive at once. What a kernel ends with is elementwise: loads,
// arithmetic, stores. There this puts each group of elements' loads and arithmetic
// directly before its stores, so that one group is alive at a time.
//
// A store may overwrite what the same thread loads at the same place for another
// result (arguments updated in place): all that a group loads comes before the
// first of its stores. Other groups touch other places.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace nova;
using namespace nova::tile;

static bool isGlobalLoad(Operation *op) {
  if (op->hasAttr(kLoadAttr))
    return true;
  auto load = dyn_cast<LLVM::LoadOp>(op);
  return load && cast<LLVM::LLVMPointerType>(load.getAddr().getType()).getAddressSpace() ==
                     (unsigned)NVVM::NVVMMemorySpace::Global;
}

/// Moves what `op` needs of the region (the ops in `movable`) before `anchor`, what
/// that needs first.
static void placeOperands(Operation *op, Operation *anchor, DenseSet<Operation *> &movable) {
  // An explicit stack: chains are as long as the longest body.
  SmallVector<std::pair<Operation *, unsigned>> stack{{op, 0}};
  while (!stack.empty()) {
    auto &[current, next] = stack.back();
    if (next < current->getNumOperands()) {
      Operation *producer = current->getOperand(next++).getDefiningOp();
      if (producer && movable.contains(producer))
        stack.push_back({producer, 0});
      continue;
    }
    if (current != op && movable.erase(current))
      current->moveBefore(anchor);
    stack.pop_back();
  }
}

void nova::tile::orderStores(Block &block) {
  // The end of the block in which nothing but this happens.
  SmallVector<Operation *> stores;
  DenseSet<Operation *> movable;
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (op.hasAttr(kStoreAttr))
      stores.push_back(&op);
    else if (op.getNumRegions() == 0 && (isMemoryEffectFree(&op) || isGlobalLoad(&op)))
      movable.insert(&op);
    else
      break;
  }
  if (stores.empty())
    return;
  std::reverse(stores.begin(), stores.end());
  auto positionOf = [](Operation *store) {
    return store->getAttrOfType<IntegerAttr>(kStoreAttr).getInt();
  };
  // Groups of as many elements as the widest store has.
  int64_t width = 1;
  for (Operation *store : stores)
    width = std::max<int64_t>(width, store->getNumOperands());
  width = ceilPowerOfTwo(width);
  std::map<int64_t, SmallVector<Operation *>> groups;
  for (Operation *store : stores)
    groups[positionOf(store) / width].push_back(store);
  Operation *end = block.getTerminator();
  for (auto &[position, group] : groups) {
    for (Operation *store : group)
      placeOperands(store, end, movable);
    for (Operation *store : group)
      store->moveBefore(end);
  }
  // What no store needs would now stand before what it uses.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (movable.contains(&op))
      op.erase();
}
