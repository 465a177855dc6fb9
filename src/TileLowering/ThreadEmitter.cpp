//===- ThreadEmitter.cpp - Values, elementwise operations, control flow ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Addresses in shared memory; 16 bytes for the widest access.
static constexpr StringLiteral kSharedSymbol = "nova_shared";

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }
static Type elementOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getElementType(); }

/// Bytes from a memref's first element to the end of its last one; 0: none, or no memref.
static int64_t spanBytes(Value memory) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  if (!type || llvm::is_contained(type.getShape(), 0))
    return 0;
  SmallVector<int64_t> strides;
  int64_t offset, elements = 1;
  (void)type.getStridesAndOffset(strides, offset);
  for (auto [extent, stride] : llvm::zip_equal(type.getShape(), strides))
    elements += (extent - 1) * stride;
  return elements * std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
}

ThreadEmitter::ThreadEmitter(func::FuncOp program, int64_t warps)
    : program(program), warps(warps), builder(program.getContext()), entry(program.getContext()),
      loc(program.getLoc()) {}

FailureOr<LLVM::LLVMFuncOp> ThreadEmitter::run() {
  MLIRContext *context = program.getContext();
  auto module = program->getParentOfType<ModuleOp>();
  builder.setInsertionPoint(program);
  auto pointer = LLVM::LLVMPointerType::get(context, (unsigned)NVVM::NVVMMemorySpace::Global);
  auto genericPointer = LLVM::LLVMPointerType::get(context);
  auto sharedPointer = LLVM::LLVMPointerType::get(context, (unsigned)NVVM::NVVMMemorySpace::Shared);
  // One table for all, if one is chosen by a number.
  bool isTable = !program.getOps<MemberOp>().empty() || !program.getOps<SelectOp>().empty();
  SmallVector<Type> parameters(isTable ? 1 : program.getNumArguments(), isTable ? genericPointer : pointer);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), parameters);
  std::string name = program.getName().str();
  program.setName(name + ".tiles");
  if (!module.lookupSymbol(kSharedSymbol)) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(top, loc, LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
                           /*isConstant=*/false, LLVM::Linkage::External, kSharedSymbol,
                           Attribute(), /*alignment=*/1024,
                           /*addrSpace=*/(unsigned)NVVM::NVVMMemorySpace::Shared);
  }
  kernel = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  if (auto resident = program->getAttrOfType<IntegerAttr>(tile::attr::residentBlocks))
    residentBlocks = resident.getInt();
  if (auto several = program->getAttrOfType<IntegerAttr>(tile::attr::teams))
    program.walk([&](scf::ForOp loop) {
      if (loop->hasAttr(tile::attr::dealt))
        teams = several.getInt();
    });
  program.walk([&](RoleOp role) { roleWarps += role.getWarps(); });
  int64_t threads = (teams * warps + roleWarps) * kWarpSize;
  kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  builder.getDenseI32ArrayAttr({(int32_t)threads, 1, 1}));
  if (roleWarps)
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(residentBlocks));
  for (unsigned i = 0; i < parameters.size() && !isTable; ++i) {
    auto alignment = program.getArgAttrOfType<IntegerAttr>(i, tile::attr::alignment);
    // LLVM joins loads up to the alignment that it knows, the last ones with what lies
    // behind them: it is told no more than divides the memory.
    int64_t known = std::gcd(alignment ? alignment.getInt() : 16, spanBytes(program.getArgument(i)));
    kernel.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(known));
  }
  Block *block = kernel.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  thread = NVVM::ThreadIdXOp::create(builder, loc, builder.getI32Type());
  shared = LLVM::AddressOfOp::create(builder, loc, sharedPointer, kSharedSymbol);
  // What depends on the thread alone is computed before everything else.
  auto marker = LLVM::ReturnOp::create(builder, loc, ValueRange());
  entry.setInsertionPoint(marker);
  builder.setInsertionPointToEnd(block);
  auto anchor = LLVM::ReturnOp::create(builder, loc, ValueRange());
  builder.setInsertionPoint(anchor);
  if (isTable)
    openTable();
  else
    for (auto [from, to] : llvm::zip(program.getArguments(), block->getArguments()))
      scalars.map(from, to);
  LogicalResult done = emitBlock(program.getBody().front());
  marker.erase();
  if (!roleWarps)
    orderBlock(*block);
  declareTensorMaps();
  scratchBytes = llvm::alignTo(scratchBytes, kRingAlignment);
  for (arith::ConstantOp size : scratchSizes)
    size.setValueAttr(builder.getI32IntegerAttr(scratchBytes));
  for (auto [base, offset] : ringBases)
    base.setValueAttr(builder.getI32IntegerAttr(teams * scratchBytes + offset));
  kernel->setAttr(kSharedBytesAttr, builder.getI64IntegerAttr(teams * scratchBytes + ringBytes));
  if (failed(done)) {
    kernel.erase();
    return failure();
  }
  return kernel;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

std::map<LinearLayout::Coordinates, int64_t>
nova::tile::registersByCoordinates(const LinearLayout &layout) {
  std::map<LinearLayout::Coordinates, int64_t> where;
  for (int64_t r = 0; r < layout.registerCount(); ++r)
    where.insert({layout.registerCoordinates(r), r});
  return where;
}

LLVM::InlineAsmOp nova::tile::assembly(OpBuilder &builder, Location loc, TypeRange results,
                                       ValueRange operands, StringRef text,
                                       StringRef constraints, bool sideEffects) {
  return LLVM::InlineAsmOp::create(builder, loc, results, operands, text, constraints, sideEffects,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), ArrayAttr());
}

LinearLayout ThreadEmitter::layoutOf(Value tile) {
  return cast<LayoutAttr>(cast<RankedTensorType>(tile.getType()).getEncoding()).layout();
}

Registers &ThreadEmitter::registers(Value tile) {
  auto found = tiles.find(tile);
  assert(found != tiles.end() && "a tile is used before it was emitted");
  return found->second;
}

Value ThreadEmitter::constantI32(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
}
Value ThreadEmitter::constantIndex(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value ThreadEmitter::linearOfThread(const std::vector<int64_t> &images) {
  auto [found, isNew] = linear.insert({images, Value()});
  if (!isNew)
    return found->second;
  // Bits that move by the same distance move together: one mask and one shift.
  std::map<int, int64_t> masks; // distance -> bits of the thread's number
  for (size_t bit = 0; bit < images.size(); ++bit)
    for (int to = 0; to < 32; ++to)
      if (images[bit] >> to & 1)
        masks[to - (int)bit] |= int64_t{1} << bit;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(entry, loc, entry.getI32IntegerAttr(value));
  };
  Value result;
  for (auto [distance, mask] : masks) {
    Value part = thread;
    part = arith::AndIOp::create(entry, loc, part, constant(mask));
    if (distance > 0)
      part = arith::ShLIOp::create(entry, loc, part, constant(distance));
    if (distance < 0)
      part = arith::ShRUIOp::create(entry, loc, part, constant(-distance));
    result = result ? arith::XOrIOp::create(entry, loc, result, part).getResult() : part;
  }
  return found->second = result ? result : constant(0);
}

Value ThreadEmitter::threadCoordinate(const LinearLayout &layout, unsigned dim) {
  std::vector<int64_t> images;
  for (const auto *bases : {&layout.lanes, &layout.warps})
    for (int64_t basis : *bases)
      images.push_back(layout.split(basis)[dim]);
  return linearOfThread(images);
}

Value ThreadEmitter::isOwner(const LinearLayout &layout) {
  int64_t mask = layout.freeLaneBits() | layout.freeWarpBits() << kLaneBits;
  if (!mask)
    return {};
  Value bits = arith::AndIOp::create(builder, loc, thread, constantI32(mask));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, bits, constantI32(0));
}

void ThreadEmitter::when(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  body();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult ThreadEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    loc = op.getLoc();
    if (auto role = dyn_cast<RoleOp>(op))
      return emitRoles(role); // and everything behind it
    if (failed(emit(&op)))
      return failure();
  }
  return success();
}

LogicalResult ThreadEmitter::emit(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isTile(constant))
    return emitConstant(constant);
  if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return emitElementwise(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](PointOp point) {
        Value block = NVVM::BlockIdXOp::create(builder, loc, builder.getI32Type());
        scalars.map(point.getResult(),
                    arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), block)
                        .getResult());
        return success();
      })
      .Case([&](MemberOp member) { return emitMember(member), success(); })
      .Case([&](SelectOp select) { return emitSelect(select), success(); })
      .Case([&](RangeOp range) { return emitRange(range), success(); })
      .Case([&](SplatOp splat) {
        tiles[splat] = Registers(layoutOf(splat).registerCount(), scalar(splat.getValue()));
        return success();
      })
      .Case([&](BroadcastOp broadcast) { return emitBroadcast(broadcast), success(); })
      .Case([&](ScalarOp op) {
        scalars.map(op.getResult(), registers(op.getOperand())[0]);
        return success();
      })
      .Case([&](AnyOp any) { return emitAny(any), success(); })
      .Case([&](LoadOp load) { return emitLoad(load); })
      .Case([&](StoreOp store) { return emitStore(store); })
      .Case([&](GatherOp gather) { return emitGather(gather); })
      .Case([&](ReduceOp reduce) { return emitReduce(reduce); })
      .Case([&](ScanOp scan) { return emitScan(scan), success(); })
      .Case([&](DotOp dot) { return emitDot(dot); })
      .Case([&](SettleOp settle) { return emitSettle(settle), success(); })
      .Case([&](ConvertOp convert) { return emitConvert(convert), success(); })
      .Case([&](AllocOp alloc) { return emitAlloc(alloc), success(); })
      .Case([&](AsyncLoadOp load) { return emitAsyncLoad(load); })
      .Case([&](CommitOp) { return NVVM::CpAsyncCommitGroupOp::create(builder, loc), success(); })
      .Case([&](WaitOp wait) { return emitWait(wait), success(); })
      .Case([&](LocalLoadOp load) { return emitLocalLoad(load), success(); })
      .Case([&](ChannelOp channel) { return emitChannel(channel), success(); })
      .Case([&](AcquireOp acquire) { return emitAcquire(acquire), success(); })
      .Case([&](BulkLoadOp load) { return emitBulkLoad(load); })
      .Case([&](AwaitOp await) { return emitAwait(await), success(); })
      .Case([&](ReleaseOp release) { return emitRelease(release), success(); })
      .Case([&](LocalStoreOp store) { return emitLocalStore(store), success(); })
      .Case([&](SendOp send) { return emitSend(send), success(); })
      .Case([&](scf::ForOp loop) { return emitFor(loop); })
      .Case([&](scf::IfOp branch) { return emitIf(branch); })
      .Default([&](Operation *op) {
        return op->emitOpError("is not known to the lowering of tile programs");
      });
}

LogicalResult ThreadEmitter::emitConstant(arith::ConstantOp op) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || !dense.isSplat())
    return op.emitOpError("a tile constant with one value expected");
  Value value = arith::ConstantOp::create(builder, loc,
                                          cast<TypedAttr>(dense.getSplatValue<Attribute>()));
  tiles[op] = Registers(layoutOf(op).registerCount(), value);
  return success();
}

LogicalResult ThreadEmitter::emitElementwise(Operation *op) {
  if (op->getNumRegions())
    return op->emitOpError("has a region: not an elementwise operation");
  if (llvm::none_of(op->getResults(), isTile)) {
    builder.clone(*op, scalars);
    return success();
  }
  int64_t count = layoutOf(op->getResult(0)).registerCount();
  SmallVector<Registers> results(op->getNumResults());
  SmallVector<Type> types;
  for (Value result : op->getResults())
    types.push_back(elementOf(result));
  for (int64_t r = 0; r < count; ++r) {
    OperationState state(loc, op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(isTile(operand) ? registers(operand)[r] : scalar(operand));
    state.addTypes(types);
    state.addAttributes(op->getAttrs());
    Operation *scalarOp = builder.create(state);
    for (auto [i, result] : llvm::enumerate(scalarOp->getResults()))
      results[i].push_back(result);
  }
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    tiles[result] = std::move(results[i]);
  return success();
}

void ThreadEmitter::emitRange(RangeOp op) {
  LinearLayout layout = layoutOf(op);
  Value own = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                           threadCoordinate(layout, 0));
  Value start = arith::AddIOp::create(builder, loc, scalar(op.getStart()), own);
  Registers values;
  for (int64_t r = 0; r < layout.registerCount(); ++r) {
    int64_t offset = layout.registerCoordinates(r)[0];
    values.push_back(
        offset ? arith::AddIOp::create(builder, loc, start, constantIndex(offset)).getResult()
               : start);
  }
  tiles[op] = std::move(values);
}

void ThreadEmitter::emitBroadcast(BroadcastOp op) {
  // The operand is laid out as the result's slice: the register that holds an
  // element is the one with the same coordinates along the shared dimensions.
  LinearLayout from = layoutOf(op.getOperand()), to = layoutOf(op);
  auto where = registersByCoordinates(from);
  Registers values, operand = registers(op.getOperand());
  for (int64_t r = 0; r < to.registerCount(); ++r) {
    LinearLayout::Coordinates all = to.registerCoordinates(r), own;
    for (int64_t dim : op.getDims())
      own.push_back(all[dim]);
    values.push_back(operand[where.at(own)]);
  }
  tiles[op] = std::move(values);
}

/// `any(range(start) == splat(x))`, both ways round: start and x.
static std::optional<std::pair<Value, Value>> rangeHolds(AnyOp op) {
  auto compare = op.getOperand().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (auto [a, b] : {std::pair(compare.getLhs(), compare.getRhs()),
                      std::pair(compare.getRhs(), compare.getLhs())})
    if (auto range = a.getDefiningOp<RangeOp>())
      if (auto splat = b.getDefiningOp<SplatOp>())
        return std::pair(range.getStart(), splat.getValue());
  return std::nullopt;
}

void ThreadEmitter::emitAny(AnyOp op) {
  if (auto found = rangeHolds(op)) {
    // The same in all threads: nobody has to be asked.
    Value distance =
        arith::SubIOp::create(builder, loc, scalar(found->second), scalar(found->first));
    int64_t extent = cast<RankedTensorType>(op.getOperand().getType()).getDimSize(0);
    scalars.map(op.getResult(),
                arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, distance,
                                      constantIndex(extent))
                    .getResult());
    return;
  }
  Value any;
  for (Value value : registers(op.getOperand()))
    any = any ? arith::OrIOp::create(builder, loc, any, value).getResult() : value;
  Value word = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), any);
  // A barrier with a reduction: also orders the block, as a bonus.
  auto joined = assembly(
      builder, loc, builder.getI32Type(), {word, roleWarps ? barrierNumber() : constantI32(0)},
      "{ .reg .pred p, q; setp.ne.u32 p, $1, 0; barrier.cta.red.or.pred.aligned q, $2, " +
          std::to_string(warps * kWarpSize) + ", p; selp.u32 $0, 1, 0, q; }",
      "=r,r,r");
  scalars.map(op.getResult(),
              arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, joined.getResult(0),
                                    constantI32(0))
                  .getResult());
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void ThreadEmitter::orderBlock(Block &block) {
  orderStores(block, [&](Operation *load) {
    Value from = load->getOperand(0);
    for (Value operand : load->getOperands())
      if (isa<LLVM::LLVMPointerType>(operand.getType()))
        from = operand;
    while (auto step = from.getDefiningOp<LLVM::GEPOp>())
      from = step.getBase();
    auto argument = dyn_cast<BlockArgument>(from);
    return !argument || argument.getOwner()->getParentOp() != kernel.getOperation() ||
           argument.getArgNumber() >= program.getNumArguments() ||
           program.getArgAttr(argument.getArgNumber(), tile::attr::overwritten);
  });
}

SmallVector<Value> ThreadEmitter::flatten(ValueRange values) {
  SmallVector<Value> flat;
  for (Value value : values) {
    if (isTile(value))
      llvm::append_range(flat, registers(value));
    else
      flat.push_back(scalar(value));
  }
  return flat;
}

void ThreadEmitter::adopt(ValueRange values, ValueRange flat) {
  for (Value value : values) {
    size_t count = isTile(value) ? layoutOf(value).registerCount() : 1;
    if (isTile(value))
      tiles[value] = Registers(flat.take_front(count));
    else
      scalars.map(value, flat.front());
    flat = flat.drop_front(count);
  }
}

LogicalResult ThreadEmitter::emitBody(Block &source, Block &block) {
  OpBuilder::InsertionGuard guard(builder);
  if (!block.empty() && block.mightHaveTerminator())
    block.getTerminator()->erase();
  builder.setInsertionPointToEnd(&block);
  scratchBusy = true; // what the last iteration, or what came before, left
  if (failed(emitBlock(source)))
    return failure();
  scf::YieldOp::create(builder, loc, flatten(source.getTerminator()->getOperands()));
  return success();
}

LogicalResult ThreadEmitter::emitFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  Value from = scalar(loop.getLowerBound()), step = scalar(loop.getStep());
  bool dealt = loop->hasAttr(tile::attr::dealt);
  if (dealt && teams > 1) {
    Value own = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), team());
    Value skipped = arith::MulIOp::create(builder, loc, own, step);
    from = arith::AddIOp::create(builder, loc, from, skipped);
    step = arith::MulIOp::create(builder, loc, step, constantIndex(teams));
  }
  auto copy = scf::ForOp::create(builder, loc, from, scalar(loop.getUpperBound()), step,
                                 flatten(loop.getInitArgs()));
  scalars.map(loop.getInductionVar(), copy.getInductionVar());
  adopt(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  if (failed(emitBody(*loop.getBody(), *copy.getBody())))
    return failure();
  if (dealt)
    orderBlock(*copy.getBody());
  scratchBusy = true;
  adopt(loop.getResults(), copy.getResults());
  return success();
}

LogicalResult ThreadEmitter::emitIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  SmallVector<Type> types;
  for (Value result : branch.getResults()) {
    if (isTile(result))
      types.append(layoutOf(result).registerCount(), elementOf(result));
    else if (isa<TokenType>(result.getType()))
      types.push_back(builder.getI32Type()); // see emitAwait
    else
      types.push_back(result.getType());
  }
  auto copy = scf::IfOp::create(builder, loc, types, scalar(branch.getCondition()),
                                /*withElseRegion=*/!branch.getElseRegion().empty());
  for (auto [from, to] : {std::pair(&branch.getThenRegion(), &copy.getThenRegion()),
                          std::pair(&branch.getElseRegion(), &copy.getElseRegion())})
    if (!from->empty() && failed(emitBody(from->front(), to->front())))
      return failure();
  scratchBusy = true;
  adopt(branch.getResults(), copy.getResults());
  return success();
}
