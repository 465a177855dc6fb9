//===- AccessLayouts.cpp - Layouts for memory accesses ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Bytes of the widest access of a thread.
static constexpr int64_t kWidestAccess = 16;
/// Bytes in a row that a group of lanes should move: two sectors.
static constexpr int64_t kGoodSegment = 64;
/// Bytes that DRAM and the caches move at once.
static constexpr int64_t kSectorBytes = 32;

std::optional<int64_t> nova::tile::tripCount(scf::ForOp loop) {
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)))
    return std::nullopt;
  int64_t by = step.getSExtValue();
  return std::max<int64_t>(0, (upper.getSExtValue() - lower.getSExtValue() + by - 1) / by);
}

MemRefType Access::memoryType() const {
  return cast<MemRefType>(memory.getType());
}

int64_t Access::elementBytes() const {
  Type element = memoryType().getElementType();
  return std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
}

std::vector<int64_t> Access::strides() const {
  SmallVector<int64_t> all;
  int64_t offset;
  (void)memoryType().getStridesAndOffset(all, offset);
  std::vector<int64_t> result;
  for (int64_t dim : along)
    result.push_back(all[dim]);
  return result;
}

std::vector<unsigned> Access::order() const {
  std::vector<int64_t> stride = strides();
  std::vector<unsigned> result(shape.size());
  // Inner dimensions first among equals; repeated ones (stride 0) last.
  std::iota(result.rbegin(), result.rend(), 0u);
  auto key = [&](unsigned d) {
    return stride[d] > 0 ? stride[d] : std::numeric_limits<int64_t>::max();
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](unsigned a, unsigned b) { return key(a) < key(b); });
  return result;
}

int64_t nova::tile::knownDivisor(Value index) {
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant)))
    return std::abs(constant.getSExtValue());
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && index == loop.getInductionVar())
      return std::gcd(knownDivisor(loop.getLowerBound()),
                      knownDivisor(loop.getStep()));
    return 1;
  }
  Operation *op = index.getDefiningOp();
  if (auto mul = dyn_cast<arith::MulIOp>(op))
    return knownDivisor(mul.getLhs()) * knownDivisor(mul.getRhs());
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(knownDivisor(op->getOperand(0)),
                    knownDivisor(op->getOperand(1)));
  return 1;
}

Value nova::tile::throughSplat(Value value) {
  auto splat = value.getDefiningOp<SplatOp>();
  return splat ? splat.getValue() : value;
}

int64_t nova::tile::argumentAlignment(Value memory) {
  if (auto select = memory.getDefiningOp<SelectOp>()) {
    int64_t alignment = 0;
    for (Value choice : select.getMemories())
      alignment = std::gcd(alignment, argumentAlignment(choice));
    return alignment;
  }
  auto argument = dyn_cast<BlockArgument>(memory);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  if (!function)
    return 1;
  auto alignment = function.getArgAttrOfType<IntegerAttr>(
      argument.getArgNumber(), tile::attr::alignment);
  return alignment ? alignment.getInt() : kWidestAccess;
}

/// A number that divides the extent, whichever memory it is of.
static int64_t extentDivisor(Value memory, unsigned dim) {
  auto select = memory.getDefiningOp<SelectOp>();
  if (!select)
    return cast<MemRefType>(memory.getType()).getDimSize(dim);
  int64_t divisor = 0;
  for (Value choice : select.getMemories())
    divisor = std::gcd(divisor, extentDivisor(choice, dim));
  return divisor;
}

int64_t Access::vectorLength(unsigned dim) const {
  if (strides()[dim] != 1)
    return 1;
  int64_t bytes = elementBytes();
  int64_t divisor = kWidestAccess / bytes;
  auto mustDivide = [&](int64_t n) { divisor = std::gcd(divisor, n); };
  mustDivide(std::max<int64_t>(1, argumentAlignment(memory) / bytes));
  SmallVector<int64_t> all;
  int64_t offset;
  (void)memoryType().getStridesAndOffset(all, offset);
  for (int64_t d = 0; d < memoryType().getRank(); ++d)
    if (d != along[dim]) {
      if (memoryType().getDimSize(d) != 1)
        mustDivide(all[d]);
    } else {
      mustDivide(knownDivisor(offsets[d]));
      if (bounds[dim] != 0)
        mustDivide(extentDivisor(memory, d));
    }
  return divisor ? powerOfTwoPart(divisor) : kWidestAccess / bytes;
}

std::optional<Access> nova::tile::accessOf(Operation *op) {
  auto shape = [](ArrayRef<int64_t> extents) {
    return std::vector<int64_t>(extents.begin(), extents.end());
  };
  if (auto load = dyn_cast<LoadOp>(op))
    return Access{load.getMemory(), load.getOffsets(), load.getAlong(),
                  load.getBounds(), shape(load.getType().getShape())};
  if (auto store = dyn_cast<StoreOp>(op))
    return Access{
        store.getMemory(), store.getOffsets(), store.getAlong(),
        store.getBounds(),
        shape(cast<RankedTensorType>(store.getValue().getType()).getShape())};
  auto intoSlot = [&](auto load) {
    return Access{
        load.getMemory(), load.getOffsets(), load.getAlong(), load.getBounds(),
        shape(cast<BufferType>(load.getBuffer().getType()).getShape())};
  };
  if (auto load = dyn_cast<AsyncLoadOp>(op))
    return intoSlot(load);
  if (auto load = dyn_cast<BulkLoadOp>(op))
    return intoSlot(load);
  return std::nullopt;
}

LinearLayout nova::tile::accessLayout(const Access &access, int64_t warps) {
  std::vector<unsigned> order = access.order();
  if (order.empty())
    return LinearLayout::blocked({}, {}, 1, warps);
  int64_t elements = 1;
  for (int64_t extent : access.shape)
    elements *= extent;
  // Wider than what keeps all threads busy is not faster.
  int64_t share = std::max<int64_t>(1, elements / (warps * kWarpSize));
  int64_t vector =
      std::min(access.vectorLength(order[0]), ceilPowerOfTwo(share));
  return LinearLayout::blocked(access.shape, order, vector, warps);
}

std::optional<LinearLayout> nova::tile::accessLayoutNear(const Access &access,
                                                         const LinearLayout &layout) {
  std::vector<unsigned> order = access.order();
  if (order.empty() || layout.freeLaneBits() || layout.freeWarpBits() || !layout.isDisjoint())
    return std::nullopt;
  // What a warp has: bits along the innermost dimension first.
  std::set<int64_t> warpBits(layout.warps.begin(), layout.warps.end());
  std::vector<int64_t> free;
  for (unsigned d : order)
    for (int64_t at = 1; at < layout.core[d]; at *= 2) {
      LinearLayout::Coordinates coords(layout.rank(), 0);
      coords[d] = at;
      if (int64_t bit = layout.join(coords); !warpBits.count(bit))
        free.push_back(bit);
    }
  auto along = [&](int64_t bit) { return layout.split(bit)[order[0]]; };
  LinearLayout near = layout;
  near.registers.clear();
  near.lanes.clear();
  std::set<int64_t> used;
  auto give = [&](LinearLayout::Bases &to, int64_t bit) {
    if (used.insert(bit).second)
      to.push_back(bit);
  };
  // Neighbours to a thread, then as many to a group of lanes as fill sectors.
  int64_t extent = 1, vector = access.vectorLength(order[0]);
  for (int64_t bit : free) {
    if (along(bit) != extent || extent * access.elementBytes() >= kGoodSegment)
      break;
    give(extent < vector ? near.registers : near.lanes, bit);
    extent *= 2;
  }
  // The other lanes as they are, if they can be.
  for (int64_t bit : layout.lanes)
    if (near.lanes.size() < kLaneBits)
      give(near.lanes, bit);
  for (int64_t bit : free)
    if (near.lanes.size() < kLaneBits)
      give(near.lanes, bit);
  for (int64_t bit : free)
    give(near.registers, bit);
  if (near.lanes.size() < kLaneBits)
    return std::nullopt;
  return near;
}

double nova::tile::sectorEfficiency(const Access &access,
                                    const LinearLayout &layout) {
  std::vector<unsigned> order = access.order();
  if (order.empty())
    return 1;
  std::vector<int64_t> strides = access.strides();
  int64_t registers =
      std::min(layout.contiguousRegisters(order[0]),
               access.vectorLength(order[0]));
  std::set<int64_t> sectors, elements;
  for (int64_t lane = 0; lane < kWarpSize; ++lane)
    for (int64_t r = 0; r < registers; ++r) {
      auto coords = layout.coordinates(r, lane, 0);
      int64_t element = 0;
      for (size_t d = 0; d < coords.size(); ++d)
        element += coords[d] * strides[d];
      elements.insert(element);
      sectors.insert(element * access.elementBytes() / kSectorBytes);
    }
  // A tile smaller than a warp's sectors cannot do better than its own.
  return double(elements.size() * access.elementBytes()) /
         double(sectors.size() * kSectorBytes);
}
