//===- WarpgroupProduct.cpp - Products by wgmma ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands in shared memory are named by descriptors (PTX ISA 8.0, 9.7.14.5.1,
// "Matrix Descriptor"): bits 0-13 the address, 16-29 the leading and 32-45 the
// stride dimension's byte offset, each in units of 16 bytes; bits 62-63 the
// swizzle, 1 for 128 bytes. In panels of 128 bytes by all rows, groups of 8 rows
// follow at 1024 bytes: the stride dimension. With k inside, the leading dimension
// is not used; with k outside (rows are k), it leads to the next panel.
//
//===----------------------------------------------------------------------===//
#include "ProductOperand.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Rows of one instruction, and the most columns it has. ptxas wants the registers of
/// one instruction among those that threads start with, whatever setmaxnreg adds to
/// them later (C7602): with few, half as many columns.
static constexpr int64_t kRows = 64, kMostColumns = 256, kColumnsOfFew = 128;
static constexpr int64_t kFewRegisters = 160;
/// Bytes along k that one instruction takes.
static constexpr int64_t kStepBytes = 32;
/// Eight rows of a panel: what the swizzle repeats over.
static constexpr int64_t kGroupBytes = 8 * kPanelBytes;
/// Descriptors hold addresses and offsets in this unit.
static constexpr int64_t kDescriptorUnit = 16;

namespace {
/// An operand in shared memory, for descriptors.
struct PanelOperand {
  SharedTile tile;
  bool kInner;
  int64_t elementBytes;

  /// Byte offset of a position along the operand's own side.
  int64_t alongSide(int64_t side) const {
    if (kInner)
      return side * kPanelBytes;
    int64_t bytes = side * elementBytes;
    return bytes / kPanelBytes * tile.panelBytes() + bytes % kPanelBytes;
  }
  /// Byte offset of a step along k.
  int64_t alongK(int64_t step) const {
    int64_t bytes = step * kStepBytes;
    if (kInner)
      return bytes / kPanelBytes * tile.panelBytes() + bytes % kPanelBytes;
    return bytes / elementBytes * kPanelBytes;
  }
};
} // namespace

Value ThreadEmitter::descriptor(const SharedTile &tile, bool kInner, ArrayRef<int64_t> warpImages) {
  std::vector<int64_t> images(kLaneBits, 0);
  llvm::append_range(images, warpImages);
  Value address = LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(),
                                           sharedPointer(images, tile, 0, 0));
  // Within a cluster the high bits name the block.
  address = arith::AndIOp::create(builder, loc, address, constantI32(0x3ffff));
  address = arith::ShRUIOp::create(builder, loc, address, constantI32(4));
  int64_t leading = kInner ? kDescriptorUnit : tile.panelBytes();
  int64_t constant = int64_t{1} << 62 | kGroupBytes / kDescriptorUnit << 32 |
                     leading / kDescriptorUnit << 16;
  Value wide = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), address);
  return arith::OrIOp::create(
      builder, loc, wide,
      arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(constant)));
}

SharedTile ThreadEmitter::stageInPanels(Value source, bool transposed, int64_t base,
                                        SmallVectorImpl<std::function<void()>> &writes) {
  LinearLayout layout = layoutOf(source);
  SmallVector<int64_t> order = transposed ? SmallVector<int64_t>{1, 0} : SmallVector<int64_t>{0, 1};
  LinearLayout turned = layout.transposed(std::vector<unsigned>(order.begin(), order.end()));
  Type element = cast<RankedTensorType>(source.getType()).getElementType();
  SharedTile tile =
      sharedPanels(turned.core, turned.outer, element.getIntOrFloatBitWidth() / 8);
  tile.base = constantI32(base);
  writes.push_back([this, source, layout, order, element, tile] {
    Registers values = registers(source);
    if (element.isF32())
      for (Value &value : values) {
        auto i32 = builder.getI32Type();
        Value bits = LLVM::BitcastOp::create(builder, loc, i32, value);
        bits = roundToTf32(builder, loc, bits, /*warpgroups=*/true);
        value = LLVM::BitcastOp::create(builder, loc, element, bits);
      }
    storeTurned(values, layout, order, tile);
  });
  return tile;
}

LogicalResult ThreadEmitter::emitWarpgroupDot(DotOp op) {
  bool flipped = op.getMultiplier() == Multiplier::flipped_warpgroup;
  LinearLayout fragment = flipped ? layoutOf(op).transposed({1, 0}) : layoutOf(op);
  auto lhsType = cast<RankedTensorType>(op.getLhs().getType());
  Type element = lhsType.getElementType();
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8, k = lhsType.getDimSize(1);
  int64_t depth = kStepBytes / elementBytes, steps = k / depth;
  bool tf32 = elementBytes == 4;

  // Where the operands are. Those in registers are written to panels, but for a
  // left one that lies as the fragment does.
  int64_t scratch = 0;
  SmallVector<std::function<void()>> writes;
  auto inPanels = [&](unsigned number) -> PanelOperand {
    Value operand = op->getOperand(number);
    if (auto local = operand.getDefiningOp<LocalLoadOp>(); local && !tiles.contains(operand)) {
      bool kInner = local.getDims()[1] == 1 - (int64_t)number;
      return {slotAt(local.getBuffer(), local.getSlot()), kInner, elementBytes};
    }
    Value source =
        tiles.contains(operand) ? operand : operand.getDefiningOp<ConvertOp>().getOperand();
    SharedTile tile = stageInPanels(source, number == 1, scratch, writes);
    scratch += llvm::alignTo(tile.bytes(), kRingAlignment);
    return {tile, true, elementBytes};
  };
  unsigned leftNumber = flipped, rightNumber = !flipped;
  Value leftValue = op->getOperand(leftNumber);
  LinearLayout leftLayout = warpgroupLeft(fragment, k, elementBytes);
  PanelOperand right = inPanels(rightNumber);
  std::optional<PanelOperand> left;
  std::optional<ProductOperand> held;
  if (tiles.contains(leftValue)) {
    held.emplace(*this, 0, flipped ? layoutOf(leftValue).transposed({1, 0}) : layoutOf(leftValue),
                 registers(leftValue));
  } else {
    left = inPanels(leftNumber);
    if (!isReadByDescriptors(fragment) || (tf32 && !left->kInner)) {
      SmallVector<int64_t> order = {0, 1};
      if (!left->kInner)
        order = {1, 0};
      held.emplace(*this, 0, leftLayout, element, left->tile, order);
      left.reset();
    }
  }
  if (!right.kInner && tf32)
    return op.emitOpError("the right operand of a product in tf32 has k outside");
  if (scratch) {
    beginScratch(scratch);
    for (auto &write : writes)
      write();
    fenceForProducts();
    scratchWritten();
  }

  // Descriptors point to what a warpgroup has of each side.
  auto warpgroupImages = [&](unsigned side, const PanelOperand &operand) {
    SmallVector<int64_t> images;
    for (auto [bit, basis] : llvm::enumerate(fragment.warps))
      images.push_back((int64_t{1} << bit) < kWarpgroup
                           ? 0
                           : operand.alongSide(fragment.split(basis)[side]));
    return images;
  };
  Value rightDescriptor = descriptor(right.tile, right.kInner, warpgroupImages(1, right));
  Value leftDescriptor =
      left ? descriptor(left->tile, left->kInner, warpgroupImages(0, *left)) : Value();

  std::map<std::pair<int64_t, int64_t>, int64_t> where;
  std::set<int64_t> rowBlocks, columnBlocks;
  for (int64_t r = 0; r < fragment.registerCount(); ++r) {
    auto coords = fragment.registerCoordinates(r);
    where.insert({{coords[0], coords[1]}, r});
    if (coords[0] % kRows == 0)
      rowBlocks.insert(coords[0]);
    if (coords[1] % 8 == 0)
      columnBlocks.insert(coords[1]);
  }
  // Columns that follow each other are one instruction's.
  SmallVector<std::pair<int64_t, int64_t>> runs; // first, count
  for (int64_t column : columnBlocks) {
    if (!runs.empty() && runs.back().first + runs.back().second == column &&
        runs.back().second < (startRegisters() < kFewRegisters ? kColumnsOfFew : kMostColumns))
      runs.back().second += 8;
    else
      runs.push_back({column, 8});
  }
  int64_t second = secondRow(fragment);
  // The accumulators' registers, in the order of the fragments, are the same in the
  // tile whichever way round it is looked at.
  Registers sums;
  {
    auto own = registersByCoordinates(layoutOf(op));
    Registers all = registers(op.getAccumulator());
    for (int64_t r = 0; r < fragment.registerCount(); ++r) {
      auto coords = fragment.registerCoordinates(r);
      sums.push_back(all[own.at(flipped ? LinearLayout::Coordinates{coords[1], coords[0]} : coords)]);
    }
  }

  // Sums that start at zero need no registers before the first instruction, which then
  // does not add.
  bool adds = !matchPattern(throughSplat(op.getAccumulator()), m_PosZeroFloat());

  auto i32 = builder.getI32Type();
  auto f32 = builder.getF32Type();
  StringRef type = tf32 ? "tf32" : element.isBF16() ? "bf16" : "f16";
  SmallVector<Value> fragments; // of the left operand, alive until the products end
  auto leftWord = [&](int64_t row, int64_t at) -> Value {
    Value word = held->word(row, at, depth, {});
    return tf32 ? roundToTf32(builder, loc, word, /*warpgroups=*/true) : word;
  };
  SmallVector<int64_t> order; // of `sums`, as the instructions take them
  // The instructions of some rows as one piece of assembly, for all of k: nothing may
  // come between that touches a register which is in flight.
  auto multiply = [&](ArrayRef<int64_t> rows) {
    SmallVector<Value> words;
    if (held)
      for (int64_t row : rows)
        for (int64_t step = 0; step < steps; ++step)
          for (auto [down, at] : {std::pair<int64_t, int64_t>{0, 0}, {second, 0}, {0, depth / 2},
                                  {second, depth / 2}})
            words.push_back(leftWord(row + down, step * depth + at));
    llvm::append_range(fragments, words);
    SmallVector<int64_t> own;
    std::vector<std::string> lists; // of one instruction's sums, by rows and runs
    for (int64_t row : rows)
      for (auto [first, count] : runs) {
        std::string list;
        for (int64_t column = first; column < first + count; column += 8)
          for (int64_t down : {int64_t{0}, second})
            for (int64_t c : {0, 1}) {
              list += (list.empty() ? "$" : ", $") + std::to_string(own.size());
              own.push_back(where.at({row + down, column + c}));
            }
        lists.push_back(std::move(list));
      }
    // Operands: results, their ties, then the left operand, then descriptors.
    size_t n = own.size(), firstWord = adds ? 2 * n : n, rightNumber = firstWord + (held ? words.size() : 1);
    auto add = [&](char name, size_t operand, int64_t bytes) {
      return std::string("add.s64 ") + name + ", $" + std::to_string(operand) + ", " +
             std::to_string(bytes / kDescriptorUnit) + "; ";
    };
    std::string text = "{ .reg .b64 l, r; .reg .pred p, q; setp.eq.u32 p, 0, 0; setp.ne.u32 q, 0, 0; "
                       "wgmma.fence.sync.aligned; ";
    for (int64_t step = 0; step < steps; ++step)
      for (auto [i, row] : llvm::enumerate(rows)) {
        std::string source = "l";
        if (held) {
          source = "{";
          for (int64_t w = 0; w < 4; ++w)
            source += (w ? ", $" : "$") + std::to_string(firstWord + 4 * (int64_t(i) * steps + step) + w);
          source += "}";
        } else {
          text += add('l', firstWord, left->alongSide(row) + left->alongK(step));
        }
        for (auto [j, run] : llvm::enumerate(runs)) {
          auto [first, count] = run;
          text += add('r', rightNumber, right.alongSide(first) + right.alongK(step));
          text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(count) + "k" +
                  std::to_string(depth) + ".f32." + type.str() + "." + type.str() + " {" +
                  lists[i * runs.size() + j] + "}, " + source + (adds || step ? ", r, p, 1, 1" : ", r, q, 1, 1");
          if (!tf32 && !held)
            text += left->kInner ? ", 0" : ", 1";
          if (!tf32)
            text += right.kInner ? ", 0" : ", 1";
          text += "; ";
        }
      }
    text += "}";
    std::string constraints;
    for (size_t i = 0; i < n; ++i)
      constraints += "=f,";
    SmallVector<Value> operands;
    for (size_t i = 0; adds && i < n; ++i) {
      constraints += std::to_string(i) + ",";
      operands.push_back(sums[own[i]]);
    }
    llvm::append_range(operands, words);
    for (size_t i = 0; i < words.size(); ++i)
      constraints += "r,";
    if (!held) {
      operands.push_back(leftDescriptor);
      constraints += "l,";
    }
    operands.push_back(rightDescriptor);
    constraints += "l,~{memory}";
    auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(n, f32));
    auto product = assembly(builder, loc, result, operands, text, constraints);
    for (auto [i, r] : llvm::enumerate(own)) {
      sums[r] = LLVM::ExtractValueOp::create(builder, loc, product.getResult(0), i);
      order.push_back(r);
    }
  };
  SmallVector<int64_t> rows(rowBlocks.begin(), rowBlocks.end());
  if (op.getInFlight())
    multiply(rows);
  else
    for (int64_t row : rows)
      multiply(row);
  bool inStep = llvm::any_of(op->getUsers(), [](Operation *user) { return user->hasAttr(kPendingAttr); });
  if (op.getInFlight() && inStep) {
    assembly(builder, loc, TypeRange(), ValueRange(), "wgmma.commit_group.sync.aligned;", "~{memory}");
    readInStep[op] = fragments;
  } else if (op.getInFlight()) {
    assembly(builder, loc, TypeRange(), ValueRange(),
             "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;", "~{memory}");
    readInFlight = fragments;
  } else {
    assembly(builder, loc, TypeRange(), ValueRange(), "wgmma.commit_group.sync.aligned;", "~{memory}");
    Registers ordered;
    for (int64_t r : order)
      ordered.push_back(sums[r]);
    ordered = waitForProducts(ordered, fragments, 0);
    for (auto [i, r] : llvm::enumerate(order))
      sums[r] = ordered[i];
  }

  auto own = registersByCoordinates(fragment);
  Registers values;
  for (int64_t r = 0; r < layoutOf(op).registerCount(); ++r) {
    auto coords = layoutOf(op).registerCoordinates(r);
    values.push_back(
        sums[own.at(flipped ? LinearLayout::Coordinates{coords[1], coords[0]} : coords)]);
  }
  tiles[op] = std::move(values);
  return success();
}

/// Sums are there after the wait and not before: it takes and gives them. `read`, what
/// the products read in registers, may not be used for anything else until then. Of
/// products that were started later, `pending` may go on.
Registers ThreadEmitter::waitForProducts(ArrayRef<Value> sums, ArrayRef<Value> read, int64_t pending) {
  std::string constraints;
  SmallVector<Value> operands(sums);
  for (size_t i = 0; i < sums.size(); ++i)
    constraints += "=f,";
  for (size_t i = 0; i < sums.size(); ++i)
    constraints += std::to_string(i) + ",";
  for (Value word : read) {
    operands.push_back(word);
    constraints += "r,";
  }
  auto result = LLVM::LLVMStructType::getLiteral(
      builder.getContext(), SmallVector<Type>(sums.size(), builder.getF32Type()));
  auto waited = assembly(builder, loc, result, operands,
                         "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";",
                         constraints + "~{memory}");
  Registers values;
  for (size_t i = 0; i < sums.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, loc, waited.getResult(0), i));
  return values;
}

void ThreadEmitter::emitSettle(SettleOp op) {
  if (auto pending = op->getAttrOfType<IntegerAttr>(kPendingAttr)) {
    tiles[op] = waitForProducts(registers(op.getOperand()), readInStep[op.getOperand()], pending.getInt());
    return;
  }
  tiles[op] = waitForProducts(registers(op.getOperand()), readInFlight, 0);
  readInFlight.clear();
  // Behind a loop: what follows is ordered by elements (OrderStores.cpp), which a
  // barrier would stop.
  if (!op.getOperand().getDefiningOp<DotOp>() && scratchBusy) {
    barrier();
    scratchBusy = false;
  }
}
