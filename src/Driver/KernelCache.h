//===- KernelCache.h - Kernels in the store --------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_KERNELCACHE_H
#define NOVA_LIB_DRIVER_KERNELCACHE_H

#include "nova/Cache/Store.h"
#include "nova/Pipelines/KernelStore.h"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace nova::driver {

/// Entries of the kind "kernel", whose keys say too what they were made with. A
/// store that cannot be written costs one warning.
class KernelCache : public KernelStore {
public:
  /// `made`: sections of every key.
  KernelCache(const cache::Store &store,
              std::vector<std::pair<std::string, std::string>> made)
      : store(store), made(std::move(made)) {}

  std::optional<std::vector<std::string>> find(KeyBuilder key) override;
  void put(KeyBuilder key, const std::vector<std::string> &parts) override;

  size_t hits() const { return found; }

private:
  const cache::Store &store;
  std::vector<std::pair<std::string, std::string>> made;
  std::atomic<size_t> found = 0;
  std::once_flag warned;
};

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_KERNELCACHE_H
