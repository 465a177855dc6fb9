//===- OverlapProducts.cpp - Products that outlast their step ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that waits in each step for the products of that step leaves the tensor cores
// idle from when they end until the next ones are there. Where a loop does nothing with
// its sums but add products whose operands stay in shared memory, a step waits for the
// products of the step before: their slot is released one step later, and the loop's
// result is settled behind it.
//
// Where the left operand is read into registers, what a step multiplies next would
// overwrite what products in flight still read. There the next step's operand is read,
// into other registers, while the products of this one run, and then these are waited
// for.
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace nova {
#define GEN_PASS_DEF_OVERLAPPRODUCTS
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Slots below which a copy would wait for the products that are in flight.
static constexpr int64_t kLeastSlots = 3;

/// Its operands are read by descriptors, both of them.
static bool readsSharedMemory(DotOp dot) {
  std::optional<Multiplier> by = dot.getMultiplier();
  if (!by || *by == Multiplier::fma)
    return false;
  bool flipped = *by == Multiplier::flipped_warpgroup;
  auto layout = cast<LayoutAttr>(dot.getType().getEncoding()).layout();
  if (!isReadByDescriptors(flipped ? layout.transposed({1, 0}) : layout))
    return false;
  for (unsigned number : {0u, 1u}) {
    auto local = dot->getOperand(number).getDefiningOp<LocalLoadOp>();
    if (!local || !isReadByProductOnly(local))
      return false;
    bool wide = local.getType().getElementTypeBitWidth() == 32;
    if (wide && local.getDims()[1] != 1 - (int64_t)number)
      return false;
  }
  return true;
}

static Value slotBefore(OpBuilder &builder, Location loc, Value slot, int64_t slots) {
  auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot, index(0));
  Value less = arith::SubIOp::create(builder, loc, slot, index(1));
  return arith::SelectOp::create(builder, loc, isFirst, index(slots - 1), less);
}

static void overlap(scf::ForOp loop) {
  Block &body = *loop.getBody();
  DotOp dot;
  SmallVector<ReleaseOp> releases;
  for (Operation &op : body) {
    if (op.getNumRegions())
      return;
    if (auto release = dyn_cast<ReleaseOp>(op))
      releases.push_back(release);
    if (auto product = dyn_cast<DotOp>(op)) {
      if (dot)
        return;
      dot = product;
    }
  }
  if (!dot || releases.empty() || !readsSharedMemory(dot) || !dot->hasOneUse())
    return;
  // Its sums go from step to step and nowhere else.
  auto carried = dyn_cast<BlockArgument>(dot.getAccumulator());
  OpOperand &use = *dot->use_begin();
  if (!carried || carried.getOwner() != &body || !carried.hasOneUse() ||
      !isa<scf::YieldOp>(use.getOwner()) || use.getOperandNumber() + 1 != carried.getArgNumber())
    return;
  for (ReleaseOp release : releases) {
    auto slot = dyn_cast<BlockArgument>(release.getSlot());
    if (!slot || slot.getOwner() != &body ||
        cast<ChannelType>(release.getChannel().getType()).getSlots() < kLeastSlots)
      return;
  }

  Location loc = dot.getLoc();
  OpBuilder builder(loop.getContext());
  Value sums = loop.getResult(use.getOperandNumber());
  // Behind what hands the turn on to another team (PersistTiles.cpp).
  Operation *last = loop;
  for (Operation *op = loop->getNextNode(); op && !llvm::is_contained(op->getOperands(), sums);
       op = op->getNextNode())
    if (isa<SendOp>(op))
      last = op;
  builder.setInsertionPointAfter(last);
  auto settled = SettleOp::create(builder, loc, sums.getType(), sums);
  sums.replaceAllUsesExcept(settled, settled);
  for (ReleaseOp release : releases) {
    int64_t slots = cast<ChannelType>(release.getChannel().getType()).getSlots();
    unsigned number = cast<BlockArgument>(release.getSlot()).getArgNumber() - 1;
    Value behind = slotBefore(builder, loc, loop.getResult(number), slots);
    ReleaseOp::create(builder, loc, release.getChannel(), behind);
    OpBuilder inner(release);
    Value later = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ne,
                                        loop.getInductionVar(), loop.getLowerBound());
    auto branch = scf::IfOp::create(inner, loc, later, /*withElseRegion=*/false);
    inner.setInsertionPoint(branch.thenYield());
    Value before = slotBefore(inner, loc, release.getSlot(), slots);
    ReleaseOp::create(inner, loc, release.getChannel(), before);
    release.erase();
  }
  dot.setInFlight(true);
}

/// The next step's left operand comes into registers while this step's products run.
static void prefetchLeft(scf::ForOp loop) {
  Block &body = *loop.getBody();
  DotOp dot;
  for (Operation &op : body) {
    if (op.getNumRegions())
      return;
    if (auto product = dyn_cast<DotOp>(op)) {
      if (dot)
        return;
      dot = product;
    }
  }
  std::optional<Multiplier> by = dot ? dot.getMultiplier() : std::nullopt;
  if (!by || *by == Multiplier::fma || dot.getInFlight() || !dot->hasOneUse())
    return;
  unsigned number = *by == Multiplier::flipped_warpgroup;
  auto local = dot->getOperand(number).getDefiningOp<LocalLoadOp>();
  if (!local || !isReadByProductOnly(local) || local.getType().getElementTypeBitWidth() != 32)
    return;
  auto await = local.getToken().getDefiningOp<AwaitOp>();
  auto slot = dyn_cast<BlockArgument>(local.getSlot());
  // Somebody who turns an operand reads and writes shared memory as much as it allows:
  // to read ahead as well takes longer.
  auto other = dot->getOperand(1 - number).getDefiningOp<LocalLoadOp>();
  if (!other || other.getToken() != local.getToken())
    return;
  if (!await || await->getBlock() != &body || !slot || slot.getOwner() != &body ||
      await.getSlot() != slot || cast<ChannelType>(await.getChannel().getType()).getSlots() < kLeastSlots)
    return;
  auto phase = dyn_cast<BlockArgument>(await.getPhase());
  auto carried = dyn_cast<BlockArgument>(dot.getAccumulator());
  OpOperand &use = *dot->use_begin();
  if (!phase || phase.getOwner() != &body || !carried || carried.getOwner() != &body ||
      !isa<scf::YieldOp>(use.getOwner()))
    return;
  SmallVector<ReleaseOp> releases(body.getOps<ReleaseOp>());
  Location loc = dot.getLoc();
  IRRewriter builder(loop.getContext());
  auto fetch = [&](OpBuilder &at, Value fromSlot, Value inPhase) {
    auto token = AwaitOp::create(at, loc, await.getToken().getType(), await.getChannel(), fromSlot, inPhase);
    Value tile = LocalLoadOp::create(at, loc, local.getType(), local.getBuffer(), fromSlot, token, local.getDims());
    return SmallVector<Value>{tile, token};
  };
  unsigned slotNumber = slot.getArgNumber() - 1, phaseNumber = phase.getArgNumber() - 1;
  builder.setInsertionPoint(loop);
  SmallVector<Value> first = fetch(builder, loop.getInitArgs()[slotNumber], loop.getInitArgs()[phaseNumber]);
  scf::IfOp next;
  auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      builder, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &at, Location, ArrayRef<BlockArgument> arguments) {
        Operation *yield = loop.getBody()->getTerminator();
        Value after = arith::AddIOp::create(at, loc, loop.getInductionVar(), loop.getStep());
        Value goesOn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, after, loop.getUpperBound());
        next = scf::IfOp::create(at, loc, TypeRange{first[0].getType(), first[1].getType()}, goesOn,
                                 /*withElseRegion=*/true);
        OpBuilder then = next.getThenBodyBuilder(), otherwise = next.getElseBodyBuilder();
        scf::YieldOp::create(then, loc,
                             fetch(then, yield->getOperand(slotNumber), yield->getOperand(phaseNumber)));
        scf::YieldOp::create(otherwise, loc, ValueRange{arguments[0], arguments[1]});
        return SmallVector<Value>(next.getResults());
      }));
  size_t arguments = wider.getRegionIterArgs().size();
  dot->setOperand(number, wider.getRegionIterArg(arguments - 2));
  await.getToken().replaceAllUsesWith(wider.getRegionIterArg(arguments - 1));
  local->erase();
  await->erase();
  Operation *yield = wider.getBody()->getTerminator();
  builder.setInsertionPoint(yield);
  auto settled = SettleOp::create(builder, loc, dot.getType(), dot.getResult());
  dot.getResult().replaceAllUsesExcept(settled, settled);
  for (ReleaseOp release : releases)
    release->moveBefore(yield);
  dot.setInFlight(true);
}

namespace {
struct OverlapProducts : ::nova::impl::OverlapProductsBase<OverlapProducts> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(tile::attr::asynchronous))
      return;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (!loop->getParentOfType<RoleOp>())
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      overlap(loop);
      prefetchLeft(loop);
    }
  }
};
} // namespace
