//===- Block.cpp - The warps of a block, and its barriers -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

#include <algorithm>

using namespace nova::sim;

/// SplitMix64: which warp runs when several could.
static uint64_t draw(uint64_t &state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::optional<Fault> Block::run(std::array<uint32_t, 3> block, uint64_t seed) {
  id = block;
  shared.reset(launch.sharedBytes, launch.code->granule);
  clocks.reset();
  barriers.fill(Barrier());
  uint32_t count = (launch.threads + kLanes - 1) / kLanes;
  warps.resize(count);
  for (uint32_t w = 0; w < count; ++w) {
    uint32_t lanes = std::min(launch.threads - w * kLanes, kLanes);
    warps[w].start(*this, w,
                   lanes == kLanes ? kAllLanes : (uint32_t(1) << lanes) - 1);
  }
  uint64_t state =
      seed ^ (uint64_t(block[0]) << 42 | uint64_t(block[1]) << 21 | block[2]);
  std::optional<Fault> fault;
  try {
    std::vector<uint32_t> ready;
    bool polled = false;
    for (;;) {
      ready.clear();
      bool unfinished = false;
      for (uint32_t w = 0; w < count; ++w) {
        unfinished |= !warps[w].finished();
        if (warps[w].canRun())
          ready.push_back(w);
      }
      if (!unfinished)
        break;
      if (ready.empty()) {
        // Whoever polls tries again, once all others have stopped. If nothing
        // has changed since the last time nothing ever will.
        if (polled)
          diagnose();
        polled = true;
        for (Warp &w : warps)
          w.wake();
        if (std::none_of(warps.begin(), warps.end(),
                         [](const Warp &w) { return w.canRun(); }))
          diagnose();
        continue;
      }
      running = &warps[ready[draw(state) % ready.size()]];
      uint64_t before = running->warpInstructions;
      running->run();
      // A poll that fails again is one instruction and no progress.
      if (running->warpInstructions > before + 1)
        polled = false;
    }
  } catch (FaultFound &found) {
    fault = describe(found);
  }
  for (Warp &w : warps) {
    counts.warpInstructions += w.warpInstructions;
    counts.laneInstructions += w.laneInstructions;
    w.warpInstructions = w.laneInstructions = 0;
  }
  return fault;
}

bool Block::arrive(Warp &warp, uint32_t fragment, uint32_t which,
                   uint32_t expected, uint32_t count, bool wait) {
  Barrier &b = barriers[which];
  uint32_t inst = warp.fragments[fragment].pc;
  if (!b.expected) {
    b.expected = expected;
    b.inst = inst;
  } else if (b.expected != expected) {
    throw FaultFound{FaultKind::PartialBarrier,
                     "barrier " + std::to_string(which) + " is for " +
                         std::to_string(expected) + " threads here and for " +
                         std::to_string(b.expected) + " at " +
                         describeInst(*launch.code, b.inst),
                     {},
                     {},
                     {}};
  }
  b.arrived += count;
  if (b.arrived > b.expected)
    throw FaultFound{FaultKind::PartialBarrier,
                     "barrier " + std::to_string(which) + " expects " +
                         std::to_string(b.expected) + " threads, " +
                         std::to_string(b.arrived) + " have arrived",
                     {},
                     {},
                     {}};
  clocks.release(warp.index, b.released);
  if (wait)
    b.waiting.push_back({warp.index, fragment});
  else
    ++clocks.now; // What the warp does next is not released by this.
  if (b.arrived < b.expected) {
    if (wait)
      warp.fragments[fragment].state = Fragment::AtBarrier;
    return wait;
  }
  complete(b);
  return false;
}

void Block::complete(Barrier &b) {
  ++clocks.now;
  Barrier done;
  std::swap(done, b);
  for (auto [warp, fragment] : done.waiting) {
    Warp &w = warps[warp];
    clocks.acquire(warp, done.released);
    const Inst &inst = w.code->body[w.fragments[fragment].pc];
    // bar.red (ISA 9.7.13.1): every thread gets the value.
    if (inst.small) {
      uint32_t mask = w.fragments[fragment].mask;
      if (inst.small == 1) {
        uint32_t *to = w.row<uint32_t>(inst.op[0]);
        for (uint32_t left = mask; left; left &= left - 1)
          to[std::countr_zero(left)] = done.population;
      } else {
        bool value = inst.small == 2 ? done.all : done.any;
        uint32_t &to = w.predicate(inst.op[0]);
        to = value ? to | mask : to & ~mask;
      }
    }
    w.release(fragment);
  }
}

std::string nova::sim::describeInst(const Code &code, uint32_t inst) {
  uint32_t line = code.body[inst].line;
  return "PTX line " + std::to_string(line);
}

/// Nobody can run and some have not ended: says what they wait for.
void Block::diagnose() {
  std::string waits;
  bool someEnded = false, atBarrier = false, atSync = false;
  const Warp *first = nullptr;
  for (Warp &w : warps) {
    if (w.finished()) {
      someEnded = true;
      continue;
    }
    for (const Fragment &f : w.fragments) {
      if (f.state == Fragment::Free || f.state == Fragment::Split)
        continue;
      if (!first)
        first = &w, w.current = &launch.code->body[f.pc], running = &w;
      atBarrier |= f.state == Fragment::AtBarrier;
      atSync |= f.state == Fragment::AtSync;
      waits += (waits.empty() ? "warp " : "; warp ") + std::to_string(w.index) +
               (f.state == Fragment::AtSync      ? " needs other lanes at "
                : f.state == Fragment::AtBarrier ? " waits at "
                                                 : " polls at ") +
               describeInst(*launch.code, f.pc);
      if (waits.size() > 300) {
        waits += "; ...";
        break;
      }
    }
  }
  FaultKind kind = FaultKind::Deadlock;
  std::string what = "no thread can go on: " + waits;
  if (atSync) {
    kind = FaultKind::Divergence;
  } else if (atBarrier) {
    uint32_t places = 0;
    for (const Barrier &b : barriers)
      if (b.expected) {
        ++places;
        what += "; barrier " + std::to_string(&b - barriers.data()) + " has " +
                std::to_string(b.arrived) + " of " +
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

Fault Block::describe(FaultFound &found) {
  Fault fault;
  fault.kind = found.kind;
  fault.what = std::move(found.what);
  fault.kernel = launch.code->name;
  fault.block = id;
  fault.lane = found.lane;
  fault.address = found.address;
  fault.buffer = std::move(found.buffer);
  if (!running)
    return fault;
  fault.warp = running->index;
  if (const Inst *inst = running->current) {
    fault.line = inst->line;
    if (inst->location < launch.code->sources.size())
      fault.source = launch.code->sources[inst->location];
    // The line of the text, without white space around it.
    std::string_view text = launch.code->text;
    for (uint32_t line = 1; line < inst->line; ++line) {
      size_t end = text.find('\n');
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    text = text.substr(0, text.find('\n'));
    size_t begin = text.find_first_not_of(" \t");
    if (begin != std::string_view::npos)
      fault.opcode = std::string(
          text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin));
    for (char &c : fault.opcode)
      if (c == '\t')
        c = ' ';
  }
  return fault;
}
