//===- Products.h - Products of warpgroups that are under way -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma reads and writes registers after it was issued (ISA 9.7.15). Of the
// registers that any of a kernel's products names, a warp knows which product
// has them, and which were written since its last wgmma.fence.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_PRODUCTS_H
#define NOVA_SIMULATOR_PRODUCTS_H

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace nova::sim {

/// Registers that products use, numbered; parallel to Code::watched.
struct WatchedRegister {
  uint32_t group = 0; ///< Of the product that has it; 0: none has.
  uint32_t inst = 0;
  uint32_t shape = 0;       ///< Of an accumulator; 0 for an operand.
  bool written = true;      ///< Since the last wgmma.fence.
  uint32_t writtenInst = 0; ///< With `written`; 0: before any.
};

struct WarpProducts {
  std::vector<WatchedRegister> registers;
  bool fenced = false;         ///< There was a wgmma.fence.
  uint32_t open = 1;           ///< The group that the next product is of.
  uint32_t done = 0;           ///< Groups up to this one are complete.
  bool any = false;            ///< Of the open group.
  std::deque<uint32_t> counts; ///< Of the groups after `done`, at commit.
  uint64_t issued = 0;

  void start(size_t watched) {
    registers.assign(watched, WatchedRegister());
    fenced = any = false;
    open = 1;
    done = 0;
    counts.clear();
    issued = 0;
  }
};

/// The four warps of a warpgroup execute the same products.
struct WarpgroupOrder {
  struct Issue {
    uint32_t inst = 0;
    uint64_t left = 0, right = 0; ///< Descriptors.
    uint32_t warps = 0;
  };
  uint64_t first = 0; ///< Number of issues.front().
  std::deque<Issue> issues;
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_PRODUCTS_H
