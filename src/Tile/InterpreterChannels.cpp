//===- InterpreterChannels.cpp - Producers, consumers and channels --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterImpl.h"

using namespace mlir;

namespace nova::tile {

LogicalResult Interpreter::executeChannel(ChannelOp op) {
  if (values.contains(op.getResult()))
    return success();
  auto type = cast<ChannelType>(op.getResult().getType());
  channels.emplace_back().slots = type.getSlots();
  set(op.getResult(), Held(type, channels.size() - 1));
  return success();
}

LogicalResult Interpreter::checkTurn(Operation *op, const Channel &channel,
                                     int64_t count, Value slot, Value phase) {
  int64_t wantedSlot = count % channel.slots;
  int64_t wantedPhase = count / channel.slots % 2;
  if (getIndex(slot) != wantedSlot)
    return fail(op, "slot " + Twine(getIndex(slot)) + " at use " +
                        Twine(count) + " of the channel, slot " +
                        Twine(wantedSlot) + " has its turn");
  if (phase && (getIndex(phase) & 1) != wantedPhase)
    return fail(op, "phase " + Twine(getIndex(phase) & 1) + " at use " +
                        Twine(count) + " of the channel, expected " +
                        Twine(wantedPhase));
  return success();
}

LogicalResult Interpreter::executeAcquire(AcquireOp op) {
  Channel &channel = channels[getIndex(op.getChannel())];
  if (failed(checkTurn(op, channel, channel.acquired, op.getSlot(),
                       op.getPhase())))
    return failure();
  ++channel.acquired;
  channel.sent.push_back({op, {}});
  return success();
}

LogicalResult Interpreter::executeBulkLoad(BulkLoadOp op) {
  Channel &channel = channels[getIndex(op.getChannel())];
  if (channel.sent.empty())
    return fail(op, "no slot of the channel was acquired");
  if (failed(checkTurn(op, channel, channel.acquired - 1, op.getSlot(), {})))
    return failure();
  Copy copy;
  copy.op = op;
  if (failed(findSlot(op, op.getBuffer(), op.getSlot(), copy.ring, copy.slot)))
    return failure();
  ArrayRef<int64_t> shape =
      cast<BufferType>(op.getBuffer().getType()).getShape();
  if (failed(locate(op, op.getMemory(), op.getOffsets(), op.getAlong(),
                    op.getBounds(), shape, copy.source)))
    return failure();
  copy.bits.resize(copy.source.addresses.size());
  for (auto [i, bits] : llvm::enumerate(copy.bits))
    if (copy.source.addresses[i] && failed(read(op, copy.source, i, bits)))
      return failure();
  channel.sent.back().copies.push_back(std::move(copy));
  return success();
}

/// Rounds a float32 to tf32 (10 bits of mantissa), to nearest, ties away.
static uint64_t toTF32(uint64_t bits) {
  bool finite = (bits & 0x7f800000) != 0x7f800000;
  return finite ? (bits + 0x1000) & 0xffffe000 : bits;
}

LogicalResult Interpreter::executeAwait(AwaitOp op) {
  Channel &channel = channels[getIndex(op.getChannel())];
  int64_t turn = channel.awaited++;
  if (failed(checkTurn(op, channel, turn, op.getSlot(), op.getPhase())))
    return failure();
  if (channel.sent.empty())
    return fail(op, "deadlock: the sender sends only " +
                        Twine(channel.acquired) + " times");
  if (turn - channel.released >= channel.slots)
    return fail(op, "deadlock: the sender waits for slot " +
                        Twine(turn % channel.slots) +
                        ", which was not released");
  Channel::Sent sent = std::move(channel.sent.front());
  channel.sent.pop_front();
  ++waits;
  int64_t bytes = 0;
  auto acquire = cast<AcquireOp>(sent.acquire);
  if (!acquire.getBytes() && !sent.isWhole)
    return fail(acquire, "no send follows what was written into the slot");
  for (const Copy &copy : sent.copies) {
    if (failed(arrive(copy)))
      return failure();
    auto load = dyn_cast<BulkLoadOp>(copy.op);
    if (!load)
      continue;
    auto type = cast<BufferType>(load.getBuffer().getType());
    Ring::Slot &slot = rings[copy.ring].slots[copy.slot];
    if (load.getTf32())
      for (uint64_t &bits : slot.bits)
        bits = toTF32(bits);
    bytes += slot.bits.size() * type.getElementType().getIntOrFloatBitWidth() / 8;
  }
  if (acquire.getBytes() && bytes != (int64_t)*acquire.getBytes())
    return fail(acquire, "its copies bring " + Twine(bytes) + " bytes");
  set(op.getToken(), Held(op.getToken().getType(), tokens.size()));
  tokens.push_back({Token::Wait, false, waits});
  return success();
}

LogicalResult Interpreter::executeLocalStore(LocalStoreOp op) {
  Copy copy;
  copy.op = op;
  if (failed(findSlot(op, op.getBuffer(), op.getSlot(), copy.ring, copy.slot)))
    return failure();
  // The channel whose turn the slot is: the one acquired last, without copies.
  Channel *open = nullptr;
  for (Channel &channel : channels)
    if (!channel.sent.empty() && !channel.sent.back().isWhole &&
        !cast<AcquireOp>(channel.sent.back().acquire).getBytes())
      open = &channel;
  if (!open)
    return fail(op, "no slot was acquired for it");
  const Held &tile = get(op.getValue());
  ArrayRef<int64_t> shape =
      cast<BufferType>(op.getBuffer().getType()).getShape();
  copy.bits.resize(tile.bits.size());
  copy.source.addresses.resize(tile.bits.size());
  Coordinates to(shape.size());
  for (auto [i, bits] : llvm::enumerate(tile.bits)) {
    Coordinates from = coordinatesOf(tile.shape(), i);
    for (auto [k, dim] : llvm::enumerate(op.getDims()))
      to[k] = from[dim];
    copy.bits[linearOf(shape, to)] = bits;
  }
  open->sent.back().copies.push_back(std::move(copy));
  return success();
}

LogicalResult Interpreter::executeSend(SendOp op) {
  Channel &channel = channels[getIndex(op.getChannel())];
  if (channel.sent.empty() || channel.sent.back().isWhole ||
      cast<AcquireOp>(channel.sent.back().acquire).getBytes())
    return fail(op, "no slot of the channel was acquired and written");
  if (failed(checkTurn(op, channel, channel.acquired - 1, op.getSlot(), {})))
    return failure();
  channel.sent.back().isWhole = true;
  return success();
}

LogicalResult Interpreter::executeRelease(ReleaseOp op) {
  Channel &channel = channels[getIndex(op.getChannel())];
  if (channel.released >= channel.awaited)
    return fail(op, "the slot was not awaited");
  if (failed(checkTurn(op, channel, channel.released, op.getSlot(), {})))
    return failure();
  ++channel.released;
  return success();
}

} // namespace nova::tile
