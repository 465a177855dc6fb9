//===- InterpreterMemory.cpp - Loads, stores and gathers ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterImpl.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;

namespace nova::tile {

static std::string shapeText(ArrayRef<int64_t> shape) {
  return "a memory of shape " + textOf(shape);
}

/// Address of the element at `place`, which lies inside.
static char *addressOf(const Memory &memory, ArrayRef<int64_t> place) {
  int64_t elements = 0;
  for (auto [at, stride] : llvm::zip_equal(place, memory.strides))
    elements += at * stride;
  return memory.base + elements * int64_t(memory.format.bytes());
}

void Interpreter::executeMember(MemberOp op) {
  int64_t at = getIndex(op.getPoint());
  ArrayRef<int64_t> starts = op.getStarts();
  size_t member = 0;
  while (member + 1 < starts.size() && starts[member + 1] <= at)
    ++member;
  set(op.getMember(), Held(op.getMember().getType(), member));
  set(op.getLocal(), Held(op.getLocal().getType(), at - starts[member]));
}

LogicalResult Interpreter::executeSelect(SelectOp op) {
  int64_t number = getIndex(op.getNumber());
  if (number < 0 || number >= (int64_t)op.getMemories().size())
    return fail(op, "number " + Twine(number) + " of " +
                        Twine(op.getMemories().size()) + " memories");
  // A memory is held as its number.
  Held held = get(op.getMemories()[number]);
  held.type = op.getType();
  set(op.getResult(), std::move(held));
  return success();
}

LogicalResult Interpreter::locate(Operation *op, Value memoryValue,
                                  ValueRange offsets, ArrayRef<int64_t> along,
                                  ArrayRef<int64_t> bounds,
                                  ArrayRef<int64_t> shape, Access &access) {
  Memory &memory = getMemory(memoryValue);
  access.memory = &memory;
  access.shape.assign(shape.begin(), shape.end());
  Coordinates start;
  for (Value offset : offsets)
    start.push_back(getIndex(offset));

  for (size_t d = 0; d < start.size(); ++d)
    if (!llvm::is_contained(along, int64_t(d)) &&
        (start[d] < 0 || start[d] >= memory.shape[d]))
      return fail(op, "offset " + Twine(start[d]) + " of dimension " +
                          Twine(d) + " is outside " + shapeText(memory.shape));
  for (auto [k, dim] : llvm::enumerate(along)) {
    int64_t last;
    if (llvm::AddOverflow(start[dim], shape[k] - 1, last))
      return fail(op, "offset " + Twine(start[dim]) + " of dimension " +
                          Twine(dim) + " overflows");
    // The first element along this dimension that may not be outside, but is.
    std::optional<int64_t> wrong;
    if (bounds[k] < 2 && start[dim] < 0)
      wrong = 0;
    else if (bounds[k] < 1 && last >= memory.shape[dim])
      wrong = std::max<int64_t>(memory.shape[dim] - start[dim], 0);
    if (!wrong)
      continue;
    Coordinates element(shape.size());
    element[k] = *wrong;
    return fail(op, "element " + textOf(element) + " is at " +
                        Twine(start[dim] + *wrong) + " along dimension " +
                        Twine(dim) + " of " + shapeText(memory.shape) +
                        ", but bounds[" + Twine(k) + "] is " +
                        Twine(bounds[k]));
  }

  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  access.addresses.assign(count, nullptr);
  for (int64_t i = 0; i < count; ++i) {
    Coordinates place = start;
    for (auto [k, at] : llvm::enumerate(coordinatesOf(shape, i)))
      place[along[k]] += at;
    bool inside = true;
    for (auto [at, extent] : llvm::zip_equal(place, memory.shape))
      inside &= at >= 0 && at < extent;
    if (inside)
      access.addresses[i] = addressOf(memory, place);
  }
  return success();
}

LogicalResult Interpreter::read(Operation *op, const Access &access,
                                size_t element, uint64_t &bits) {
  char *address = access.addresses[element];
  Format format = access.memory->format;
  auto where = [&] {
    return "element " + textOf(coordinatesOf(access.shape, element));
  };
  if (options.checkRaces) {
    Touched &touch = touched[uintptr_t(address)];
    if (touch.writer >= 0 && touch.writer != point)
      return fail(op, where() + " reads what grid point " +
                          Twine(touch.writer) + " wrote");
    touch.manyReaders |= touch.reader >= 0 && touch.reader != point;
    touch.reader = point;
  }
  bits = 0; // Little endian, as are the machines that have these GPUs.
  std::memcpy(&bits, address, format.bytes());
  if (format.wrap(bits) != bits)
    return fail(op, where() + " is an i1 of value " + Twine(bits));
  return success();
}

LogicalResult Interpreter::write(Operation *op, const Access &access,
                                 size_t element, uint64_t bits) {
  char *address = access.addresses[element];
  unsigned bytes = access.memory->format.bytes();
  if (options.checkRaces) {
    Touched &touch = touched[uintptr_t(address)];
    std::string where =
        "element " + textOf(coordinatesOf(access.shape, element));
    if (touch.reader >= 0 && (touch.reader != point || touch.manyReaders))
      return fail(op, where + " overwrites what another grid point reads");
    if (touch.writer >= 0 && touch.writer != point &&
        std::memcmp(&bits, address, bytes) != 0)
      return fail(op, where + " overwrites what grid point " +
                          Twine(touch.writer) + " wrote, with another value");
    touch.writer = point;
  }
  std::memcpy(address, &bits, bytes);
  return success();
}

LogicalResult Interpreter::executeLoad(LoadOp op) {
  Held tile(cast<RankedTensorType>(op.getResult().getType()));
  Access access;
  if (failed(locate(op, op.getMemory(), op.getOffsets(), op.getAlong(),
                    op.getBounds(), tile.shape(), access)))
    return failure();
  uint64_t fill = op.getFill() ? get(op.getFill()).bits[0] : 0;
  for (auto [i, bits] : llvm::enumerate(tile.bits))
    if (!access.addresses[i])
      bits = fill;
    else if (failed(read(op, access, i, bits)))
      return failure();
  set(op.getResult(), std::move(tile));
  return success();
}

LogicalResult Interpreter::executeStore(StoreOp op) {
  const Held &tile = get(op.getValue());
  Access access;
  if (failed(locate(op, op.getMemory(), op.getOffsets(), op.getAlong(),
                    op.getBounds(), tile.shape(), access)))
    return failure();
  for (auto [k, dim] : llvm::enumerate(op.getAlong()))
    if (access.memory->strides[dim] == 0 && tile.shape()[k] > 1)
      return fail(op, "several elements go to one place: dimension " +
                          Twine(dim) + " of the memory has stride 0");
  for (auto [i, bits] : llvm::enumerate(tile.bits))
    if (access.addresses[i] && failed(write(op, access, i, bits)))
      return failure();
  return success();
}

LogicalResult Interpreter::executeGather(GatherOp op) {
  Held tile(cast<RankedTensorType>(op.getResult().getType()));
  Access access;
  access.memory = &getMemory(op.getMemory());
  access.shape.assign(tile.shape().begin(), tile.shape().end());
  access.addresses.resize(tile.bits.size());
  const Memory &memory = *access.memory;
  for (auto [i, bits] : llvm::enumerate(tile.bits)) {
    if (op.getMask() && !get(op.getMask()).bits[i])
      continue;
    Coordinates place;
    for (Value index : op.getIndices()) {
      const Held &held = get(index);
      place.push_back(held.bits[held.isTile() ? i : 0]);
    }
    for (auto [d, at] : llvm::enumerate(place))
      if (at < 0 || at >= memory.shape[d])
        return fail(op, "element " + textOf(coordinatesOf(access.shape, i)) +
                            " is at " + textOf(place) + ", outside " +
                            shapeText(memory.shape));
    access.addresses[i] = addressOf(memory, place);
    if (failed(read(op, access, i, bits)))
      return failure();
  }
  set(op.getResult(), std::move(tile));
  return success();
}

} // namespace nova::tile
