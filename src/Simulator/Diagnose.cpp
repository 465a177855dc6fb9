//===- Diagnose.cpp - Who waits for what, and where a fault was
//----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

using namespace nova::sim;

std::string nova::sim::describeInst(const Code &code, uint32_t inst) {
  uint32_t line = code.body[inst].line;
  return "PTX line " + std::to_string(line);
}

/// What a fragment that cannot go on waits for.
static std::string waitText(Warp &w, uint32_t number) {
  Block &b = *w.block;
  const Fragment &f = w.fragments[number];
  std::string at = " at " + describeInst(*w.code, f.pc);
  if (f.state == Fragment::AtSync)
    return "needs other lanes" + at;
  if (f.state == Fragment::AtBarrier)
    return "waits" + at;
  if (f.state == Fragment::Polling)
    return "polls" + at;
  for (Block &owner : b.cluster.blocks)
    for (const auto &[offset, barrier] : owner.mbarriers.all)
      for (const Mbarrier::Waiter &waiter : barrier.waiters)
        if (waiter.warp == &w && waiter.fragment == number)
          return "waits" + at + " for phase " + std::to_string(waiter.phase) +
                 " of " + mbarrierName(owner, offset) + ": it is in " +
                 missingText(owner, barrier);
  for (auto [warp, fragment] : b.waitForRegisters)
    if (warp == w.index && fragment == number)
      return "waits" + at +
             " for registers: " + std::to_string(b.freeRegisters) +
             " of the block's are free, and who starts with fewer must give "
             "up more by setmaxnreg.dec";
  for (auto [warp, fragment] : b.cluster.barrier.waiting)
    if (warp == &w && fragment == number)
      return "waits" + at + " for the cluster, of which " +
             std::to_string(b.cluster.barrier.arrived) + " of " +
             std::to_string(b.cluster.threadsAlive()) + " threads have arrived";
  return "waits" + at;
}

/// Nobody can run and some have not ended: says what they wait for.
void Cluster::diagnose() {
  std::string waits;
  bool someEnded = false, atBarrier = false, atSync = false;
  const Warp *first = nullptr;
  size_t left = 6;
  for (Block &b : blocks)
    for (Warp &w : b.warps) {
      if (w.finished()) {
        someEnded = true;
        continue;
      }
      for (uint32_t k = 0; k < w.fragments.size(); ++k) {
        const Fragment &f = w.fragments[k];
        if (f.state == Fragment::Free || f.state == Fragment::Split)
          continue;
        if (!first)
          first = &w, w.current = &launch.code->body[f.pc], running = &w;
        atBarrier |= f.state == Fragment::AtBarrier;
        atSync |= f.state == Fragment::AtSync;
        if (!left || !--left) {
          if (!waits.ends_with("; ..."))
            waits += "; ...";
          continue;
        }
        waits += waits.empty() ? "" : "; ";
        if (blocks.size() > 1)
          waits += "block " + std::to_string(b.rank) + " of the cluster, ";
        waits += "warp " + std::to_string(w.index) + " " + waitText(w, k);
      }
    }
  FaultKind kind = FaultKind::Deadlock;
  std::string what = "no thread can go on: " + waits;
  if (atSync) {
    kind = FaultKind::Divergence;
  } else if (atBarrier) {
    uint32_t places = 0;
    for (Block &block : blocks)
      for (const Barrier &b : block.barriers)
        if (b.expected) {
          ++places;
          what += "; barrier " + std::to_string(&b - block.barriers.data()) +
                  " has " + std::to_string(b.arrived) + " of " +
                  std::to_string(b.expected) + " threads";
        }
    if (someEnded || places == 1) {
      kind = FaultKind::PartialBarrier;
      if (someEnded)
        what += "; other warps have ended";
    }
  }
  throw FaultFound{kind, what, {}, {}, {}};
}

Fault Cluster::describe(FaultFound &found) {
  Fault fault;
  fault.kind = found.kind;
  fault.what = std::move(found.what);
  fault.kernel = launch.code->name;
  fault.lane = found.lane;
  fault.address = found.address;
  fault.buffer = std::move(found.buffer);
  if (!running)
    return fault;
  fault.block = running->block->id;
  fault.warp = running->index;
  if (const Inst *inst = running->current) {
    fault.line = inst->line;
    if (inst->location < launch.code->sources.size())
      fault.source = launch.code->sources[inst->location];
    // As it stands there, but for what is long.
    std::string_view text = launch.code->text;
    if (inst->text != kNone) {
      text.remove_prefix(inst->text);
      text = text.substr(0, text.find(';') + 1);
      static constexpr size_t kMost = 120;
      fault.opcode = text.substr(0, kMost);
      if (text.size() > kMost)
        fault.opcode += "...";
    }
    for (char &c : fault.opcode)
      if (c == '\t')
        c = ' ';
  }
  return fault;
}
