//===- SharedMemory.cpp - A block's shared memory and who used it ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"

#include <algorithm>
#include <bit>

using namespace nova::sim;

void SharedMemory::reset(uint64_t size, unsigned granule) {
  bytes = size;
  shift = static_cast<unsigned>(std::countr_zero(granule));
  size_t count = (size + granule - 1) >> shift;
  memory.assign(count << shift, 0xCD); // Nothing that a test could mistake.
  cells.assign(count, Cell());
  many.clear();
}

void SharedMemory::noteRead(Cell &cell, const Clocks &clocks, unsigned warp) {
  if (cell.flags & kManyCounts) {
    many[cell.readCount][warp] = clocks.now;
    return;
  }
  if (cell.readers == 0 || cell.readCount == clocks.now) {
    cell.readCount = clocks.now;
    cell.readers |= uint32_t(1) << warp;
    return;
  }
  // A reader that comes before this read need not be kept: whoever comes after
  // this one comes after that one too.
  uint32_t kept = 0;
  for (uint32_t left = cell.readers; left; left &= left - 1) {
    unsigned reader = static_cast<unsigned>(std::countr_zero(left));
    if (reader != warp && cell.readCount > clocks.known(warp, reader))
      kept |= uint32_t(1) << reader;
  }
  if (!kept) {
    cell.readCount = clocks.now;
    cell.readers = uint32_t(1) << warp;
    return;
  }
  Clocks::Row row{};
  for (uint32_t left = kept; left; left &= left - 1)
    row[static_cast<unsigned>(std::countr_zero(left))] = cell.readCount;
  row[warp] = clocks.now;
  cell.readCount = static_cast<uint32_t>(many.size());
  cell.flags |= kManyCounts;
  many.push_back(row);
}

Conflict SharedMemory::readCell(Cell &cell, const Clocks &clocks, unsigned warp,
                                uint8_t lane, uint32_t inst) {
  Conflict found;
  found.inst = cell.writeInst;
  found.warp = cell.writer;
  found.lane = cell.lane;
  if (cell.flags & kPending)
    found.kind = Conflict::Pending;
  else if (!(cell.flags & kWritten))
    found.kind = Conflict::Uninitialised;
  else if (cell.writeCount > clocks.known(warp, cell.writer) &&
           !(cell.writer == warp && cell.lane == lane))
    found.kind = Conflict::WithWrite;
  else {
    noteRead(cell, clocks, warp);
    cell.readInst = inst;
    return {};
  }
  return found;
}

Conflict SharedMemory::checkWrite(Cell &cell, const Clocks &clocks,
                                  unsigned warp, uint8_t lane, bool sameValue) {
  Conflict found;
  if (cell.flags & kPending) {
    found.kind = Conflict::Pending;
    found.inst = cell.writeInst;
    found.warp = cell.writer;
    found.lane = cell.lane;
    return found;
  }
  if (sameValue)
    return found;
  if ((cell.flags & kWritten) &&
      cell.writeCount > clocks.known(warp, cell.writer) &&
      !(cell.writer == warp && cell.lane == lane)) {
    found.kind = Conflict::WithWrite;
    found.inst = cell.writeInst;
    found.warp = cell.writer;
    found.lane = cell.lane;
    return found;
  }
  auto unordered = [&](unsigned reader, uint32_t count) {
    return reader != warp && count > clocks.known(warp, reader);
  };
  auto conflict = [&](unsigned reader) {
    found.kind = Conflict::WithRead;
    found.inst = cell.readInst;
    found.warp = reader;
    return found;
  };
  if (cell.flags & kManyCounts) {
    const Clocks::Row &row = many[cell.readCount];
    for (unsigned reader = 0; reader < kMaxWarps; ++reader)
      if (row[reader] && unordered(reader, row[reader]))
        return conflict(reader);
  } else {
    for (uint32_t left = cell.readers; left; left &= left - 1) {
      unsigned reader = static_cast<unsigned>(std::countr_zero(left));
      if (unordered(reader, cell.readCount))
        return conflict(reader);
    }
  }
  return found;
}

Conflict SharedMemory::write(const Clocks &clocks, unsigned warp, uint8_t lane,
                             uint64_t offset, unsigned length,
                             const uint8_t *value, uint32_t inst) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    Cell &cell = cells[c];
    bool same =
        (cell.flags & kWritten) &&
        !std::memcmp(&memory[c << shift], value + ((c << shift) - offset),
                     size_t(1) << shift);
    Conflict found = checkWrite(cell, clocks, warp, lane, same);
    if (found.kind != Conflict::None) {
      found.offset = c << shift;
      return found;
    }
    // A write of what is there anyway leaves the readers as they are.
    if (!same) {
      cell.readers = 0;
      cell.flags = kWritten;
    }
    cell.writeCount = clocks.now;
    cell.writer = static_cast<uint8_t>(warp);
    cell.lane = lane;
    cell.writeInst = inst;
  }
  return {};
}

Conflict SharedMemory::atomic(const Clocks &clocks, unsigned warp, uint8_t lane,
                              uint64_t offset, unsigned length, uint32_t inst) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    Cell &cell = cells[c];
    Conflict found;
    if (!(cell.flags & kWritten)) {
      found.kind = Conflict::Uninitialised;
    } else if (cell.flags & kAtomic) {
      // Earlier plain readers still have to come before this one.
      uint32_t count = cell.writeCount;
      cell.writeCount = 0;
      found = checkWrite(cell, clocks, warp, lane, false);
      cell.writeCount = count;
    } else {
      found = checkWrite(cell, clocks, warp, lane, false);
    }
    if (found.kind != Conflict::None) {
      found.offset = c << shift;
      return found;
    }
    cell.readers = 0;
    cell.flags = kWritten | kAtomic;
    cell.writeCount = clocks.now;
    cell.writer = static_cast<uint8_t>(warp);
    cell.lane = lane;
    cell.writeInst = inst;
  }
  return {};
}

Conflict SharedMemory::beginAsync(const Clocks &clocks, unsigned warp,
                                  uint8_t lane, uint64_t offset,
                                  unsigned length, uint32_t inst) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    Cell &cell = cells[c];
    Conflict found = checkWrite(cell, clocks, warp, lane, false);
    if (found.kind != Conflict::None) {
      found.offset = c << shift;
      return found;
    }
    cell = Cell();
    cell.writeCount = clocks.now;
    cell.writer = static_cast<uint8_t>(warp);
    cell.lane = lane;
    cell.writeInst = inst;
    cell.flags = kWritten | kPending;
  }
  return {};
}

void SharedMemory::completeAsync(const Clocks &clocks, uint64_t offset,
                                 unsigned length) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    cells[c].flags &= ~kPending;
    cells[c].writeCount = clocks.now;
  }
}
