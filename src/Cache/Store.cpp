//===- Store.cpp - What was compiled before --------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Cache/Store.h"

#include "Layout.h"
#include "nova/Support/File.h"

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

using namespace nova;
using namespace nova::cache;

/// No entry is near that size; something else is no entry.
static constexpr uint64_t kMaxEntryBytes = uint64_t{1} << 26;

static std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

static bool exists(const std::string &path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// One reading of an entry and its blobs.
struct Reading {
  std::optional<std::vector<Blob>> blobs;
  /// What is damaged, where and why; empty if nothing is.
  std::string what, file, why;
  /// It may be that something was evicted while it was read.
  bool again = false;
};
} // namespace

static Reading readOnce(const std::string &folder, std::string_view kind,
                        const std::string &key) {
  std::string path = entryPath(folder, kind, key);
  auto damaged = [](const char *what, const std::string &file,
                    const std::string &why, bool again = false) {
    return Reading{std::nullopt, what, file, why, again};
  };
  if (!exists(path))
    return {};
  Expected<std::string> text = readFile(path, "cache entry", kMaxEntryBytes);
  if (!text)
    return exists(path) ? damaged("entry", path, text.error().message, true)
                        : Reading();
  Expected<Entry> entry = parseEntry(*text);
  if (!entry)
    return damaged("entry", path, entry.error().message);
  if (entry->key != key || entry->kind != kind)
    return damaged("entry", path,
                   "it is the entry of " + entry->kind + " " + entry->key);
  std::vector<Blob> blobs;
  for (const Entry::Part &part : entry->parts) {
    Expected<std::string> bytes = readBlob(folder, part);
    if (bytes) {
      blobs.push_back({part.name, std::move(*bytes)});
      continue;
    }
    std::string file = blobPath(folder, part.digest);
    if (exists(file))
      return damaged("blob", file, bytes.error().message, true);
    // Eviction takes entries first.
    return exists(path) ? damaged("entry", path,
                                  "its blob '" + file + "' is missing", true)
                        : Reading();
  }
  return {std::move(blobs), {}, {}, {}, false};
}

static std::optional<std::vector<Blob>>
findIn(const std::string &folder, bool writable, std::string_view kind,
       const std::string &key,
       const std::function<void(const std::string &)> &warn) {
  Reading reading = readOnce(folder, kind, key);
  // An entry that was evicted and put again while it was read looks damaged.
  for (int i = 0; i < 3 && reading.again; ++i)
    reading = readOnce(folder, kind, key);
  if (!reading.what.empty())
    warn("cache " + reading.what + " '" + reading.file +
         "' is damaged and not used: " + reading.why +
         (writable ? "; " + quarantine(folder, reading.file) : ""));
  else if (reading.blobs && writable) // only for eviction
    ::utimensat(AT_FDCWD, entryPath(folder, kind, key).c_str(), nullptr, 0);
  return std::move(reading.blobs);
}

std::optional<std::vector<Blob>> Store::find(std::string_view kind,
                                             const std::string &key) const {
  auto found =
      findIn(options.folder, !options.readOnly, kind, key, options.warn);
  if (!found && !options.secondFolder.empty())
    found = findIn(options.secondFolder, false, kind, key, options.warn);
  return found;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Status Store::put(std::string_view kind, const KeyBuilder &key,
                  const std::vector<Blob> &blobs) const {
  if (options.readOnly)
    return Error{ErrorCode::Missing,
                 "the cache '" + options.folder + "' is read only",
                 {}};
  Expected<Lock> lock =
      Lock::take(options.folder, Lock::Kind::Shared, options.patience);
  if (!lock)
    return lock.error();
  auto publish = [&](const std::string &path, std::string_view bytes) -> Status {
    if (Status status = makeDirectories(
            std::filesystem::path(path).parent_path().string());
        !status)
      return status;
    // One that is there with other bytes is damaged, and mended by this.
    Expected<bool> written = writeIfChanged(path, bytes);
    return written ? Status::ok() : Status(written.error());
  };
  Entry entry;
  entry.kind = kind;
  entry.key = key.key();
  entry.from = linesOf(key.text());
  for (const Blob &blob : blobs) {
    if (!isName(blob.name))
      return Error{ErrorCode::Internal,
                   "a cache blob has the name '" + blob.name + "'",
                   {}};
    std::string digest = sha256Hex(blob.bytes);
    if (Status status =
            publish(blobPath(options.folder, digest), blob.bytes);
        !status)
      return status;
    entry.parts.push_back({digest, blob.bytes.size(), blob.name});
  }
  return publish(entryPath(options.folder, kind, entry.key),
                 writeEntry(entry));
}

//===----------------------------------------------------------------------===//
// Misses
//===----------------------------------------------------------------------===//

std::string Store::explainMiss(std::string_view kind,
                               const KeyBuilder &key) const {
  std::vector<std::string> wanted = linesOf(key.text());
  auto has = [](const std::vector<std::string> &lines,
                const std::string &line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  std::optional<Entry> nearest;
  size_t most = 0;
  for (const std::string &folder : {options.folder, options.secondFolder}) {
    if (folder.empty())
      continue;
    // Sorted: of several that are as near the first key is taken.
    for (const auto &[name, file] :
         filesBelow(folder + "/entry/" + std::string(kind))) {
      Expected<std::string> text =
          readFile(file.path, "cache entry", kMaxEntryBytes);
      Expected<Entry> entry = text ? parseEntry(*text) : text.error();
      if (!entry)
        continue;
      size_t common = std::count_if(
          wanted.begin(), wanted.end(),
          [&](const std::string &line) { return has(entry->from, line); });
      if (common > most) {
        most = common;
        nearest = std::move(*entry);
      }
    }
  }
  if (!nearest)
    return "no entry in '" + options.folder +
           "' has anything in common with this one\n";
  std::string report = "nearest entry " + nearest->key + "\n";
  auto nameOf = [](const std::string &line) {
    return line.substr(0, line.find(": "));
  };
  // Section by section, so that what belongs together stands together.
  for (const std::string &line : wanted) {
    if (has(nearest->from, line))
      continue;
    for (const std::string &had : nearest->from)
      if (nameOf(had) == nameOf(line))
        report += "  had   " + had + "\n";
    report += "  wants " + line + "\n";
  }
  for (const std::string &had : nearest->from)
    if (std::none_of(wanted.begin(), wanted.end(), [&](const std::string &line) {
          return nameOf(line) == nameOf(had);
        }))
      report += "  had   " + had + "\n";
  return report;
}
