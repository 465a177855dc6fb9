//===- Warp.cpp - Fragments of a warp, and the loop that executes ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

#include <algorithm>

using namespace nova::sim;

static uint32_t special(Special what, const Block &block, uint32_t warp,
                        uint32_t lane) {
  const Shape &shape = block.launch.shape;
  uint32_t thread = warp * kLanes + lane;
  auto bit = uint32_t(1) << lane;
  switch (what) {
  case Special::TidX:
    return thread % shape.block[0];
  case Special::TidY:
    return thread / shape.block[0] % shape.block[1];
  case Special::TidZ:
    return thread / shape.block[0] / shape.block[1];
  case Special::NtidX:
    return shape.block[0];
  case Special::NtidY:
    return shape.block[1];
  case Special::NtidZ:
    return shape.block[2];
  case Special::CtaidX:
    return block.id[0];
  case Special::CtaidY:
    return block.id[1];
  case Special::CtaidZ:
    return block.id[2];
  case Special::NctaidX:
    return shape.grid[0];
  case Special::NctaidY:
    return shape.grid[1];
  case Special::NctaidZ:
    return shape.grid[2];
  case Special::LaneId:
    return lane;
  case Special::WarpId:
    return warp;
  case Special::NwarpId:
    return block.launch.warpsPerBlock();
  case Special::LanemaskEq:
    return bit;
  case Special::LanemaskLe:
    return bit | (bit - 1);
  case Special::LanemaskLt:
    return bit - 1;
  case Special::LanemaskGe:
    return ~(bit - 1);
  case Special::LanemaskGt:
    return ~(bit | (bit - 1));
  case Special::DynamicSmemSize:
    return static_cast<uint32_t>(shape.dynamicShared);
  case Special::TotalSmemSize:
    return static_cast<uint32_t>(block.launch.sharedBytes);
  case Special::ClusterNctaRank:
    return shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
  case Special::ClusterCtaRank:
    return block.rank;
  case Special::ClusterIdX:
    return block.id[0] / shape.cluster[0];
  case Special::ClusterIdY:
    return block.id[1] / shape.cluster[1];
  case Special::ClusterIdZ:
    return block.id[2] / shape.cluster[2];
  case Special::NclusterIdX:
    return shape.grid[0] / shape.cluster[0];
  case Special::NclusterIdY:
    return shape.grid[1] / shape.cluster[1];
  case Special::NclusterIdZ:
    return shape.grid[2] / shape.cluster[2];
  case Special::ClusterCtaidX:
    return block.id[0] % shape.cluster[0];
  case Special::ClusterCtaidY:
    return block.id[1] % shape.cluster[1];
  case Special::ClusterCtaidZ:
    return block.id[2] % shape.cluster[2];
  case Special::ClusterNctaidX:
    return shape.cluster[0];
  case Special::ClusterNctaidY:
    return shape.cluster[1];
  case Special::ClusterNctaidZ:
    return shape.cluster[2];
  case Special::NsmId:
    return 1;
  // There is no time here; the ISA promises of clocks only that they do not go
  // back.
  case Special::Clock:
  case Special::Clock64:
  case Special::SmId:
  case Special::GridId:
  case Special::ActiveMask:
    return 0;
  }
  return 0;
}

void Warp::start(Block &owner, uint32_t number, uint32_t lanes) {
  bool fresh = code != owner.launch.code;
  block = &owner;
  code = owner.launch.code;
  index = number;
  agent = owner.rank * owner.launch.warpsPerBlock() + number;
  launched = alive = lanes;
  copies.clear();
  groups.fill(0);
  bulkReads.clear();
  bulkGroups.fill(0);
  products.start(code->watched.size());
  registers.reset();
  clusterPhase.fill(0);
  fragments.clear();
  fragments.push_back({lanes, 0, kNone, kNone, 0, Fragment::Runnable});
  if (fresh) {
    // Rows start at multiples of 64 bytes.
    storage.assign(code->fileBytes + 64, 0);
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    file.base = storage.data() + (64 - address % 64) % 64;
    for (const auto &[offset, constant] : code->constants) {
      if (constant.width == 1)
        predicate(offset) = constant.bits ? kAllLanes : 0;
      else if (constant.width == 64)
        std::fill_n(row<uint64_t>(offset), kLanes, constant.bits);
      else
        std::fill_n(row<uint32_t>(offset), kLanes,
                    static_cast<uint32_t>(constant.bits));
    }
  }
  for (const auto &[offset, what] : code->specials)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      row<uint32_t>(offset)[lane] = special(what, owner, number, lane);
  for (const auto &[offset, address] : code->sharedAddresses) {
    uint64_t own = address.bits + (uint64_t(owner.rank) << kRankShift);
    if (address.width == 64)
      std::fill_n(row<uint64_t>(offset), kLanes, own);
    else
      std::fill_n(row<uint32_t>(offset), kLanes, static_cast<uint32_t>(own));
  }
  if (code->localBytes) {
    local.assign(kLanes * code->localBytes, 0xCD);
    localWritten.assign(kLanes * code->localBytes, 0);
  }
}

bool Warp::canRun() const {
  return std::any_of(fragments.begin(), fragments.end(), [](const Fragment &f) {
    return f.state == Fragment::Runnable;
  });
}

void Warp::wake() {
  for (Fragment &f : fragments)
    if (f.state == Fragment::Polling)
      f.state = Fragment::Runnable;
}

uint32_t Warp::make(const Fragment &fragment) {
  for (uint32_t i = 0; i < fragments.size(); ++i)
    if (fragments[i].state == Fragment::Free) {
      fragments[i] = fragment;
      return i;
    }
  fragments.push_back(fragment);
  return static_cast<uint32_t>(fragments.size() - 1);
}

/// A fragment without work: gone, and its parent may go on without it.
void Warp::drop(uint32_t fragment) {
  Fragment &f = fragments[fragment];
  uint32_t parent = f.parent;
  f = Fragment();
  if (parent == kNone)
    return;
  Fragment &p = fragments[parent];
  if (--p.children)
    return;
  if (p.mask && p.pc != kNone)
    p.state = Fragment::Runnable;
  else
    drop(parent);
}

void Warp::rejoin(uint32_t fragment) { drop(fragment); }

void Warp::leave(uint32_t fragment, uint32_t lanes) {
  for (const BulkRead &r : bulkReads)
    if (lanes >> r.lane & 1)
      throw FaultFound{FaultKind::AsyncPending,
                       "ends while the bulk copy it began at " +
                           describeInst(*code, r.inst) +
                           " may still read shared memory: wait for it by "
                           "cp.async.bulk.wait_group.read 0",
                       r.lane,
                       {},
                       "shared"};
  alive &= ~lanes;
  ++block->cluster.events;
  block->cluster.completeCluster();
  for (Fragment &f : fragments)
    f.mask &= ~lanes;
  if (!fragments[fragment].mask)
    drop(fragment);
}

void Warp::splitTo(uint32_t fragment, uint32_t taken, uint32_t there,
                   uint32_t here, uint32_t reconverge) {
  Fragment f = fragments[fragment];
  uint32_t sides[] = {f.mask & ~taken, taken};
  uint32_t targets[] = {here, there};
  uint32_t parent = fragment;
  if (reconverge == f.reconverge && f.parent != kNone) {
    // They meet where this fragment was to meet the others of its parent
    // anyway: siblings instead of children, or a loop would nest endlessly.
    parent = f.parent;
    fragments[fragment] = Fragment();
    --fragments[parent].children;
  } else {
    fragments[fragment].state = Fragment::Split;
    fragments[fragment].pc = reconverge;
  }
  for (int side : {0, 1})
    if (targets[side] != reconverge) {
      ++fragments[parent].children;
      make({sides[side], targets[side], reconverge, parent, 0,
            Fragment::Runnable});
    }
}

bool Warp::converged(uint32_t fragment, const Inst &inst, uint32_t mask) const {
  uint32_t needed = alive;
  if (inst.kind == Kind::Members) {
    const uint32_t *members =
        const_cast<Warp *>(this)->row<uint32_t>(inst.members);
    needed = 0;
    for (uint32_t left = mask; left; left &= left - 1)
      needed |= members[std::countr_zero(left)];
    for (uint32_t left = mask; left; left &= left - 1) {
      uint32_t lane = static_cast<uint32_t>(std::countr_zero(left));
      if (members[lane] != needed || !(needed >> lane & 1))
        throw FaultFound{
            FaultKind::Divergence,
            "lane " + std::to_string(lane) +
                " is not in the member mask, or has another one than the rest",
            lane,
            {},
            {}};
    }
    needed &= alive;
  }
  return (needed & ~fragments[fragment].mask) == 0;
}

/// Lanes that wait apart at one warp-wide instruction go on together, when all
/// of those it names are there. Returns whether any did.
bool Warp::joinAtSync() {
  for (uint32_t i = 0; i < fragments.size(); ++i) {
    if (fragments[i].state != Fragment::AtSync)
      continue;
    const Inst &inst = code->body[fragments[i].pc];
    uint32_t together = 0, active = 0;
    std::vector<uint32_t> parts;
    // bar.warp.sync brings lanes together from anywhere (ISA 9.7.13.2).
    auto meets = [&](const Fragment &f) {
      return f.pc == fragments[i].pc ||
             (inst.small == kWarpBarrier &&
              code->body[f.pc].small == kWarpBarrier);
    };
    for (uint32_t k = 0; k < fragments.size(); ++k)
      if (fragments[k].state == Fragment::AtSync && meets(fragments[k])) {
        together |= fragments[k].mask;
        parts.push_back(k);
      }
    active = together;
    if (inst.guard != kNone) {
      uint32_t guard = predicate(inst.guard);
      active &= inst.guardNegated ? ~guard : guard;
    }
    uint32_t needed = alive;
    if (inst.kind == Kind::Members && active)
      needed = row<uint32_t>(inst.members)[std::countr_zero(active)] & alive;
    if (needed & ~together)
      continue;
    current = &inst;
    ++warpInstructions;
    laneInstructions += static_cast<uint64_t>(std::popcount(active));
    if (active && inst.watch != kNone)
      touchWatched(inst);
    if (active)
      inst.run(*this, inst, active);
    for (uint32_t k : parts) {
      fragments[k].state = Fragment::Runnable;
      ++fragments[k].pc;
    }
    return true;
  }
  return false;
}

void Warp::run() {
  for (;;) {
    // The fragment made last first: inner code before what waits for it.
    uint32_t chosen = kNone;
    for (uint32_t i = static_cast<uint32_t>(fragments.size()); i-- > 0;)
      if (fragments[i].state == Fragment::Runnable) {
        chosen = i;
        break;
      }
    if (chosen != kNone)
      execute(chosen);
    else if (!joinAtSync())
      return;
  }
}

void Warp::execute(uint32_t fragment) {
  const Inst *body = code->body.data();
  Fragment *f = &fragments[fragment];
  uint64_t warpCount = 0, laneCount = 0;
  struct Tally {
    Warp &w;
    uint64_t &warp, &lane;
    ~Tally() { w.warpInstructions += warp, w.laneInstructions += lane; }
  } tally{*this, warpCount, laneCount};
  uint64_t limit = block->launch.options->maxInstructions;
  for (;;) {
    if (f->pc == f->reconverge) {
      rejoin(fragment);
      return;
    }
    const Inst &inst = body[f->pc];
    current = &inst;
    uint32_t mask = f->mask;
    if (inst.guard != kNone) {
      uint32_t guard = predicate(inst.guard);
      mask &= inst.guardNegated ? ~guard : guard;
    }
    ++warpCount;
    laneCount += static_cast<uint64_t>(std::popcount(mask));
    if (inst.watch != kNone && mask)
      touchWatched(inst);
    switch (inst.kind) {
    case Kind::Plain:
      if (mask)
        inst.run(*this, inst, mask);
      ++f->pc;
      continue;
    case Kind::Aligned:
    case Kind::Members:
      if (!converged(fragment, inst, mask)) {
        f->state = Fragment::AtSync;
        return;
      }
      if (mask)
        inst.run(*this, inst, mask);
      ++f->pc;
      continue;
    case Kind::Flow:
      if (warpInstructions + warpCount > limit)
        throw FaultFound{FaultKind::Endless,
                         "the warp has executed more than " +
                             std::to_string(limit) + " instructions",
                         {},
                         {},
                         {}};
      switch (inst.flow(*this, fragment, inst, mask)) {
      case Next::Advance:
        ++fragments[fragment].pc;
        [[fallthrough]];
      case Next::Stay:
        f = &fragments[fragment];
        continue;
      case Next::Switch:
        return;
      }
    }
  }
}
