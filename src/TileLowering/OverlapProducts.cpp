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
#include "llvm/ADT/SetVector.h"

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

//===----------------------------------------------------------------------===//
// Within a step
//===----------------------------------------------------------------------===//

/// An operand comes with its product: it is read, or renamed, for that alone.
static bool comesAlong(Operation *op) {
  return op && (isa<AwaitOp>(op) || (isa<LocalLoadOp, ConvertOp>(op) && op->hasOneUse()));
}

/// Its operands are slots of rings, and, on the left, registers that lie as the
/// fragment does: nothing goes through memory that others use.
static bool startsAtOnce(DotOp dot) {
  std::optional<Multiplier> by = dot.getMultiplier();
  if (!by || *by == Multiplier::fma || dot.getInFlight())
    return false;
  unsigned left = *by == Multiplier::flipped_warpgroup;
  if (!dot->getOperand(1 - left).getDefiningOp<LocalLoadOp>())
    return false;
  auto convert = dot->getOperand(left).getDefiningOp<ConvertOp>();
  auto layoutOf = [](Value tile) {
    return cast<LayoutAttr>(cast<RankedTensorType>(tile.getType()).getEncoding()).layout();
  };
  return !convert || layoutOf(convert.getOperand()).sameThreads(layoutOf(convert), nullptr);
}

/// The operation of its block that first needs what `dot` makes.
static Operation *firstUse(DotOp dot) {
  Block &block = *dot->getBlock();
  Operation *first = block.getTerminator();
  for (Operation *user : dot->getUsers())
    if (Operation *at = block.findAncestorOpInBlock(*user); at && at->isBeforeInBlock(first))
      first = at;
  return first;
}

/// Moves what makes `value` of nothing that the step computes or reads to its begin.
static void hoist(Value value, Block &block) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block || !isa<SplatOp, arith::ConstantOp>(op))
    return;
  op->moveBefore(&block, block.begin());
  for (Value operand : op->getOperands())
    hoist(operand, block);
}

/// Starts each product as soon as what it multiplies is there. What is read from memory
/// before the first one is needed is asked for behind those that wait for nothing but
/// their slots; the rest is read where it stands, or its registers would be taken all the
/// while.
static void startEarly(Block &block, ArrayRef<DotOp> dots) {
  Operation *use = firstUse(dots.front());
  SmallVector<LoadOp> loads;
  for (LoadOp load : block.getOps<LoadOp>())
    if (load->isBeforeInBlock(use))
      loads.push_back(load);
  for (DotOp dot : dots)
    hoist(dot.getAccumulator(), block);
  Operation *head = nullptr; // the last of what needs nothing that the step computes
  SmallPtrSet<Operation *, 16> placed;
  auto moveBehind = [&](Operation *op, Operation *&at, const llvm::SetVector<Operation *> &together) {
    if (!placed.insert(op).second)
      return; // What others have brought forward.
    // What stands before it already goes behind it unless somebody needs it there.
    bool isNeeded = at && llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *there = block.findAncestorOpInBlock(*user);
      return !together.contains(there) && (there == at || there->isBeforeInBlock(at));
    });
    if (isNeeded)
      return;
    if (at)
      op->moveAfter(at);
    else
      op->moveBefore(&block, block.begin());
    at = op;
  };
  for (DotOp dot : dots) {
    llvm::SetVector<Operation *> moved;
    Operation *latest = nullptr;
    moved.insert(dot);
    for (size_t i = 0; i < moved.size(); ++i)
      for (Value operand : moved[i]->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || producer->getBlock() != &block)
          continue;
        if (comesAlong(producer))
          moved.insert(producer);
        else if (isa<SplatOp, arith::ConstantOp>(producer))
          head = !head || head->isBeforeInBlock(producer) ? producer : head;
        else if (!latest || latest->isBeforeInBlock(producer))
          latest = producer;
      }
    bool atHead = !latest || (head && latest->isBeforeInBlock(head));
    Operation *at = atHead ? head : latest;
    SmallVector<Operation *> ordered(moved.begin(), moved.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : ordered)
      moveBehind(op, at, moved);
    if (atHead)
      head = dot;
  }
  if (!head)
    return;
  for (LoadOp load : loads) {
    bool isKnown = llvm::all_of(load->getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return !producer || producer->getBlock() != &block || producer->isBeforeInBlock(head);
    });
    if (isKnown)
      moveBehind(load, head, {});
  }
}

/// Lets a step's products run on until somebody needs what they make.
static void settleLate(Block &block) {
  SmallVector<DotOp> dots;
  for (auto dot : block.getOps<DotOp>())
    if (startsAtOnce(dot))
      dots.push_back(dot);
  if (dots.size() < 2)
    return;
  // What is needed first is started first.
  llvm::stable_sort(dots, [](DotOp a, DotOp b) { return firstUse(a)->isBeforeInBlock(firstUse(b)); });
  startEarly(block, dots);
  llvm::sort(dots, [](DotOp a, DotOp b) { return a->isBeforeInBlock(b); });
  SmallVector<Operation *> ends;
  for (DotOp dot : dots)
    ends.push_back(firstUse(dot));
  // Products end in the order in which they start: one that is waited for ends those
  // before it.
  for (size_t i = dots.size() - 1; i-- > 0;)
    if (ends[i + 1]->isBeforeInBlock(ends[i]))
      ends[i] = ends[i + 1];
  for (auto [i, dot, end] : llvm::enumerate(dots, ends)) {
    int64_t later = llvm::count_if(ArrayRef(dots).drop_front(i + 1),
                                   [end = end](DotOp other) { return other->isBeforeInBlock(end); });
    OpBuilder builder(end);
    auto settled = SettleOp::create(builder, dot.getLoc(), dot.getType(), dot.getResult());
    settled->setAttr(kPendingAttr, builder.getI64IntegerAttr(later));
    dot.getResult().replaceAllUsesExcept(settled, settled);
    dot.setInFlight(true);
    // Slots are handed back once they have been read.
    SmallPtrSet<Value, 2> channels;
    for (unsigned number : {0u, 1u})
      if (auto local = dot->getOperand(number).getDefiningOp<LocalLoadOp>())
        if (auto await = local.getToken().getDefiningOp<AwaitOp>())
          channels.insert(await.getChannel());
    for (ReleaseOp release : llvm::make_early_inc_range(block.getOps<ReleaseOp>()))
      if (channels.contains(release.getChannel()) && release->isBeforeInBlock(settled))
        release->moveAfter(settled);
  }
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
    // Of loops as they are now: some were replaced.
    getOperation()->walk([](scf::ForOp loop) { settleLate(*loop.getBody()); });
  }
};
} // namespace
