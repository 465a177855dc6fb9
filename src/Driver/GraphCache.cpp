//===- GraphCache.cpp - Bundles in the store, and where the store is ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GraphCache.h"

#include "Log.h"

#include <cstdlib>

#include <unistd.h>

using namespace nova;
using namespace nova::driver;

std::string driver::defaultCacheFolder(const std::string &wanted) {
  if (!wanted.empty())
    return wanted;
  auto variable = [](const char *name) -> std::string {
    const char *value = std::getenv(name);
    return value ? value : "";
  };
  if (std::string dir = variable("NOVAC_CACHE_DIR"); !dir.empty())
    return dir;
  if (std::string dir = variable("XDG_CACHE_HOME"); !dir.empty())
    return dir + "/novac";
  if (std::string dir = variable("HOME"); !dir.empty())
    return dir + "/.cache/novac";
  return {};
}

std::optional<cache::Store> driver::openStore(const Options &options) {
  cache::StoreOptions store;
  store.folder = options.noCache ? "" : defaultCacheFolder(options.cacheDir);
  if (store.folder.empty())
    return std::nullopt;
  store.secondFolder = options.cacheReadOnly;
  // One that somebody else looks after is read all the same.
  store.readOnly = ::access(store.folder.c_str(), F_OK) == 0 &&
                   ::access(store.folder.c_str(), W_OK) != 0;
  store.limitBytes = options.cacheLimit;
  store.warn = [](const std::string &line) { warning(line); };
  return cache::Store(std::move(store));
}

std::optional<bundle::Bundle> driver::findBundle(const cache::Store &store,
                                                 const std::string &key) {
  std::optional<std::vector<cache::Blob>> blobs = store.find(kGraphKind, key);
  if (!blobs)
    return std::nullopt;
  auto refused = [&](const std::string &why) {
    warning("cache entry " + key + " is not used: " + why);
    return std::nullopt;
  };
  if (blobs->empty() || blobs->front().name != "manifest")
    return refused("it has no manifest");
  bundle::Bundle bundle;
  Expected<bundle::Manifest> manifest = bundle::readManifest(
      blobs->front().bytes, "the manifest of cache entry " + key);
  if (!manifest)
    return refused(manifest.error().message);
  bundle.manifest = std::move(*manifest);
  if (blobs->size() != bundle.manifest.blobs.size() + 1)
    return refused("it has " + std::to_string(blobs->size() - 1) +
                   " blobs, its manifest " +
                   std::to_string(bundle.manifest.blobs.size()));
  for (size_t i = 1; i < blobs->size(); ++i) {
    if ((*blobs)[i].bytes.size() != bundle.manifest.blobs[i - 1].size)
      return refused("blob " + (*blobs)[i].name +
                     " has another size than its manifest says");
    bundle.blobs.push_back(std::move((*blobs)[i].bytes));
  }
  return bundle;
}

Status driver::storeBundle(const cache::Store &store, const KeyBuilder &key,
                           const bundle::Bundle &bundle) {
  std::vector<cache::Blob> blobs = {
      {"manifest", bundle::writeManifest(bundle.manifest)}};
  for (size_t i = 0; i < bundle.blobs.size(); ++i)
    blobs.push_back({std::to_string(i), bundle.blobs[i]});
  return store.put(kGraphKind, key, blobs);
}
