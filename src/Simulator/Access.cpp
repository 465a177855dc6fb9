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

/// "shared memory 'kernel$tile' + 128".
static std::string sharedPlace(const Warp &w, uint64_t offset) {
  std::string best = "shared memory + " + std::to_string(offset);
  for (const SharedVariable &v : w.code->shared)
    if (offset >= v.offset && (!v.bytes || offset < v.offset + v.bytes))
      best = "shared '" + v.name + "' + " + std::to_string(offset - v.offset);
  return best;
}

void nova::sim::faultShared(Warp &w, unsigned lane, uint64_t address,
                            unsigned bytes) {
  uint64_t offset = address - kSharedBase;
  if (offset < w.block->shared.size() &&
      w.block->shared.size() - offset >= bytes)
    throw FaultFound{FaultKind::Misaligned,
                     "accesses " + bytesText(bytes) + " at " +
                         sharedPlace(w, offset) + ", no multiple of " +
                         std::to_string(bytes),
                     lane, address, "shared"};
  throw FaultFound{FaultKind::OutOfBounds,
                   "accesses " + bytesText(bytes) + " at offset " +
                       std::to_string(static_cast<int64_t>(offset)) +
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

void nova::sim::faultConflict(Warp &w, unsigned lane, uint64_t address,
                              bool writes, const Conflict &conflict) {
  std::string place = sharedPlace(w, conflict.offset);
  std::string other =
      " by warp " + std::to_string(conflict.warp) +
      (conflict.lane == kWholeWarp ? ""
                                   : " lane " + std::to_string(conflict.lane)) +
      " at " + describeInst(*w.code, conflict.inst);
  const char *verb = writes ? "writes " : "reads ";
  switch (conflict.kind) {
  case Conflict::Pending:
    throw FaultFound{FaultKind::AsyncPending,
                     verb + place + ", which an asynchronous copy begun" +
                         other + " still owns: nobody has waited for it",
                     lane, address, "shared"};
  case Conflict::Uninitialised:
    throw FaultFound{FaultKind::Uninitialised,
                     verb + place + ", which nobody has written", lane, address,
                     "shared"};
  default:
    throw FaultFound{
        FaultKind::Race,
        verb + place + ", " +
            (conflict.kind == Conflict::WithWrite ? "written" : "read") +
            other + " with no barrier between the two",
        lane, address, "shared"};
  }
}
