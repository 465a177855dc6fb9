//===- Bundle.cpp - A bundle folder: publishing and opening it ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Bundle/Bundle.h"

#include "nova/Support/File.h"
#include "nova/Support/Hash.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

using namespace nova;
using namespace nova::bundle;

namespace {

constexpr const char *blobFolder = "/blobs/sha256";

std::string hexOf(const Blob &blob) {
  return blob.digest.substr(std::string_view("sha256:").size());
}

Status checkSize(const std::string &path, const Blob &blob, uint64_t size) {
  if (size == blob.size)
    return Status::ok();
  return Error{ErrorCode::Verification,
               "blob '" + path + "' has " + std::to_string(size) +
                   " bytes, the manifest says " + std::to_string(blob.size),
               "the bundle is damaged: compile or copy it again"};
}

/// Files of a former publication. What cannot be removed stays: it is only
/// space, the new manifest is out already.
void prune(const std::string &dir, const Manifest &manifest) {
  std::set<std::string> wanted;
  for (const Blob &blob : manifest.blobs)
    wanted.insert(hexOf(blob));
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(dir + blobFolder, ignored), end;
       !ignored && it != end; it.increment(ignored)) {
    std::string name = it->path().filename().string();
    // Only what a publication wrote; a temporary of someone else's is theirs.
    if (name.size() == 64 && !wanted.count(name))
      ::unlink(it->path().c_str());
  }
}

Expected<bool> publish(const std::string &dir, const Bundle &bundle,
                       std::string_view provenanceJson) {
  std::string text = writeManifest(bundle.manifest);
  Expected<Manifest> checked = readManifest(text, "the manifest to publish");
  auto internal = [](std::string message) {
    return Error{ErrorCode::Internal, std::move(message), {}};
  };
  if (!checked)
    return internal(checked.error().message);
  const std::vector<Blob> &blobs = bundle.manifest.blobs;
  if (blobs.size() != bundle.blobs.size())
    return internal("the bundle has the bytes of " +
                    std::to_string(bundle.blobs.size()) + " blobs, expected " +
                    std::to_string(blobs.size()));
  if (Status s = makeDirectories(dir + blobFolder); !s)
    return s.error();
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (blobs[i].size != bundle.blobs[i].size() ||
        hexOf(blobs[i]) != sha256Hex(bundle.blobs[i]))
      return internal(
          "blob " + std::to_string(i) +
          " is not what its digest and size say: " + blobs[i].digest);
    Expected<bool> written =
        writeIfChanged(blobPath(dir, blobs[i]), bundle.blobs[i]);
    if (!written)
      return written.error();
  }
  Expected<bool> provenance =
      writeIfChanged(dir + "/provenance.json", provenanceJson);
  if (!provenance)
    return provenance.error();
  Expected<bool> changed = writeIfChanged(manifestPath(dir), text);
  if (changed)
    prune(dir, bundle.manifest);
  return changed;
}

} // namespace

uint32_t Bundle::addBlob(std::string_view mediaType, std::string bytes) {
  std::string digest = "sha256:" + sha256Hex(bytes);
  for (size_t i = 0; i < manifest.blobs.size(); ++i)
    if (manifest.blobs[i].digest == digest &&
        manifest.blobs[i].mediaType == mediaType)
      return static_cast<uint32_t>(i);
  manifest.blobs.push_back({digest, bytes.size(), std::string(mediaType)});
  blobs.push_back(std::move(bytes));
  return static_cast<uint32_t>(blobs.size() - 1);
}

std::string bundle::blobPath(const std::string &dir, const Blob &blob) {
  return dir + blobFolder + "/" + hexOf(blob);
}

std::string bundle::manifestPath(const std::string &dir) {
  return dir + "/manifest.json";
}

Expected<bool> bundle::publishBundle(const std::string &dir,
                                     const Bundle &bundle,
                                     std::string_view provenanceJson) {
  Expected<bool> changed = publish(dir, bundle, provenanceJson);
  if (!changed)
    unpublishBundle(dir);
  return changed;
}

void bundle::unpublishBundle(const std::string &dir) {
  ::unlink(manifestPath(dir).c_str());
}

Expected<Manifest> bundle::openManifest(const std::string &dir) {
  std::string path = manifestPath(dir);
  Expected<std::string> text = readFile(path, "manifest", kMaxManifestBytes);
  if (!text) {
    Error error = text.error();
    error.hint = "expected a bundle folder, as `novac compile -o NAME.nova` "
                 "writes it";
    return error;
  }
  Expected<Manifest> manifest = readManifest(*text, "manifest '" + path + "'");
  if (!manifest)
    return manifest.error();
  for (const Blob &blob : manifest->blobs) {
    std::string file = blobPath(dir, blob);
    struct stat info;
    if (::stat(file.c_str(), &info) != 0)
      return badInput("cannot read blob '" + file +
                          "': " + std::strerror(errno),
                      "the bundle is incomplete: compile or copy it again");
    if (Status s = checkSize(file, blob, static_cast<uint64_t>(info.st_size));
        !s)
      return s.error();
  }
  return manifest;
}

Expected<std::string> bundle::readBlob(const std::string &dir,
                                       const Blob &blob) {
  std::string path = blobPath(dir, blob);
  struct stat info;
  // The size first: a wrong file of any size costs one look, not a read.
  if (::stat(path.c_str(), &info) == 0)
    if (Status s = checkSize(path, blob, static_cast<uint64_t>(info.st_size));
        !s)
      return s.error();
  Expected<std::string> bytes = readFile(path, "blob", blob.size);
  if (!bytes)
    return bytes.error();
  if (Status s = checkSize(path, blob, bytes->size()); !s)
    return s.error();
  std::string digest = "sha256:" + sha256Hex(*bytes);
  if (digest != blob.digest)
    return Error{ErrorCode::Verification,
                 "blob '" + path + "' has digest " + digest +
                     ", the manifest says " + blob.digest,
                 "the bundle is damaged: compile or copy it again"};
  return bytes;
}

Expected<Bundle> bundle::openBundle(const std::string &dir) {
  Expected<Manifest> manifest = openManifest(dir);
  if (!manifest)
    return manifest.error();
  Bundle bundle;
  bundle.manifest = std::move(*manifest);
  for (const Blob &blob : bundle.manifest.blobs) {
    Expected<std::string> bytes = readBlob(dir, blob);
    if (!bytes)
      return bytes.error();
    bundle.blobs.push_back(std::move(*bytes));
  }
  return bundle;
}
