//===- Maintenance.cpp - What is in a store, and what goes -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Layout.h"
#include "nova/Support/File.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <unistd.h>

using namespace nova;
using namespace nova::cache;

/// Entries by path, read; what is damaged is left out.
static std::vector<std::pair<Found, Entry>>
readEntries(const std::string &folder) {
  std::vector<std::pair<Found, Entry>> entries;
  for (const auto &[name, file] : filesBelow(folder + "/entry")) {
    Expected<std::string> text = readFile(file.path, "cache entry");
    Expected<Entry> entry = text ? parseEntry(*text) : text.error();
    if (entry && file.path == entryPath(folder, entry->kind, entry->key))
      entries.emplace_back(file, std::move(*entry));
  }
  return entries;
}

Expected<StoreStats> Store::stats() const {
  StoreStats stats;
  std::map<std::string, uint64_t> kinds;
  for (const auto &[file, entry] : readEntries(options.folder)) {
    ++stats.entries;
    ++kinds[entry.kind];
    stats.bytes += file.bytes;
  }
  for (const auto &[name, file] : filesBelow(options.folder + "/blob")) {
    ++stats.blobs;
    stats.bytes += file.bytes;
  }
  for (const auto &[name, file] : filesBelow(options.folder + "/quarantine")) {
    ++stats.quarantined;
    stats.quarantinedBytes += file.bytes;
  }
  stats.kinds.assign(kinds.begin(), kinds.end());
  return stats;
}

Expected<std::vector<EntryInfo>> Store::list() const {
  std::vector<EntryInfo> list;
  for (auto &[file, entry] : readEntries(options.folder)) {
    EntryInfo info{entry.kind, entry.key, 0, file.used / 1000000000,
                   std::move(entry.from)};
    for (const Entry::Part &part : entry.parts)
      info.bytes += part.bytes;
    list.push_back(std::move(info));
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const EntryInfo &a, const EntryInfo &b) {
                     return a.kind != b.kind ? a.kind < b.kind
                                             : a.used > b.used;
                   });
  return list;
}

Expected<std::vector<std::string>> Store::verify(uint64_t &checked) const {
  std::vector<std::string> problems;
  checked = 0;
  // Nobody evicts meanwhile.
  std::optional<Lock> lock;
  std::error_code ignored;
  if (!options.readOnly && std::filesystem::exists(options.folder, ignored)) {
    Expected<Lock> taken =
        Lock::take(options.folder, Lock::Kind::Shared, options.patience);
    if (!taken)
      return taken.error();
    lock.emplace(std::move(*taken));
  }
  auto damaged = [&](const std::string &what, const std::string &path,
                     const std::string &why) {
    problems.push_back(
        what + " '" + path + "': " + why +
        (options.readOnly ? "" : "; " + quarantine(options.folder, path)));
  };
  std::set<std::string> bad;
  for (const auto &[name, file] : filesBelow(options.folder + "/blob")) {
    if (file.path.find(".tmp-") != std::string::npos)
      continue; // being written
    ++checked;
    std::string digest = std::filesystem::path(file.path).filename();
    Expected<std::string> bytes = readBlob(options.folder, {digest, file.bytes, {}});
    std::string why = !isDigest(digest) ||
                              file.path != blobPath(options.folder, digest)
                          ? "it is no blob"
                      : bytes ? std::string()
                              : bytes.error().message;
    if (why.empty())
      continue;
    bad.insert(digest);
    damaged("blob", file.path, why);
  }
  for (const auto &[name, file] : filesBelow(options.folder + "/entry")) {
    if (file.path.find(".tmp-") != std::string::npos)
      continue;
    ++checked;
    Expected<std::string> text = readFile(file.path, "cache entry");
    Expected<Entry> entry = text ? parseEntry(*text) : text.error();
    std::string why;
    if (!entry)
      why = entry.error().message;
    else if (file.path != entryPath(options.folder, entry->kind, entry->key))
      why = "it is the entry of " + entry->kind + " " + entry->key;
    else
      for (const Entry::Part &part : entry->parts)
        if (::access(blobPath(options.folder, part.digest).c_str(), F_OK) != 0)
          why = "its blob " + part.digest + " is " +
                (bad.count(part.digest) ? "damaged" : "missing");
    if (!why.empty())
      damaged("entry", file.path, why);
  }
  return problems;
}

//===----------------------------------------------------------------------===//
// Taking away
//===----------------------------------------------------------------------===//

static uint64_t sizeOf(const std::string &folder) {
  uint64_t bytes = 0;
  for (const char *part : {"/entry", "/blob", "/quarantine"})
    for (const auto &[name, file] : filesBelow(folder + part))
      bytes += file.bytes;
  return bytes;
}

/// With the lock held alone: nobody is writing.
static Removed collectLocked(const std::string &folder, uint64_t limit) {
  Removed removed;
  auto remove = [&](const Found &file) {
    if (::unlink(file.path.c_str()) == 0)
      removed.bytes += file.bytes;
  };
  for (const auto &[name, file] : filesBelow(folder + "/quarantine"))
    remove(file);
  std::vector<std::pair<Found, Entry>> entries = readEntries(folder);
  // Remains of processes that died, and what is no entry.
  std::set<std::string> known;
  for (const auto &[file, entry] : entries)
    known.insert(file.path);
  for (const auto &[name, file] : filesBelow(folder + "/entry"))
    if (!known.count(file.path))
      remove(file);

  std::map<std::string, unsigned> users;
  uint64_t total = 0;
  std::map<std::string, Found> blobs;
  for (const auto &[name, file] : filesBelow(folder + "/blob"))
    blobs[std::filesystem::path(name).filename()] = file;
  for (const auto &[file, entry] : entries) {
    total += file.bytes;
    for (const Entry::Part &part : entry.parts)
      if (users[part.digest]++ == 0 && blobs.count(part.digest))
        total += blobs[part.digest].bytes;
  }
  // Ties go by path: they are sorted already.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto &a, const auto &b) {
                     return a.first.used < b.first.used;
                   });
  // An entry goes before its blobs: readers take no lock.
  for (const auto &[file, entry] : entries) {
    if (total <= limit)
      break;
    remove(file);
    ++removed.entries;
    total -= file.bytes;
    for (const Entry::Part &part : entry.parts)
      if (--users[part.digest] == 0 && blobs.count(part.digest))
        total -= blobs[part.digest].bytes;
  }
  for (const auto &[digest, file] : blobs)
    if (auto it = users.find(digest); it == users.end() || it->second == 0)
      remove(file);
  return removed;
}

Expected<Removed> Store::collect(uint64_t limit) const {
  std::error_code ignored;
  if (!std::filesystem::exists(options.folder, ignored))
    return Removed();
  Expected<Lock> lock =
      Lock::take(options.folder, Lock::Kind::Alone, options.patience);
  if (!lock)
    return lock.error();
  return collectLocked(options.folder, limit);
}

Status Store::trim() const {
  if (options.readOnly || sizeOf(options.folder) <= options.limitBytes)
    return Status::ok();
  Expected<Lock> lock =
      Lock::take(options.folder, Lock::Kind::Alone, options.patience);
  if (!lock)
    return lock.error();
  // Below the limit, or the next entry would be the same work again.
  collectLocked(options.folder, options.limitBytes / 10 * 9);
  return Status::ok();
}
