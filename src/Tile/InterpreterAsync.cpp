//===- InterpreterAsync.cpp - Rings, copies and tokens --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy takes place at the wait that it must have arrived by, never earlier,
// so a program that forgets the wait cannot be right by luck.
//
//===----------------------------------------------------------------------===//
#include "InterpreterImpl.h"

#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;

namespace nova::tile {

LogicalResult Interpreter::findSlot(Operation *op, Value buffer, Value slot,
                                    size_t &ring, size_t &number) {
  ring = getIndex(buffer);
  int64_t index = getIndex(slot);
  int64_t slots = rings[ring].slots.size();
  if (index < 0 || index >= slots)
    return fail(op, "slot " + Twine(index) + " of a ring of " + Twine(slots));
  number = index;
  return success();
}

LogicalResult Interpreter::executeAlloc(AllocOp op) {
  auto type = cast<BufferType>(op.getResult().getType());
  // In a loop it is the same memory each time, with what is still going on
  // there.
  if (values.contains(op.getResult()))
    return success();
  if (!formatOf(type.getElementType()))
    return fail(op, "no elements of type " +
                        llvm::to_string(type.getElementType()) +
                        " in tile programs");
  rings.emplace_back().slots.resize(type.getSlots());
  set(op.getResult(), Held(type, rings.size() - 1));
  return success();
}

LogicalResult Interpreter::executeAsyncLoad(AsyncLoadOp op) {
  bool starts = !op.getWhen() || getIndex(op.getWhen());
  set(op.getToken(), Held(op.getToken().getType(), tokens.size()));
  tokens.push_back({Token::Load, starts});
  if (!starts)
    return success();

  Copy copy;
  copy.op = op;
  if (failed(findSlot(op, op.getBuffer(), op.getSlot(), copy.ring, copy.slot)))
    return failure();
  Ring::Slot &slot = rings[copy.ring].slots[copy.slot];
  if (slot.inFlight)
    return fail(op, "slot " + Twine(copy.slot) + " has another copy in flight");
  if (slot.beingRead)
    return fail(op, "slot " + Twine(copy.slot) +
                        " was read since the last wait: other threads may "
                        "still be reading it");
  ArrayRef<int64_t> shape =
      cast<BufferType>(op.getBuffer().getType()).getShape();
  if (failed(locate(op, op.getMemory(), op.getOffsets(), op.getAlong(),
                    op.getBounds(), shape, copy.source)))
    return failure();
  copy.bits.resize(copy.source.addresses.size());
  for (auto [i, bits] : llvm::enumerate(copy.bits))
    if (copy.source.addresses[i] && failed(read(op, copy.source, i, bits)))
      return failure();
  slot.inFlight = true;
  started.push_back(std::move(copy));
  return success();
}

LogicalResult Interpreter::executeCommit(CommitOp op) {
  size_t named = 0;
  for (Value value : op.getTokens()) {
    Token &token = tokens[getIndex(value)];
    if (token.kind != Token::Load)
      return fail(op, "a token that is not a copy's");
    named += token.uncommitted;
    token.uncommitted = false;
  }
  if (named != started.size())
    return fail(op, Twine(started.size()) +
                        " copies were started since the last commit, but it "
                        "names " +
                        Twine(named) + " of them");
  groups.push_back(std::move(started));
  started.clear();
  set(op.getToken(), Held(op.getToken().getType(), tokens.size()));
  tokens.push_back({Token::Group});
  return success();
}

LogicalResult Interpreter::arrive(const Copy &copy) {
  for (size_t i = 0; i < copy.bits.size(); ++i) {
    uint64_t now = 0;
    if (!copy.source.addresses[i])
      continue;
    if (failed(read(copy.op, copy.source, i, now)))
      return failure();
    if (now != copy.bits[i])
      return fail(copy.op,
                  "element " + textOf(coordinatesOf(copy.source.shape, i)) +
                      " was written in memory before the copy arrived");
  }
  Ring::Slot &slot = rings[copy.ring].slots[copy.slot];
  slot.bits = copy.bits;
  slot.inFlight = false;
  slot.arrival = waits;
  return success();
}

LogicalResult Interpreter::executeWait(WaitOp op) {
  ++waits;
  for (; groups.size() > op.getPending(); groups.pop_front())
    for (const Copy &copy : groups.front())
      if (failed(arrive(copy)))
        return failure();
  for (Ring &ring : rings)
    for (Ring::Slot &slot : ring.slots)
      slot.beingRead = false;
  set(op.getToken(), Held(op.getToken().getType(), tokens.size()));
  tokens.push_back({Token::Wait, false, waits});
  return success();
}

LogicalResult Interpreter::executeLocalLoad(LocalLoadOp op) {
  size_t ring, number;
  if (failed(findSlot(op, op.getBuffer(), op.getSlot(), ring, number)))
    return failure();
  Ring::Slot &slot = rings[ring].slots[number];
  const Token &token = tokens[getIndex(op.getToken())];
  if (token.kind != Token::Wait)
    return fail(op, "the token is not a wait's");
  if (slot.inFlight)
    return fail(op, "slot " + Twine(number) + " has a copy in flight");
  if (!slot.arrival)
    return fail(op, "slot " + Twine(number) + " was never written");
  if (slot.arrival > token.number)
    return fail(op, "the copy into slot " + Twine(number) +
                        " arrived after the wait of this token");
  slot.beingRead = true;

  ArrayRef<int64_t> shape =
      cast<BufferType>(op.getBuffer().getType()).getShape();
  Held tile(cast<RankedTensorType>(op.getResult().getType()));
  Coordinates from(shape.size());
  for (auto [i, bits] : llvm::enumerate(tile.bits)) {
    Coordinates to = coordinatesOf(tile.shape(), i);
    for (auto [k, dim] : llvm::enumerate(op.getDims()))
      from[k] = to[dim];
    bits = slot.bits[linearOf(shape, from)];
  }
  set(op.getResult(), std::move(tile));
  return success();
}

LogicalResult Interpreter::checkSettled() {
  if (!started.empty())
    return fail(started.front().op, "the copy is never committed");
  for (const std::vector<Copy> &group : groups)
    if (!group.empty())
      return fail(group.front().op, "the copy is in flight at the end");
  for (const Channel &channel : channels)
    if (!channel.sent.empty())
      return fail(channel.sent.front().acquire, "no consumer awaits what it announces");
  return success();
}

} // namespace nova::tile
