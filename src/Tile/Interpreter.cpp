//===- Interpreter.cpp - Tile programs executed on the host ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;

namespace nova::tile {

LogicalResult Interpreter::fail(Operation *op, const Twine &why) {
  llvm::raw_string_ostream stream(message);
  stream << op->getLoc() << ": " << op->getName() << " at grid point " << point
         << ": " << why;
  return failure();
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::runBlock(Block &block,
                                    SmallVectorImpl<Held> &yielded) {
  for (Operation &op : block.without_terminator())
    if (failed(execute(&op)))
      return failure();
  Operation *end = block.getTerminator();
  if (!isa<func::ReturnOp, scf::YieldOp, YieldOp>(end))
    return fail(end, "not an operation of tile programs");
  for (Value value : end->getOperands())
    yielded.push_back(get(value));
  return success();
}

LogicalResult Interpreter::executeFor(scf::ForOp op) {
  Format format = *formatOf(op.getLowerBound().getType());
  auto bound = [&](Value value) -> __int128 {
    uint64_t bits = get(value).bits[0];
    return op.getUnsignedCmp() ? __int128(bits)
                               : __int128(format.toSigned(bits));
  };
  // A step is signed in either case; in this width nothing wraps.
  __int128 upper = bound(op.getUpperBound());
  int64_t step = format.toSigned(get(op.getStep()).bits[0]);
  if (step <= 0)
    return fail(op, "step " + Twine(step) + " is not positive");
  SmallVector<Held> carried;
  for (Value init : op.getInitArgs())
    carried.push_back(get(init));
  for (__int128 i = bound(op.getLowerBound()); i < upper; i += step) {
    set(op.getInductionVar(),
        Held(op.getInductionVar().getType(), format.wrap(uint64_t(i))));
    for (auto [argument, held] :
         llvm::zip_equal(op.getRegionIterArgs(), carried))
      set(argument, std::move(held));
    carried.clear();
    if (failed(runBlock(*op.getBody(), carried)))
      return failure();
  }
  for (auto [result, held] : llvm::zip_equal(op.getResults(), carried))
    set(result, std::move(held));
  return success();
}

LogicalResult Interpreter::executeIf(scf::IfOp op) {
  Region &region =
      getIndex(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  SmallVector<Held> yielded;
  if (!region.empty() && failed(runBlock(region.front(), yielded)))
    return failure();
  for (auto [result, held] : llvm::zip_equal(op.getResults(), yielded))
    set(result, std::move(held));
  return success();
}

//===----------------------------------------------------------------------===//
// arith and math
//===----------------------------------------------------------------------===//

static std::optional<uint64_t> bitsOf(Attribute value, Format format) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().bitcastToAPInt().getZExtValue();
  if (auto number = dyn_cast<IntegerAttr>(value))
    return format.wrap(number.getValue().getZExtValue());
  return std::nullopt;
}

LogicalResult Interpreter::executeConstant(arith::ConstantOp op) {
  Format format = *formatOf(op.getType());
  if (std::optional<uint64_t> bits = bitsOf(op.getValue(), format)) {
    set(op.getResult(), Held(op.getType(), *bits));
    return success();
  }
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!elements || !type)
    return fail(op, "neither a number nor a dense tile");
  Held held(type);
  for (auto [bits, value] :
       llvm::zip_equal(held.bits, elements.getValues<Attribute>()))
    bits = *bitsOf(value, format);
  set(op.getResult(), std::move(held));
  return success();
}

LogicalResult Interpreter::executeElements(Operation *op) {
  ElementFunction &function = functions[op];
  if (!function && !(function = elementFunction(op)))
    return fail(op, "not an operation of tile programs");

  SmallVector<const Held *> operands;
  for (Value value : op->getOperands())
    operands.push_back(&get(value));
  SmallVector<Held> results;
  for (Type type : op->getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type))
      results.push_back(Held(tile));
    else
      results.push_back(Held(type, 0));

  SmallVector<uint64_t> in(operands.size()), out(results.size());
  for (size_t i = 0; i < results[0].bits.size(); ++i) {
    for (size_t k = 0; k < in.size(); ++k) // A scalar condition holds for all.
      in[k] = operands[k]->bits[operands[k]->isTile() ? i : 0];
    if (const char *why = function(in.data(), out.data())) {
      if (!results[0].isTile())
        return fail(op, why);
      return fail(op, "element " +
                          textOf(coordinatesOf(results[0].shape(), i)) + ": " +
                          why);
    }
    for (size_t k = 0; k < out.size(); ++k)
      results[k].bits[i] = out[k];
  }
  for (auto [value, held] : llvm::zip_equal(op->getResults(), results))
    set(value, std::move(held));
  return success();
}

LogicalResult Interpreter::execute(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!isa<TokenType, BufferType, ChannelType>(type) && !formatOf(type))
      return fail(op, "no values of type " + llvm::to_string(type) +
                          " in tile programs");
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp op) { return executeFor(op); })
      .Case([&](scf::IfOp op) { return executeIf(op); })
      .Case([&](arith::ConstantOp op) { return executeConstant(op); })
      .Case([&](PointOp op) {
        set(op.getResult(), Held(op.getType(), point));
        return success();
      })
      .Case([&](MemberOp op) { return executeMember(op), success(); })
      .Case([&](SelectOp op) { return executeSelect(op); })
      .Case([&](RangeOp op) { return executeRange(op); })
      .Case([&](SplatOp op) { return executeSplat(op); })
      .Case([&](BroadcastOp op) { return executeBroadcast(op); })
      .Case([&](ReduceOp op) { return executeReduce(op); })
      .Case([&](ScanOp op) { return executeScan(op); })
      .Case([&](DotOp op) { return executeDot(op); })
      .Case([&](SettleOp op) {
        set(op.getResult(), values[op.getOperand()]);
        return success();
      })
      .Case([&](AnyOp op) { return executeAny(op); })
      .Case<ScalarOp, ConvertOp>(
          [&](Operation *op) { return executeRename(op); })
      .Case([&](LoadOp op) { return executeLoad(op); })
      .Case([&](StoreOp op) { return executeStore(op); })
      .Case([&](GatherOp op) { return executeGather(op); })
      .Case([&](AllocOp op) { return executeAlloc(op); })
      .Case([&](AsyncLoadOp op) { return executeAsyncLoad(op); })
      .Case([&](CommitOp op) { return executeCommit(op); })
      .Case([&](WaitOp op) { return executeWait(op); })
      .Case([&](LocalLoadOp op) { return executeLocalLoad(op); })
      .Case([&](RoleOp op) {
        for (Operation &inner : op.getBody().front())
          if (failed(execute(&inner)))
            return failure();
        return success();
      })
      .Case([&](ChannelOp op) { return executeChannel(op); })
      .Case([&](AcquireOp op) { return executeAcquire(op); })
      .Case([&](BulkLoadOp op) { return executeBulkLoad(op); })
      .Case([&](AwaitOp op) { return executeAwait(op); })
      .Case([&](ReleaseOp op) { return executeRelease(op); })
      .Case([&](LocalStoreOp op) { return executeLocalStore(op); })
      .Case([&](SendOp op) { return executeSend(op); })
      .Default([&](Operation *op) { return executeElements(op); });
}

//===----------------------------------------------------------------------===//
// The program as a whole
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::bind(ArrayRef<void *> buffers) {
  auto reject = [&](const Twine &why) {
    message = ("tile program '" + program.getName() + "': " + why).str();
    return failure();
  };
  if (program.isExternal() || !program.getBody().hasOneBlock())
    return reject("a body of one block expected");
  if (program.getNumResults())
    return reject("it returns values");
  if (buffers.size() != program.getNumArguments())
    return reject(Twine(program.getNumArguments()) + " buffers expected, got " +
                  Twine(buffers.size()));
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
    auto view = dyn_cast<MemRefType>(type);
    std::optional<Format> format = formatOf(type);
    Memory memory;
    int64_t offset;
    if (!view || !format || !view.hasStaticShape() ||
        failed(view.getStridesAndOffset(memory.strides, offset)) ||
        llvm::is_contained(memory.strides, ShapedType::kDynamic))
      return reject("parameter " + Twine(i) +
                    " is no memref of static shape and strides with elements "
                    "that the level has: " +
                    llvm::to_string(type));
    if (!buffers[i] && view.getNumElements())
      return reject("no buffer for parameter " + Twine(i));
    memory.base = static_cast<char *>(buffers[i]);
    memory.shape.assign(view.getShape().begin(), view.getShape().end());
    memory.format = *format;
    memories.push_back(std::move(memory));
  }
  return success();
}

LogicalResult Interpreter::runPoint(int64_t number) {
  point = number;
  values.clear();
  rings.clear();
  channels.clear();
  tokens.clear();
  started.clear();
  groups.clear();
  waits = 0;
  for (auto [i, argument] : llvm::enumerate(program.getArguments()))
    set(argument, Held(argument.getType(), i));
  SmallVector<Held> nothing;
  if (failed(runBlock(program.getBody().front(), nothing)))
    return failure();
  return checkSettled();
}

llvm::Error interpret(func::FuncOp program, ArrayRef<void *> buffers,
                      const InterpreterOptions &options) {
  Interpreter interpreter(program, options);
  auto error = [&] {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   interpreter.message);
  };
  if (failed(interpreter.bind(buffers)))
    return error();
  auto grid = program->getAttrOfType<IntegerAttr>(attr::grid);
  if (!grid)
    return llvm::createStringError("tile program '" + program.getName() +
                                   "': no attribute " + attr::grid);
  int64_t end = options.endPoint.value_or(grid.getInt());
  if (options.firstPoint < 0 || end > grid.getInt())
    return llvm::createStringError(
        "tile program '" + program.getName() + "': grid points " +
        Twine(options.firstPoint) + " to " + Twine(end - 1) +
        " are not all of a grid of " + Twine(grid.getInt()));
  for (int64_t point = options.firstPoint; point < end; ++point)
    if (failed(interpreter.runPoint(point)))
      return error();
  return llvm::Error::success();
}

} // namespace nova::tile
