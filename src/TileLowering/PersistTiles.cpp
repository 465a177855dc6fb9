//===- PersistTiles.cpp - Blocks that go from tile to tile ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program of one grid point becomes one that takes every so-manieth point: what was
// its body is the body of a loop, over which copies run ahead from point to point.
// With several teams the loop's iterations are dealt out to them: while one team
// stores its point's results the other multiplies. That they multiply one after the
// other, not both at half speed, is what a channel between them is for: from one point
// to the next it hands on the turn.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace nova {
#define GEN_PASS_DEF_PERSISTTILES
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Turns that the channel between teams remembers: one is on its way while the one
/// before it is being taken.
static constexpr int64_t kHandedOn = 2;

/// The one loop of the program, if rings can run through it from point to point: a
/// constant number of steps, and a product whose operands both come by tensor maps.
static scf::ForOp mainLoop(func::FuncOp program) {
  scf::ForOp main;
  for (Operation &op : program.getBody().front()) {
    if (op.getNumRegions() == 0)
      continue;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (main || !loop || !tripCount(loop))
      return {};
    main = loop;
  }
  if (!main)
    return {};
  DotOp product;
  for (Operation &op : *main.getBody()) {
    if (op.getNumRegions() || isa<StoreOp>(op))
      return {};
    auto dot = dyn_cast<DotOp>(op);
    if (!dot)
      continue;
    std::optional<Multiplier> by = dot.getMultiplier();
    if (product || !by || *by == Multiplier::fma)
      return {};
    product = dot;
  }
  if (!product)
    return {};
  bool operands[2] = {false, false};
  for (LoadOp load : main.getBody()->getOps<LoadOp>()) {
    auto uses = productUses(load);
    if (!uses || !isMappable(load) || load.getType().getRank() != 2)
      continue;
    for (const ProductUse &use : *uses)
      operands[use.number()] = true;
  }
  return operands[0] && operands[1] ? main : scf::ForOp();
}

/// Around the main loop: take the turn that the point before has handed on, and hand it
/// on. `iteration`: the number of the point among the block's.
static void handOn(func::FuncOp program, scf::ForOp main, Value iteration) {
  Location loc = program.getLoc();
  OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
  Value channel =
      ChannelOp::create(builder, loc, ChannelType::get(builder.getContext(), kHandedOn));
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto turnOf = [&](Value number) {
    Value slot = arith::RemUIOp::create(builder, loc, number, index(kHandedOn));
    Value round = arith::DivUIOp::create(builder, loc, number, index(kHandedOn));
    Value odd = arith::AndIOp::create(builder, loc, round, index(1));
    return std::pair<Value, Value>(
        slot, arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, odd, index(0)));
  };
  builder.setInsertionPoint(main);
  Value isLater =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, iteration, index(0));
  auto later = scf::IfOp::create(builder, loc, isLater, /*withElseRegion=*/false);
  builder.setInsertionPoint(later.thenYield());
  auto [taken, takenPhase] = turnOf(arith::SubIOp::create(builder, loc, iteration, index(1)));
  AwaitOp::create(builder, loc, TokenType::get(builder.getContext()), channel, taken, takenPhase);
  ReleaseOp::create(builder, loc, channel, taken);
  builder.setInsertionPointAfter(main);
  auto [handed, handedPhase] = turnOf(iteration);
  AcquireOp::create(builder, loc, channel, handed, handedPhase, IntegerAttr());
  SendOp::create(builder, loc, channel, handed);
}

static void persist(func::FuncOp program, scf::ForOp main, int64_t blocks, int64_t points) {
  Location loc = program.getLoc();
  Block &body = program.getBody().front();
  SmallVector<Operation *> all;
  for (Operation &op : body.without_terminator())
    all.push_back(&op);
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  Value first = PointOp::create(builder, loc);
  Value step = arith::ConstantIndexOp::create(builder, loc, blocks);
  auto loop = scf::ForOp::create(builder, loc, first,
                                 arith::ConstantIndexOp::create(builder, loc, points), step);
  loop->setAttr(tile::attr::dealt, builder.getUnitAttr());
  Operation *end = loop.getBody()->getTerminator();
  for (Operation *op : all) {
    if (auto point = dyn_cast<PointOp>(op)) {
      point.getResult().replaceAllUsesWith(loop.getInductionVar());
      point->erase();
    } else {
      op->moveBefore(end);
    }
  }
  auto teams = program->getAttrOfType<IntegerAttr>(tile::attr::teams);
  if (!teams || teams.getInt() < 2)
    return;
  builder.setInsertionPointToStart(loop.getBody());
  Value gone = arith::SubIOp::create(builder, loc, loop.getInductionVar(), first);
  handOn(program, main, arith::DivUIOp::create(builder, loc, gone, step));
}

namespace {
struct PersistTiles : ::nova::impl::PersistTilesBase<PersistTiles> {
  void runOnOperation() override {
    func::FuncOp program = getOperation();
    auto blocks = program->getAttrOfType<IntegerAttr>(tile::attr::persistentBlocks);
    auto points = program->getAttrOfType<IntegerAttr>(tile::attr::grid);
    if (!blocks || !points || !program->hasAttr(tile::attr::asynchronous) ||
        blocks.getInt() < 1 || blocks.getInt() >= points.getInt())
      return;
    scf::ForOp main = mainLoop(program);
    if (!main)
      return;
    persist(program, main, blocks.getInt(), points.getInt());
    program->setAttr(tile::attr::grid, blocks);
  }
};
} // namespace
