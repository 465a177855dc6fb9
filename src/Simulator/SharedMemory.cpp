//===- SharedMemory.cpp - A block's shared memory and who used it ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"

#include <algorithm>
#include <bit>
#include <cstddef>

using namespace nova::sim;

void SharedMemory::reset(uint64_t size, unsigned granule) {
  bytes = size;
  shift = static_cast<unsigned>(std::countr_zero(granule));
  size_t count = (size + granule - 1) >> shift;
  memory.assign(count << shift, 0xCD); // Nothing that a test could mistake.
  cells.assign(count, Cell());
  sets.assign(1, {});
  numbers.clear();
  steps.fill({});
  lastSet = kNone;
  clearSet = 0;
  held.clear();
  heldCount = 0;
}

/// The set's number after one more read.
uint32_t SharedMemory::withRead(uint32_t set, const Clocks &clocks,
                                const Accessor &by) {
  Step &step = steps[(set * 7 + by.agent) % steps.size()];
  if (step.to == 0 || step.from != set || step.agent != by.agent ||
      step.count != clocks.now) {
    std::vector<Read> reads;
    // A reader that comes before this read need not be kept: whoever comes
    // after this one comes after that one too.
    for (const Read &r : sets[set])
      if (r.agent != by.agent && r.count > clocks.known(by.warp, r.agent))
        reads.push_back(r);
    reads.push_back({by.agent, clocks.now, by.inst});
    auto [entry, isNew] =
        numbers.try_emplace(reads, static_cast<uint32_t>(sets.size()));
    if (isNew)
      sets.push_back(std::move(reads));
    step = {set, by.agent, clocks.now, entry->second};
  }
  lastSet = step.to;
  lastReader = by.agent;
  lastCount = clocks.now;
  return step.to;
}

Conflict SharedMemory::readCell(Cell &cell, const Clocks &clocks,
                                const Accessor &by, bool async) {
  if (cell.flags & kPending)
    return conflictWith(cell, Conflict::Pending);
  if (!(cell.flags & kWritten))
    return conflictWith(cell, Conflict::Uninitialised);
  if (!before(clocks, cell, by))
    return conflictWith(cell, Conflict::WithWrite);
  if (async && !(cell.flags & kByAsync) &&
      cell.writeCount > clocks.fenced(by.warp, cell.writer))
    return conflictWith(cell, Conflict::Unfenced);
  cell.readSet = withRead(cell.readSet, clocks, by);
  return {};
}

Conflict SharedMemory::readAsync(const Clocks &clocks, const Accessor &by,
                                 uint64_t offset, unsigned length,
                                 bool record) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    Cell &cell = cells[c];
    if (cell.readSet == lastSet && lastReader == by.agent &&
        lastCount == clocks.now && cell.flags == (kWritten | kByAsync) &&
        cell.writeCount <= clocks.known(by.warp, cell.writer))
      continue;
    uint32_t set = cell.readSet;
    Conflict found = readCell(cell, clocks, by, true);
    if (!record)
      cell.readSet = set;
    if (found.kind != Conflict::None) {
      found.offset = c << shift;
      return found;
    }
  }
  return {};
}

Conflict SharedMemory::checkWrite(const Cell &cell, const Clocks &clocks,
                                  const Accessor &by, bool sameValue) {
  if (cell.flags & kPending)
    return conflictWith(cell, Conflict::Pending);
  if (sameValue)
    return {};
  if ((cell.flags & kWritten) && !before(clocks, cell, by))
    return conflictWith(cell, Conflict::WithWrite);
  if (cell.readSet && !(cell.readSet == clearSet && by.warp == clearWarp)) {
    for (const Read &r : sets[cell.readSet])
      if (r.agent != by.warp && r.count > clocks.known(by.warp, r.agent))
        return {Conflict::WithRead, 0, r.inst, r.agent, kWholeWarp};
    clearSet = cell.readSet;
    clearWarp = by.warp;
  }
  return {};
}

Conflict SharedMemory::write(const Clocks &clocks, const Accessor &by,
                             uint64_t offset, unsigned length,
                             const uint8_t *value) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    Cell &cell = cells[c];
    bool same =
        (cell.flags & kWritten) &&
        !std::memcmp(&memory[c << shift], value + ((c << shift) - offset),
                     size_t(1) << shift);
    Conflict found = checkWrite(cell, clocks, by, same);
    if (found.kind == Conflict::None && !same && (cell.flags & kBusy))
      found = busy(c);
    if (found.kind != Conflict::None) {
      found.offset = c << shift;
      return found;
    }
    // A write of what is there anyway leaves the readers as they are.
    if (!same)
      cell.readSet = 0;
    cell.flags = kWritten | (cell.flags & kBusy);
    cell.writeCount = clocks.now;
    cell.writer = static_cast<uint16_t>(by.agent);
    cell.lane = by.lane;
    cell.writeInst = by.inst;
  }
  return {};
}

Conflict SharedMemory::atomic(const Clocks &clocks, const Accessor &by,
                              uint64_t offset, unsigned length) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    Cell &cell = cells[c];
    Conflict found;
    if (!(cell.flags & kWritten)) {
      found = conflictWith(cell, Conflict::Uninitialised);
    } else {
      Cell earlier = cell;
      // Earlier plain readers still have to come before this one.
      if (cell.flags & kAtomic)
        earlier.writeCount = 0;
      found = checkWrite(earlier, clocks, by, false);
    }
    if (found.kind != Conflict::None) {
      found.offset = c << shift;
      return found;
    }
    cell.readSet = 0;
    cell.flags = kWritten | kAtomic;
    cell.writeCount = clocks.now;
    cell.writer = static_cast<uint16_t>(by.agent);
    cell.lane = by.lane;
    cell.writeInst = by.inst;
  }
  return {};
}

Conflict SharedMemory::beginAsync(const Clocks &clocks, const Accessor &by,
                                  uint64_t offset, unsigned length,
                                  bool proxy) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    Cell &cell = cells[c];
    // In whose name it is recorded says nothing about what came before.
    Accessor starter = by;
    starter.agent = by.warp;
    Conflict found = checkWrite(cell, clocks, starter, false);
    if (found.kind == Conflict::None && (cell.flags & kBusy))
      found = busy(c);
    if (found.kind == Conflict::None && proxy && (cell.flags & kWritten) &&
        !(cell.flags & kByAsync) &&
        cell.writeCount > clocks.fenced(by.warp, cell.writer))
      found = conflictWith(cell, Conflict::Unfenced);
    if (found.kind != Conflict::None) {
      found.offset = c << shift;
      return found;
    }
    cell.readSet = 0;
    cell.writeCount = clocks.now;
    cell.writer = static_cast<uint16_t>(by.agent);
    cell.lane = by.lane;
    cell.writeInst = by.inst;
    cell.flags = kWritten | kPending | (proxy ? kByAsync : 0);
  }
  return {};
}

void SharedMemory::completeAsync(const Clocks &clocks, uint64_t offset,
                                 unsigned length) {
  size_t end = (offset + length) >> shift;
  for (size_t c = offset >> shift; c < end; ++c) {
    cells[c].flags &= static_cast<uint8_t>(~kPending);
    cells[c].writeCount = clocks.now;
  }
}

Conflict SharedMemory::busy(uint64_t cell) const {
  for (const Held &h : held)
    if (cell >= h.first && cell < h.end)
      return {Conflict::Busy, 0, h.inst, h.agent, kWholeWarp};
  return {};
}

uint32_t SharedMemory::hold(uint64_t offset, unsigned length,
                            const Accessor &by) {
  held.push_back({offset >> shift, (offset + length) >> shift, by.inst,
                  heldCount, by.agent});
  for (uint64_t c = held.back().first; c < held.back().end; ++c)
    cells[c].flags |= kBusy;
  return heldCount++;
}

void SharedMemory::release(uint32_t number) {
  for (size_t k = 0; k < held.size(); ++k) {
    if (held[k].number != number)
      continue;
    for (uint64_t c = held[k].first; c < held[k].end; ++c)
      cells[c].flags &= static_cast<uint8_t>(~kBusy);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(k));
    break;
  }
  // Two copies may have been from one place.
  for (const Held &h : held)
    for (uint64_t c = h.first; c < h.end; ++c)
      cells[c].flags |= kBusy;
}
