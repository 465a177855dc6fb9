//===- ProductOperand.cpp - Where a product's operand comes from -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix (PTX ISA 8.0, 9.7.13.4.15) reads up to four 8x8 matrices of 16-bit
// elements: lane 8m + i gives the address of row i (16 bytes) of matrix m, and
// lane 4g + t receives elements 2t, 2t + 1 of row g of each (transposed: of
// column g). With 32-bit elements that is element t of row g, of matrices 8x4.
//
//===----------------------------------------------------------------------===//
#include "ProductOperand.h"

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Bytes of a row of ldmatrix.
static constexpr int64_t kRowBytes = 16;

ProductOperand::ProductOperand(ThreadEmitter &emitter, unsigned number,
                               const LinearLayout &layout, Registers held)
    : emitter(emitter), number(number), stored(layout), order({0, 1}), values(std::move(held)),
      where(registersByCoordinates(stored)) {}

ProductOperand::ProductOperand(ThreadEmitter &emitter, unsigned number,
                               const LinearLayout &layout, Type element, const SharedTile &tile,
                               ArrayRef<int64_t> dims)
    : emitter(emitter), number(number), order(dims.begin(), dims.end()), element(element),
      tile(tile) {
  stored = layout.transposed(order);
  values.resize(stored.registerCount());
  vector = emitter.sharedVector(stored, tile);
  where = registersByCoordinates(stored);
  matrix = matrixKind();
}

LinearLayout::Coordinates ProductOperand::toStored(int64_t side, int64_t k) const {
  int64_t coords[2] = {number == 0 ? side : k, number == 0 ? k : side};
  return {coords[order[0]], coords[order[1]]};
}

Value ProductOperand::at(int64_t side, int64_t k) {
  int64_t r = where.at(toStored(side, k));
  if (!values[r]) {
    int64_t first = r / vector * vector;
    Registers loaded = emitter.loadSharedVector(element, stored, *tile, first, vector);
    for (int64_t i = 0; i < vector; ++i)
      values[first + i] = loaded[i];
  }
  return values[r];
}

ProductOperand::Matrix ProductOperand::matrixKind() const {
  int64_t bytes = tile->elementBytes;
  if (bytes != 2 && bytes != 4)
    return Matrix::No;
  unsigned kDim = 1 - number;
  bool kIsInner = order[1] == kDim;
  if (!kIsInner && bytes != 2)
    return Matrix::No; // only 16-bit elements are transposed by it
  // Which bits of the thread and of its registers choose a byte within a row.
  std::vector<std::pair<int64_t, int64_t>> inner; // element, wanted byte
  if (kIsInner && bytes == 2)
    inner = {{stored.registers[0], 2}, {stored.lanes[0], 4}, {stored.lanes[1], 8}};
  else if (kIsInner)
    inner = {{stored.lanes[0], 4}, {stored.lanes[1], 8}};
  else
    inner = {{stored.lanes[2], 2}, {stored.lanes[3], 4}, {stored.lanes[4], 8}};
  std::set<int64_t> used;
  for (auto [basis, byte] : inner) {
    if (tile->offset(basis) != byte)
      return Matrix::No;
    used.insert(basis);
  }
  for (const auto *bases : {&stored.registers, &stored.lanes, &stored.warps})
    for (int64_t basis : *bases)
      if (!used.count(basis) && tile->offset(basis) % kRowBytes)
        return Matrix::No;
  return kIsInner ? Matrix::Plain : Matrix::Transposed;
}

void ProductOperand::loadMatrix(int64_t side, int64_t k, int64_t depth,
                                const std::set<int64_t> &columns) {
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  auto offsetOf = [&](int64_t atSide, int64_t atK) { // within the core
    LinearLayout::Coordinates coords = toStored(atSide, atK);
    for (unsigned d = 0; d < 2; ++d)
      coords[d] %= stored.core[d];
    return tile->offset(stored.join(coords));
  };
  // What matrices 1, 2 and 3 are, by the bits of their number.
  std::vector<std::pair<int64_t, int64_t>> next; // (side, k) steps
  if (number == 0) {
    next = {{8, 0}, {0, depth / 2}};
    side &= ~int64_t{8};
  } else {
    next = {{0, depth / 2}};
    // A second block of columns, whose number differs in one bit of the core.
    int64_t bit = 0;
    for (int64_t block : columns)
      if (block && block < stored.core[order[0] == 1 ? 0 : 1] && (block & (block - 1)) == 0 &&
          (!bit || block < bit))
        bit = block;
    if (bit) {
      next.push_back({bit, 0});
      side &= ~bit;
    }
  }
  k = k / depth * depth;
  std::vector<int64_t> images;
  if (matrix == Matrix::Plain) {
    for (unsigned bit : {2u, 3u, 4u})
      images.push_back(tile->offset(stored.lanes[bit]));
  } else {
    for (int64_t row : {1, 2, 4})
      images.push_back(offsetOf(0, row));
  }
  for (auto [stepSide, stepK] : next)
    images.push_back(offsetOf(stepSide, stepK));
  images.resize(kLaneBits, 0);
  for (int64_t basis : stored.warps)
    images.push_back(tile->offset(basis));

  LinearLayout::Coordinates coords = toStored(side, k);
  int64_t repeat = 0;
  for (unsigned d = 0; d < 2; ++d)
    repeat = repeat * stored.outer[d] + coords[d] / stored.core[d];
  Value pointer = emitter.sharedPointer(images, *tile, offsetOf(side, k),
                                        tile->repeatOffset(repeat));
  size_t count = size_t{1} << next.size();
  auto i32 = builder.getI32Type();
  Value address = LLVM::PtrToIntOp::create(builder, loc, i32, pointer);
  std::string list, constraints;
  for (size_t i = 0; i < count; ++i) {
    list += (i ? ", $" : "$") + std::to_string(i);
    constraints += "=r,";
  }
  std::string text = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                     (matrix == Matrix::Transposed ? ".trans" : "") + ".shared.b16 {" + list +
                     "}, [$" + std::to_string(count) + "];";
  auto result =
      LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(count, i32));
  auto loaded = assembly(builder, loc, result, address, text, constraints + "r,~{memory}");
  for (size_t m = 0; m < count; ++m) {
    int64_t atSide = side, atK = k;
    for (size_t bit = 0; bit < next.size(); ++bit)
      if (m >> bit & 1)
        atSide += next[bit].first, atK += next[bit].second;
    words[{atSide, atK}] = LLVM::ExtractValueOp::create(builder, loc, loaded.getResult(0), m);
  }
}

Value ProductOperand::word(int64_t side, int64_t k, int64_t depth,
                           const std::set<int64_t> &columns) {
  bool pairs = depth == 16;
  bool demoted = pairs && element && element.isF32();
  if (matrix != Matrix::No && !demoted) {
    if (!words.count({side, k}))
      loadMatrix(side, k, depth, columns);
    return words.at({side, k});
  }
  Value &known = words[{side, k}];
  if (known)
    return known;
  if (!pairs)
    return known = emitter.pack({at(side, k)})[0];
  SmallVector<Value> pair{at(side, k), at(side, k + 1)};
  for (Value &value : pair)
    if (value.getType().isF32())
      value = arith::TruncFOp::create(emitter.builder, emitter.loc, emitter.builder.getBF16Type(),
                                      value);
  return known = emitter.pack(pair)[0];
}
