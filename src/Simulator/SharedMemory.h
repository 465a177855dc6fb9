//===- SharedMemory.h - A block's shared memory and who used it -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Order of accesses. A block counts synchronisations: `now`. An access carries
// the count at which it happened. known(w, v) is the largest count of warp v
// whose accesses come before what warp w does now; barriers raise it. So an
// earlier access by v at count c races with one by w if c > known(w, v). For
// v = w it is about other lanes of one warp, which bar.warp.sync orders.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_SHAREDMEMORY_H
#define NOVA_SIMULATOR_SHAREDMEMORY_H

#include "Code.h"

#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace nova::sim {

/// Largest number of warps of a block (1024 threads; ISA 4.1, %ntid).
constexpr unsigned kMaxWarps = 32;
/// The lane of an access that all lanes of the warp make together.
constexpr uint8_t kWholeWarp = 255;

class Clocks {
public:
  void reset() {
    now = 1;
    for (auto &row : rows)
      row.fill(0);
  }
  using Row = std::array<uint32_t, kMaxWarps>;
  uint32_t now = 1;
  uint32_t known(unsigned warp, unsigned of) const { return rows[warp][of]; }
  /// What comes after a release by `warp` is not part of it.
  void release(unsigned warp, Row &into) {
    for (unsigned v = 0; v < kMaxWarps; ++v)
      into[v] = std::max(into[v], rows[warp][v]);
    into[warp] = now;
  }
  void acquire(unsigned warp, const Row &from) {
    for (unsigned v = 0; v < kMaxWarps; ++v)
      rows[warp][v] = std::max(rows[warp][v], from[v]);
  }
  void syncLanes(unsigned warp) { rows[warp][warp] = now++; }

private:
  std::array<Row, kMaxWarps> rows{};
};

/// An access that must not be: which earlier one it meets.
struct Conflict {
  enum Kind { None, Uninitialised, WithWrite, WithRead, Pending } kind = None;
  uint64_t offset = 0; ///< Of the piece, from the start of shared memory.
  uint32_t inst = 0;   ///< The earlier access.
  unsigned warp = 0;
  uint8_t lane = kWholeWarp;
};

class SharedMemory {
public:
  /// All unwritten.
  void reset(uint64_t bytes, unsigned granule);

  uint64_t size() const { return bytes; }
  uint8_t *data() { return memory.data(); }

  /// Bytes [offset, offset+length) are inside and multiples of the granule.
  Conflict read(const Clocks &clocks, unsigned warp, uint8_t lane,
                uint64_t offset, unsigned length, uint32_t inst) {
    size_t end = (offset + length) >> shift;
    for (size_t c = offset >> shift; c < end; ++c) {
      Cell &cell = cells[c];
      // What is nearly always so: written before, read since by this warp.
      if (cell.readCount == clocks.now && cell.writeCount != clocks.now &&
          cell.flags == kWritten && (cell.readers >> warp & 1))
        continue;
      if (Conflict found = readCell(cell, clocks, warp, lane, inst);
          found.kind != Conflict::None) {
        found.offset = c << shift;
        return found;
      }
    }
    return {};
  }

  /// As read(), before `value` is stored there. Two writes of the same value
  /// are no conflict: the outcome does not depend on their order.
  Conflict write(const Clocks &clocks, unsigned warp, uint8_t lane,
                 uint64_t offset, unsigned length, const uint8_t *value,
                 uint32_t inst);

  /// A read-modify-write: ordered with others of its kind, not with the rest.
  Conflict atomic(const Clocks &clocks, unsigned warp, uint8_t lane,
                  uint64_t offset, unsigned length, uint32_t inst);

  /// An asynchronous copy to here has begun; nobody may touch it until
  /// completed() by the same warp and lane.
  Conflict beginAsync(const Clocks &clocks, unsigned warp, uint8_t lane,
                      uint64_t offset, unsigned length, uint32_t inst);
  void completeAsync(const Clocks &clocks, uint64_t offset, unsigned length);

private:
  enum : uint16_t { kWritten = 1, kPending = 2, kManyCounts = 4, kAtomic = 8 };
  struct Cell {
    uint32_t writeCount = 0;
    uint32_t readCount = 0; ///< With kManyCounts an index into `many`.
    uint32_t readers = 0;   ///< A bit per warp, all at readCount.
    uint32_t writeInst = 0, readInst = 0;
    uint8_t writer = 0, lane = 0;
    uint16_t flags = 0;
  };

  Conflict readCell(Cell &cell, const Clocks &clocks, unsigned warp,
                    uint8_t lane, uint32_t inst);
  Conflict checkWrite(Cell &cell, const Clocks &clocks, unsigned warp,
                      uint8_t lane, bool sameValue);
  void noteRead(Cell &cell, const Clocks &clocks, unsigned warp);

  std::vector<uint8_t> memory;
  std::vector<Cell> cells;
  /// Counts of readers that no single count describes.
  std::vector<Clocks::Row> many;
  uint64_t bytes = 0;
  unsigned shift = 4;
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_SHAREDMEMORY_H
