//===- Access.cpp - The reports of failed memory accesses -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Access.h"

using namespace nova::sim;

static std::string bytesText(unsigned bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

void nova::sim::faultGlobal(Warp &w, unsigned lane, uint64_t address,
                            unsigned bytes, bool writes) {
  const std::vector<Memory> &memories = w.block->launch.memories;
  uint64_t window = address >> kWindowShift;
  std::string access = (writes ? "writes " : "reads ") + bytesText(bytes);
  if (window - 1 >= memories.size())
    throw FaultFound{FaultKind::OutOfBounds,
                     access + " at an address that is in no argument's memory",
                     lane,
                     address,
                     {}};
  const Memory &m = memories[window - 1];
  uint64_t offset = address & ((uint64_t(1) << kWindowShift) - 1);
  std::string at = access + " at offset " + std::to_string(offset) + " of " +
                   m.name + ", which has " + std::to_string(m.size);
  if (offset + bytes > m.size)
    throw FaultFound{FaultKind::OutOfBounds, at, lane, address, m.name};
  if (address & (bytes - 1))
    throw FaultFound{FaultKind::Misaligned,
                     access + " at offset " + std::to_string(offset) + " of " +
                         m.name + ", no multiple of " + std::to_string(bytes),
                     lane, address, m.name};
  if (writes)
    throw FaultFound{FaultKind::NotWritable,
                     access + " at offset " + std::to_string(offset) + " of " +
                         m.name +
                         ", which is not among the outputs of the launch",
                     lane, address, m.name};
  while (m.written[offset])
    ++offset;
  throw FaultFound{FaultKind::Uninitialised,
                   access + " of " + m.name + ", of which offset " +
                       std::to_string(offset) + " was never written",
                   lane, address, m.name};
}

std::string nova::sim::sharedName(const Block &owner, uint64_t offset) {
  std::string best = "shared memory + " + std::to_string(offset);
  for (const SharedVariable &v : owner.launch.code->shared)
    if (offset >= v.offset && (!v.bytes || offset < v.offset + v.bytes))
      best = "shared '" + v.name + "' + " + std::to_string(offset - v.offset);
  if (owner.cluster.blocks.size() > 1)
    best += " of the cluster's block " + std::to_string(owner.rank);
  return best;
}

SharedPlace nova::sim::remoteShared(Warp &w, unsigned lane, uint64_t address,
                                    unsigned bytes, unsigned alignment) {
  for (Block &b : w.block->cluster.blocks) {
    uint64_t offset = address - b.sharedBase;
    if (offset >= b.shared.size() || b.shared.size() - offset < bytes)
      continue;
    if (address & (alignment - 1))
      throw FaultFound{FaultKind::Misaligned,
                       "accesses " + bytesText(bytes) + " at " +
                           sharedName(b, offset) + ", no multiple of " +
                           std::to_string(alignment),
                       lane, address, "shared"};
    if (b.ended())
      throw FaultFound{FaultKind::Undefined,
                       "accesses " + sharedName(b, offset) +
                           ", which has ended: no block of a cluster may end "
                           "before the others are done with it "
                           "(barrier.cluster)",
                       lane, address, "shared"};
    return {&b, offset};
  }
  throw FaultFound{
      FaultKind::OutOfBounds,
      "accesses " + bytesText(bytes) + " at offset " +
          std::to_string(static_cast<int64_t>(address - w.block->sharedBase)) +
          " of shared memory, which has " +
          std::to_string(w.block->shared.size()),
      lane, address, "shared"};
}

void nova::sim::faultLocal(Warp &w, unsigned lane, uint64_t address,
                           unsigned bytes, bool uninitialised) {
  std::string at = "accesses " + bytesText(bytes) + " at offset " +
                   std::to_string(static_cast<int64_t>(address - kLocalBase)) +
                   " of local memory, which has " +
                   std::to_string(w.code->localBytes);
  if (uninitialised)
    throw FaultFound{FaultKind::Uninitialised, at + " and is not written there",
                     lane, address, "local"};
  bool aligned = (address & (bytes - 1)) == 0;
  throw FaultFound{aligned ? FaultKind::OutOfBounds : FaultKind::Misaligned, at,
                   lane, address, "local"};
}

/// "warp 3 lane 7", "a product of warp 3", "a bulk copy".
static std::string agentText(Warp &w, const Conflict &conflict) {
  Cluster &cluster = w.block->cluster;
  const Clocks &clocks = cluster.clocks;
  if (clocks.isMbarrier(conflict.agent))
    return "a bulk copy";
  bool engine = !clocks.isWarp(conflict.agent);
  Warp &other =
      cluster.warpOf(engine ? conflict.agent - clocks.warps() : conflict.agent);
  std::string text = engine ? "the product issued by warp " : "warp ";
  text += std::to_string(other.index);
  if (cluster.blocks.size() > 1)
    text += " of the cluster's block " + std::to_string(other.block->rank);
  if (!engine && conflict.lane != kWholeWarp)
    text += " lane " + std::to_string(conflict.lane);
  return text;
}

void nova::sim::faultConflict(Warp &w, Block &owner, unsigned lane,
                              uint64_t address, bool writes,
                              const Conflict &conflict, bool async) {
  std::string place = sharedName(owner, conflict.offset);
  const Clocks &clocks = w.block->cluster.clocks;
  std::string who = agentText(w, conflict);
  std::string at = " at " + describeInst(*w.code, conflict.inst);
  std::string verb = writes ? "writes " : "reads ";
  bool copy = clocks.isMbarrier(conflict.agent);
  FaultKind kind = FaultKind::Race;
  std::string what;
  switch (conflict.kind) {
  case Conflict::Pending:
    kind = FaultKind::AsyncPending;
    what = copy ? ", which the bulk copy begun" + at +
                      " still fills: wait for the phase of its mbarrier that "
                      "counts its bytes"
                : ", which an asynchronous copy begun by " + who + at +
                      " still owns: nobody has waited for it";
    break;
  case Conflict::Busy:
    kind = FaultKind::AsyncPending;
    what = ", which the bulk copy begun by " + who + at +
           " still reads: wait for it by cp.async.bulk.wait_group.read, and "
           "let the others know";
    break;
  case Conflict::Uninitialised:
    kind = FaultKind::Uninitialised;
    what = ", which nobody has written";
    break;
  case Conflict::Unfenced:
    kind = FaultKind::ProxyFence;
    what = " in the asynchronous proxy, written by " + who + at +
           " in the generic one with no fence.proxy.async between the two";
    break;
  default:
    if (conflict.kind == Conflict::WithWrite && copy) {
      what = ", written by the bulk copy begun" + at + ": this " +
             (async ? "warp" : "thread") +
             " has not waited for the phase of its mbarrier";
    } else if (conflict.kind == Conflict::WithRead &&
               !clocks.isWarp(conflict.agent)) {
      kind = FaultKind::ProductPending;
      what = ", which " + who + at +
             " may still read: wait for it by wgmma.wait_group, and let this "
             "thread know";
    } else {
      what = std::string(", ") +
             (conflict.kind == Conflict::WithWrite ? "written" : "read") +
             " by " + who + at + " with no barrier between the two";
    }
  }
  throw FaultFound{kind, verb + place + what, lane, address, "shared"};
}
