//===- Mbarrier.h - Barriers that are objects in shared memory ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.13.15. A phase ends when as many have arrived as init said and as
// many bytes have come as were announced. What an mbarrier's eight bytes hold
// is opaque; its state is kept here, by its offset in shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_MBARRIER_H
#define NOVA_SIMULATOR_MBARRIER_H

#include "SharedMemory.h"

#include <string>

namespace nova::sim {

class Block;
class Warp;

struct Mbarrier {
  uint32_t expected = 0; ///< Arrivals of a phase.
  uint32_t pending = 0;  ///< Of them, those that are missing.
  int64_t bytes = 0;     ///< Announced and not come.
  int64_t announced = 0; ///< In this phase.
  uint64_t phase = 0;    ///< The one that is not complete.
  uint32_t announceInst = 0;
  bool anyAnnounced = false;
  unsigned agent = 0; ///< Copies write in its name.
  // Where it was made.
  uint32_t initInst = 0, initCount = 0;
  unsigned initAgent = 0;
  uint8_t initLane = 0;
  bool forAsync = false; ///< A fence has shown it to the asynchronous proxy.
  Order collecting, completed;
  /// What copies of this phase have written.
  struct Region {
    uint64_t offset;
    uint32_t bytes;
  };
  std::vector<Region> copies;
  struct Waiter {
    Warp *warp;
    uint32_t fragment;
    uint64_t phase;
    bool woken;
  };
  std::vector<Waiter> waiters;

  bool passed(uint32_t parity) const { return (phase & 1) != parity; }
};

/// Those of a block.
class Mbarriers {
public:
  void reset() { all.clear(); }
  Mbarrier *find(uint64_t offset) {
    for (auto &[at, barrier] : all)
      if (at == offset)
        return &barrier;
    return nullptr;
  }
  void init(Warp &w, unsigned lane, Block &owner, uint64_t offset,
            uint32_t count);
  void drop(uint64_t offset) {
    std::erase_if(all,
                  [&](const auto &entry) { return entry.first == offset; });
  }
  std::vector<std::pair<uint64_t, Mbarrier>> all;
};

/// The live mbarrier at an offset of `owner`, for use by a lane of `w`. Throws
/// where there is none, or nothing orders its init before this.
Mbarrier &useMbarrier(Warp &w, unsigned lane, Block &owner, uint64_t offset);
/// Bytes that a copy begun by `w` has brought are counted.
void completeBytes(Warp &w, unsigned lane, Block &owner, Mbarrier &barrier,
                   int64_t bytes);
/// `count` arrivals, with what the warp did before them if it `releases` that.
void arriveOn(Warp &w, unsigned lane, Block &owner, uint64_t offset,
              Mbarrier &barrier, uint32_t count, bool releases);
/// expect_tx.
void announceBytes(Warp &w, unsigned lane, Mbarrier &barrier, uint32_t bytes);
/// "mbarrier shared 'x' + 32768".
std::string mbarrierName(const Block &owner, uint64_t offset);
/// "phase 3, of which 1 of 2 arrivals and 16384 of 32768 bytes are missing".
std::string missingText(const Block &owner, const Mbarrier &barrier);

} // namespace nova::sim

#endif // NOVA_SIMULATOR_MBARRIER_H
