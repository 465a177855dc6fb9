//===- Product.cpp - Products by mma.sync and by FMA -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ProductOperand.h"

using namespace mlir;
using namespace nova;
using namespace nova::tile;

static RankedTensorType tileType(Value value) { return cast<RankedTensorType>(value.getType()); }

Value nova::tile::roundToTf32(OpBuilder &builder, Location loc, Value word, bool warpgroups) {
  StringRef text = warpgroups ? "cvt.rn.tf32.f32 $0, $1;" : "cvt.rna.tf32.f32 $0, $1;";
  return assembly(builder, loc, builder.getI32Type(), word, text, "=r,r", /*sideEffects=*/false).getResult(0);
}

LogicalResult ThreadEmitter::emitDot(DotOp op) {
  if (dotKind(op) == DotKind::Wgmma)
    return emitWarpgroupDot(op);
  RankedTensorType lhsType = tileType(op.getLhs());
  LinearLayout accumulator = layoutOf(op);
  Type element = lhsType.getElementType();
  int64_t k = lhsType.getDimSize(1);
  DotKind kind = dotKind(op);

  // Operands that are converted for this product go through the scratch area: all
  // are written, then one barrier. Slots of a ring are read where they are.
  int64_t bytes = 0, elementBytes = element.getIntOrFloatBitWidth() / 8;
  SmallVector<ProductOperand, 2> operands;
  SmallVector<std::function<void()>> writes;
  const Value sides[] = {op.getLhs(), op.getRhs()};
  for (auto [number, operand] : llvm::enumerate(sides)) {
    LinearLayout layout = layoutOf(operand);
    if (tiles.contains(operand)) {
      operands.emplace_back(*this, number, layout, registers(operand));
    } else if (auto local = operand.getDefiningOp<LocalLoadOp>()) {
      operands.emplace_back(*this, number, layout, element,
                            slotAt(local.getBuffer(), local.getSlot()), local.getDims());
    } else {
      Value source = operand.getDefiningOp<ConvertOp>().getOperand();
      LinearLayout from = layoutOf(source);
      SharedTile tile = sharedTileFor(from.core, from.outer, elementBytes);
      tile.base = constantI32(bytes);
      bytes += llvm::alignTo(tile.bytes(), 128);
      writes.push_back([this, source, from, tile] { storeShared(registers(source), from, tile); });
      operands.emplace_back(*this, number, layout, element, tile, ArrayRef<int64_t>{0, 1});
    }
  }
  if (bytes) {
    beginScratch(bytes);
    for (auto &write : writes)
      write();
    scratchWritten();
  }
  ProductOperand &a = operands[0], &b = operands[1];

  std::map<std::pair<int64_t, int64_t>, int64_t> where;
  std::set<int64_t> rows, columns;
  for (int64_t r = 0; r < accumulator.registerCount(); ++r) {
    auto coords = accumulator.registerCoordinates(r);
    where.insert({{coords[0], coords[1]}, r});
    rows.insert(coords[0]);
    columns.insert(coords[1]);
  }
  Registers sums = registers(op.getAccumulator());

  if (kind == DotKind::Fma) {
    Type wide = op.getType().getElementType();
    auto widen = [&](Value value) -> Value {
      return value.getType() == wide ? value
                                     : arith::ExtFOp::create(builder, loc, wide, value).getResult();
    };
    for (int64_t step = 0; step < k; ++step) {
      std::map<int64_t, Value> right;
      for (int64_t column : columns)
        right[column] = widen(b.at(column, step));
      for (int64_t row : rows) {
        Value left = widen(a.at(row, step));
        for (int64_t column : columns) {
          Value &sum = sums[where.at({row, column})];
          sum = LLVM::FMAOp::create(builder, loc, wide, left, right[column], sum);
        }
      }
    }
    // LLVM would move this arithmetic behind the next branch, to its first use, and
    // all that was loaded for it would live until then.
    StringRef same = wide.isF64() ? "=d,0" : "=f,0";
    for (Value &sum : sums)
      sum = assembly(builder, loc, wide, sum, "", same).getResult(0);
    tiles[op] = std::move(sums);
    return success();
  }

  // mma.sync: fragments as DotLayouts.cpp lists them.
  bool half = kind == DotKind::MmaHalf;
  int64_t depth = half ? 16 : 8, second = depth / 2;
  auto types = half ? (element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16)
                    : NVVM::MMATypes::tf32;
  std::set<int64_t> rowBlocks, columnBlocks;
  for (int64_t row : rows)
    rowBlocks.insert(row & ~int64_t{8});
  for (int64_t column : columns)
    columnBlocks.insert(column & ~int64_t{1});
  auto word = [&](ProductOperand &operand, int64_t side, int64_t at) -> Value {
    Value bits = operand.word(side, at, depth, columnBlocks);
    if (!half)
      return roundToTf32(builder, loc, bits, /*warpgroups=*/false);
    if (types == NVVM::MMATypes::f16) // the op's spelling of such a word
      return LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, element), bits);
    return bits;
  };
  auto f32 = builder.getF32Type();
  auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(), {f32, f32, f32, f32});
  for (int64_t step = 0; step < k; step += depth) {
    std::map<int64_t, SmallVector<Value>> right;
    for (int64_t column : columnBlocks)
      right[column] = {word(b, column, step), word(b, column, step + second)};
    for (int64_t row : rowBlocks) {
      SmallVector<Value> left = {word(a, row, step), word(a, row + 8, step),
                                 word(a, row, step + second), word(a, row + 8, step + second)};
      for (int64_t column : columnBlocks) {
        int64_t held[4] = {where.at({row, column}), where.at({row, column + 1}),
                           where.at({row + 8, column}), where.at({row + 8, column + 1})};
        SmallVector<Value> sum;
        for (int64_t r : held)
          sum.push_back(sums[r]);
        Value product = NVVM::MmaOp::create(
            builder, loc, result, left, right[column], sum,
            ArrayRef<int64_t>{16, 8, depth}, std::nullopt, std::nullopt,
            std::array<NVVM::MMATypes, 2>{types, types},
            std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
        for (auto [i, r] : llvm::enumerate(held))
          sums[r] = LLVM::ExtractValueOp::create(builder, loc, product, i);
      }
    }
  }
  tiles[op] = std::move(sums);
  return success();
}
