//===- SharedMemory.cpp - Tiles in shared memory, conversions --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Banks of shared memory, 4 bytes each: one row of them is 128 bytes.
static constexpr int64_t kBankRowBytes = 128;
/// Rows over which the swizzle of a panel repeats.
static constexpr int64_t kPanelPhases = 8;
static constexpr int64_t kChunkBytes = 16;
/// Of the scratch area, a warp's own.
static constexpr int64_t kWarpScratchBytes = 1024;

int64_t SharedTile::coreBytes() const {
  int64_t count = elementBytes;
  for (int64_t extent : core)
    count *= extent;
  return count;
}

int64_t SharedTile::bytes() const {
  int64_t count = coreBytes();
  for (int64_t factor : outer)
    count *= factor;
  return count;
}

int64_t SharedTile::offset(int64_t element) const {
  int64_t byte = element * elementBytes;
  if (panels) {
    int64_t row = element / core[1], along = element % core[1] * elementBytes;
    return along / kPanelBytes * panelBytes() + row * kPanelBytes +
           (along % kPanelBytes ^ row % kPanelPhases * kChunkBytes);
  }
  if (phases < 2)
    return byte;
  int64_t row = byte / (core.back() * elementBytes);
  return byte ^ (row / perPhase % phases) * kChunkBytes;
}

int64_t SharedTile::panelBytes() const { return core[0] * outer[0] * kPanelBytes; }

int64_t SharedTile::repeatOffset(int64_t repeat) const {
  if (!panels)
    return repeat * coreBytes();
  // Panels hold all rows, those of the repeats of the core too.
  return repeat / outer[1] * core[0] * kPanelBytes +
         repeat % outer[1] * (core[1] * elementBytes / kPanelBytes) * panelBytes();
}

SharedTile nova::tile::sharedPanels(ArrayRef<int64_t> core, ArrayRef<int64_t> outer,
                                    int64_t elementBytes) {
  SharedTile tile;
  tile.core.assign(core.begin(), core.end());
  tile.outer.assign(outer.begin(), outer.end());
  tile.elementBytes = elementBytes;
  tile.phases = kPanelPhases;
  tile.panels = true;
  return tile;
}

SharedTile nova::tile::sharedTileFor(ArrayRef<int64_t> core, ArrayRef<int64_t> outer,
                                     int64_t elementBytes) {
  SharedTile tile;
  tile.core.assign(core.begin(), core.end());
  tile.outer.assign(outer.begin(), outer.end());
  tile.elementBytes = elementBytes;
  if (core.size() < 2)
    return tile;
  // Rows shorter than a row of banks share one: the swizzle then changes with
  // every group of rows, and has as many phases as a row has chunks.
  int64_t rowBytes = core.back() * elementBytes;
  tile.phases = std::clamp<int64_t>(rowBytes / kChunkBytes, 1, kBankRowBytes / kChunkBytes);
  tile.perPhase = std::max<int64_t>(1, kBankRowBytes / rowBytes);
  return tile;
}

BufferType nova::tile::panelBufferType(ArrayRef<int64_t> shape, Type element, int64_t slots) {
  return BufferType::get(element.getContext(), slots, shape, element, /*perPhase=*/1, kPanelPhases,
                         /*panels=*/true);
}

BufferType nova::tile::bufferTypeFor(ArrayRef<int64_t> shape, Type element, int64_t slots) {
  SmallVector<int64_t> core, outer;
  for (int64_t extent : shape) {
    core.push_back(powerOfTwoPart(extent));
    outer.push_back(extent / core.back());
  }
  SharedTile tile = sharedTileFor(core, outer, element.getIntOrFloatBitWidth() / 8);
  return BufferType::get(element.getContext(), slots, shape, element, tile.perPhase, tile.phases,
                         /*panels=*/false);
}

SharedTile nova::tile::slotOf(BufferType type) {
  SharedTile tile;
  for (int64_t extent : type.getShape()) {
    tile.core.push_back(powerOfTwoPart(extent));
    tile.outer.push_back(extent / tile.core.back());
  }
  tile.elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  tile.perPhase = type.getPerPhase();
  tile.phases = type.getPhases();
  tile.panels = type.getPanels();
  return tile;
}

void ThreadEmitter::barrier() {
  if (!roleWarps) {
    NVVM::BarrierOp::create(builder, loc);
    return;
  }
  // Roles of their own take no part.
  NVVM::BarrierOp::create(builder, loc, TypeRange(), barrierNumber(), constantI32(warps * kWarpSize),
                          NVVM::BarrierReductionAttr(), Value());
}

Value ThreadEmitter::team() {
  return arith::ShRUIOp::create(builder, loc, thread, constantI32(log2Exact(warps * kWarpSize)));
}

Value ThreadEmitter::barrierNumber() {
  if (teams == 1)
    return constantI32(kConsumerBarrier);
  return arith::AddIOp::create(builder, loc, team(), constantI32(kConsumerBarrier));
}

void ThreadEmitter::beginScratch(int64_t bytes) {
  scratchBytes = std::max(scratchBytes, bytes);
  if (scratchBusy || warpsBusy)
    barrier();
  warpsBusy = false;
}

void ThreadEmitter::scratchWritten() {
  barrier();
  scratchBusy = true;
}

int64_t ThreadEmitter::sharedVector(const LinearLayout &layout, const SharedTile &tile) {
  if (layout.rank() == 0)
    return 1;
  return std::min(layout.contiguousRegisters(layout.rank() - 1),
                  std::max<int64_t>(1, kChunkBytes / tile.elementBytes));
}

Value ThreadEmitter::sharedPointer(const std::vector<int64_t> &images, const SharedTile &tile,
                                   int64_t coreOffset, int64_t repeatOffset) {
  int64_t threadBits = 0;
  for (int64_t image : images)
    threadBits |= image;
  Value address = linearOfThread(images);
  // Bits that the thread's part may have set are toggled, the others are added:
  // an addition of a constant is part of the access.
  if (int64_t toggled = coreOffset & threadBits)
    address = arith::XOrIOp::create(builder, loc, address, constantI32(toggled));
  int64_t added = (coreOffset & ~threadBits) + repeatOffset;
  Value pointer = LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), shared,
                                      ArrayRef<LLVM::GEPArg>{address});
  Value base = tile.base;
  if (!base && teams > 1) {
    auto size = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    scratchSizes.push_back(size);
    base = arith::MulIOp::create(builder, loc, team(), size);
  }
  if (base)
    pointer = LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), pointer,
                                  ArrayRef<LLVM::GEPArg>{base});
  if (added)
    pointer = LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), pointer,
                                  ArrayRef<LLVM::GEPArg>{(int32_t)added});
  return pointer;
}

Value ThreadEmitter::sharedAddress(const LinearLayout &layout, const SharedTile &tile,
                                   int64_t reg) {
  std::vector<int64_t> images;
  for (const auto *bases : {&layout.lanes, &layout.warps})
    for (int64_t basis : *bases)
      images.push_back(tile.offset(basis));
  int64_t inCore = int64_t{1} << layout.registers.size();
  return sharedPointer(images, tile, tile.offset(layout.coreElement(reg % inCore, 0, 0)),
                       tile.repeatOffset(reg / inCore));
}

void ThreadEmitter::storeShared(const Registers &values, const LinearLayout &layout,
                                const SharedTile &tile) {
  int64_t vector = sharedVector(layout, tile);
  when(isOwner(layout), [&] {
    for (int64_t r = 0; r < layout.registerCount(); r += vector) {
      Value address = sharedAddress(layout, tile, r);
      SmallVector<Value> elements;
      for (int64_t i = 0; i < vector; ++i)
        elements.push_back(toMemory(values[r + i]));
      Value stored = elements[0];
      if (vector > 1) {
        stored = LLVM::UndefOp::create(builder, loc,
                                       VectorType::get({vector}, elements[0].getType()));
        for (int64_t i = 0; i < vector; ++i)
          stored =
              LLVM::InsertElementOp::create(builder, loc, stored, elements[i], constantI32(i));
      }
      LLVM::StoreOp::create(builder, loc, stored, address, vector * tile.elementBytes);
    }
  });
}

void ThreadEmitter::storeTurned(const Registers &values, const LinearLayout &layout,
                                ArrayRef<int64_t> order, const SharedTile &tile) {
  LinearLayout turned = layout.transposed(std::vector<unsigned>(order.begin(), order.end()));
  // Registers along the innermost dimension come first, where they are.
  LinearLayout grouped = turned;
  unsigned last = turned.rank() - 1;
  auto isInner = [&](int64_t basis) {
    LinearLayout::Coordinates coords = turned.split(basis);
    return coords[last] && std::all_of(coords.begin(), coords.end() - 1,
                                       [](int64_t coord) { return coord == 0; });
  };
  std::stable_sort(grouped.registers.begin(), grouped.registers.end(),
                   [&](int64_t a, int64_t b) { return isInner(a) && !isInner(b); });
  auto where = registersByCoordinates(layout);
  Registers regrouped;
  for (int64_t r = 0; r < grouped.registerCount(); ++r) {
    LinearLayout::Coordinates there = grouped.registerCoordinates(r), coords(there.size());
    for (auto [k, dim] : llvm::enumerate(order))
      coords[dim] = there[k];
    regrouped.push_back(values[where.at(coords)]);
  }
  storeShared(regrouped, grouped, tile);
}

Registers ThreadEmitter::loadSharedVector(Type element, const LinearLayout &layout,
                                          const SharedTile &tile, int64_t first, int64_t count) {
  Type type = memoryType(element, builder);
  Value address = sharedAddress(layout, tile, first);
  Type loaded = count == 1 ? type : VectorType::get({count}, type);
  Value value =
      LLVM::LoadOp::create(builder, loc, loaded, address, count * tile.elementBytes);
  Registers result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(fromMemory(
        count == 1
            ? value
            : LLVM::ExtractElementOp::create(builder, loc, value, constantI32(i)).getResult(),
        element));
  return result;
}

Registers ThreadEmitter::loadShared(Type element, const LinearLayout &layout,
                                    const SharedTile &tile) {
  Registers result;
  int64_t vector = sharedVector(layout, tile);
  for (int64_t r = 0; r < layout.registerCount(); r += vector)
    llvm::append_range(result, loadSharedVector(element, layout, tile, r, vector));
  return result;
}

bool nova::tile::isReadByProductOnly(Value value) {
  if (!value.hasOneUse())
    return false;
  auto dot = dyn_cast<DotOp>(*value.user_begin());
  return dot && dot->getBlock() == value.getDefiningOp()->getBlock() &&
         value != dot.getAccumulator();
}

std::optional<Registers> ThreadEmitter::convertInWarps(Value operand, const LinearLayout &from,
                                                       const LinearLayout &to, Type element) {
  auto isPlain = [](const LinearLayout &layout) {
    return layout.isDisjoint() && !layout.freeLaneBits() && !layout.freeWarpBits();
  };
  if (from.warps != to.warps || from.core != to.core || from.outer != to.outer || !isPlain(from) || !isPlain(to))
    return std::nullopt;
  // Bits of the element's number that are registers' on both sides need not change
  // places: for each of their values there is a piece. The largest first.
  int64_t bytes = memoryBytes(element), piece = bytes * from.coreElements() / from.warpCount();
  std::set<int64_t> both(to.registers.begin(), to.registers.end()), fixed;
  LinearLayout::Bases mine(from.registers);
  llvm::sort(mine, std::greater<>());
  for (int64_t bit : mine)
    if (piece > kWarpScratchBytes && both.count(bit)) {
      fixed.insert(bit);
      piece /= 2;
    }
  if (piece > kWarpScratchBytes)
    return std::nullopt;
  // The piece's own numbers: without the bits that are fixed, and without the warps'.
  std::set<int64_t> absent(fixed);
  absent.insert(from.warps.begin(), from.warps.end());
  std::vector<int64_t> core(from.rank(), 1);
  std::map<int64_t, LinearLayout::Coordinates> within;
  for (unsigned d = 0; d < from.rank(); ++d)
    for (int64_t at = 1; at < from.core[d]; at *= 2) {
      LinearLayout::Coordinates coords(from.rank(), 0);
      coords[d] = at;
      int64_t bit = from.join(coords);
      if (absent.count(bit))
        continue;
      coords[d] = core[d];
      core[d] *= 2;
      within[bit] = coords;
    }
  std::vector<int64_t> once(from.rank(), 1);
  auto inPiece = [&](const LinearLayout &layout) {
    LinearLayout part(core, once, {}, {}, {});
    for (int64_t bit : layout.registers)
      if (!absent.count(bit))
        part.registers.push_back(part.join(within.at(bit)));
    for (int64_t bit : layout.lanes)
      part.lanes.push_back(part.join(within.at(bit)));
    return part;
  };
  LinearLayout source = inPiece(from), target = inPiece(to);
  SharedTile tile = sharedTileFor(core, once, bytes);
  scratchBytes = std::max(scratchBytes, warps * kWarpScratchBytes);
  if (scratchBusy)
    barrier();
  scratchBusy = false;
  Value warp = arith::ShRUIOp::create(builder, loc, thread, constantI32(kLaneBits));
  tile.base = arith::MulIOp::create(builder, loc, warp, constantI32(kWarpScratchBytes));
  auto synchronize = [&] {
    assembly(builder, loc, TypeRange(), ValueRange(), "bar.warp.sync 0xffffffff;", "~{memory}");
  };

  // Registers of each layout by piece.
  auto pieces = [&](const LinearLayout &layout) {
    std::map<std::pair<int64_t, std::set<int64_t>>, SmallVector<int64_t>> parts;
    int64_t inCore = int64_t{1} << layout.registers.size();
    for (int64_t r = 0; r < layout.registerCount(); ++r) {
      std::set<int64_t> set;
      for (size_t bit = 0; bit < layout.registers.size(); ++bit)
        if ((r >> bit & 1) && fixed.count(layout.registers[bit]))
          set.insert(layout.registers[bit]);
      parts[{r / inCore, set}].push_back(r);
    }
    return parts;
  };
  auto there = pieces(to);
  Registers result(to.registerCount()), values = registers(operand);
  for (auto &[which, own] : pieces(from)) {
    Registers moved;
    for (int64_t r : own)
      moved.push_back(values[r]);
    Block *block = builder.getInsertionBlock();
    auto before = builder.getInsertionPoint();
    Operation *previous = before == block->begin() ? nullptr : &*std::prev(before);
    // In whichever order pieces come in the end, each waits for the one before.
    synchronize();
    storeShared(moved, source, tile);
    synchronize();
    for (auto [r, value] : llvm::zip_equal(there.at(which), loadShared(element, target, tile)))
      result[r] = value;
    for (auto op = previous ? std::next(previous->getIterator()) : block->begin(); op != before; ++op)
      if (!isMemoryEffectFree(&*op))
        op->setAttr(kUnitAttr, builder.getI64IntegerAttr(units));
    ++units;
    warpsBusy = true;
  }
  return result;
}

void ThreadEmitter::emitConvert(ConvertOp op) {
  LinearLayout from = layoutOf(op.getOperand()), to = layoutOf(op);
  std::vector<int64_t> mapping;
  if (from.sameThreads(to, &mapping)) {
    Registers values;
    for (int64_t r : mapping)
      values.push_back(registers(op.getOperand())[r]);
    tiles[op] = std::move(values);
    return;
  }
  if (isReadByProductOnly(op))
    return;
  Type element = op.getType().getElementType();
  if (auto converted = convertInWarps(op.getOperand(), from, to, element)) {
    tiles[op] = std::move(*converted);
    return;
  }
  int64_t bytes = memoryBytes(element);
  SharedTile tile = sharedTileFor(from.core, from.outer, bytes);
  beginScratch(tile.bytes());
  storeShared(registers(op.getOperand()), from, tile);
  scratchWritten();
  tiles[op] = loadShared(element, to, tile);
}
