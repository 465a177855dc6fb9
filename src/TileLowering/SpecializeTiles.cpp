//===- SpecializeTiles.cpp - A warp that copies, for those that multiply ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Divides a program into two roles. Loads that only products of warpgroups read
// become the producer's: it repeats the program's loops with nothing but these
// copies in them. What crosses from one role to the other is a ring of slots with a
// channel: those that one product reads first share one, so that a loop with two
// products has two rings, each as far ahead as its own slots let it be.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

namespace nova {
#define GEN_PASS_DEF_SPECIALIZETILES
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

namespace {
/// A load that moves to the producer.
struct Stream {
  LoadOp load;
  SmallVector<ProductUse> uses;
  SmallVector<int64_t> order; ///< Slot dimension -> dimension of the tile.
  Value buffer;

  int64_t bytes() const {
    RankedTensorType type = LoadOp(load).getType();
    return type.getNumElements() * type.getElementType().getIntOrFloatBitWidth() / 8;
  }
  bool rounds() const { return LoadOp(load).getType().getElementType().isF32(); }
};

/// Streams of one block that share a channel.
struct Group {
  SmallVector<Stream> streams;
  int64_t slots = 1;
  Value channel;
  Value slot, phase; ///< The consumers'.
};

class Specialization {
public:
  Specialization(func::FuncOp program, int64_t stages, int64_t warps)
      : program(program), body(program.getBody().front()), stages(stages), warps(warps) {}

  void run();

private:
  std::optional<Stream> streamOf(LoadOp load);
  bool isComputable(Value value, scf::ForOp loop);
  /// Finds the streams of a block, in it those before `end` (null: all).
  void collect(Block &block, scf::ForOp loop, Operation *end);
  int64_t slotsFor(scf::ForOp loop);
  Value copyScalar(OpBuilder &builder, IRMapping &map, Value value);
  void emitCopies(OpBuilder &builder, IRMapping &map, Group &group, Value slot, Value phase);
  void createProducer();
  void rewriteConsumers();
  void consume(Group &group);
  std::pair<Value, Value> next(OpBuilder &builder, Value slot, Value phase, int64_t slots);

  func::FuncOp program;
  Block &body;
  int64_t stages, warps;
  /// By the loop, null for what is in none, in the program's order.
  llvm::MapVector<Operation *, SmallVector<Group>> groups;
};
} // namespace

static Value index(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// Scalars that the producer can compute for itself.
bool Specialization::isComputable(Value value, scf::ForOp loop) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return loop && argument == loop.getInductionVar();
  Operation *op = value.getDefiningOp();
  if (isa<PointOp>(op))
    return true;
  return isa<arith::ArithDialect>(op->getDialect()) && !isa<RankedTensorType>(value.getType()) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isComputable(operand, loop); });
}

std::optional<Stream> Specialization::streamOf(LoadOp load) {
  if (load.getType().getRank() != 2 || !isMappable(load))
    return std::nullopt;
  std::optional<SmallVector<ProductUse>> uses = productUses(load);
  if (!uses || llvm::any_of(*uses, [](const ProductUse &use) {
        std::optional<Multiplier> by = use.dot().getMultiplier();
        return !by || *by == Multiplier::fma;
      }))
    return std::nullopt;
  std::vector<unsigned> order = accessOf(load)->order();
  return Stream{load, *uses, {(int64_t)order[1], (int64_t)order[0]}, {}};
}

int64_t Specialization::slotsFor(scf::ForOp loop) {
  if (!loop)
    return 1;
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return stages;
  int64_t trips = (upper.getSExtValue() - lower.getSExtValue() + step.getSExtValue() - 1) /
                  step.getSExtValue();
  return std::clamp<int64_t>(trips, 1, stages);
}

void Specialization::collect(Block &block, scf::ForOp loop, Operation *end) {
  llvm::MapVector<Operation *, Group> byReader;
  for (LoadOp load : block.getOps<LoadOp>()) {
    std::optional<Stream> stream = streamOf(load);
    if (!stream || (end && !load->isBeforeInBlock(end)) ||
        !llvm::all_of(load.getOffsets(), [&](Value offset) { return isComputable(offset, loop); }))
      continue;
    // The product that reads it first.
    Operation *first = nullptr;
    for (const ProductUse &use : stream->uses) {
      Operation *reader = block.findAncestorOpInBlock(*use.operand->getOwner());
      if (!first || reader->isBeforeInBlock(first))
        first = reader;
    }
    byReader[first].streams.push_back(*stream);
  }
  for (auto &[reader, group] : byReader) {
    group.slots = slotsFor(loop);
    groups[loop].push_back(std::move(group));
  }
}

Value Specialization::copyScalar(OpBuilder &builder, IRMapping &map, Value value) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    copyScalar(builder, map, operand);
  builder.clone(*op, map);
  return map.lookup(value);
}

std::pair<Value, Value> Specialization::next(OpBuilder &builder, Value slot, Value phase,
                                             int64_t slots) {
  Location loc = program.getLoc();
  Value up = arith::AddIOp::create(builder, loc, slot, index(builder, loc, 1));
  Value wraps = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, up,
                                      index(builder, loc, slots));
  return {arith::SelectOp::create(builder, loc, wraps, index(builder, loc, 0), up),
          arith::XOrIOp::create(builder, loc, phase, wraps)};
}

void Specialization::emitCopies(OpBuilder &builder, IRMapping &map, Group &group, Value slot,
                                Value phase) {
  Location loc = program.getLoc();
  int64_t bytes = 0;
  for (const Stream &stream : group.streams)
    bytes += stream.bytes();
  AcquireOp::create(builder, loc, group.channel, slot, phase, bytes);
  for (Stream &stream : group.streams) {
    SmallVector<Value> offsets;
    for (Value offset : stream.load.getOffsets())
      offsets.push_back(copyScalar(builder, map, offset));
    SmallVector<int64_t> along, bounds;
    for (int64_t dim : stream.order) {
      along.push_back(stream.load.getAlong()[dim]);
      bounds.push_back(stream.load.getBounds()[dim]);
    }
    BulkLoadOp::create(builder, stream.load.getLoc(), stream.load.getMemory(), offsets,
                       stream.buffer, slot, group.channel, builder.getDenseI64ArrayAttr(along),
                       builder.getDenseI64ArrayAttr(bounds),
                       stream.rounds() ? builder.getUnitAttr() : UnitAttr());
  }
}

void Specialization::createProducer() {
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  Location loc = program.getLoc();
  for (auto &[loop, members] : groups)
    for (Group &group : members) {
      group.channel =
          ChannelOp::create(builder, loc, ChannelType::get(builder.getContext(), group.slots));
      for (Stream &stream : group.streams) {
        RankedTensorType type = stream.load.getType();
        stream.buffer = AllocOp::create(
            builder, loc,
            panelBufferType({type.getDimSize(stream.order[0]), type.getDimSize(stream.order[1])},
                            type.getElementType(), group.slots));
      }
    }
  auto producer = ProducerOp::create(builder, loc);
  builder.setInsertionPointToStart(&producer.getBody().emplaceBlock());
  auto no = [&] { return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false)); };
  IRMapping top;
  // In the order in which consumers get to them.
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto found = groups.find(loop);
      if (found == groups.end())
        continue;
      SmallVector<Group> &members = found->second;
      SmallVector<Value> counters;
      for (size_t i = 0; i < members.size(); ++i) {
        counters.push_back(index(builder, loc, 0));
        counters.push_back(no());
      }
      Value lower = copyScalar(builder, top, loop.getLowerBound()),
            upper = copyScalar(builder, top, loop.getUpperBound()),
            step = copyScalar(builder, top, loop.getStep());
      auto copies = scf::ForOp::create(builder, loc, lower, upper, step, counters);
      OpBuilder inner = OpBuilder::atBlockBegin(copies.getBody());
      IRMapping map(top);
      map.map(loop.getInductionVar(), copies.getInductionVar());
      SmallVector<Value> advanced;
      for (auto [i, group] : llvm::enumerate(members)) {
        Value slot = copies.getRegionIterArg(2 * i), phase = copies.getRegionIterArg(2 * i + 1);
        emitCopies(inner, map, group, slot, phase);
        auto [nextSlot, nextPhase] = next(inner, slot, phase, group.slots);
        advanced.push_back(nextSlot);
        advanced.push_back(nextPhase);
      }
      scf::YieldOp::create(inner, loc, advanced);
      continue;
    }
    auto load = dyn_cast<LoadOp>(op);
    if (!load || !groups.count(nullptr))
      continue;
    for (Group &group : groups[nullptr])
      if (group.streams.front().load == load)
        emitCopies(builder, top, group, index(builder, loc, 0), no());
  }
}

/// Makes the consumers wait for the group's slot, read it and, where it is used
/// again, release it.
void Specialization::consume(Group &group) {
  Block *block = group.streams.front().load->getBlock();
  Location loc = program.getLoc();
  Operation *first = nullptr, *last = nullptr;
  for (const Stream &stream : group.streams)
    for (const ProductUse &use : stream.uses) {
      Operation *reader = block->findAncestorOpInBlock(*use.operand->getOwner());
      if (!first || reader->isBeforeInBlock(first))
        first = reader;
      if (!last || last->isBeforeInBlock(reader))
        last = reader;
    }
  OpBuilder builder(first);
  Value token =
      AwaitOp::create(builder, loc, TokenType::get(builder.getContext()), group.channel, group.slot,
                      group.phase);
  for (Stream &stream : group.streams) {
    for (const ProductUse &use : stream.uses) {
      DotOp dot = use.dot();
      builder.setInsertionPoint(dot);
      auto type = cast<RankedTensorType>(use.operand->get().getType());
      SmallVector<int64_t> dims;
      for (int64_t dim : stream.order)
        dims.push_back(use.transposed ? 1 - dim : dim);
      bool flipped = dot.getMultiplier() == Multiplier::flipped_warpgroup;
      bool onTheRight = use.number() != (flipped ? 1 : 0);
      bool kInner = dims[1] == 1 - (int64_t)use.number();
      if (onTheRight && !kInner && stream.rounds()) {
        // Descriptors cannot read it so: it is written once more, transposed.
        unsigned side = use.number();
        LinearLayout layout = transposingLayout(
            {type.getDimSize(side), type.getDimSize(1 - side)}, warps);
        if (side == 1)
          layout = layout.transposed({1, 0});
        auto own = RankedTensorType::get(type.getShape(), type.getElementType(),
                                         LayoutAttr::get(builder.getContext(), layout));
        Value read = LocalLoadOp::create(builder, stream.load.getLoc(), own, stream.buffer,
                                         group.slot, token, builder.getDenseI64ArrayAttr(dims));
        use.operand->set(ConvertOp::create(builder, stream.load.getLoc(), type, read));
        continue;
      }
      use.operand->set(LocalLoadOp::create(builder, stream.load.getLoc(), type, stream.buffer,
                                           group.slot, token, builder.getDenseI64ArrayAttr(dims)));
    }
  }
  if (isa<scf::ForOp>(block->getParentOp())) {
    builder.setInsertionPointAfter(last);
    ReleaseOp::create(builder, loc, group.channel, group.slot);
  }
}

void Specialization::rewriteConsumers() {
  IRRewriter builder(program.getContext());
  Location loc = program.getLoc();
  for (auto &[op, members] : groups) {
    if (!op) {
      for (Group &group : members) {
        builder.setInsertionPoint(group.streams.front().load);
        group.slot = index(builder, loc, 0);
        group.phase = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
        consume(group);
      }
      continue;
    }
    auto loop = cast<scf::ForOp>(op);
    builder.setInsertionPoint(loop);
    SmallVector<Value> counters;
    for (size_t i = 0; i < members.size(); ++i) {
      counters.push_back(index(builder, loc, 0));
      counters.push_back(arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false)));
    }
    unsigned before = loop.getNumRegionIterArgs();
    auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        builder, counters, /*replaceInitOperandUsesInLoop=*/false,
        [&, &members = members](OpBuilder &inner, Location, ArrayRef<BlockArgument> arguments) {
          SmallVector<Value> advanced;
          for (auto [i, group] : llvm::enumerate(members)) {
            auto [slot, phase] =
                next(inner, arguments[2 * i], arguments[2 * i + 1], group.slots);
            advanced.push_back(slot);
            advanced.push_back(phase);
          }
          return advanced;
        }));
    for (auto [i, group] : llvm::enumerate(members)) {
      group.slot = wider.getRegionIterArg(before + 2 * i);
      group.phase = wider.getRegionIterArg(before + 2 * i + 1);
      consume(group);
    }
  }
  // Loads, and what led from them to the products, have no use any more.
  for (auto &[op, members] : groups)
    for (Group &group : members)
      for (Stream &stream : group.streams) {
        SmallVector<Operation *> dead{stream.load};
        for (size_t i = 0; i < dead.size(); ++i)
          llvm::append_range(dead, dead[i]->getUsers());
        for (Operation *unused : llvm::reverse(dead))
          unused->erase();
      }
}

void Specialization::run() {
  // Where the program has stored, copies might read what it wrote, too early.
  Operation *end = nullptr;
  for (Operation &op : body) {
    op.walk([&](StoreOp) { end = &op; });
    if (end)
      break;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && isComputable(loop.getLowerBound(), {}) && isComputable(loop.getUpperBound(), {}) &&
        isComputable(loop.getStep(), {}))
      collect(*loop.getBody(), loop, nullptr);
  }
  collect(body, {}, end);
  if (groups.empty())
    return;
  createProducer();
  rewriteConsumers();
}

namespace {
struct SpecializeTiles : ::nova::impl::SpecializeTilesBase<SpecializeTiles> {
  void runOnOperation() override {
    func::FuncOp program = getOperation();
    auto warps = program->getAttrOfType<IntegerAttr>(tile::attr::warps);
    auto stages = program->getAttrOfType<IntegerAttr>(tile::attr::stages);
    if (warps && program->hasAttr(tile::attr::asynchronous))
      Specialization(program, stages ? std::max<int64_t>(1, stages.getInt()) : 1, warps.getInt()).run();
  }
};
} // namespace
