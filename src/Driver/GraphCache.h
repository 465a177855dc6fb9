//===- GraphCache.h - Bundles in the store, and where the store is --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_GRAPHCACHE_H
#define NOVA_LIB_DRIVER_GRAPHCACHE_H

#include "nova/Bundle/Bundle.h"
#include "nova/Cache/Store.h"
#include "nova/Driver/Options.h"

#include <optional>
#include <string>

namespace nova::driver {

/// The kind of entries whose blobs are "manifest", and then "0", "1", ...: the
/// manifest's, in its order.
inline constexpr std::string_view kGraphKind = "graph";

/// The store of the options, whose damage is a warning; nullopt where there is
/// none (--no-cache, or no folder for it).
std::optional<cache::Store> openStore(const Options &options);

/// The bundle under that key, or nothing; a warning for one that this novac's
/// reader refuses.
std::optional<bundle::Bundle> findBundle(const cache::Store &store,
                                         const std::string &key);
Status storeBundle(const cache::Store &store, const KeyBuilder &key,
                   const bundle::Bundle &bundle);

/// The cache's folder: `wanted` if not empty, else $NOVAC_CACHE_DIR,
/// $XDG_CACHE_HOME/novac, $HOME/.cache/novac; empty when none of them is set.
std::string defaultCacheFolder(const std::string &wanted);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_GRAPHCACHE_H
