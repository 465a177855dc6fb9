//===- Reconverge.cpp - Where lanes that part at a branch meet ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Immediate post-dominators of basic blocks, by the iteration of Cooper,
// Harvey and Kennedy ("A Simple, Fast Dominance Algorithm") on the reversed
// graph, whose root is an added exit.
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include <algorithm>

using namespace nova::sim;

namespace {
struct Block {
  uint32_t first = 0, last = 0; ///< Instructions, both included.
  std::vector<uint32_t> next, previous;
};
} // namespace

void nova::sim::findReconvergence(Code &code) {
  auto count = static_cast<uint32_t>(code.body.size());
  std::vector<bool> leads(count + 1, false);
  leads[0] = true;
  auto targetsOf = [&](const Inst &inst) {
    std::vector<uint32_t> targets;
    if (inst.kind != Kind::Flow)
      return targets;
    if (inst.target != kNone)
      targets.push_back(inst.target);
    if (inst.list != kNone)
      targets.assign(&code.lists[inst.list], &code.lists[inst.list] + inst.aux);
    return targets;
  };
  // An instruction that ends a thread has no target, and leads on only for
  // those whose guard does not hold; `ends` marks it.
  auto ends = [](const Inst &inst) {
    return inst.kind == Kind::Flow && inst.small == kEndsThread;
  };
  for (uint32_t i = 0; i < count; ++i) {
    const Inst &inst = code.body[i];
    std::vector<uint32_t> targets = targetsOf(inst);
    for (uint32_t t : targets)
      leads[t] = true;
    if (!targets.empty() || ends(inst))
      leads[i + 1] = true;
  }
  std::vector<Block> blocks;
  std::vector<uint32_t> blockOf(count + 1, 0);
  for (uint32_t i = 0; i < count; ++i) {
    if (leads[i])
      blocks.push_back({i, i, {}, {}});
    blocks.back().last = i;
    blockOf[i] = static_cast<uint32_t>(blocks.size() - 1);
  }
  auto exit = static_cast<uint32_t>(blocks.size());
  blockOf[count] = exit;
  blocks.push_back({count, count, {}, {}});
  for (uint32_t b = 0; b < exit; ++b) {
    const Inst &inst = code.body[blocks[b].last];
    std::vector<uint32_t> &next = blocks[b].next;
    std::vector<uint32_t> targets = targetsOf(inst);
    for (uint32_t t : targets)
      next.push_back(blockOf[t]);
    if (ends(inst))
      next.push_back(exit);
    // A branch without a guard leaves nobody behind.
    if ((targets.empty() && !ends(inst)) || inst.guard != kNone)
      next.push_back(blockOf[blocks[b].last + 1]);
    for (uint32_t n : next)
      blocks[n].previous.push_back(b);
  }
  // Post-order of the reversed graph, from the exit.
  std::vector<uint32_t> order, number(blocks.size(), kNone);
  std::vector<std::pair<uint32_t, size_t>> stack{{exit, 0}};
  std::vector<bool> seen(blocks.size(), false);
  seen[exit] = true;
  while (!stack.empty()) {
    auto &[b, k] = stack.back();
    if (k < blocks[b].previous.size()) {
      uint32_t p = blocks[b].previous[k++];
      if (!seen[p]) {
        seen[p] = true;
        stack.push_back({p, 0});
      }
    } else {
      number[b] = static_cast<uint32_t>(order.size());
      order.push_back(b);
      stack.pop_back();
    }
  }
  std::vector<uint32_t> up(blocks.size(), kNone);
  up[exit] = exit;
  auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (number[a] < number[b])
        a = up[a];
      while (number[b] < number[a])
        b = up[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = order.size(); k-- > 0;) {
      uint32_t b = order[k];
      if (b == exit)
        continue;
      uint32_t found = kNone;
      for (uint32_t n : blocks[b].next)
        if (up[n] != kNone)
          found = found == kNone ? n : meet(found, n);
      if (found != up[b]) {
        up[b] = found;
        changed = true;
      }
    }
  }
  for (uint32_t b = 0; b < exit; ++b) {
    Inst &inst = code.body[blocks[b].last];
    // Blocks from which no thread ends (an endless loop) meet nowhere.
    if (!targetsOf(inst).empty() && up[b] != kNone && up[b] != exit)
      inst.reconverge = blocks[up[b]].first;
  }
}
