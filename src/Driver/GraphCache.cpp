//===- GraphCache.cpp - Compiled steps by what they were compiled from ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GraphCache.h"

#include "Log.h"
#include "nova/Support/File.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <unistd.h>

using namespace nova;
using namespace nova::driver;
namespace fs = std::filesystem;

static constexpr std::string_view kEntryHeader = "novac graph entry 1\n";

static std::string randomName() {
  std::random_device device;
  return std::to_string(::getpid()) + "-" + std::to_string(device());
}

static Error failedTo(const std::string &what, const std::string &path) {
  return {ErrorCode::Missing,
          "cannot " + what + " '" + path + "': " + std::strerror(errno),
          {}};
}

static Status syncFolder(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return failedTo("open", path);
  bool good = ::fsync(fd) == 0;
  ::close(fd);
  return good ? Status::ok() : Status(failedTo("sync", path));
}

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

std::string GraphCache::entryPath(const std::string &key) const {
  return dir + "/graph/" + key.substr(0, 2) + "/" + key;
}

void GraphCache::quarantine(const std::string &key,
                            const std::string &why) const {
  std::string entry = entryPath(key);
  warning("cache entry '" + entry + "' is damaged and not used: " + why);
  if (readOnly)
    return;
  std::string target = dir + "/quarantine/" + key + "-" + randomName();
  if (!makeDirectories(dir + "/quarantine") ||
      ::rename(entry.c_str(), target.c_str()) != 0)
    warning("cannot move it to '" + target + "'");
  else
    warning("it is now '" + target + "'");
}

std::optional<bundle::Bundle> GraphCache::find(const std::string &key) const {
  std::string entry = entryPath(key);
  std::error_code ignored;
  if (!fs::exists(entry, ignored))
    return std::nullopt;
  Expected<std::string> description =
      readFile(entry + "/entry.txt", "cache entry", 1 << 20);
  Expected<std::string> manifest =
      readFile(bundle::manifestPath(entry), "manifest");
  if (!description || !manifest) {
    quarantine(key, (description ? manifest : description).error().message);
    return std::nullopt;
  }
  std::string expected = std::string(kEntryHeader) +
                         "manifest sha256:" + sha256Hex(*manifest) + "\n";
  if (!llvm::StringRef(*description).starts_with(expected)) {
    quarantine(key, "its manifest is not the one that was stored");
    return std::nullopt;
  }
  Expected<bundle::Bundle> bundle = bundle::openBundle(entry);
  if (!bundle) {
    quarantine(key, bundle.error().message);
    return std::nullopt;
  }
  return std::move(*bundle);
}

Status GraphCache::store(const KeyBuilder &key, const bundle::Bundle &bundle,
                         std::string_view provenance) const {
  std::string entry = entryPath(key.key());
  std::string aside = dir + "/tmp/" + randomName();
  auto write = [&]() -> Status {
    Expected<bool> published = bundle::publishBundle(aside, bundle, provenance);
    if (!published)
      return published.error();
    std::string description =
        std::string(kEntryHeader) +
        "manifest sha256:" + sha256Hex(bundle::writeManifest(bundle.manifest)) +
        "\n" + key.text();
    if (Expected<bool> written =
            writeIfChanged(aside + "/entry.txt", description);
        !written)
      return written.error();
    if (Status status = syncFolder(aside); !status)
      return status;
    std::string parent = fs::path(entry).parent_path();
    if (Status status = makeDirectories(parent); !status)
      return status;
    if (::rename(aside.c_str(), entry.c_str()) == 0)
      return syncFolder(parent);
    // Somebody else was first with the same key, and so with the same bytes.
    if (errno == EEXIST || errno == ENOTEMPTY)
      return Status::ok();
    return failedTo("publish cache entry", entry);
  };
  Status status = write();
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  return status;
}

std::string GraphCache::explainMiss(const KeyBuilder &key) const {
  llvm::SmallVector<llvm::StringRef> wanted;
  std::string wantedText = key.text();
  llvm::StringRef(wantedText).split(wanted, '\n', -1, false);

  std::string nearest, nearestName;
  size_t most = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir + "/graph", error), end;
       !error && it != end; it.increment(error)) {
    if (it->path().filename() != "entry.txt")
      continue;
    Expected<std::string> text =
        readFile(it->path().string(), "cache entry", 1 << 20);
    if (!text)
      continue;
    size_t common = 0;
    for (llvm::StringRef line : wanted)
      common += llvm::StringRef(*text).contains("\n" + line.str() + "\n");
    std::string name = it->path().parent_path().filename();
    // Ties go to the smaller name: folders are listed in no order.
    if (common > most || (common && common == most && name < nearestName)) {
      most = common;
      nearest = std::move(*text);
      nearestName = name;
    }
  }
  if (!most)
    return "no entry in '" + dir + "' has anything in common with this one\n";
  std::string report = "nearest entry " + nearestName + "\n";
  llvm::SmallVector<llvm::StringRef> had;
  llvm::StringRef(nearest).split(had, '\n', -1, false);
  for (llvm::StringRef line : had)
    if (!llvm::is_contained(wanted, line) &&
        !kEntryHeader.starts_with(line.str()) &&
        !line.starts_with("manifest sha256:"))
      report += "  had   " + line.str() + "\n";
  for (llvm::StringRef line : wanted)
    if (!llvm::is_contained(had, line))
      report += "  wants " + line.str() + "\n";
  return report;
}
