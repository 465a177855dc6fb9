//===- Channels.cpp - Roles, mbarriers and copies by tensor maps -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A channel's slot has two mbarriers (PTX ISA 8.0, 9.7.12.15). The full one counts
// the sender's warps, or the thread that announced copies and their bytes; the empty
// one counts the receiver's warps. Both sides wait for the parity of a phase: a
// receiver for its own, the sender, which is one round ahead, for the other.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

static constexpr int64_t kBarrierBytes = 8;
/// Registers of a multiprocessor; the granularity in which a thread has them, and
/// the most of them; what roles need.
static constexpr int64_t kRegisters = 65536, kRegisterUnit = 8, kMostRegisters = 240,
                         kCopierRegisters = 40, kMoverRegisters = 72;
/// Nanoseconds that a wait may sleep before it looks again.
static constexpr int64_t kWaitTicks = 10'000'000;
/// Rows of one copy by a tensor map.
static constexpr int64_t kMostBoxRows = 256;

/// Where shared memory begins that is laid out at the end.
Value ThreadEmitter::ringBase(int64_t bytes, int64_t alignment) {
  ringBytes = llvm::alignTo(ringBytes, alignment);
  auto base = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  ringBases.push_back({base, ringBytes});
  ringBytes += bytes;
  return base;
}

void ThreadEmitter::emitChannel(ChannelOp op) {
  int64_t slots = op.getResult().getType().getSlots();
  scalars.map(op.getResult(), ringBase(2 * slots * kBarrierBytes, kBarrierBytes));
  channels.push_back(op);
}

Value ThreadEmitter::barrierOf(Value channel, Value slot, bool empty) {
  int64_t slots = cast<ChannelType>(channel.getType()).getSlots();
  Value number = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), scalar(slot));
  Value skip = arith::MulIOp::create(builder, loc, number, constantI32(kBarrierBytes));
  Value offset = arith::AddIOp::create(builder, loc, scalar(channel), skip);
  Value pointer = LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), shared,
                                      ArrayRef<LLVM::GEPArg>{offset});
  if (empty)
    pointer = LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), pointer,
                                  ArrayRef<LLVM::GEPArg>{(int32_t)(slots * kBarrierBytes)});
  return pointer;
}

/// Warps that execute `op`.
static int64_t warpsOf(Operation *op, int64_t others) {
  auto role = op->getParentOfType<RoleOp>();
  return role ? (int64_t)role.getWarps() : others;
}

/// Arrivals that complete a phase of a channel's full, or empty, barriers.
static int64_t arrivals(ChannelOp channel, bool empty, int64_t others) {
  for (Operation *user : channel.getResult().getUsers())
    if (empty ? isa<ReleaseOp>(user) : isa<SendOp>(user))
      return warpsOf(user, others);
  return 1; // the thread that announces copies; or nobody, and nobody waits
}

void ThreadEmitter::initializeChannels() {
  Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, thread, constantI32(0));
  when(first, [&] {
    for (ChannelOp channel : channels)
      for (int64_t slot = 0; slot < channel.getResult().getType().getSlots(); ++slot)
        for (bool empty : {false, true})
          assembly(builder, loc, TypeRange(),
                   {barrierOf(channel.getResult(), constantIndex(slot), empty),
                    constantI32(arrivals(channel, empty, warps))},
                   "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}");
    // For the proxy of the copies, too.
    assembly(builder, loc, TypeRange(), ValueRange(), "fence.mbarrier_init.release.cluster;",
             "~{memory}");
  });
  NVVM::BarrierOp::create(builder, loc);
}

/// Registers that a thread of a role needs: one that starts copies, or one that moves
/// tiles.
static int64_t registersOf(RoleOp role) {
  return role.getSingle() ? kCopierRegisters : kMoverRegisters;
}

int64_t ThreadEmitter::startRegisters() const {
  return kRegisters / residentBlocks / (kWarpSize * (teams * warps + roleWarps)) / kRegisterUnit *
         kRegisterUnit;
}

LogicalResult ThreadEmitter::emitRoles(RoleOp first) {
  initializeChannels();
  // All threads start with as many registers; roles that need fewer hand them on.
  // Together they may not exceed what the block has: the kernel would hang. The
  // instruction is a warpgroup's.
  int64_t multiplying = teams * warps, groups = (multiplying + roleWarps) / kWarpgroup;
  int64_t start = startRegisters();
  int64_t left = start * groups;
  bool moves = warps % kWarpgroup == 0;
  program.walk([&](RoleOp role) {
    left -= registersOf(role) * role.getWarps() / kWarpgroup;
    moves &= role.getWarps() % kWarpgroup == 0 && registersOf(role) < start;
  });
  int64_t rest = std::min(kMostRegisters, left / std::max<int64_t>(1, multiplying / kWarpgroup) /
                                              kRegisterUnit * kRegisterUnit);
  moves &= rest > start;
  auto setRegisters = [&](int64_t count) {
    if (moves)
      assembly(builder, loc, TypeRange(), ValueRange(),
               std::string("setmaxnreg.") + (count < start ? "dec" : "inc") +
                   ".sync.aligned.u32 " + std::to_string(count) + ";",
               "~{memory}");
  };
  auto within = [&](int64_t from, int64_t count) {
    Value number = arith::SubIOp::create(builder, loc, thread, constantI32(from));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number, constantI32(count));
  };
  LogicalResult done = success();
  int64_t from = multiplying * kWarpSize;
  Operation *next = first;
  for (; auto role = dyn_cast<RoleOp>(next); next = next->getNextNode()) {
    int64_t count = role.getWarps() * kWarpSize;
    when(within(from, count), [&] {
      setRegisters(registersOf(role));
      when(role.getSingle() ? within(from, 1).getResult() : Value(), [&] {
        for (Operation &op : role.getBody().front()) {
          loc = op.getLoc();
          if (succeeded(done))
            done = emit(&op);
        }
      });
    });
    from += count;
  }
  auto others = scf::IfOp::create(builder, loc, within(0, multiplying * kWarpSize), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(others.thenYield());
  setRegisters(rest);
  scratchBusy = false;
  for (; succeeded(done) && !next->hasTrait<OpTrait::IsTerminator>(); next = next->getNextNode()) {
    loc = next->getLoc();
    done = emit(next);
  }
  if (succeeded(done))
    orderBlock(*others.thenBlock());
  return done;
}

static Value parity(OpBuilder &builder, Location loc, Value phase) {
  return arith::ExtUIOp::create(builder, loc, builder.getI32Type(), phase);
}

void ThreadEmitter::emitAcquire(AcquireOp op) {
  Value other = arith::XOrIOp::create(builder, loc, parity(builder, loc, scalar(op.getPhase())),
                                      constantI32(1));
  NVVM::MBarrierTryWaitParityOp::create(builder, loc,
                                        barrierOf(op.getChannel(), op.getSlot(), /*empty=*/true),
                                        other, constantI32(kWaitTicks));
  if (!op.getBytes())
    return;
  assembly(builder, loc, TypeRange(),
           {barrierOf(op.getChannel(), op.getSlot(), /*empty=*/false),
            constantI32(*op.getBytes())},
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}");
}

void ThreadEmitter::emitAwait(AwaitOp op) {
  // A token is an order in time; in code a loop carries something for it.
  scalars.map(op.getToken(), constantI32(0));
  NVVM::MBarrierTryWaitParityOp::create(builder, loc,
                                        barrierOf(op.getChannel(), op.getSlot(), /*empty=*/false),
                                        parity(builder, loc, scalar(op.getPhase())),
                                        constantI32(kWaitTicks));
}

/// One arrival of the warp, after all that its lanes did.
void ThreadEmitter::arriveOnce(Value barrier) {
  assembly(builder, loc, TypeRange(), ValueRange(), "bar.warp.sync 0xffffffff;", "~{memory}");
  Value lane = arith::AndIOp::create(builder, loc, thread, constantI32(kWarpSize - 1));
  when(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane, constantI32(0)), [&] {
    assembly(builder, loc, TypeRange(), barrier, "mbarrier.arrive.shared::cta.b64 _, [$0];",
             "r,~{memory}");
  });
}

void ThreadEmitter::fenceForProducts() {
  assembly(builder, loc, TypeRange(), ValueRange(), "fence.proxy.async.shared::cta;", "~{memory}");
}

void ThreadEmitter::emitRelease(ReleaseOp op) {
  arriveOnce(barrierOf(op.getChannel(), op.getSlot(), /*empty=*/true));
}

void ThreadEmitter::emitSend(SendOp op) {
  fenceForProducts();
  arriveOnce(barrierOf(op.getChannel(), op.getSlot(), /*empty=*/false));
}

Value ThreadEmitter::tensorMapOf(BulkLoadOp op, int64_t boxRows, SmallVectorImpl<int64_t> &dims) {
  Access access = *accessOf(op);
  MemRefType memory = access.memoryType();
  SmallVector<int64_t> strides;
  int64_t offset, bytes = access.elementBytes();
  (void)memory.getStridesAndOffset(strides, offset);
  // Innermost first: the slot's last dimension, its first, then what else has
  // more than one position.
  dims.assign({access.along[1], access.along[0]});
  for (int64_t d = memory.getRank() - 1; d >= 0; --d)
    if (!llvm::is_contained(dims, d) && memory.getDimSize(d) > 1)
      dims.push_back(d);
  SmallVector<int64_t> sizes, byteStrides, box;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    sizes.push_back(memory.getDimSize(dim));
    if (i)
      byteStrides.push_back(strides[dim] * bytes);
    box.push_back(i == 0 ? kPanelBytes / bytes : i == 1 ? boxRows : 1);
  }
  Type element = memory.getElementType();
  StringRef name = op.getTf32()       ? "tfloat32"
                   : element.isF32()  ? "float32"
                   : element.isBF16() ? "bfloat16"
                                      : "float16";
  unsigned argument = cast<BlockArgument>(access.memory).getArgNumber();
  auto map = builder.getDictionaryAttr(
      {builder.getNamedAttr("argument", builder.getI64IntegerAttr(argument)),
       builder.getNamedAttr("element", builder.getStringAttr(name)),
       builder.getNamedAttr("sizes", builder.getDenseI64ArrayAttr(sizes)),
       builder.getNamedAttr("strides", builder.getDenseI64ArrayAttr(byteStrides)),
       builder.getNamedAttr("box", builder.getDenseI64ArrayAttr(box))});
  for (auto [i, known] : llvm::enumerate(tensorMaps))
    if (known == map)
      return kernel.getArgument(program.getNumArguments() + i);
  tensorMaps.push_back(map);
  return kernel.getBody().front().addArgument(LLVM::LLVMPointerType::get(builder.getContext()), loc);
}

LogicalResult ThreadEmitter::emitBulkLoad(BulkLoadOp op) {
  Access access = *accessOf(op);
  auto type = cast<BufferType>(op.getBuffer().getType());
  if (!isa<BlockArgument>(access.memory) || !type.getPanels())
    return op.emitOpError("copies an argument of the kernel into panels, nothing else");
  SharedTile tile = slotAt(op.getBuffer(), op.getSlot());
  int64_t rows = type.getShape()[0], inner = kPanelBytes / access.elementBytes();
  int64_t boxRows = rows;
  for (int64_t parts = 2; boxRows > kMostBoxRows || rows % parts; ++parts)
    if (rows % parts == 0)
      boxRows = rows / parts;
  SmallVector<int64_t> dims;
  Value map = tensorMapOf(op, boxRows, dims);
  Value full = barrierOf(op.getChannel(), op.getSlot(), /*empty=*/false);
  auto clusterSpace =
      LLVM::LLVMPointerType::get(builder.getContext(), (unsigned)NVVM::NVVMMemorySpace::SharedCluster);
  for (int64_t panel = 0; panel < type.getShape()[1] / inner; ++panel)
    for (int64_t row = 0; row < rows; row += boxRows) {
      SmallVector<Value> coordinates;
      for (auto [i, dim] : llvm::enumerate(dims)) {
        Value at = arith::IndexCastOp::create(builder, loc, builder.getI32Type(),
                                              scalar(access.offsets[dim]));
        int64_t skip = i == 0 ? panel * inner : i == 1 ? row : 0;
        coordinates.push_back(
            skip ? arith::AddIOp::create(builder, loc, at, constantI32(skip)).getResult() : at);
      }
      Value to = sharedPointer({}, tile, 0, panel * tile.panelBytes() + row * kPanelBytes);
      to = LLVM::AddrSpaceCastOp::create(builder, loc, clusterSpace, to);
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          builder, loc, to, map, coordinates, full, /*im2colOffsets=*/ValueRange(),
          /*multicastMask=*/Value(), /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
          /*isCTAOnly=*/false, NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
    }
  return success();
}

void ThreadEmitter::declareTensorMaps() {
  if (tensorMaps.empty())
    return;
  SmallVector<DictionaryAttr> attributes;
  kernel.getAllArgAttrs(attributes);
  auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), kTensorMapBytes);
  auto parameter = builder.getDictionaryAttr(
      {builder.getNamedAttr(LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(bytes)),
       builder.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(),
                            builder.getI64IntegerAttr(kTensorMapAlignment)),
       builder.getNamedAttr(NVVM::NVVMDialect::getGridConstantAttrName(), builder.getUnitAttr())});
  attributes.append(tensorMaps.size(), parameter);
  SmallVector<Type> types(kernel.getBody().front().getArgumentTypes());
  kernel.setFunctionType(
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types));
  kernel.setAllArgAttrs(attributes);
  kernel->setAttr(kTensorMapsAttr,
                  builder.getArrayAttr(SmallVector<Attribute>(tensorMaps.begin(), tensorMaps.end())));
}
