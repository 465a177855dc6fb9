//===- ArenaCheck.cpp - Buffers inside the arena, apart while alive -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace nova;
using namespace nova::bundle;

namespace {

/// Entry and exit times of a walk over the forest of aliases: a is an ancestor
/// of b exactly when b's interval lies in a's. One test per pair, whatever the
/// length of the chains.
struct AliasForest {
  std::vector<uint32_t> enter, leave;
  /// A buffer whose chain of aliases never ends, or -1.
  int64_t onCycle = -1;

  explicit AliasForest(const std::vector<ArenaBuffer> &buffers)
      : enter(buffers.size()), leave(buffers.size()) {
    uint32_t n = static_cast<uint32_t>(buffers.size());
    // Children of each buffer as linked lists.
    std::vector<uint32_t> firstChild(n, n), sibling(n, n);
    for (uint32_t i = n; i-- > 0;)
      if (buffers[i].alias) {
        sibling[i] = firstChild[*buffers[i].alias];
        firstChild[*buffers[i].alias] = i;
      }
    std::vector<bool> seen(n, false);
    uint32_t clock = 0;
    std::vector<uint32_t> stack;
    for (uint32_t root = 0; root < n; ++root) {
      if (buffers[root].alias)
        continue;
      stack.push_back(root);
      while (!stack.empty()) {
        uint32_t i = stack.back();
        if (!seen[i]) {
          seen[i] = true;
          enter[i] = clock++;
        }
        if (firstChild[i] < n) {
          stack.push_back(firstChild[i]);
          firstChild[i] = sibling[firstChild[i]];
        } else {
          leave[i] = clock;
          stack.pop_back();
        }
      }
    }
    auto it = std::find(seen.begin(), seen.end(), false);
    if (it != seen.end())
      onCycle = it - seen.begin();
  }

  bool related(uint32_t a, uint32_t b) const {
    auto above = [&](uint32_t x, uint32_t y) {
      return enter[x] <= enter[y] && enter[y] < leave[x];
    };
    return above(a, b) || above(b, a);
  }
};

void checkBuffer(Checker &c, const Target &t, size_t i,
                 const std::string &path) {
  const ArenaBuffer &b = t.arena.buffers[i];
  if (b.offset % kBufferAlignment)
    return c.fail(path + ".offset", b.offset,
                  "a multiple of " + std::to_string(kBufferAlignment));
  uint64_t end;
  if (__builtin_add_overflow(b.offset, b.size, &end) || end > t.arena.size)
    return c.fail(path,
                  "bytes " + std::to_string(b.offset) + " + " +
                      std::to_string(b.size),
                  "a range inside the arena of " +
                      std::to_string(t.arena.size) + " bytes");
  if (b.last >= t.launches.size())
    return c.fail(path + ".last", b.last,
                  Checker::below(t.launches.size(), "launch"));
  if (b.first > b.last)
    return c.fail(path + ".first", b.first,
                  "at most its last, " + std::to_string(b.last));
  if (b.alias && (*b.alias >= t.arena.buffers.size() || *b.alias == i))
    c.fail(path + ".alias", *b.alias,
           "another buffer, less than " +
               std::to_string(t.arena.buffers.size()));
}

/// Walks the buffers in the order in which they come alive, comparing each with
/// those alive then: pairs that never meet cost nothing.
void checkOverlap(Checker &c, const std::vector<ArenaBuffer> &buffers,
                  const AliasForest &aliases, const std::string &path) {
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(buffers[a].first, a) < std::pair(buffers[b].first, b);
  });
  std::vector<uint32_t> alive;
  for (uint32_t i : order) {
    const ArenaBuffer &b = buffers[i];
    std::erase_if(alive, [&](uint32_t j) { return buffers[j].last < b.first; });
    if (b.size == 0)
      continue;
    for (uint32_t j : alive) {
      const ArenaBuffer &o = buffers[j];
      if (b.offset < o.offset + o.size && o.offset < b.offset + b.size &&
          !aliases.related(i, j))
        return c.fail(
            Checker::at(path, i),
            "bytes " + std::to_string(b.offset) + " + " +
                std::to_string(b.size) + ", launches " +
                std::to_string(b.first) + " to " + std::to_string(b.last),
            "no overlap with buffer " + std::to_string(j) + " (bytes " +
                std::to_string(o.offset) + " + " + std::to_string(o.size) +
                ", launches " + std::to_string(o.first) + " to " +
                std::to_string(o.last) + "), which is not its alias");
    }
    alive.push_back(i);
  }
}

} // namespace

void bundle::checkArena(Checker &c, const Target &t, const std::string &path) {
  const Arena &arena = t.arena;
  if (c.failed())
    return;
  if (arena.alignment < kBufferAlignment || arena.alignment > (1 << 21) ||
      (arena.alignment & (arena.alignment - 1)))
    return c.fail(path + ".alignment", arena.alignment,
                  "a power of two from 256 to 2097152");
  if (arena.size > static_cast<uint64_t>(INT64_MAX))
    return c.fail(path + ".size", arena.size, "at most 63 bits");
  if (arena.lowerBound > arena.size)
    return c.fail(path + ".lower_bound", arena.lowerBound,
                  "at most the size, " + std::to_string(arena.size));
  if (arena.buffers.size() > kMaxArenaBuffers)
    return c.fail(path + ".buffers",
                  "a list of " + std::to_string(arena.buffers.size()),
                  "at most " + std::to_string(kMaxArenaBuffers));
  std::string buffers = path + ".buffers";
  for (size_t i = 0; i < arena.buffers.size() && !c.failed(); ++i)
    checkBuffer(c, t, i, Checker::at(buffers, i));
  if (c.failed())
    return;
  AliasForest aliases(arena.buffers);
  if (aliases.onCycle >= 0) {
    size_t i = static_cast<size_t>(aliases.onCycle);
    return c.fail(Checker::at(buffers, i) + ".alias", *arena.buffers[i].alias,
                  "a chain of aliases that ends");
  }
  checkOverlap(c, arena.buffers, aliases, buffers);
}
