//===- TileDialect.cpp - The tile dialect: types and verifiers ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::tile;

#include "nova/Tile/TileDialect.cpp.inc"
#include "nova/Tile/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "nova/Tile/TileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "nova/Tile/TileTypes.cpp.inc"

#define GET_OP_CLASSES
#include "nova/Tile/TileOps.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "nova/Tile/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "nova/Tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "nova/Tile/TileOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

LayoutAttr LayoutAttr::get(MLIRContext *context, const LinearLayout &layout) {
  return get(context, layout.core, layout.outer, layout.registers, layout.lanes,
             layout.warps);
}

LinearLayout LayoutAttr::layout() const {
  auto list = [](ArrayRef<int64_t> values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  return LinearLayout(list(getCore()), list(getOuter()), list(getRegisters()),
                      list(getLanes()), list(getWarps()));
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> core,
                                 ArrayRef<int64_t> outer,
                                 ArrayRef<int64_t> registers,
                                 ArrayRef<int64_t> lanes,
                                 ArrayRef<int64_t> warps) {
  int64_t elements = 1;
  for (int64_t extent : core) {
    if (extent < 1 || (extent & (extent - 1)))
      return emitError() << "layout: core extent " << extent
                         << " is not a power of two";
    elements *= extent;
  }
  if (outer.size() != core.size() ||
      llvm::any_of(outer, [](int64_t factor) { return factor < 1; }))
    return emitError() << "layout: " << core.size()
                       << " positive outer factors expected";
  if (lanes.size() != kLaneBits)
    return emitError() << "layout: " << kLaneBits
                       << " lane bases expected, got " << lanes.size();
  for (ArrayRef<int64_t> bases : {registers, lanes, warps})
    for (int64_t basis : bases)
      if (basis < 0 || basis >= elements)
        return emitError() << "layout: basis " << basis
                           << " is outside the core of " << elements
                           << " elements";
  LinearLayout layout(core, outer, registers, lanes, warps);
  if (!layout.isSurjective())
    return emitError() << "layout: no thread holds some of the elements";
  if (!layout.registersAreDistinct())
    return emitError() << "layout: two registers of a thread hold one element";
  return success();
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  std::vector<int64_t> own = layout().shape();
  if (shape != ArrayRef<int64_t>(own))
    return emitError() << "layout: of a tile of shape [" << own
                       << "], expected [" << shape << "]";
  return success();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t slots, ArrayRef<int64_t> shape, Type,
                                 int64_t perPhase, int64_t phases,
                                 bool panels) {
  if (slots < 1)
    return emitError() << "buffer: at least one slot expected, got " << slots;
  for (int64_t extent : shape)
    if (extent < 1)
      return emitError() << "buffer: extent " << extent
                         << " of a slot is not positive";
  if (perPhase < 1 || phases < 1 || !llvm::isPowerOf2_64(perPhase) ||
      !llvm::isPowerOf2_64(phases))
    return emitError() << "buffer: perPhase " << perPhase << " and phases "
                       << phases << " are not both powers of two";
  if (panels && (perPhase != 1 || phases != 8 || shape.size() != 2))
    return emitError() << "buffer: panels are of matrices, with perPhase 1 and "
                          "phases 8";
  return success();
}

LogicalResult ChannelType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t slots) {
  if (slots < 1)
    return emitError() << "channel: at least one slot expected, got " << slots;
  return success();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// `along` and `bounds` of an access of a tile of `type` to `memory`.
static LogicalResult verifyAccess(Operation *op, ArrayRef<int64_t> shape,
                                  Type element, Value from, size_t offsets,
                                  ArrayRef<int64_t> along,
                                  ArrayRef<int64_t> bounds) {
  auto memory = cast<MemRefType>(from.getType());
  int64_t rank = memory.getRank();
  if (!memory.hasStaticShape() && !from.getDefiningOp<SelectOp>())
    return op->emitOpError("memory of static shape expected, got ") << memory;
  if ((int64_t)offsets != rank)
    return op->emitOpError() << rank << " offsets expected, got " << offsets;
  if (along.size() != shape.size() || bounds.size() != shape.size())
    return op->emitOpError()
           << "the tile has rank " << shape.size()
           << ": as many entries of along and bounds expected";
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : along) {
    if (dim < 0 || dim >= rank || seen.test(dim))
      return op->emitOpError()
             << "along: " << dim << " is no memory dimension or repeated";
    seen.set(dim);
  }
  for (int64_t bound : bounds)
    if (bound < 0 || bound > 2)
      return op->emitOpError() << "bounds: 0, 1 or 2 expected, got " << bound;
  if (element != memory.getElementType())
    return op->emitOpError() << "element types differ: " << element << " and "
                             << memory.getElementType();
  return success();
}

LogicalResult LoadOp::verify() {
  if (getFill() && getFill().getType() != getType().getElementType())
    return emitOpError("fill is not of the element type");
  return verifyAccess(*this, getType().getShape(), getType().getElementType(),
                      getMemory(), getOffsets().size(), getAlong(), getBounds());
}

LogicalResult StoreOp::verify() {
  RankedTensorType type = tileType(getValue());
  return verifyAccess(*this, type.getShape(), type.getElementType(),
                      getMemory(), getOffsets().size(), getAlong(), getBounds());
}

LogicalResult AsyncLoadOp::verify() {
  auto buffer = cast<BufferType>(getBuffer().getType());
  return verifyAccess(*this, buffer.getShape(), buffer.getElementType(),
                      getMemory(), getOffsets().size(), getAlong(), getBounds());
}

LogicalResult BulkLoadOp::verify() {
  auto buffer = cast<BufferType>(getBuffer().getType());
  if (buffer.getSlots() != cast<ChannelType>(getChannel().getType()).getSlots())
    return emitOpError("ring and channel differ in their number of slots");
  if (getTf32() && !buffer.getElementType().isF32())
    return emitOpError("tf32 is a rounding of float32, the ring holds ")
           << buffer.getElementType();
  if (!(*this)->getParentOfType<RoleOp>())
    return emitOpError("copies through a channel are for a role of their own");
  return verifyAccess(*this, buffer.getShape(), buffer.getElementType(),
                      getMemory(), getOffsets().size(), getAlong(), getBounds());
}

LogicalResult RoleOp::verify() {
  if ((int64_t)getWarps() < 1)
    return emitOpError("at least one warp expected");
  WalkResult walked = walk([&](Operation *op) {
    if (op == getOperation() ||
        isa<scf::ForOp, scf::IfOp, scf::YieldOp, AcquireOp, BulkLoadOp, PointOp,
            AwaitOp, LocalLoadOp, LocalStoreOp, SendOp, ReleaseOp>(op))
      return WalkResult::advance();
    if (isa<arith::ArithDialect>(op->getDialect()) &&
        llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return WalkResult::advance();
    op->emitOpError("is not for a role of its own: loops, scalars and the "
                    "operations of channels are");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult MemberOp::verify() {
  ArrayRef<int64_t> starts = getStarts();
  if (starts.empty() || starts.front() != 0)
    return emitOpError("starts: 0 expected first");
  for (size_t k = 1; k < starts.size(); ++k)
    if (starts[k] <= starts[k - 1])
      return emitOpError() << "starts: " << starts[k] << " after "
                           << starts[k - 1] << ", expected ascending numbers";
  return success();
}

MemRefType SelectOp::commonType(TypeRange memories) {
  MemRefType first;
  SmallVector<int64_t> shape, strides;
  for (Type type : memories) {
    auto memory = dyn_cast<MemRefType>(type);
    SmallVector<int64_t> own;
    int64_t offset;
    if (!memory || !memory.hasStaticShape() ||
        failed(memory.getStridesAndOffset(own, offset)) || offset != 0)
      return {};
    if (!first) {
      first = memory;
      strides = own;
      shape.assign(memory.getShape().begin(), memory.getShape().end());
      continue;
    }
    if (memory.getElementType() != first.getElementType() || own != strides)
      return {};
    for (auto [extent, other] : llvm::zip_equal(shape, memory.getShape()))
      if (extent != other)
        extent = ShapedType::kDynamic;
  }
  if (!first)
    return {};
  return MemRefType::get(
      shape, first.getElementType(),
      StridedLayoutAttr::get(first.getContext(), 0, strides));
}

LogicalResult SelectOp::verify() {
  MemRefType type = commonType(getMemories().getTypes());
  if (!type)
    return emitOpError("memories of static shape, equal element types and "
                       "equal strides expected");
  if (type != getType())
    return emitOpError() << "a result of type " << type << " expected, got "
                         << getType();
  for (Value memory : getMemories()) {
    auto argument = dyn_cast<BlockArgument>(memory);
    if (!argument ||
        !isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      return emitOpError("parameters of the program expected");
  }
  return success();
}

LogicalResult RangeOp::verify() {
  if (getType().getRank() != 1 || !getType().getElementType().isIndex())
    return emitOpError("a tile of rank 1 of index expected, got ") << getType();
  return success();
}

LogicalResult SplatOp::verify() {
  if (getValue().getType() != getType().getElementType())
    return emitOpError("the value is not of the element type");
  return success();
}

LogicalResult GatherOp::verify() {
  auto memory = cast<MemRefType>(getMemory().getType());
  if (!memory.hasStaticShape())
    return emitOpError("memory of static shape expected, got ") << memory;
  if ((int64_t)getIndices().size() != memory.getRank())
    return emitOpError() << memory.getRank() << " indices expected, got "
                         << getIndices().size();
  if (getType().getElementType() != memory.getElementType())
    return emitOpError("element types differ");
  for (Value index : getIndices()) {
    if (index.getType().isIndex())
      continue;
    auto type = dyn_cast<RankedTensorType>(index.getType());
    if (!type || !type.getElementType().isIndex() ||
        type.getShape() != getType().getShape() ||
        type.getEncoding() != getType().getEncoding())
      return emitOpError(
                 "an index is neither a scalar nor a tile of index like "
                 "the result: ")
             << index.getType();
  }
  if (getMask() &&
      (tileType(getMask()).getShape() != getType().getShape() ||
       !tileType(getMask()).getElementType().isInteger(1) ||
       tileType(getMask()).getEncoding() != getType().getEncoding()))
    return emitOpError("the mask is not a tile of i1 like the result");
  return success();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = tileType(getOperand());
  if ((int64_t)getDims().size() != from.getRank())
    return emitOpError() << from.getRank() << " dims expected";
  llvm::SmallBitVector seen(getType().getRank());
  for (auto [k, dim] : llvm::enumerate(getDims())) {
    if (dim < 0 || dim >= getType().getRank() || seen.test(dim))
      return emitOpError() << "dims: " << dim
                           << " is no dimension of the result or repeated";
    seen.set(dim);
    if (from.getDimSize(k) != getType().getDimSize(dim))
      return emitOpError() << "dims: extents " << from.getDimSize(k) << " and "
                           << getType().getDimSize(dim) << " differ";
  }
  if (from.getElementType() != getType().getElementType())
    return emitOpError("element types differ");
  return success();
}

LogicalResult ReduceOp::verify() {
  if (getOperands().empty() || getNumResults() != getOperands().size())
    return emitOpError("as many results as operands expected, at least one");
  Block &body = getCombiner().front();
  if (body.getNumArguments() != 2 * getOperands().size())
    return emitOpError() << "a combiner of " << 2 * getOperands().size()
                         << " scalars expected";
  size_t count = getOperands().size();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getNumOperands() != count)
    return emitOpError() << "a combiner that yields " << count
                         << " scalars expected";
  for (size_t i = 0; i < count; ++i) {
    RankedTensorType type = tileType(getOperands()[i]);
    if (getDim() >= (uint64_t)type.getRank() ||
        type.getShape() != tileType(getOperands()[0]).getShape() ||
        type.getEncoding() != tileType(getOperands()[0]).getEncoding())
      return emitOpError("operands differ in shape or lack the dimension");
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + getDim());
    if (tileType(getResult(i)).getShape() != ArrayRef<int64_t>(shape) ||
        tileType(getResult(i)).getElementType() != type.getElementType())
      return emitOpError("a result is not the operand less its dimension");
    for (Type scalar :
         {body.getArgument(i).getType(), body.getArgument(count + i).getType(),
          yield.getOperand(i).getType()})
      if (scalar != type.getElementType())
        return emitOpError("the combiner's types are not the element types");
  }
  return success();
}

LogicalResult DotOp::verify() {
  RankedTensorType lhs = tileType(getLhs()), rhs = tileType(getRhs());
  if (lhs.getRank() != 2 || rhs.getRank() != 2 || getType().getRank() != 2 ||
      lhs.getDimSize(0) != getType().getDimSize(0) ||
      lhs.getDimSize(1) != rhs.getDimSize(0) ||
      rhs.getDimSize(1) != getType().getDimSize(1))
    return emitOpError("shapes MxK, KxN -> MxN expected, got ")
           << lhs << ", " << rhs << " -> " << getType();
  Type element = lhs.getElementType();
  bool sum64 = element.isF64();
  if (element != rhs.getElementType() || !isa<FloatType>(element) ||
      (sum64 ? !getType().getElementType().isF64()
             : !getType().getElementType().isF32()))
    return emitOpError("float operands of equal types and an f32 (f64 for f64) "
                       "accumulator expected");
  if (getInFlight())
    for (OpOperand &use : getResult().getUses()) {
      auto next = dyn_cast<DotOp>(use.getOwner());
      if (!isa<SettleOp, scf::YieldOp>(use.getOwner()) && !(next && use.get() == next.getAccumulator()))
        return emitOpError("is in flight: a tile.settle is due before its result is used");
    }
  return success();
}

LogicalResult AnyOp::verify() {
  if (!tileType(getOperand()).getElementType().isInteger(1))
    return emitOpError("a tile of i1 expected");
  return success();
}

LogicalResult ScanOp::verify() {
  if (getOperand().getType() != getType() ||
      getDim() >= (uint64_t)getType().getRank())
    return emitOpError(
        "a tile that has the dimension, and the same type again, "
        "expected");
  return success();
}

LogicalResult ScalarOp::verify() {
  RankedTensorType type = tileType(getOperand());
  if (type.getRank() != 0 || type.getElementType() != getResult().getType())
    return emitOpError("a tile of rank 0 of the result's type expected");
  return success();
}

LogicalResult ConvertOp::verify() {
  RankedTensorType from = tileType(getOperand());
  if (from.getShape() != getType().getShape() ||
      from.getElementType() != getType().getElementType())
    return emitOpError("types may differ in their layout only");
  return success();
}

/// `dims` of a slot of `buffer` and a tile of `type`.
static LogicalResult verifySlot(Operation *op, BufferType buffer,
                                RankedTensorType type, ArrayRef<int64_t> dims) {
  if (dims.size() != buffer.getShape().size() ||
      (int64_t)dims.size() != type.getRank())
    return op->emitOpError("one entry of dims for each dimension expected");
  llvm::SmallBitVector seen(type.getRank());
  for (auto [k, dim] : llvm::enumerate(dims)) {
    if (dim < 0 || dim >= type.getRank() || seen.test(dim) ||
        buffer.getShape()[k] != type.getDimSize(dim))
      return op->emitOpError("dims do not map the slot's shape to the tile's");
    seen.set(dim);
  }
  if (buffer.getElementType() != type.getElementType())
    return op->emitOpError("element types differ");
  return success();
}

LogicalResult LocalLoadOp::verify() {
  return verifySlot(*this, cast<BufferType>(getBuffer().getType()), getType(),
                    getDims());
}

LogicalResult LocalStoreOp::verify() {
  return verifySlot(*this, cast<BufferType>(getBuffer().getType()),
                    tileType(getValue()), getDims());
}

LogicalResult WaitOp::verify() {
  if ((int64_t)getPending() < 0)
    return emitOpError("pending is negative");
  return success();
}
