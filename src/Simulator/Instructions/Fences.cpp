//===- Fences.cpp - membar fence ------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.13.4. Memory is changed in the order of execution here, so a
// fence between threads has nothing to do; what orders accesses of warps is
// counted at barriers (Clocks.h). A fence between proxies shows what is known
// here, and what this warp did, to what it starts in the asynchronous proxy
// from now on, and to others that it synchronises with. One of tensor maps has
// nothing to do: they are parameters, which nobody changes.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"

using namespace nova::sim;

namespace {

/// Mbarriers that this warp initialised, or knows of.
void showMbarriers(Warp &w) {
  Clocks &clocks = w.block->cluster.clocks;
  for (Block &owner : w.block->cluster.blocks)
    for (auto &[offset, b] : owner.mbarriers.all)
      b.forAsync |= b.initAgent == w.agent ||
                    b.initCount <= clocks.known(w.agent, b.initAgent);
}

void proxyFence(Warp &w, const Inst &, uint32_t) {
  showMbarriers(w);
  w.block->cluster.clocks.fence(w.agent);
}

bool decode(Decoder &d) {
  if (d.take("mbarrier_init")) {
    d.take("release");
    d.take("cluster");
    d.expectCount(0, 0);
    d.out.run = [](Warp &w, const Inst &, uint32_t) { showMbarriers(w); };
    return true;
  }
  if (d.take("proxy")) {
    for (const char *word :
         {"acquire", "release", "cta", "cluster", "gpu", "sys"})
      d.take(word);
    d.out.run = [](Warp &, const Inst &, uint32_t) {};
    if (d.take("async")) {
      d.expectCount(0, 0);
      d.take("shared::cta");
      d.take("shared::cluster");
      if (!d.take(
              "global")) // Of global memory alone: nothing is watched there.
        d.out.run = proxyFence;
    } else if (d.take("tensormap::generic")) {
      d.expectCount(0, 2);
    } else if (d.take("alias")) {
      d.expectCount(0, 0);
    } else {
      d.fail("no proxies that the simulator knows");
    }
    return true;
  }
  for (const char *word : {"sc", "acq_rel", "acquire", "release", "cta",
                           "cluster", "gpu", "sys", "gl"})
    d.take(word);
  d.expectCount(0, 0);
  d.out.run = [](Warp &, const Inst &, uint32_t) {};
  return true;
}

} // namespace

void nova::sim::addFenceInstructions(InstructionTable &table) {
  table.add("membar", decode);
  table.add("fence", decode);
}
