//===- Access.h - From an address to bytes, with every check --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_ACCESS_H
#define NOVA_SIMULATOR_ACCESS_H

#include "Machine.h"

#include <bit>
#include <cstring>

namespace nova::sim {

enum class AccessSpace : uint8_t { Global, Shared, Local, Generic };

/// Throws the report of a failed check. Out of line: handlers stay small.
[[noreturn]] void faultGlobal(Warp &w, unsigned lane, uint64_t address,
                              unsigned bytes, bool writes);
[[noreturn]] void faultLocal(Warp &w, unsigned lane, uint64_t address,
                             unsigned bytes, bool uninitialised);
/// `owner`: of the shared memory; `async`: by the asynchronous proxy.
[[noreturn]] void faultConflict(Warp &w, Block &owner, unsigned lane,
                                uint64_t address, bool writes,
                                const Conflict &conflict, bool async = false);
/// "shared 'kernel$tile' + 128".
std::string sharedName(const Block &owner, uint64_t offset);

/// Whether `bytes` (a power of two up to 16) bytes of flags are all set.
inline bool allWritten(const uint8_t *flags, unsigned bytes) {
  if (bytes >= 8) {
    uint64_t both = ~uint64_t(0);
    for (unsigned k = 0; k < bytes; k += 8) {
      uint64_t part;
      std::memcpy(&part, flags + k, 8);
      both &= part;
    }
    return (both & 0x0101010101010101) == 0x0101010101010101;
  }
  for (unsigned k = 0; k < bytes; ++k)
    if (!flags[k])
      return false;
  return true;
}

/// `unit`: the access is a whole of this many bytes (a power of two), the
/// alignment it needs; `bytes` of it are touched.
inline const Memory *findGlobal(Warp &w, uint64_t address, unsigned unit,
                                unsigned bytes, uint64_t &offset) {
  const std::vector<Memory> &memories = w.block->launch.memories;
  uint64_t window = address >> kWindowShift;
  if (window - 1 >= memories.size())
    return nullptr;
  const Memory &m = memories[window - 1];
  offset = address & ((uint64_t(1) << kWindowShift) - 1);
  if (offset + bytes > m.size || (address & (unit - 1)))
    return nullptr;
  return &m;
}

inline const uint8_t *readGlobal(Warp &w, unsigned lane, uint64_t address,
                                 unsigned unit, unsigned bytes) {
  uint64_t offset;
  const Memory *m = findGlobal(w, address, unit, bytes, offset);
  if (!m || (m->written && !allWritten(m->written + offset, bytes)))
    faultGlobal(w, lane, address, unit, false);
  return m->data + offset;
}

inline uint8_t *writeGlobal(Warp &w, unsigned lane, uint64_t address,
                            unsigned bytes) {
  uint64_t offset;
  const Memory *m = findGlobal(w, address, bytes, bytes, offset);
  if (!m || !m->writable)
    faultGlobal(w, lane, address, bytes, true);
  if (m->written)
    std::memset(m->written + offset, 1, bytes);
  return m->data + offset;
}

/// Shared memory of some block of the cluster.
struct SharedPlace {
  Block *block;
  uint64_t offset;
};
/// Of an address that is not the warp's own block's: another's, or a fault.
SharedPlace remoteShared(Warp &w, unsigned lane, uint64_t address,
                         unsigned bytes, unsigned alignment);

/// Where a shared address is, which is inside and aligned.
inline SharedPlace sharedPlace(Warp &w, unsigned lane, uint64_t address,
                               unsigned bytes, unsigned alignment) {
  uint64_t offset = address - w.block->sharedBase;
  if (offset >= w.block->shared.size() ||
      w.block->shared.size() - offset < bytes || (address & (alignment - 1)))
    return remoteShared(w, lane, address, bytes, alignment);
  return {w.block, offset};
}
inline SharedPlace sharedPlace(Warp &w, unsigned lane, uint64_t address,
                               unsigned bytes) {
  return sharedPlace(w, lane, address, bytes, bytes);
}

/// `byWarp`: all lanes together need it (ldmatrix).
inline const uint8_t *readShared(Warp &w, unsigned lane, uint64_t address,
                                 unsigned bytes, bool byWarp = false) {
  SharedPlace at = sharedPlace(w, lane, address, bytes);
  Conflict found = at.block->shared.read(
      w.block->cluster.clocks,
      w.accessor(byWarp ? kWholeWarp : static_cast<uint8_t>(lane)), at.offset,
      bytes);
  if (found.kind != Conflict::None)
    faultConflict(w, *at.block, lane, address, false, found);
  return at.block->shared.data() + at.offset;
}

inline void writeShared(Warp &w, unsigned lane, uint64_t address,
                        unsigned bytes, const uint8_t *value,
                        bool byWarp = false) {
  SharedPlace at = sharedPlace(w, lane, address, bytes);
  Conflict found = at.block->shared.write(
      w.block->cluster.clocks,
      w.accessor(byWarp ? kWholeWarp : static_cast<uint8_t>(lane)), at.offset,
      bytes, value);
  if (found.kind != Conflict::None)
    faultConflict(w, *at.block, lane, address, true, found);
  std::memcpy(at.block->shared.data() + at.offset, value, bytes);
}

inline uint8_t *localAt(Warp &w, unsigned lane, uint64_t address,
                        unsigned bytes, bool writes) {
  uint64_t offset = address - kLocalBase, size = w.code->localBytes;
  if (offset >= size || size - offset < bytes || (address & (bytes - 1)))
    faultLocal(w, lane, address, bytes, false);
  uint8_t *flags = w.localWritten.data() + lane * size + offset;
  if (writes)
    std::memset(flags, 1, bytes);
  else if (!allWritten(flags, bytes))
    faultLocal(w, lane, address, bytes, true);
  return w.local.data() + lane * size + offset;
}

/// Turns a generic address into one of a state space.
inline AccessSpace resolve(AccessSpace space, uint64_t &address) {
  if (space != AccessSpace::Generic)
    return space;
  uint64_t window = address >> kWindowShift;
  if (window == kSharedWindow >> kWindowShift) {
    address -= kSharedWindow;
    return AccessSpace::Shared;
  }
  if (window == kLocalWindow >> kWindowShift) {
    address -= kLocalWindow;
    return AccessSpace::Local;
  }
  return AccessSpace::Global;
}

inline const uint8_t *readBytes(Warp &w, AccessSpace space, unsigned lane,
                                uint64_t address, unsigned bytes) {
  switch (resolve(space, address)) {
  case AccessSpace::Shared:
    return readShared(w, lane, address, bytes);
  case AccessSpace::Local:
    return localAt(w, lane, address, bytes, false);
  default:
    return readGlobal(w, lane, address, bytes, bytes);
  }
}

inline void writeBytes(Warp &w, AccessSpace space, unsigned lane,
                       uint64_t address, unsigned bytes, const uint8_t *value) {
  switch (resolve(space, address)) {
  case AccessSpace::Shared:
    return writeShared(w, lane, address, bytes, value);
  case AccessSpace::Local:
    std::memcpy(localAt(w, lane, address, bytes, true), value, bytes);
    return;
  default:
    std::memcpy(writeGlobal(w, lane, address, bytes), value, bytes);
  }
}

/// The lane's address: register op[slot] and the offset. A 32-bit base is an
/// address of shared or local memory.
inline uint64_t addressOf(Warp &w, const Inst &i, unsigned slot,
                          unsigned lane) {
  uint64_t base = (i.small & 0x8000) ? w.row<uint32_t>(i.op[slot])[lane]
                                     : w.row<uint64_t>(i.op[slot])[lane];
  return base + static_cast<uint64_t>(i.immediate);
}

} // namespace nova::sim

#endif // NOVA_SIMULATOR_ACCESS_H
