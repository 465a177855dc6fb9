//===- LoopEmitter.cpp - Building blocks of kernel loops
//-------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LoopEmitter.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace nova::host {

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

static constexpr auto kNoWrap =
    arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;

Value LoopEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(*this, value);
}

Value LoopEmitter::asValue(OpFoldResult value) {
  if (auto constant = getConstantIntValue(value))
    return index(*constant);
  return cast<Value>(value);
}

Value LoopEmitter::addIndex(Value lhs, Value rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return index(*l + *r);
  if (l && *l == 0)
    return rhs;
  if (r && *r == 0)
    return lhs;
  return arith::AddIOp::create(*this, lhs, rhs, kNoWrap);
}

Value LoopEmitter::mulIndex(Value lhs, int64_t rhs) {
  if (auto l = getConstantIntValue(lhs))
    return index(*l * rhs);
  if (rhs == 0)
    return index(0);
  if (rhs == 1)
    return lhs;
  return arith::MulIOp::create(*this, lhs, index(rhs), kNoWrap);
}

Value LoopEmitter::minIndex(Value lhs, Value rhs) {
  auto l = getConstantIntValue(lhs), r = getConstantIntValue(rhs);
  if (l && r)
    return index(std::min(*l, *r));
  return arith::MinSIOp::create(*this, lhs, rhs);
}

OpFoldResult LoopEmitter::roundDown(OpFoldResult value, int64_t divisor) {
  if (auto constant = getConstantIntValue(value))
    return getIndexAttr(*constant - *constant % divisor);
  Value v = asValue(value);
  Value rest = arith::RemUIOp::create(*this, v, index(divisor));
  return arith::SubIOp::create(*this, v, rest, kNoWrap).getResult();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<Value> LoopEmitter::loop(OpFoldResult lower, OpFoldResult upper,
                                     int64_t step, ValueRange carried,
                                     LoopBody body) {
  auto lo = getConstantIntValue(lower), hi = getConstantIntValue(upper);
  if (lo && hi && *lo >= *hi)
    return SmallVector<Value>(carried);
  if (lo && hi && *lo + step >= *hi)
    return body(index(*lo), carried);
  auto loopOp = scf::ForOp::create(*this, asValue(lower), asValue(upper),
                                   index(step), carried);
  OpBuilder::InsertionGuard guard(*this);
  // Without carried values the builder has made the terminator already.
  if (carried.empty()) {
    setInsertionPointToStart(loopOp.getBody());
    body(loopOp.getInductionVar(), {});
    return {};
  }
  setInsertionPointToEnd(loopOp.getBody());
  SmallVector<Value> next =
      body(loopOp.getInductionVar(), loopOp.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return SmallVector<Value>(loopOp.getResults());
}

void LoopEmitter::loop(OpFoldResult lower, OpFoldResult upper, int64_t step,
                       llvm::function_ref<void(Value)> body) {
  loop(lower, upper, step, ValueRange{}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

void emitIf(LoopEmitter &e, Value condition, llvm::function_ref<void()> body) {
  auto ifOp = scf::IfOp::create(e, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(e);
  e.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

VectorType LoopEmitter::laneType(Type element, int64_t width) {
  return VectorType::get({width}, element);
}

Value LoopEmitter::materialise(const Lanes &lanes, int64_t width) {
  if (width == 1 || lanes.form == Lanes::Form::Vector)
    return lanes.value;
  VectorType type = laneType(lanes.value.getType(), width);
  Value splat = vector::BroadcastOp::create(*this, type, lanes.value);
  if (lanes.form == Lanes::Form::Uniform)
    return splat;
  SmallVector<Attribute> steps;
  for (int64_t l = 0; l < width; ++l)
    steps.push_back(IntegerAttr::get(type.getElementType(), l));
  Value offsets =
      arith::ConstantOp::create(*this, DenseElementsAttr::get(type, steps));
  return arith::AddIOp::create(*this, splat, offsets);
}

Value LoopEmitter::lane(const Lanes &lanes, int64_t l) {
  switch (lanes.form) {
  case Lanes::Form::Uniform:
    return lanes.value;
  case Lanes::Form::Step: {
    Value offset = arith::ConstantOp::create(
        *this, IntegerAttr::get(lanes.value.getType(), l));
    return arith::AddIOp::create(*this, lanes.value, offset);
  }
  case Lanes::Form::Vector:
    return vector::ExtractOp::create(*this, lanes.value, l);
  }
  llvm_unreachable("all forms are handled");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Type LoopEmitter::memoryType(Type element) {
  return element.isInteger(1) ? getI8Type() : element;
}

Value LoopEmitter::scalarConstant(Attribute value) {
  return arith::ConstantOp::create(*this, cast<TypedAttr>(value));
}

Value LoopEmitter::stackBuffer(Type memoryElement, int64_t elements) {
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(entry);
  stackBytes += llvm::alignTo(elements * elementBytes(memoryElement), 64);
  auto type = MemRefType::get({elements}, memoryElement);
  return memref::AllocaOp::create(*this, type, getI64IntegerAttr(64));
}

Value LoopEmitter::loadScalar(const Access &access, Value offset) {
  if (access.splat)
    return access.splat;
  Value value = memref::LoadOp::create(*this, access.memref, offset);
  if (access.elementType.isInteger(1))
    value = arith::TruncIOp::create(*this, getI1Type(), value);
  return value;
}

void LoopEmitter::storeScalar(const Access &access, Value offset, Value value) {
  if (access.elementType.isInteger(1))
    value = arith::ExtUIOp::create(*this, getI8Type(), value);
  memref::StoreOp::create(*this, value, access.memref, offset);
}

Lanes LoopEmitter::load(const Access &access, Value offset, int64_t laneStride,
                        int64_t width) {
  if (width == 1 || laneStride == 0 || access.splat)
    return {Lanes::Form::Uniform, loadScalar(access, offset)};
  VectorType type = laneType(access.elementType, width);
  if (laneStride == 1) {
    VectorType memory = laneType(memoryType(access.elementType), width);
    Value value = vector::LoadOp::create(*this, memory, access.memref,
                                         ValueRange{offset});
    if (memory != type)
      value = arith::TruncIOp::create(*this, type, value);
    return {Lanes::Form::Vector, value};
  }
  SmallVector<Value> elements;
  for (int64_t l = 0; l < width; ++l)
    elements.push_back(
        loadScalar(access, addIndex(offset, index(l * laneStride))));
  return {Lanes::Form::Vector,
          vector::FromElementsOp::create(*this, type, elements)};
}

void LoopEmitter::store(const Access &access, Value offset, int64_t laneStride,
                        int64_t width, const Lanes &value) {
  if (width == 1)
    return storeScalar(access, offset, value.value);
  if (laneStride != 1) {
    for (int64_t l = 0; l < width; ++l)
      storeScalar(access, addIndex(offset, index(l * laneStride)),
                  lane(value, l));
    return;
  }
  Value lanes = materialise(value, width);
  if (access.elementType.isInteger(1))
    lanes = arith::ExtUIOp::create(*this, laneType(getI8Type(), width), lanes);
  vector::StoreOp::create(*this, lanes, access.memref, ValueRange{offset});
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Adds `scale` * expr to the linear form (constant, coefficients).
static void addLinear(AffineExpr expr, int64_t scale, int64_t &constant,
                      SmallVectorImpl<int64_t> &coef) {
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    constant += scale * c.getValue();
  } else if (auto d = dyn_cast<AffineDimExpr>(expr)) {
    coef[d.getPosition()] += scale;
  } else {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    if (binary.getKind() == AffineExprKind::Add) {
      addLinear(binary.getLHS(), scale, constant, coef);
      addLinear(binary.getRHS(), scale, constant, coef);
    } else {
      auto factor = cast<AffineConstantExpr>(binary.getRHS());
      addLinear(binary.getLHS(), scale * factor.getValue(), constant, coef);
    }
  }
}

Access LoopEmitter::accessMemory(Value memref, Type element,
                                 ArrayRef<int64_t> strides, bool wholeTensor,
                                 AffineMap map, ArrayRef<LoopDim> dims) {
  Access out;
  out.memref = memref;
  out.elementType = element;
  out.coef.assign(dims.size(), 0);
  int64_t constant = 0;
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
    addLinear(expr, stride, constant, out.coef);
  out.base = index(constant);
  if (wholeTensor)
    for (auto [dim, coef] : llvm::zip_equal(dims, out.coef))
      if (dim.start && coef != 0)
        out.base = addIndex(out.base, mulIndex(dim.start, coef));
  return out;
}

Access LoopEmitter::access(Value value, AffineMap map, ArrayRef<LoopDim> dims) {
  Type element = getElementTypeOrSelf(value.getType());
  auto it = model.values.find(value);
  if (it == model.values.end() || it->second.storage == Storage::Splat) {
    // Constants have no plan of their own where only a scalar is read.
    Access out;
    out.elementType = element;
    out.coef.assign(dims.size(), 0);
    OpFoldResult splat;
    if (isa<RankedTensorType>(value.getType()))
      splat = splatValue(value);
    else
      splat = getAsOpFoldResult(value);
    // A fill's scalar is a constant: the model has checked it.
    out.splat = scalarConstant(cast<Attribute>(splat));
    out.base = index(0);
    return out;
  }
  const ValuePlan &plan = it->second;
  Value memref;
  switch (plan.storage) {
  case Storage::Argument:
    memref = arguments[plan.index];
    break;
  case Storage::Result:
    memref = results[plan.index];
    break;
  case Storage::Scratch:
    memref = slots[plan.index];
    break;
  default:
    return {}; // Undefined or dead: the caller does not touch it.
  }
  return accessMemory(memref, element, plan.strides,
                      plan.storage != Storage::Scratch, map, dims);
}

Access LoopEmitter::accessResult(unsigned r, ArrayRef<LoopDim> dims) {
  auto type = cast<RankedTensorType>(
      const_cast<KernelModel &>(model).func.getResultTypes()[r]);
  return accessMemory(results[r], type.getElementType(), model.resultStrides[r],
                      /*wholeTensor=*/true,
                      getMultiDimIdentityMap(type.getRank()), dims);
}

LoopDim LoopEmitter::dimFor(int64_t extent, int64_t space) {
  LoopDim dim;
  if (space == kLocal) {
    dim.size = getIndexAttr(extent);
    dim.maxSize = extent;
    return dim;
  }
  dim.size = sizes[space];
  dim.maxSize = model.tile[space];
  dim.start = starts[space];
  return dim;
}

SmallVector<LoopDim> LoopEmitter::regionOf(Value value) {
  SmallVector<LoopDim> dims;
  const ValuePlan &plan = model.plan(value);
  for (auto [extent, space] : llvm::zip_equal(
           cast<RankedTensorType>(value.getType()).getShape(), plan.binding))
    dims.push_back(dimFor(extent, space));
  return dims;
}

Value LoopEmitter::offsetAt(const Access &access, ArrayRef<Value> ivs) {
  Value offset = access.base;
  for (auto [iv, coef] : llvm::zip_equal(ivs, access.coef))
    if (coef != 0)
      offset = addIndex(offset, mulIndex(iv, coef));
  return offset;
}

} // namespace nova::host
