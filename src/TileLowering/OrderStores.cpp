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
// Nobody but this knows that loads may pass stores. So that a group does not wait for
// memory each time, loads run some groups ahead, as far as a few registers go.
//
// Conversions of layout within warps go piece by piece through shared memory. What a
// piece does (synchronise, write, synchronise, read) is a unit that moves as a whole.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <vector>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// How far loads run ahead of the stores that need them.
static constexpr int64_t kRegistersAhead = 16;
static constexpr size_t kGroupsAhead = 8;

static bool isGlobalLoad(Operation *op) {
  if (op->hasAttr(kLoadAttr))
    return true;
  auto load = dyn_cast<LLVM::LoadOp>(op);
  return load && cast<LLVM::LLVMPointerType>(load.getAddr().getType()).getAddressSpace() ==
                     (unsigned)NVVM::NVVMMemorySpace::Global;
}

namespace {
/// Moves operations of a block down to where they are needed.
class Placement {
public:
  Placement(Operation *end) : end(end) {}

  /// `op` may be moved, alone or with the others of its unit.
  void add(Operation *op) {
    movable.insert(op);
    if (auto unit = op->getAttrOfType<IntegerAttr>(kUnitAttr))
      units[unit.getInt()].insert(units[unit.getInt()].begin(), op);
  }
  /// Puts before the end what `op` needs of what may be moved, what that needs first.
  void placeOperands(Operation *op);
  /// The same, and `op` itself.
  void place(Operation *op) {
    placeOperands(op);
    for (Operation *member : together(op))
      if (movable.erase(member))
        member->moveBefore(end);
  }
  /// The loads of global memory that `op` needs and that have not been placed.
  void findLoads(Operation *op, SmallVectorImpl<Operation *> &loads);
  bool isLeft(Operation *op) const { return movable.contains(op); }

private:
  /// What moves together with `op`, in the order in which it stands.
  SmallVector<Operation *> together(Operation *op) {
    if (auto unit = op->getAttrOfType<IntegerAttr>(kUnitAttr))
      return units[unit.getInt()];
    return {op};
  }

  Operation *end;
  DenseSet<Operation *> movable;
  DenseMap<int64_t, SmallVector<Operation *>> units;
};
} // namespace

void Placement::placeOperands(Operation *op) {
  // An explicit stack: chains are as long as the longest body.
  struct Step {
    SmallVector<Operation *> members;
    SmallVector<Value> operands;
    size_t next = 0;
  };
  auto step = [](SmallVector<Operation *> members) {
    Step made{std::move(members), {}, 0};
    for (Operation *member : made.members)
      llvm::append_range(made.operands, member->getOperands());
    return made;
  };
  std::vector<Step> stack{step({op})};
  while (!stack.empty()) {
    Step &current = stack.back();
    if (current.next < current.operands.size()) {
      Operation *producer = current.operands[current.next++].getDefiningOp();
      if (producer && movable.contains(producer) && !llvm::is_contained(current.members, producer))
        stack.push_back(step(together(producer)));
      continue;
    }
    if (stack.size() > 1)
      for (Operation *member : current.members)
        if (movable.erase(member))
          member->moveBefore(end);
    stack.pop_back();
  }
}

void Placement::findLoads(Operation *op, SmallVectorImpl<Operation *> &loads) {
  SmallVector<Operation *> todo{op};
  DenseSet<Operation *> seen;
  while (!todo.empty()) {
    Operation *next = todo.pop_back_val();
    for (Operation *member : next == op ? SmallVector<Operation *>{op} : together(next)) {
      if (isGlobalLoad(member) && !llvm::is_contained(loads, member))
        loads.push_back(member);
      for (Value operand : member->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          if (movable.contains(producer) && seen.insert(producer).second)
            todo.push_back(producer);
    }
  }
}

/// Registers that the results of `loads` take.
static int64_t registersOf(ArrayRef<Operation *> loads) {
  int64_t bits = 0;
  auto widthOf = [](Type type) -> int64_t {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.getNumElements() * vector.getElementTypeBitWidth();
    return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
  };
  for (Operation *load : loads)
    for (Type type : load->getResultTypes()) {
      auto record = dyn_cast<LLVM::LLVMStructType>(type);
      for (Type part : record ? record.getBody() : ArrayRef<Type>(type))
        bits += std::max<int64_t>(32, widthOf(part));
    }
  return bits / 32;
}

void nova::tile::orderStores(Block &block, llvm::function_ref<bool(Operation *)> isPinned) {
  // The end of the block in which nothing but this happens.
  SmallVector<Operation *> stores, pinned;
  Operation *end = block.getTerminator();
  Placement placement(end);
  bool inUnits = false;
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (op.hasAttr(kStoreAttr))
      stores.push_back(&op);
    else if (op.hasAttr(kUnitAttr))
      placement.add(&op), inUnits = true;
    else if (op.getNumRegions() == 0 && (isMemoryEffectFree(&op) || isGlobalLoad(&op))) {
      placement.add(&op);
      if (isGlobalLoad(&op) && isPinned(&op))
        pinned.push_back(&op);
    } else
      break;
  }
  if (stores.empty())
    return;
  std::reverse(stores.begin(), stores.end());
  // Where conversions change which thread has what, threads may store what others
  // still load: that comes first.
  if (inUnits)
    for (Operation *load : llvm::reverse(pinned))
      if (placement.isLeft(load))
        placement.place(load);
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
  SmallVector<SmallVector<Operation *>> ordered;
  for (auto &[position, group] : groups)
    ordered.push_back(std::move(group));
  size_t loaded = 0; // groups whose loads stand
  SmallVector<int64_t> ahead; // registers of each of them
  int64_t inFlight = 0;
  for (size_t g = 0; g < ordered.size(); ++g) {
    while (loaded < ordered.size() &&
           (loaded <= g || (inFlight < kRegistersAhead && loaded - g <= kGroupsAhead))) {
      SmallVector<Operation *> loads;
      for (Operation *store : ordered[loaded])
        placement.findLoads(store, loads);
      // In the order in which they stood: neighbours in memory follow each other.
      llvm::sort(loads, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      ahead.push_back(registersOf(loads));
      inFlight += ahead.back();
      for (Operation *load : loads)
        if (placement.isLeft(load))
          placement.place(load);
      ++loaded;
    }
    for (Operation *store : ordered[g])
      placement.placeOperands(store);
    for (Operation *store : ordered[g])
      store->moveBefore(end);
    inFlight -= ahead[g];
  }
  // What no store needs would now stand before what it uses.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (placement.isLeft(&op))
      op.erase();
}
