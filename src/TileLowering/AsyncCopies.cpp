//===- AsyncCopies.cpp - Rings of shared memory and cp.async ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

/// Of the slots of a ring. (Panels of eight rows are 1024 bytes anyway.)
static constexpr int64_t kSlotAlignment = 128;

using namespace mlir;
using namespace nova;
using namespace nova::tile;

void ThreadEmitter::emitAlloc(AllocOp op) {
  SharedTile slot = slotOf(op.getType());
  scalars.map(op.getResult(),
              ringBase(llvm::alignTo(slot.bytes(), kSlotAlignment) * op.getType().getSlots(),
                       kRingAlignment));
}

SharedTile ThreadEmitter::slotAt(Value buffer, Value slot) {
  auto type = cast<BufferType>(buffer.getType());
  SharedTile tile = slotOf(type);
  Value number =
      arith::IndexCastOp::create(builder, loc, builder.getI32Type(), scalar(slot));
  Value skip = arith::MulIOp::create(builder, loc, number,
                                     constantI32(llvm::alignTo(tile.bytes(), kSlotAlignment)));
  tile.base = arith::AddIOp::create(builder, loc, scalar(buffer), skip);
  return tile;
}

LogicalResult ThreadEmitter::emitAsyncLoad(AsyncLoadOp op) {
  Access access = *accessOf(op);
  LinearLayout layout = accessLayout(access, warps);
  Value condition = op.getWhen() ? scalar(op.getWhen()) : Value();
  LogicalResult done = success();
  when(condition, [&] {
    SharedTile tile = slotAt(op.getBuffer(), op.getSlot());
    Places places = place(access, layout);
    int64_t bytes = places.vector * access.elementBytes();
    if (bytes != 4 && bytes != 8 && bytes != 16) {
      done = op.emitOpError() << "copies " << bytes
                              << " bytes at a time: 4, 8 or 16 can be asynchronous";
      return;
    }
    when(isOwner(layout), [&] {
      for (int64_t r = 0; r < layout.registerCount(); r += places.vector) {
        Value to = sharedAddress(layout, tile, r);
        Value from = addressAt(places.base, places.bytes[r]);
        // Bytes that are not read are written as zeros.
        Value size;
        if (Value predicate = places.predicate[r])
          size = arith::SelectOp::create(builder, loc, predicate, constantI32(bytes),
                                         constantI32(0));
        NVVM::CpAsyncOp::create(builder, loc, to, from, (uint32_t)bytes,
                                bytes == 16 ? NVVM::LoadCacheModifierKind::CG
                                            : NVVM::LoadCacheModifierKind::CA,
                                size);
      }
    });
  });
  return done;
}

void ThreadEmitter::emitWait(WaitOp op) {
  NVVM::CpAsyncWaitGroupOp::create(builder, loc, (uint32_t)op.getPending());
  barrier();
  scratchBusy = false;
}

void ThreadEmitter::emitLocalStore(LocalStoreOp op) {
  storeTurned(registers(op.getValue()), layoutOf(op.getValue()), op.getDims(),
              slotAt(op.getBuffer(), op.getSlot()));
}

void ThreadEmitter::emitLocalLoad(LocalLoadOp op) {
  if (isReadByProductOnly(op))
    return;
  LinearLayout layout = layoutOf(op);
  std::vector<unsigned> order(op.getDims().begin(), op.getDims().end());
  LinearLayout stored = layout.transposed(order);
  Registers values =
      loadShared(op.getType().getElementType(), stored, slotAt(op.getBuffer(), op.getSlot()));
  // Registers of the transposed layout, found by their coordinates.
  auto where = registersByCoordinates(stored);
  Registers result;
  for (int64_t r = 0; r < layout.registerCount(); ++r) {
    LinearLayout::Coordinates coords = layout.registerCoordinates(r), own;
    for (unsigned dim : order)
      own.push_back(coords[dim]);
    result.push_back(values[where.at(own)]);
  }
  tiles[op] = std::move(result);
}
