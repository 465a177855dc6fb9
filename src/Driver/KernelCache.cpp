//===- KernelCache.cpp - Kernels in the store ------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelCache.h"

#include "Log.h"

using namespace nova;
using namespace nova::driver;

static constexpr std::string_view kKind = "kernel";

std::optional<std::vector<std::string>> KernelCache::find(KeyBuilder key) {
  for (const auto &[name, value] : made)
    key.section(name, value);
  std::optional<std::vector<cache::Blob>> blobs = store.find(kKind, key.key());
  if (!blobs)
    return std::nullopt;
  ++found;
  std::vector<std::string> parts;
  for (cache::Blob &blob : *blobs)
    parts.push_back(std::move(blob.bytes));
  return parts;
}

void KernelCache::put(KeyBuilder key, const std::vector<std::string> &parts) {
  for (const auto &[name, value] : made)
    key.section(name, value);
  std::vector<cache::Blob> blobs;
  for (const std::string &part : parts)
    blobs.push_back({std::to_string(blobs.size()), part});
  if (Status status = store.put(kKind, key, blobs); !status)
    std::call_once(warned, [&] {
      warning("kernels do not enter the cache: " + status.error().message);
    });
}
