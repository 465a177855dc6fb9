//===- SinkTiles.cpp - Tiles come into being where they are used ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/TileLowering/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace nova {
#define GEN_PASS_DEF_SINKTILES
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// The operation of `block` in which, or in whose regions, `op`'s results are used
/// first; null if they are not.
static Operation *firstUser(Operation *op, Block &block) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *here = block.findAncestorOpInBlock(*user);
    if (!first || here->isBeforeInBlock(first))
      first = here;
  }
  return first;
}

namespace {
struct SinkTiles : ::nova::impl::SinkTilesBase<SinkTiles> {
  void runOnOperation() override {
    func::FuncOp program = getOperation();
    if (!program->hasAttr(tile::attr::warps))
      return;
    Block &block = program.getBody().front();
    // Nothing is read later than something may have been written.
    Operation *end = nullptr;
    for (Operation &op : block) {
      op.walk([&](StoreOp) { end = &op; });
      if (end)
        break;
    }
    // Users first, so that what they need follows them.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      bool reads = isa<LoadOp, GatherOp>(op);
      if (op.getNumRegions() || op.getNumResults() == 0 || (!reads && !isPure(&op)))
        continue;
      Operation *user = firstUser(&op, block);
      if (reads && end && user && end->isBeforeInBlock(user))
        user = op.isBeforeInBlock(end) ? end : nullptr;
      if (user && op.getNextNode() != user)
        op.moveBefore(user);
    }
  }
};
} // namespace
