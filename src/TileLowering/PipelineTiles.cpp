//===- PipelineTiles.cpp - Loads ahead of the loop that needs them ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"
#include "ThreadEmitter.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace nova {
#define GEN_PASS_DEF_PIPELINETILES
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// The least that cp.async copies.
static constexpr int64_t kLeastCopyBytes = 4;

namespace {
/// A load of a loop, and the conversion through which its product reads it.
struct Stream {
  LoadOp load;
  ConvertOp convert;
  SmallVector<int64_t> order; ///< Slot dimension -> dimension of the load's tile.
  SmallVector<int64_t> dims;  ///< Slot dimension -> dimension of the product's operand.
  Value buffer;
};
} // namespace

/// The scalar operations of the loop's body that `values` need; failure if they
/// need anything else of the body.
static LogicalResult collectScalars(scf::ForOp loop, ValueRange values,
                                    llvm::SetVector<Operation *> &found) {
  for (Value value : values) {
    if (value == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(value))
      continue;
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || !isa<arith::ArithDialect>(op->getDialect()) ||
        isa<RankedTensorType>(value.getType()))
      return failure();
    if (failed(collectScalars(loop, op->getOperands(), found)))
      return failure();
    found.insert(op);
  }
  return success();
}

/// The one conversion that reads the load, perhaps through a transpose.
static std::optional<Stream> streamOf(scf::ForOp loop, LoadOp load, int64_t warps) {
  if (load.getFill() && !matchPattern(load.getFill(), m_AnyZeroFloat()) &&
      !matchPattern(load.getFill(), m_Zero()))
    return std::nullopt;
  Stream stream{load, {}, {}, {}, {}};
  // In the slot neighbours are what they are in memory: the dimension with the
  // smallest stride comes last, whatever the tile calls it.
  Access access = *accessOf(load);
  std::vector<unsigned> order = access.order();
  stream.order.assign(order.rbegin(), order.rend());
  stream.dims = stream.order;
  Value value = load;
  if (!value.hasOneUse())
    return std::nullopt;
  if (auto transpose = dyn_cast<BroadcastOp>(*value.user_begin())) {
    if (transpose.getType().getRank() != load.getType().getRank() || !transpose->hasOneUse())
      return std::nullopt;
    for (int64_t &dim : stream.dims)
      dim = transpose.getDims()[dim];
    value = transpose;
  }
  stream.convert = dyn_cast<ConvertOp>(*value.user_begin());
  if (!stream.convert || !isReadByProductOnly(stream.convert) ||
      stream.convert->getBlock() != loop.getBody())
    return std::nullopt;
  // Warpgroups read panels, which threads or tensor maps write.
  if (dotKind(cast<DotOp>(*stream.convert->user_begin())) == DotKind::Wgmma)
    return std::nullopt;
  LinearLayout layout = accessLayout(access, warps);
  int64_t vector = std::min(layout.contiguousRegisters(order[0]), access.vectorLength(order[0]));
  if (access.strides()[order[0]] != 1 || vector * access.elementBytes() < kLeastCopyBytes)
    return std::nullopt;
  llvm::SetVector<Operation *> scalars;
  if (failed(collectScalars(loop, load.getOffsets(), scalars)))
    return std::nullopt;
  return stream;
}

static void pipeline(scf::ForOp loop, int64_t stages, int64_t warps) {
  bool stores = false;
  loop.walk([&](StoreOp) { stores = true; });
  if (stores)
    return;
  SmallVector<Stream> streams;
  for (LoadOp load : loop.getBody()->getOps<LoadOp>())
    if (std::optional<Stream> stream = streamOf(loop, load, warps))
      streams.push_back(*stream);
  if (streams.empty())
    return;

  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  auto reordered = [](ArrayRef<int64_t> values, ArrayRef<int64_t> order) {
    SmallVector<int64_t> result;
    for (int64_t d : order)
      result.push_back(values[d]);
    return result;
  };
  for (Stream &stream : streams)
    stream.buffer = AllocOp::create(
        builder, loc,
        bufferTypeFor(reordered(stream.load.getType().getShape(), stream.order),
                      stream.load.getType().getElementType(), stages));
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  // Starts the copies of the iteration at `iv` into `slot`, as one group.
  auto start = [&](Value iv, Value slot) {
    Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, iv,
                                         loop.getUpperBound());
    IRMapping map;
    map.map(loop.getInductionVar(), iv);
    llvm::SetVector<Operation *> scalars;
    for (Stream &stream : streams)
      (void)collectScalars(loop, stream.load.getOffsets(), scalars);
    for (Operation *op : scalars)
      builder.clone(*op, map);
    SmallVector<Value> tokens;
    for (Stream &stream : streams) {
      SmallVector<Value> offsets;
      for (Value offset : stream.load.getOffsets())
        offsets.push_back(map.lookupOrDefault(offset));
      tokens.push_back(AsyncLoadOp::create(
          builder, loc, TokenType::get(builder.getContext()), stream.load.getMemory(), offsets,
          stream.buffer, slot, inside,
          builder.getDenseI64ArrayAttr(reordered(stream.load.getAlong(), stream.order)),
          builder.getDenseI64ArrayAttr(reordered(stream.load.getBounds(), stream.order))));
    }
    CommitOp::create(builder, loc, TokenType::get(builder.getContext()), tokens);
  };
  for (int64_t s = 0; s + 1 < stages; ++s) {
    Value iv = arith::AddIOp::create(
        builder, loc, loop.getLowerBound(),
        arith::MulIOp::create(builder, loc, loop.getStep(), index(s)));
    start(iv, index(s));
  }

  // The loop counts slots: the one it reads, and the one it fills.
  Value first = index(0), last = index(stages - 1);
  auto wider = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      *std::make_unique<IRRewriter>(builder), ValueRange{first, last},
      /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &inner, Location at, ArrayRef<BlockArgument> slots) {
        SmallVector<Value> next;
        for (BlockArgument slot : slots) {
          Value one = arith::ConstantIndexOp::create(inner, at, 1);
          Value zero = arith::ConstantIndexOp::create(inner, at, 0);
          Value count = arith::ConstantIndexOp::create(inner, at, stages);
          Value up = arith::AddIOp::create(inner, at, slot, one);
          Value wraps = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::eq, up, count);
          next.push_back(arith::SelectOp::create(inner, at, wraps, zero, up));
        }
        return next;
      }));
  loop = wider;
  // The streams' operations moved with the body; the loop is a new one.
  Value read = loop.getRegionIterArgs()[loop.getNumRegionIterArgs() - 2];
  Value fill = loop.getRegionIterArgs().back();
  builder.setInsertionPointToStart(loop.getBody());
  auto arrived = WaitOp::create(builder, loc, TokenType::get(builder.getContext()),
                                (uint64_t)(stages - 2));
  Value ahead = arith::AddIOp::create(
      builder, loc, loop.getInductionVar(),
      arith::MulIOp::create(builder, loc, loop.getStep(), index(stages - 1)));
  start(ahead, fill);
  for (Stream &stream : streams) {
    builder.setInsertionPoint(stream.convert);
    auto local = LocalLoadOp::create(builder, stream.load.getLoc(), stream.convert.getType(),
                                     stream.buffer, read, arrived,
                                     builder.getDenseI64ArrayAttr(stream.dims));
    Operation *between = stream.convert.getOperand().getDefiningOp();
    stream.convert.replaceAllUsesWith(local.getResult());
    stream.convert.erase();
    if (between != stream.load)
      between->erase();
    stream.load.erase();
  }
  // Whoever uses the rings again may do so: all have read.
  builder.setInsertionPointAfter(loop);
  WaitOp::create(builder, loc, TokenType::get(builder.getContext()), (uint64_t)0);
}

namespace {
struct PipelineTiles : ::nova::impl::PipelineTilesBase<PipelineTiles> {
  void runOnOperation() override {
    func::FuncOp program = getOperation();
    auto warps = program->getAttrOfType<IntegerAttr>(tile::attr::warps);
    auto stages = program->getAttrOfType<IntegerAttr>(tile::attr::stages);
    if (!warps || !stages || stages.getInt() < 2)
      return;
    SmallVector<scf::ForOp> loops;
    program.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      pipeline(loop, stages.getInt(), warps.getInt());
  }
};
} // namespace
