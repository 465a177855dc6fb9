//===- LowerKernelsToLinalg.cpp - Kernels as linalg on tensors
//-------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalg.h"

#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace nova {
#define GEN_PASS_DEF_LOWERKERNELSTOLINALG
#include "nova/Transforms/Passes.h.inc"

namespace lowering {

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

AffineMap KernelLowering::mapTo(unsigned dims, ArrayRef<int64_t> positions) {
  SmallVector<AffineExpr> results;
  for (int64_t p : positions)
    results.push_back(p < 0 ? getAffineConstantExpr(0) : getAffineDimExpr(p));
  return AffineMap::get(dims, 0, results, getContext());
}

/// Positions of the dimensions longer than 1.
static SmallVector<int64_t> longDims(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims;
  for (auto [i, size] : llvm::enumerate(shape))
    if (size != 1)
      dims.push_back(i);
  return dims;
}

static bool changesUnitDimsOnly(ReshapeOp op) {
  auto lengths = [](Value v) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(v.getType()).getShape();
    return llvm::map_to_vector(longDims(shape),
                               [&](int64_t d) { return shape[d]; });
  };
  return lengths(op.getInput()) == lengths(op.getResult());
}

/// Which dimension of the result each dimension of the input of a view runs
/// along (-1: none, it is read at 0). Nothing if `op` is no view.
static std::optional<SmallVector<int64_t>> viewedDims(Operation *op) {
  auto rankOf = [](Value v) {
    return cast<RankedTensorType>(v.getType()).getRank();
  };
  if (!isa<TransposeOp, BroadcastOp, ReshapeOp, CopyOp>(op))
    return std::nullopt;
  Value input = op->getOperand(0), result = op->getResult(0);
  SmallVector<int64_t> dims(rankOf(input), -1);
  ArrayRef<int64_t> from = cast<RankedTensorType>(input.getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(result.getType()).getShape();
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (auto [i, p] : llvm::enumerate(transpose.getPermutation()))
      dims[p] = i;
  } else if (isa<BroadcastOp>(op)) {
    size_t lead = to.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] == to[lead + i])
        dims[i] = lead + i;
  } else if (isa<ReshapeOp>(op)) {
    for (auto [d, r] : llvm::zip_equal(longDims(from), longDims(to)))
      dims[d] = r;
  } else {
    std::iota(dims.begin(), dims.end(), 0);
  }
  return dims;
}

Read KernelLowering::read(Value value, AffineMap map) {
  while (Operation *def = value.getDefiningOp()) {
    auto dims = viewedDims(def);
    if (!dims)
      break;
    map = mapTo(typeOf(value).getRank(), *dims).compose(map);
    value = def->getOperand(0);
  }
  return {value, map};
}

Read KernelLowering::readWhole(Value value) {
  return read(value, getMultiDimIdentityMap(typeOf(value).getRank()));
}

Read KernelLowering::readBroadcast(Value value, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = typeOf(value).getShape();
  SmallVector<int64_t> dims;
  for (auto [i, size] : llvm::enumerate(from)) {
    int64_t d = shape.size() - from.size() + i;
    dims.push_back(size == shape[d] ? d : -1);
  }
  return read(value, mapTo(shape.size(), dims));
}

Value KernelLowering::materialise(Value value) {
  Read source = readWhole(value);
  RankedTensorType type = typeOf(value);
  if (auto constant = source.value.getDefiningOp<ConstantOp>()) {
    auto splat = cast<DenseElementsAttr>(constant.getValue());
    if (splat.empty())
      return empty(type);
    return arith::ConstantOp::create(
        *this, DenseElementsAttr::get(type, splat.getSplatValue<Attribute>()));
  }
  if (source.value.getType() == type && source.map.isIdentity())
    return source.value;
  return pointwise(type, source, [](auto &, ValueRange in) { return in[0]; });
}

Value KernelLowering::empty(RankedTensorType type) {
  return tensor::EmptyOp::create(*this, type.getShape(), type.getElementType());
}

Value KernelLowering::filled(RankedTensorType type, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(*this, value);
  return linalg::FillOp::create(*this, scalar, empty(type)).getResult(0);
}

linalg::GenericOp KernelLowering::generic(ArrayRef<Read> ins,
                                          ArrayRef<Read> outs,
                                          Iterators iterators, Body body) {
  Values inputs, inits;
  SmallVector<AffineMap> maps;
  SmallVector<Type> types;
  SmallVector<Attribute> scalars(ins.size());
  for (auto [in, scalar] : llvm::zip_equal(ins, scalars)) {
    if (auto constant = in.value.getDefiningOp<ConstantOp>()) {
      auto splat = cast<DenseElementsAttr>(constant.getValue());
      scalar = splat.empty() ? Attribute(getZeroAttr(splat.getElementType()))
                             : splat.getSplatValue<Attribute>();
      continue;
    }
    inputs.push_back(in.value);
    maps.push_back(in.map);
  }
  for (const Read &out : outs) {
    inits.push_back(out.value);
    types.push_back(out.value.getType());
    maps.push_back(out.map);
  }
  return linalg::GenericOp::create(
      *this, types, inputs, inits, maps, iterators,
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        ImplicitLocOpBuilder b(loc, builder);
        Values operands;
        for (Attribute scalar : scalars) {
          if (scalar) {
            operands.push_back(
                arith::ConstantOp::create(b, cast<TypedAttr>(scalar)));
            continue;
          }
          operands.push_back(args.front());
          args = args.drop_front();
        }
        linalg::YieldOp::create(b, body(b, operands, args));
      });
}

Value KernelLowering::pointwise(RankedTensorType type, ArrayRef<Read> ins,
                                ScalarBody body) {
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  Read out{empty(type), getMultiDimIdentityMap(type.getRank())};
  return generic(ins, out, iterators,
                 [&](ImplicitLocOpBuilder &b, ValueRange in, ValueRange) {
                   return Values{body(b, in)};
                 })
      .getResult(0);
}

Value KernelLowering::rounded(Value value, Type element) {
  RankedTensorType type = typeOf(value);
  if (type.getElementType() == element)
    return value;
  return pointwise(
      type.clone(element), readWhole(value),
      [&](auto &b, ValueRange in) { return convertFloat(b, in[0], element); });
}

//===----------------------------------------------------------------------===//
// Elementwise operations and sources
//===----------------------------------------------------------------------===//

Values KernelLowering::lowerPointwise(Operation *op) {
  RankedTensorType type = typeOf(op->getResult(0));
  SmallVector<Read> ins;
  for (Value operand : op->getOperands())
    ins.push_back(readBroadcast(operand, type.getShape()));
  return {pointwise(
      type, ins, [&](auto &b, ValueRange in) { return scalarOf(b, op, in); })};
}

Values KernelLowering::lower(IotaOp op) {
  RankedTensorType type = typeOf(op.getResult());
  return {
      pointwise(type, {}, [&](ImplicitLocOpBuilder &b, ValueRange) -> Value {
        Type element = type.getElementType(), wide = computeType(element);
        Value position = arith::IndexCastOp::create(
            b, b.getI64Type(), linalg::IndexOp::create(b, 0));
        if (element.isInteger(64) &&
            cast<IntegerAttr>(op.getStart()).getInt() == 0 &&
            cast<IntegerAttr>(op.getStep()).getInt() == 1)
          return position;
        Value start =
            arith::ConstantOp::create(b, cast<TypedAttr>(op.getStart()));
        Value step =
            arith::ConstantOp::create(b, cast<TypedAttr>(op.getStep()));
        if (isa<FloatType>(element)) {
          Value i = arith::SIToFPOp::create(b, wide, position);
          Value ahead = arith::MulFOp::create(b, widen(b, step), i);
          return convertFloat(
              b, arith::AddFOp::create(b, widen(b, start), ahead), element);
        }
        if (element.getIntOrFloatBitWidth() < 64)
          position = arith::TruncIOp::create(b, element, position);
        return arith::AddIOp::create(b, start,
                                     arith::MulIOp::create(b, step, position));
      })};
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

InFlightDiagnostic KernelLowering::refuse(Operation *op) {
  return op->emitError() << "kernel '" << kernel.getSymName() << "': '"
                         << op->getName() << "' ";
}

LogicalResult KernelLowering::check(Operation *op) {
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
    if (elementOf(value).isUnsignedInteger())
      return refuse(op) << "has a value of type " << value.getType()
                        << ", expected no unsigned element type in a kernel";
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements || (!elements.isSplat() && !elements.empty()))
      return refuse(op)
             << "of type " << op->getResult(0).getType()
             << " is not a splat; expected it to be an argument of the kernel";
    return success();
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op);
      reshape && !changesUnitDimsOnly(reshape))
    return refuse(op)
           << "from " << reshape.getInput().getType() << " to "
           << reshape.getType()
           << ", expected it to add or drop dimensions of size 1 only";
  if (op->hasTrait<Pointwise>() ||
      isa<ReshapeOp, TransposeOp, BroadcastOp, IotaOp, SumOp, MaxOp, MinOp,
          ArgMaxOp, ArgMinOp, CumsumOp, MatmulOp, LinearOp, AttentionOp,
          AttentionBackwardQueryOp, AttentionBackwardKeyValueOp, IndexOp,
          GatherOp, ScatterOp, IndexPutOp, ConcatOp, PadOp>(op))
    return success();
  return refuse(op) << "is not expected in a kernel at this stage";
}

Values KernelLowering::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, Values>(op)
      .Case<IotaOp, SumOp, MatmulOp, LinearOp, AttentionOp,
            AttentionBackwardQueryOp, AttentionBackwardKeyValueOp, IndexOp,
            GatherOp, PadOp, ConcatOp>(
          [&](auto concrete) { return lower(concrete); })
      .Case<MaxOp, MinOp>([&](auto reduce) {
        return lowerExtremum(reduce.getInput(), reduce.getDims(),
                             reduce.getKeepdims(), isa<MaxOp>(reduce));
      })
      .Case<ArgMaxOp, ArgMinOp>([&](auto reduce) {
        return lowerArgExtremum(reduce.getInput(), reduce.getDim(),
                                reduce.getKeepdims(), isa<ArgMaxOp>(reduce));
      })
      .Default([&](Operation *pointwise) { return lowerPointwise(pointwise); });
}

LogicalResult KernelLowering::run() {
  if (!llvm::hasSingleElement(kernel.getBody()))
    return kernel.emitError() << "kernel '" << kernel.getSymName()
                              << "': expected a body of one block";
  Block &block = kernel.getBody().front();
  auto isNova = [](Operation &op) { return isa<NovaDialect>(op.getDialect()); };
  for (Operation &op : llvm::make_filter_range(block, isNova))
    if (failed(check(&op)))
      return failure();

  for (Operation &op : llvm::make_early_inc_range(block)) {
    setInsertionPoint(&op);
    setLoc(op.getLoc());
    bool keeps = isa<CumsumOp, ScatterOp, IndexPutOp>(op) ||
                 op.hasTrait<OpTrait::IsTerminator>();
    if (keeps) {
      for (OpOperand &operand : op.getOpOperands())
        operand.set(materialise(operand.get()));
      continue;
    }
    if (!isNova(op) || isa<ConstantOp>(op) || viewedDims(&op))
      continue;
    Values replacements = lower(&op);
    assert(ValueRange(replacements).getTypes() == op.getResultTypes() &&
           "lowering keeps types");
    op.replaceAllUsesWith(replacements);
    op.erase();
  }
  // The views have become maps, the constants scalars.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() &&
        isa<ConstantOp, TransposeOp, BroadcastOp, ReshapeOp, CopyOp>(op))
      op.erase();
  return success();
}

} // namespace lowering

namespace {
struct LowerKernelsToLinalg
    : impl::LowerKernelsToLinalgBase<LowerKernelsToLinalg> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!isKernel(func))
      return markAllAnalysesPreserved();
    lowering::KernelLowering lowering(func);
    if (failed(lowering.run()))
      return signalPassFailure();
    lowering::fuseGenerics(func, lowering.contractions());
  }
};
} // namespace
} // namespace nova
