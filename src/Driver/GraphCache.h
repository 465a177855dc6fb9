//===- GraphCache.h - Compiled steps by what they were compiled from ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   DIR/graph/<2 digits>/<64 digits of the key>/
//     manifest.json, blobs/, provenance.json     a bundle
//     entry.txt    "novac graph entry 1", "manifest sha256:...", and below the
//                  sections that the key was made of
//   DIR/tmp/          entries being written, one folder each
//   DIR/quarantine/   entries that were found damaged
//
// An entry is written aside, synced, and published whole by one rename; whoever
// loses the race to publish has lost nothing. Readers take no lock: they check
// the manifest against entry.txt and every blob against the manifest.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_GRAPHCACHE_H
#define NOVA_LIB_DRIVER_GRAPHCACHE_H

#include "nova/Bundle/Bundle.h"
#include "nova/Support/Error.h"
#include "nova/Support/Hash.h"

#include <optional>
#include <string>
#include <string_view>

namespace nova::driver {

class GraphCache {
public:
  explicit GraphCache(std::string dir, bool readOnly = false)
      : dir(std::move(dir)), readOnly(readOnly) {}

  const std::string &folder() const { return dir; }

  /// The bundle under that key, or nothing. A damaged entry is moved to
  /// quarantine (not in a read-only cache) and a warning says so.
  std::optional<bundle::Bundle> find(const std::string &key) const;

  /// Publishes a bundle under the key.
  Status store(const KeyBuilder &key, const bundle::Bundle &bundle,
               std::string_view provenance) const;

  /// Why nothing was found: what differs from the entry that has most sections
  /// in common with the key. One line per section.
  std::string explainMiss(const KeyBuilder &key) const;

private:
  std::string entryPath(const std::string &key) const;
  void quarantine(const std::string &key, const std::string &why) const;

  std::string dir;
  bool readOnly;
};

/// The cache's folder: `wanted` if not empty, else $NOVAC_CACHE_DIR,
/// $XDG_CACHE_HOME/novac, $HOME/.cache/novac; empty when none of them is set.
std::string defaultCacheFolder(const std::string &wanted);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_GRAPHCACHE_H
