//===- Memory.h - Aligned memory that frees itself ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_MEMORY_H
#define NOVA_RUNTIME_MEMORY_H

#include "nova/Support/Error.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include <sys/mman.h>

namespace nova::rt {

struct FreeMemory {
  void operator()(void *p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

/// At least one byte, at a multiple of `alignment` (a power of two). `what`
/// names it in the error, which is Missing.
inline Expected<Memory> allocate(uint64_t size, uint64_t alignment,
                                 const std::string &what) {
  // Large ones on huge pages where the system gives them: a step walks over all
  // of its memory, and address translation is a good part of the cost.
  constexpr uint64_t huge = uint64_t(2) << 20;
  if (size >= 2 * huge && alignment < huge)
    alignment = huge;
  void *p = nullptr;
  if (size > SIZE_MAX / 2 ||
      ::posix_memalign(&p,
                       alignment < sizeof(void *) ? sizeof(void *) : alignment,
                       size ? size : 1) != 0)
    return Error{ErrorCode::Missing,
                 "cannot allocate " + std::to_string(size) + " bytes for " +
                     what,
                 "this machine has not enough memory for the bundle"};
  if (alignment == huge)
    ::madvise(p, size, MADV_HUGEPAGE);
  return Memory(p);
}

/// Zeroed memory at a multiple of `alignment`, of pages that the system hands
/// out when they are touched first: gigabytes cost nothing yet.
class ZeroedMemory {
public:
  ZeroedMemory() = default;
  static Expected<ZeroedMemory> allocate(uint64_t size, uint64_t alignment,
                                         const std::string &what) {
    constexpr uint64_t huge = uint64_t(2) << 20;
    if (size >= 2 * huge && alignment < huge)
      alignment = huge; // as allocate() above
    ZeroedMemory memory;
    if (size <= SIZE_MAX / 2)
      memory.block.reset(std::calloc(size + alignment, 1));
    if (!memory.block)
      return Error{ErrorCode::Missing,
                   "cannot allocate " + std::to_string(size) + " bytes for " +
                       what,
                   "this machine has not enough memory for the bundle"};
    uint64_t begin = reinterpret_cast<uint64_t>(memory.block.get());
    memory.address = reinterpret_cast<void *>((begin + alignment - 1) /
                                              alignment * alignment);
    if (alignment == huge)
      ::madvise(memory.address, size, MADV_HUGEPAGE);
    return memory;
  }
  void *get() const { return address; }

private:
  Memory block;
  void *address = nullptr;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_MEMORY_H
