//===- GlobalMemory.cpp - Tiles to and from global memory ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The address of a register's element is the thread's own address plus a
// constant: one pointer for each tile. Where the tile may hang over an edge, an
// access is one predicated instruction, so that code stays without branches.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Coordinates and distances to an edge are compared as i32; what is further
/// away than this counts as this far.
static constexpr int64_t kFar = int64_t{1} << 30;

Type ThreadEmitter::memoryType(Type element, Builder &builder) {
  if (element.isInteger(1))
    return builder.getI8Type();
  if (element.isIndex())
    return builder.getI64Type();
  return element;
}

int64_t ThreadEmitter::memoryBytes(Type element) {
  return memoryType(element, builder).getIntOrFloatBitWidth() / 8;
}

Value ThreadEmitter::toMemory(Value value) {
  if (value.getType().isInteger(1))
    return arith::ExtUIOp::create(builder, loc, builder.getI8Type(), value);
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
  return value;
}

Value ThreadEmitter::fromMemory(Value value, Type element) {
  if (element.isInteger(1)) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(0));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, zero);
  }
  if (element.isIndex())
    return arith::IndexCastOp::create(builder, loc, element, value);
  return value;
}

static Type wordType(Builder &builder, int64_t bits) {
  // Registers of PTX: 64 bits for whole 8-byte elements, else 32, else what it is.
  return builder.getIntegerType(bits);
}

SmallVector<Value> ThreadEmitter::pack(ArrayRef<Value> elements) {
  SmallVector<Value> memory;
  for (Value element : elements)
    memory.push_back(toMemory(element));
  Type type = memory[0].getType();
  int64_t bits = type.getIntOrFloatBitWidth(), total = bits * memory.size();
  int64_t wordBits = bits == 64 ? 64 : std::min<int64_t>(32, total);
  if (memory.size() == 1 || bits == wordBits) {
    for (Value &value : memory)
      if (!isa<IntegerType>(value.getType()))
        value = LLVM::BitcastOp::create(builder, loc, wordType(builder, bits), value);
    return memory;
  }
  int64_t perWord = wordBits / bits;
  SmallVector<Value> words;
  auto vector = VectorType::get({perWord}, type);
  for (size_t first = 0; first < memory.size(); first += perWord) {
    Value joined = LLVM::UndefOp::create(builder, loc, vector);
    for (int64_t i = 0; i < perWord; ++i)
      joined = LLVM::InsertElementOp::create(builder, loc, joined, memory[first + i],
                                             constantI32(i));
    words.push_back(LLVM::BitcastOp::create(builder, loc, wordType(builder, wordBits), joined));
  }
  return words;
}

Registers ThreadEmitter::unpack(ArrayRef<Value> words, Type element, int64_t count) {
  Type type = memoryType(element, builder);
  int64_t bits = type.getIntOrFloatBitWidth();
  Registers result;
  int64_t perWord = count / (int64_t)words.size();
  for (Value word : words) {
    if (perWord == 1) {
      Value value = word;
      if (value.getType().getIntOrFloatBitWidth() > bits)
        value = arith::TruncIOp::create(builder, loc, wordType(builder, bits), value);
      if (value.getType() != type)
        value = LLVM::BitcastOp::create(builder, loc, type, value);
      result.push_back(fromMemory(value, element));
      continue;
    }
    Value vector =
        LLVM::BitcastOp::create(builder, loc, VectorType::get({perWord}, type), word);
    for (int64_t i = 0; i < perWord; ++i)
      result.push_back(fromMemory(
          LLVM::ExtractElementOp::create(builder, loc, vector, constantI32(i)), element));
  }
  return result;
}

ThreadEmitter::Places ThreadEmitter::place(const Access &access, const LinearLayout &layout) {
  Places places;
  int64_t bytes = access.elementBytes();
  std::vector<int64_t> strides = access.strides();
  SmallVector<int64_t> memoryStrides;
  int64_t unused;
  (void)access.memoryType().getStridesAndOffset(memoryStrides, unused);

  // The tile's corner: the same in all threads, in 64 bits.
  Value corner = constantIndex(0);
  for (auto [offset, stride] : llvm::zip(access.offsets, memoryStrides)) {
    if (stride == 0)
      continue;
    Value part = arith::MulIOp::create(builder, loc, scalar(offset), constantIndex(stride * bytes));
    corner = arith::AddIOp::create(builder, loc, corner, part);
  }
  // The thread's share of the tile.
  auto i64 = builder.getI64Type();
  Value own = arith::IndexCastOp::create(builder, loc, i64, corner);
  for (unsigned d = 0; d < layout.rank(); ++d) {
    if (strides[d] == 0)
      continue;
    Value coordinate = threadCoordinate(layout, d);
    int64_t scale = strides[d] * bytes;
    bool narrow = scale * layout.shape()[d] < std::numeric_limits<int32_t>::max();
    Value part;
    if (narrow) {
      part = arith::MulIOp::create(builder, loc, coordinate, constantI32(scale));
      part = arith::ExtUIOp::create(builder, loc, i64, part);
    } else {
      part = arith::ExtUIOp::create(builder, loc, i64, coordinate);
      part = arith::MulIOp::create(builder, loc, part,
                                   arith::ConstantOp::create(builder, loc,
                                                             builder.getI64IntegerAttr(scale)));
    }
    own = arith::AddIOp::create(builder, loc, own, part);
  }
  Value memory = scalar(access.memory);
  places.base = LLVM::GEPOp::create(builder, loc, memory.getType(), builder.getI8Type(), memory,
                                    ArrayRef<LLVM::GEPArg>{own});

  // Distances to the edges, once for each dimension.
  SmallVector<Value> upper(layout.rank()), lower(layout.rank());
  auto clamp = [&](Value distance) -> Value {
    distance = arith::MinSIOp::create(builder, loc, distance, constantIndex(kFar));
    distance = arith::MaxSIOp::create(builder, loc, distance, constantIndex(-kFar));
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), distance);
  };
  for (unsigned d = 0; d < layout.rank(); ++d) {
    if (access.bounds[d] == 0)
      continue;
    int64_t dim = access.along[d];
    Value offset = scalar(access.offsets[dim]);
    Value extent = extentOf(access.memory, dim);
    upper[d] = clamp(arith::SubIOp::create(builder, loc, extent, offset));
    if (access.bounds[d] == 2)
      lower[d] = clamp(arith::SubIOp::create(builder, loc, constantIndex(0), offset));
  }
  std::map<std::pair<unsigned, int64_t>, Value> inside; // (dimension, register's part)
  auto isInside = [&](unsigned d, int64_t part) -> Value {
    Value &known = inside[{d, part}];
    if (known)
      return known;
    Value coordinate = threadCoordinate(layout, d);
    if (part)
      coordinate = arith::AddIOp::create(builder, loc, coordinate, constantI32(part));
    known = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, coordinate, upper[d]);
    if (lower[d]) {
      Value above =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, coordinate, lower[d]);
      known = arith::AndIOp::create(builder, loc, known, above);
    }
    return known;
  };
  for (int64_t r = 0; r < layout.registerCount(); ++r) {
    LinearLayout::Coordinates coords = layout.registerCoordinates(r);
    int64_t distance = 0;
    Value predicate;
    for (unsigned d = 0; d < layout.rank(); ++d) {
      distance += coords[d] * strides[d] * bytes;
      if (!upper[d])
        continue;
      Value here = isInside(d, coords[d]);
      predicate = predicate ? arith::AndIOp::create(builder, loc, predicate, here).getResult()
                            : here;
    }
    places.bytes.push_back(distance);
    places.predicate.push_back(predicate);
  }
  std::vector<unsigned> order = access.order();
  if (!order.empty() && strides[order[0]] == 1)
    places.vector = std::min(layout.contiguousRegisters(order[0]), access.vectorLength(order[0]));
  return places;
}

/// PTX type and register constraint of a word.
static std::pair<StringRef, StringRef> asmType(Type word) {
  switch (word.getIntOrFloatBitWidth()) {
  case 8: return {"b8", "r"};
  case 16: return {"b16", "h"};
  case 32: return {"b32", "r"};
  default: return {"b64", "l"};
  }
}

/// "{$1, $2}" or "$1".
static std::string operandList(unsigned first, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return count == 1 ? text : "{" + text + "}";
}
static std::string vectorSuffix(size_t count) {
  return count == 1 ? "" : ".v" + std::to_string(count);
}

Value ThreadEmitter::addressAt(Value base, int64_t bytes) {
  if (!bytes)
    return base;
  // What is no part of an access is added in 64 bits.
  LLVM::GEPArg distance = (int32_t)bytes;
  if (!llvm::isInt<32>(bytes))
    distance = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(bytes)).getResult();
  return LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{distance});
}

LogicalResult ThreadEmitter::emitLoad(LoadOp op) {
  LinearLayout layout = layoutOf(op);
  Access access = *accessOf(op);
  Places places = place(access, layout);
  Type element = op.getType().getElementType(), type = memoryType(element, builder);
  Value fill = op.getFill() ? toMemory(scalar(op.getFill())) : Value();
  if (!fill)
    fill = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  Registers values;
  int64_t vector = places.vector;
  for (int64_t r = 0; r < layout.registerCount(); r += vector) {
    Value address = addressAt(places.base, places.bytes[r]);
    Value predicate = places.predicate[r];
    if (!predicate) {
      Type loaded = vector == 1 ? type : VectorType::get({vector}, type);
      Value value = LLVM::LoadOp::create(builder, loc, loaded, address,
                                         access.elementBytes() * vector);
      for (int64_t i = 0; i < vector; ++i)
        values.push_back(fromMemory(
            vector == 1 ? value
                        : LLVM::ExtractElementOp::create(builder, loc, value, constantI32(i))
                              .getResult(),
            element));
      continue;
    }
    // The fill of each word, in the word's own type.
    SmallVector<Value> filled = pack(SmallVector<Value>(vector, fill));
    auto [suffix, constraint] = asmType(filled[0].getType());
    bool byte = filled[0].getType().isInteger(8);
    if (byte)
      for (Value &word : filled)
        word = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), word);
    size_t words = filled.size();
    std::string text = "@$" + std::to_string(words) + " ld.global" + vectorSuffix(words) + "." +
                       suffix.str() + " " + operandList(0, words) + ", [$" +
                       std::to_string(words + 1) + "];";
    std::string constraints;
    for (size_t i = 0; i < words; ++i)
      constraints += "=" + constraint.str() + ",";
    constraints += "b,l";
    for (size_t i = 0; i < words; ++i)
      constraints += "," + std::to_string(i);
    SmallVector<Value> operands{predicate, address};
    llvm::append_range(operands, filled);
    Type resultType = filled[0].getType();
    if (words > 1)
      resultType = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                                    SmallVector<Type>(words, resultType));
    auto loaded = assembly(builder, loc, resultType, operands, text, constraints);
    loaded->setAttr(kLoadAttr, builder.getUnitAttr());
    SmallVector<Value> results;
    for (size_t i = 0; i < words; ++i)
      results.push_back(words == 1 ? loaded.getResult(0)
                                   : LLVM::ExtractValueOp::create(builder, loc,
                                                                  loaded.getResult(0), i)
                                         .getResult());
    llvm::append_range(values, unpack(results, element, vector));
  }
  tiles[op] = std::move(values);
  return success();
}

LogicalResult ThreadEmitter::emitStore(StoreOp op) {
  LinearLayout layout = layoutOf(op.getValue());
  Access access = *accessOf(op);
  Places places = place(access, layout);
  Value owner = isOwner(layout);
  Registers values = registers(op.getValue());
  int64_t vector = places.vector;
  for (int64_t r = 0; r < layout.registerCount(); r += vector) {
    Value address = addressAt(places.base, places.bytes[r]);
    Value predicate = places.predicate[r];
    if (owner)
      predicate = predicate ? arith::AndIOp::create(builder, loc, predicate, owner).getResult()
                            : owner;
    SmallVector<Value> words = pack(ArrayRef<Value>(values).slice(r, vector));
    auto [suffix, constraint] = asmType(words[0].getType());
    if (words[0].getType().isInteger(8))
      for (Value &word : words)
        word = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), word);
    // Unpredicated stores are written the same way: one spelling to read.
    std::string text = predicate ? "@$0 " : "";
    unsigned next = predicate ? 1 : 0;
    text += "st.global" + vectorSuffix(words.size()) + "." + suffix.str() + " [$" +
            std::to_string(next) + "], " + operandList(next + 1, words.size()) + ";";
    std::string constraints = predicate ? "b,l" : "l";
    SmallVector<Value> operands;
    if (predicate)
      operands.push_back(predicate);
    operands.push_back(address);
    for (Value word : words) {
      operands.push_back(word);
      constraints += "," + constraint.str();
    }
    auto stored = assembly(builder, loc, TypeRange(), operands, text, constraints);
    stored->setAttr(kStoreAttr, builder.getI64IntegerAttr(r));
  }
  return success();
}

LogicalResult ThreadEmitter::emitGather(GatherOp op) {
  LinearLayout layout = layoutOf(op);
  auto memory = cast<MemRefType>(op.getMemory().getType());
  Type element = memory.getElementType(), type = memoryType(element, builder);
  int64_t bytes = memoryBytes(element);
  SmallVector<int64_t> strides;
  int64_t unused;
  (void)memory.getStridesAndOffset(strides, unused);
  Value base = scalar(op.getMemory());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  auto isTile = [](Value value) { return isa<RankedTensorType>(value.getType()); };
  Registers values;
  for (int64_t r = 0; r < layout.registerCount(); ++r) {
    Value at = constantIndex(0);
    for (auto [index, stride] : llvm::zip(op.getIndices(), strides)) {
      if (stride == 0)
        continue;
      Value i = isTile(index) ? registers(index)[r] : scalar(index);
      Value part = arith::MulIOp::create(builder, loc, i, constantIndex(stride * bytes));
      at = arith::AddIOp::create(builder, loc, at, part);
    }
    Value offset = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), at);
    Value address = LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI8Type(), base,
                                        ArrayRef<LLVM::GEPArg>{offset});
    auto load = [&]() -> Value {
      return LLVM::LoadOp::create(builder, loc, type, address, bytes);
    };
    Value value;
    if (op.getMask()) {
      auto branch = scf::IfOp::create(builder, loc, TypeRange(type), registers(op.getMask())[r],
                                      /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&branch.getThenRegion().front());
      scf::YieldOp::create(builder, loc, load());
      builder.setInsertionPointToEnd(&branch.getElseRegion().front());
      scf::YieldOp::create(builder, loc, zero);
      value = branch.getResult(0);
    } else {
      value = load();
    }
    values.push_back(fromMemory(value, element));
  }
  tiles[op] = std::move(values);
  return success();
}
