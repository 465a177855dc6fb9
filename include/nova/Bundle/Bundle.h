//===- Bundle.h - A bundle folder: publishing and opening it --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   NAME.nova/
//     manifest.json             canonical JSON (Manifest.h)
//     blobs/sha256/<hex>        each named by the digest of its bytes
//     provenance.json           not hashed: when, where, by which build
//
// manifest.json is written last, by rename: a folder without one is no bundle,
// and a folder with one is complete.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_BUNDLE_BUNDLE_H
#define NOVA_BUNDLE_BUNDLE_H

#include "nova/Bundle/Manifest.h"

#include <string>
#include <string_view>
#include <vector>

namespace nova::bundle {

/// A manifest with the bytes of its blobs: `blobs[i]` is manifest.blobs[i].
struct Bundle {
  Manifest manifest;
  std::vector<std::string> blobs;

  /// Adds a blob (or finds the one with equal bytes and media type) and returns
  /// its index in manifest.blobs; fills in digest and size.
  uint32_t addBlob(std::string_view mediaType, std::string bytes);
};

/// "DIR/blobs/sha256/<hex>".
std::string blobPath(const std::string &dir, const Blob &blob);
/// "DIR/manifest.json".
std::string manifestPath(const std::string &dir);

/// Checks the manifest with the reader, then writes the blobs that are not
/// there with those bytes, then provenance.json, then manifest.json last by
/// rename and only when it differs (an unchanged one keeps its time stamp),
/// then prunes blobs that the manifest does not name. On failure manifest.json
/// is removed, so that an old one never looks fresh. Returns whether
/// manifest.json changed. ErrorCode::Missing for a folder that cannot be
/// written or a full disk, Internal for a manifest that its own reader refuses.
Expected<bool> publishBundle(const std::string &dir, const Bundle &bundle,
                             std::string_view provenanceJson);

/// What a failed compile calls: removes DIR/manifest.json if there is one.
void unpublishBundle(const std::string &dir);

/// Reads and checks manifest.json, and that every blob is there with its size;
/// reads no blob. BadInput names what is missing.
Expected<Manifest> openManifest(const std::string &dir);

/// Reads one blob of an opened manifest and checks its size, then its digest:
/// ErrorCode::Verification with both digests when they differ.
Expected<std::string> readBlob(const std::string &dir, const Blob &blob);

/// openManifest() and readBlob() of every blob.
Expected<Bundle> openBundle(const std::string &dir);

} // namespace nova::bundle

#endif // NOVA_BUNDLE_BUNDLE_H
