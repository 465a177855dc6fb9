//===- SpecializeTiles.cpp - A warp that copies, for those that multiply ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Divides a program into roles. Loads that only products of warpgroups read become
// copies of a role of their own, which repeats the program's loops with nothing but
// them. What crosses from one role to another is a ring of slots with a channel: those
// that one product reads first share one, so that a loop with two products has two
// rings, each as far ahead as its own slots let it be. A float32 operand that lies in
// memory with k outside, on the right of its products, goes through one role more,
// which turns it, while the products of the tile before run.
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

/// Slots of a ring between two roles that hold each other up no longer than one tile.
static constexpr int64_t kTurnedSlots = 2;

namespace {
/// A load that moves to the copying role.
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

/// One side's count of a channel.
struct Turn {
  Value slot, phase;
};

/// A channel, its slots, and each side's count where it is used.
struct Link {
  Value channel;
  int64_t slots = 1;
};

/// Streams of one block that share a channel. One that no product can take as it
/// lies in memory is sent on by a role that turns it.
struct Group {
  SmallVector<Stream> streams;
  Link copied;
  bool turned = false;
  Link sentOn;
  Value turnedBuffer;

  /// What reaches the products.
  const Link &last() const { return turned ? sentOn : copied; }
};

class Specialization {
public:
  Specialization(func::FuncOp program, int64_t stages, int64_t warps)
      : program(program), body(program.getBody().front()), stages(stages), warps(warps) {
    for (auto loop : body.getOps<scf::ForOp>())
      if (loop->hasAttr(tile::attr::dealt))
        dealt = loop, home = loop.getBody();
  }

  void run();

private:
  std::optional<Stream> streamOf(LoadOp load);
  bool isComputable(Value value, scf::ForOp loop);
  /// Finds the streams of a block, in it those before `end` (null: all).
  void collect(Block &block, scf::ForOp loop, Operation *end);
  int64_t slotsFor(scf::ForOp loop, int64_t most);
  Value copyScalar(OpBuilder &builder, IRMapping &map, Value value);
  void createRings(OpBuilder &builder);
  /// A role that runs through the program's loops with a count of each of `links`
  /// (null: none) of their groups, and `emit`s the work of one group.
  using Emit = llvm::function_ref<void(OpBuilder &, IRMapping &, Group &, ArrayRef<Turn>)>;
  using Links = llvm::function_ref<SmallVector<const Link *>(const Group &)>;
  void createRole(OpBuilder &builder, int64_t roleWarps, bool single, Links links, Emit emit);
  void copy(OpBuilder &builder, IRMapping &map, Group &group, Turn turn);
  void turn(OpBuilder &builder, Group &group, Turn from, Turn to);
  void rewriteConsumers();
  void consume(Group &group, Turn turn);
  Turn next(OpBuilder &builder, Turn turn, int64_t slots);
  /// The turn of a ring of `slots` at the start of a loop of `trips` steps; in the
  /// `iteration`th point of the block (null: it has one).
  Turn first(OpBuilder &builder, Value iteration, int64_t trips, int64_t slots);
  /// What a loop carries of its rings' turns, slot and phase: rings of one depth go
  /// round together.
  using Depths = llvm::SmallSetVector<int64_t, 2>;
  SmallVector<Value> firstOf(OpBuilder &builder, Value iteration, scf::ForOp loop, const Depths &depths);
  SmallVector<Value> nextOf(OpBuilder &builder, ArrayRef<BlockArgument> counts, const Depths &depths);
  static Turn turnOf(ArrayRef<BlockArgument> counts, const Depths &depths, int64_t slots);
  /// The number of the point `at` (an induction variable) among those that the block
  /// takes; null without `dealt`.
  Value iterationOf(OpBuilder &builder, Value at, Value point);

  func::FuncOp program;
  Block &body;
  /// The loop over a persistent block's points, if there is one, and the block in
  /// which a point's loops stand.
  scf::ForOp dealt;
  Block *home = &body;
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
    return (loop && argument == loop.getInductionVar()) ||
           (dealt && argument == scf::ForOp(dealt).getInductionVar());
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

int64_t Specialization::slotsFor(scf::ForOp loop, int64_t most) {
  if (!loop)
    return 1;
  // From point to point rings run on.
  if (dealt)
    return most;
  std::optional<int64_t> trips = tripCount(loop);
  return trips ? std::clamp<int64_t>(*trips, 1, most) : most;
}

/// No descriptor reads it as its slot holds it: float32 on the right of a product,
/// with k outside.
static bool mustTurn(const Stream &stream, const ProductUse &use) {
  bool flipped = use.dot().getMultiplier() == Multiplier::flipped_warpgroup;
  bool onTheRight = use.number() != (flipped ? 1 : 0);
  int64_t inner = use.transposed ? 1 - stream.order[1] : stream.order[1];
  return stream.rounds() && onTheRight && inner != 1 - (int64_t)use.number();
}

void Specialization::collect(Block &block, scf::ForOp loop, Operation *end) {
  llvm::MapVector<Operation *, Group> byReader;
  SmallVector<Group> turned;
  for (LoadOp load : block.getOps<LoadOp>()) {
    std::optional<Stream> stream = streamOf(load);
    if (!stream || (end && !load->isBeforeInBlock(end)) ||
        !llvm::all_of(load.getOffsets(), [&](Value offset) { return isComputable(offset, loop); }))
      continue;
    if (loop && llvm::all_of(stream->uses,
                             [&](const ProductUse &use) { return mustTurn(*stream, use); })) {
      turned.emplace_back();
      turned.back().streams.push_back(*stream);
      turned.back().turned = true;
      continue;
    }
    // The product that reads it first.
    Operation *first = nullptr;
    for (const ProductUse &use : stream->uses) {
      Operation *reader = block.findAncestorOpInBlock(*use.operand->getOwner());
      if (!first || reader->isBeforeInBlock(first))
        first = reader;
    }
    byReader[first].streams.push_back(*stream);
  }
  auto add = [&](Group &group) {
    group.copied.slots = slotsFor(loop, stages);
    group.sentOn.slots = slotsFor(loop, kTurnedSlots);
    groups[loop].push_back(std::move(group));
  };
  for (auto &[reader, group] : byReader)
    add(group);
  for (Group &group : turned)
    add(group);
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

Turn Specialization::next(OpBuilder &builder, Turn turn, int64_t slots) {
  Location loc = program.getLoc();
  Value up = arith::AddIOp::create(builder, loc, turn.slot, index(builder, loc, 1));
  Value wraps = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, up,
                                      index(builder, loc, slots));
  return {arith::SelectOp::create(builder, loc, wraps, index(builder, loc, 0), up),
          arith::XOrIOp::create(builder, loc, turn.phase, wraps)};
}

Turn Specialization::first(OpBuilder &builder, Value iteration, int64_t trips, int64_t slots) {
  Location loc = program.getLoc();
  if (!iteration)
    return {index(builder, loc, 0),
            arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false))};
  Value gone = arith::MulIOp::create(builder, loc, iteration, index(builder, loc, trips));
  Value rounds = arith::DivUIOp::create(builder, loc, gone, index(builder, loc, slots));
  Value odd = arith::AndIOp::create(builder, loc, rounds, index(builder, loc, 1));
  return {arith::RemUIOp::create(builder, loc, gone, index(builder, loc, slots)),
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, odd,
                                index(builder, loc, 0))};
}

SmallVector<Value> Specialization::firstOf(OpBuilder &builder, Value iteration, scf::ForOp loop,
                                          const Depths &depths) {
  SmallVector<Value> counts;
  for (int64_t slots : depths) {
    Turn start = first(builder, iteration, tripCount(loop).value_or(0), slots);
    counts.append({start.slot, start.phase});
  }
  return counts;
}

SmallVector<Value> Specialization::nextOf(OpBuilder &builder, ArrayRef<BlockArgument> counts,
                                         const Depths &depths) {
  SmallVector<Value> advanced;
  for (auto [i, slots] : llvm::enumerate(depths)) {
    Turn following = next(builder, {counts[2 * i], counts[2 * i + 1]}, slots);
    advanced.append({following.slot, following.phase});
  }
  return advanced;
}

Turn Specialization::turnOf(ArrayRef<BlockArgument> counts, const Depths &depths, int64_t slots) {
  size_t i = llvm::find(depths, slots) - depths.begin();
  return {counts[2 * i], counts[2 * i + 1]};
}

Value Specialization::iterationOf(OpBuilder &builder, Value at, Value point) {
  Location loc = program.getLoc();
  APInt step;
  matchPattern(dealt.getStep(), m_ConstantInt(&step));
  Value gone = arith::SubIOp::create(builder, loc, at, point);
  return arith::DivUIOp::create(builder, loc, gone, index(builder, loc, step.getSExtValue()));
}

void Specialization::createRings(OpBuilder &builder) {
  Location loc = program.getLoc();
  auto open = [&](Link &link) {
    link.channel =
        ChannelOp::create(builder, loc, ChannelType::get(builder.getContext(), link.slots));
  };
  auto ring = [&](RankedTensorType type, ArrayRef<int64_t> order, int64_t slots) {
    return AllocOp::create(
        builder, loc,
        panelBufferType({type.getDimSize(order[0]), type.getDimSize(order[1])},
                        type.getElementType(), slots));
  };
  for (auto &[loop, members] : groups)
    for (Group &group : members) {
      open(group.copied);
      for (Stream &stream : group.streams)
        stream.buffer = ring(stream.load.getType(), stream.order, group.copied.slots);
      if (!group.turned)
        continue;
      open(group.sentOn);
      Stream &stream = group.streams.front();
      group.turnedBuffer = ring(stream.load.getType(), {stream.order[1], stream.order[0]},
                                group.sentOn.slots);
    }
}

void Specialization::createRole(OpBuilder &builder, int64_t roleWarps, bool single, Links links,
                                Emit emit) {
  Location loc = program.getLoc();
  auto role = RoleOp::create(builder, loc, roleWarps, single);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&role.getBody().emplaceBlock());
  IRMapping top;
  Value iteration;
  if (dealt) {
    Value point = PointOp::create(builder, loc);
    auto points = scf::ForOp::create(builder, loc, point,
                                     copyScalar(builder, top, dealt.getUpperBound()),
                                     copyScalar(builder, top, dealt.getStep()));
    top.map(dealt.getInductionVar(), points.getInductionVar());
    builder.setInsertionPointToStart(points.getBody());
    iteration = iterationOf(builder, points.getInductionVar(), point);
  }
  // In the order in which the products come.
  for (Operation &op : llvm::make_early_inc_range(*home)) {
    if (auto load = dyn_cast<LoadOp>(op); load && groups.count(nullptr))
      for (Group &group : groups[nullptr])
        if (group.streams.front().load == load && !links(group).empty())
          emit(builder, top, group,
               SmallVector<Turn>(links(group).size(), first(builder, iteration, 1, 1)));
    auto loop = dyn_cast<scf::ForOp>(op);
    auto found = loop ? groups.find(loop) : groups.end();
    if (found == groups.end())
      continue;
    Depths depths;
    for (Group &group : found->second)
      for (const Link *link : links(group))
        depths.insert(link->slots);
    if (depths.empty())
      continue;
    SmallVector<Value> counts = firstOf(builder, iteration, loop, depths);
    Value lower = copyScalar(builder, top, loop.getLowerBound()),
          upper = copyScalar(builder, top, loop.getUpperBound()),
          step = copyScalar(builder, top, loop.getStep());
    auto copies = scf::ForOp::create(builder, loc, lower, upper, step, counts);
    OpBuilder inner = OpBuilder::atBlockBegin(copies.getBody());
    IRMapping map(top);
    map.map(loop.getInductionVar(), copies.getInductionVar());
    for (Group &group : found->second) {
      SmallVector<Turn> turns;
      for (const Link *link : links(group))
        turns.push_back(turnOf(copies.getRegionIterArgs(), depths, link->slots));
      if (!turns.empty())
        emit(inner, map, group, turns);
    }
    scf::YieldOp::create(inner, loc, nextOf(inner, copies.getRegionIterArgs(), depths));
  }
}

void Specialization::copy(OpBuilder &builder, IRMapping &map, Group &group, Turn turn) {
  Location loc = program.getLoc();
  int64_t bytes = 0;
  for (const Stream &stream : group.streams)
    bytes += stream.bytes();
  AcquireOp::create(builder, loc, group.copied.channel, turn.slot, turn.phase,
                    builder.getI64IntegerAttr(bytes));
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
                       stream.buffer, turn.slot, group.copied.channel,
                       builder.getDenseI64ArrayAttr(along), builder.getDenseI64ArrayAttr(bounds),
                       stream.rounds() ? builder.getUnitAttr() : UnitAttr());
  }
}

void Specialization::turn(OpBuilder &builder, Group &group, Turn from, Turn to) {
  Stream &stream = group.streams.front();
  Location loc = stream.load.getLoc();
  // The tile as its slot has it: its neighbours in memory along dimension 1.
  auto buffer = cast<BufferType>(stream.buffer.getType());
  int64_t rows = buffer.getShape()[0], columns = buffer.getShape()[1];
  LinearLayout layout = transposingLayout({columns, rows}, kWarpgroup).transposed({1, 0});
  auto type = RankedTensorType::get({rows, columns}, buffer.getElementType(),
                                    LayoutAttr::get(builder.getContext(), layout));
  Value token = AwaitOp::create(builder, loc, TokenType::get(builder.getContext()),
                                group.copied.channel, from.slot, from.phase);
  Value tile = LocalLoadOp::create(builder, loc, type, stream.buffer, from.slot, token,
                                   builder.getDenseI64ArrayAttr({0, 1}));
  AcquireOp::create(builder, loc, group.sentOn.channel, to.slot, to.phase, IntegerAttr());
  LocalStoreOp::create(builder, loc, tile, group.turnedBuffer, to.slot,
                       builder.getDenseI64ArrayAttr({1, 0}));
  SendOp::create(builder, loc, group.sentOn.channel, to.slot);
  ReleaseOp::create(builder, loc, group.copied.channel, from.slot);
}

/// Makes the consumers wait for the group's slot, read it and, where it is used
/// again, release it.
void Specialization::consume(Group &group, Turn turn) {
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
  const Link &link = group.last();
  Value token = AwaitOp::create(builder, loc, TokenType::get(builder.getContext()), link.channel,
                                turn.slot, turn.phase);
  for (Stream &stream : group.streams) {
    Value buffer = group.turned ? group.turnedBuffer : stream.buffer;
    for (const ProductUse &use : stream.uses) {
      builder.setInsertionPoint(use.operand->getOwner());
      auto type = cast<RankedTensorType>(use.operand->get().getType());
      SmallVector<int64_t> dims;
      for (int64_t dim : stream.order)
        dims.push_back(use.transposed ? 1 - dim : dim);
      if (group.turned)
        std::swap(dims[0], dims[1]);
      Type read = type;
      bool turns = !group.turned && mustTurn(stream, use);
      if (turns) {
        // Read to be written once more, transposed.
        unsigned side = use.number();
        LinearLayout layout =
            transposingLayout({type.getDimSize(side), type.getDimSize(1 - side)}, warps);
        if (side == 1)
          layout = layout.transposed({1, 0});
        read = RankedTensorType::get(type.getShape(), type.getElementType(),
                                     LayoutAttr::get(builder.getContext(), layout));
      }
      Value tile = LocalLoadOp::create(builder, stream.load.getLoc(), read, buffer, turn.slot,
                                       token, builder.getDenseI64ArrayAttr(dims));
      if (turns)
        tile = ConvertOp::create(builder, stream.load.getLoc(), type, tile);
      use.operand->set(tile);
    }
  }
  if (isa<scf::ForOp>(block->getParentOp())) {
    builder.setInsertionPointAfter(last);
    ReleaseOp::create(builder, loc, link.channel, turn.slot);
  }
}

void Specialization::rewriteConsumers() {
  IRRewriter builder(program.getContext());
  Value iteration;
  if (dealt) {
    builder.setInsertionPointToStart(home);
    iteration = iterationOf(builder, dealt.getInductionVar(), dealt.getLowerBound());
  }
  for (auto &[op, members] : groups) {
    if (!op) {
      for (Group &group : members) {
        builder.setInsertionPoint(group.streams.front().load);
        consume(group, first(builder, {}, 1, 1));
      }
      continue;
    }
    auto loop = cast<scf::ForOp>(op);
    builder.setInsertionPoint(loop);
    Depths depths;
    for (Group &group : members)
      depths.insert(group.last().slots);
    SmallVector<Value> counts = firstOf(builder, iteration, loop, depths);
    unsigned before = loop.getNumRegionIterArgs();
    auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        builder, counts, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &inner, Location, ArrayRef<BlockArgument> arguments) {
          return nextOf(inner, arguments, depths);
        }));
    for (Group &group : members)
      consume(group, turnOf(wider.getRegionIterArgs().drop_front(before), depths, group.last().slots));
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
  for (Operation &op : *home) {
    op.walk([&](StoreOp) { end = &op; });
    if (end)
      break;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && isComputable(loop.getLowerBound(), {}) && isComputable(loop.getUpperBound(), {}) &&
        isComputable(loop.getStep(), {}))
      collect(*loop.getBody(), loop, nullptr);
  }
  // What lies outside of loops would be brought once, not once for each point.
  if (!dealt)
    collect(body, {}, end);
  if (groups.empty())
    return;
  // Behind the channels that are there: roles come first of what the program does.
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (ChannelOp channel : body.getOps<ChannelOp>())
    builder.setInsertionPointAfter(channel);
  createRings(builder);
  createRole(
      builder, kWarpgroup, /*single=*/true,
      [](const Group &group) { return SmallVector<const Link *>{&group.copied}; },
      [&](OpBuilder &at, IRMapping &map, Group &group, ArrayRef<Turn> turns) {
        copy(at, map, group, turns[0]);
      });
  bool turns = llvm::any_of(groups, [](const auto &entry) {
    return llvm::any_of(entry.second, [](const Group &group) { return group.turned; });
  });
  if (turns)
    createRole(
        builder, kWarpgroup, /*single=*/false,
        [](const Group &group) {
          return group.turned ? SmallVector<const Link *>{&group.copied, &group.sentOn}
                              : SmallVector<const Link *>();
        },
        [&](OpBuilder &at, IRMapping &, Group &group, ArrayRef<Turn> both) {
          turn(at, group, both[0], both[1]);
        });
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
