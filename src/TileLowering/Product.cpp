//===- Product.cpp - Products by mma.sync and by FMA -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include <set>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

static RankedTensorType tileType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// An operand's registers, found by coordinates; read from shared memory when
/// first asked for, so that few are alive at a time.
class Fragment {
public:
  using Load = std::function<Registers(int64_t first, int64_t count)>;

  Fragment(const LinearLayout &layout, Registers held) : values(std::move(held)) { index(layout); }
  Fragment(const LinearLayout &layout, int64_t vector, Load load)
      : values(layout.registerCount()), vector(vector), load(std::move(load)) {
    index(layout);
  }

  Value at(int64_t row, int64_t column) {
    int64_t r = where.at({row, column});
    if (!values[r]) {
      int64_t first = r / vector * vector;
      Registers loaded = load(first, vector);
      for (int64_t i = 0; i < vector; ++i)
        values[first + i] = loaded[i];
    }
    return values[r];
  }

private:
  void index(const LinearLayout &layout) {
    for (int64_t r = 0; r < layout.registerCount(); ++r) {
      auto coords = layout.registerCoordinates(r);
      where.insert({{coords[0], coords[1]}, r});
    }
  }

  Registers values;
  std::map<std::pair<int64_t, int64_t>, int64_t> where;
  int64_t vector = 1;
  Load load;
};
} // namespace

static Value toTF32(OpBuilder &builder, Location loc, Value value) {
  return LLVM::InlineAsmOp::create(builder, loc, TypeRange(builder.getI32Type()),
                                   ValueRange(value), "cvt.rna.tf32.f32 $0, $1;", "=r,f",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

LogicalResult ThreadEmitter::emitDot(DotOp op) {
  RankedTensorType lhsType = tileType(op.getLhs());
  LinearLayout accumulator = layoutOf(op);
  Type element = lhsType.getElementType();
  int64_t k = lhsType.getDimSize(1);
  DotKind kind = op->hasAttr(kFmaAttr)
                     ? DotKind::Fma
                     : dotKind(element, op.getPrecision(), op.getType().getDimSize(0),
                               op.getType().getDimSize(1), k);

  // Operands that come through shared memory: all are written, then one barrier.
  struct Source {
    ConvertOp convert;
    LinearLayout from;
    SharedTile tile;
  };
  SmallVector<std::optional<Source>> sources;
  int64_t bytes = 0;
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  for (Value operand : {op.getLhs(), op.getRhs()}) {
    if (tiles.contains(operand)) {
      sources.push_back(std::nullopt);
      continue;
    }
    auto convert = operand.getDefiningOp<ConvertOp>();
    Source source{convert, layoutOf(convert.getOperand()), {}};
    source.tile = sharedTileFor(source.from, elementBytes);
    source.tile.base = constantI32(bytes);
    bytes += llvm::alignTo(source.tile.bytes(), 128);
    sources.push_back(source);
  }
  if (bytes) {
    beginScratch(bytes);
    for (auto &source : sources)
      if (source)
        storeShared(registers(source->convert.getOperand()), source->from, source->tile);
    scratchWritten();
  }
  auto fragment = [&](Value operand, const std::optional<Source> &source) {
    LinearLayout layout = layoutOf(operand);
    if (!source)
      return Fragment(layout, registers(operand));
    return Fragment(layout, sharedVector(layout, source->tile),
                    [this, layout, element, tile = source->tile](int64_t first, int64_t count) {
                      return loadSharedVector(element, layout, tile, first, count);
                    });
  };
  Fragment a = fragment(op.getLhs(), sources[0]), b = fragment(op.getRhs(), sources[1]);

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
        right[column] = widen(b.at(step, column));
      for (int64_t row : rows) {
        Value left = widen(a.at(row, step));
        for (int64_t column : columns) {
          Value &sum = sums[where.at({row, column})];
          sum = LLVM::FMAOp::create(builder, loc, wide, left, right[column], sum);
        }
      }
    }
    tiles[op] = std::move(sums);
    return success();
  }

  // mma.sync: fragments as DotLayouts.cpp lists them.
  bool half = kind == DotKind::MmaHalf;
  int64_t depth = half ? 16 : 8;
  bool narrow = half && element.isF32(); // demoted to bfloat16
  auto types = half ? (element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16)
                    : NVVM::MMATypes::tf32;
  auto word = [&](Fragment &operand, bool left, int64_t side, int64_t at) -> Value {
    auto get = [&](int64_t alongK) {
      Value value = left ? operand.at(side, alongK) : operand.at(alongK, side);
      return narrow ? arith::TruncFOp::create(builder, loc, builder.getBF16Type(), value)
                          .getResult()
                    : value;
    };
    if (!half)
      return toTF32(builder, loc, get(at));
    Value pair = pack({get(at), get(at + 1)})[0];
    if (types == NVVM::MMATypes::f16) // the op's spelling of such a word
      pair = LLVM::BitcastOp::create(builder, loc, VectorType::get({2}, element), pair);
    return pair;
  };
  std::set<int64_t> rowBlocks, columnBlocks;
  for (int64_t row : rows)
    rowBlocks.insert(row & ~int64_t{8});
  for (int64_t column : columns)
    columnBlocks.insert(column & ~int64_t{1});
  auto f32 = builder.getF32Type();
  auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(), {f32, f32, f32, f32});
  int64_t second = depth / 2;
  for (int64_t step = 0; step < k; step += depth) {
    std::map<int64_t, SmallVector<Value>> right;
    for (int64_t column : columnBlocks)
      right[column] = {word(b, false, column, step), word(b, false, column, step + second)};
    for (int64_t row : rowBlocks) {
      SmallVector<Value> left = {word(a, true, row, step), word(a, true, row + 8, step),
                                 word(a, true, row, step + second),
                                 word(a, true, row + 8, step + second)};
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
