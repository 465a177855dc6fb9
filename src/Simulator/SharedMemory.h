//===- SharedMemory.h - A block's shared memory and who used it -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory is watched in cells. A cell knows its last write, and who has read it
// since: a number of a set of reads. Cells that were used together, which is
// nearly all of a tile, have the same set, so that a read of many is a
// comparison for each. Clocks.h says what comes before what.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_SHAREDMEMORY_H
#define NOVA_SIMULATOR_SHAREDMEMORY_H

#include "Clocks.h"
#include "Code.h"

#include <array>
#include <cstring>
#include <map>
#include <vector>

namespace nova::sim {

/// Largest number of warps of a block (1024 threads; ISA 4.1, %ntid).
constexpr unsigned kMaxWarps = 32;
/// The lane of an access that all lanes of the warp make together.
constexpr uint8_t kWholeWarp = 255;

/// An access that must not be: which earlier one it meets.
struct Conflict {
  enum Kind {
    None,
    Uninitialised,
    WithWrite,
    WithRead,
    Pending, ///< A copy to here has not been waited for.
    Busy,    ///< A copy from here has not.
    Unfenced ///< Written in the generic proxy, used in the asynchronous one.
  } kind = None;
  uint64_t offset = 0; ///< Of the cell, from the start of shared memory.
  uint32_t inst = 0;   ///< The earlier access.
  unsigned agent = 0;
  uint8_t lane = kWholeWarp;
};

/// Who accesses: the warp whose place in the order counts, and the agent in
/// whose name it is recorded.
struct Accessor {
  unsigned warp = 0, agent = 0;
  uint8_t lane = kWholeWarp;
  uint32_t inst = 0;
};

class SharedMemory {
public:
  /// All unwritten.
  void reset(uint64_t bytes, unsigned granule);

  uint64_t size() const { return bytes; }
  uint8_t *data() { return memory.data(); }

  // Bytes [offset, offset+length) are inside and multiples of the granule.

  Conflict read(const Clocks &clocks, const Accessor &by, uint64_t offset,
                unsigned length) {
    size_t end = (offset + length) >> shift;
    for (size_t c = offset >> shift; c < end; ++c) {
      Cell &cell = cells[c];
      // What is nearly always so: read before by this warp, at this count.
      if (cell.readSet == lastSet && lastReader == by.agent &&
          lastCount == clocks.now && cell.flags == kWritten &&
          cell.writeCount < lastCount)
        continue;
      if (Conflict found = readCell(cell, clocks, by, false);
          found.kind != Conflict::None) {
        found.offset = c << shift;
        return found;
      }
    }
    return {};
  }

  /// As read(), in the asynchronous proxy. With `record` it is known who reads;
  /// without, what follows must hold() the bytes.
  Conflict readAsync(const Clocks &clocks, const Accessor &by, uint64_t offset,
                     unsigned length, bool record);

  /// As read(), before `value` is stored there. Two writes of the same value
  /// are no conflict: the outcome does not depend on their order.
  Conflict write(const Clocks &clocks, const Accessor &by, uint64_t offset,
                 unsigned length, const uint8_t *value);

  /// A read-modify-write: ordered with others of its kind, not with the rest.
  Conflict atomic(const Clocks &clocks, const Accessor &by, uint64_t offset,
                  unsigned length);

  /// An asynchronous copy to here has begun; nobody may touch it until
  /// completeAsync(). `proxy`: it is one of the asynchronous proxy.
  Conflict beginAsync(const Clocks &clocks, const Accessor &by, uint64_t offset,
                      unsigned length, bool proxy);
  void completeAsync(const Clocks &clocks, uint64_t offset, unsigned length);

  /// A copy from here has begun: until release() of what is returned nobody may
  /// write.
  uint32_t hold(uint64_t offset, unsigned length, const Accessor &by);
  void release(uint32_t held);

  /// Whether the last write at `offset` was by this agent's instruction.
  bool lastWrittenBy(uint64_t offset, unsigned agent, uint32_t inst) const {
    const Cell &cell = cells[offset >> shift];
    return cell.writer == agent && cell.writeInst == inst;
  }
  uint32_t lastWriter(uint64_t offset) const {
    return cells[offset >> shift].writeInst;
  }

private:
  enum : uint8_t {
    kWritten = 1,
    kPending = 2,
    kAtomic = 4,
    kByAsync = 8, ///< The last write was one of the asynchronous proxy.
    kBusy = 16
  };
  struct Cell {
    uint32_t writeCount = 0, writeInst = 0;
    uint32_t readSet = 0; ///< 0: nobody.
    uint16_t writer = 0;
    uint8_t lane = 0, flags = 0;
  };
  /// The latest read of each agent, but for those that come before another.
  struct Read {
    uint32_t agent, count, inst;
    auto operator<=>(const Read &) const = default;
  };
  /// A step from one set to the next, remembered.
  struct Step {
    uint32_t from = 0, agent = 0, count = 0, to = 0;
  };

  Conflict readCell(Cell &cell, const Clocks &clocks, const Accessor &by,
                    bool async);
  Conflict checkWrite(const Cell &cell, const Clocks &clocks,
                      const Accessor &by, bool sameValue);
  bool before(const Clocks &clocks, const Cell &cell,
              const Accessor &by) const {
    return cell.writeCount <= clocks.known(by.warp, cell.writer) ||
           (cell.writer == by.agent && cell.lane == by.lane);
  }
  uint32_t withRead(uint32_t set, const Clocks &clocks, const Accessor &by);
  static Conflict conflictWith(const Cell &cell, Conflict::Kind kind) {
    return {kind, 0, cell.writeInst, cell.writer, cell.lane};
  }

  std::vector<uint8_t> memory;
  std::vector<Cell> cells;
  std::vector<std::vector<Read>> sets;
  std::map<std::vector<Read>, uint32_t> numbers;
  std::array<Step, 64> steps{};
  /// The set that the last read led to, and by whom.
  uint32_t lastSet = kNone, lastReader = 0, lastCount = 0;
  /// A set that this warp was found to come after; it stays so.
  uint32_t clearSet = 0, clearWarp = 0;
  /// Copies from here that are under way; their cells are busy.
  struct Held {
    uint64_t first = 0, end = 0; ///< Cells.
    uint32_t inst = 0, number = 0;
    unsigned agent = 0;
  };
  Conflict busy(uint64_t cell) const;
  std::vector<Held> held;
  uint32_t heldCount = 0;
  uint64_t bytes = 0;
  unsigned shift = 4;
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_SHAREDMEMORY_H
