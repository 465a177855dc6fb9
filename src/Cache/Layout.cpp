//===- Layout.cpp - The files of a store -----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Layout.h"

#include "nova/Support/File.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace nova;
using namespace nova::cache;
namespace fs = std::filesystem;

static constexpr std::string_view kHeader = "novac cache entry 1 sha256:";

std::string cache::entryPath(const std::string &folder, std::string_view kind,
                             std::string_view key) {
  return folder + "/entry/" + std::string(kind) + "/" +
         std::string(key.substr(0, 2)) + "/" + std::string(key);
}

std::string cache::blobPath(const std::string &folder,
                            std::string_view digest) {
  return folder + "/blob/" + std::string(digest.substr(0, 2)) + "/" +
         std::string(digest);
}

bool cache::isDigest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool cache::isName(std::string_view text) {
  return !text.empty() && text.size() <= 255 && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
         });
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

std::string cache::writeEntry(const Entry &entry) {
  std::string body = "key " + entry.key + "\nkind " + entry.kind + "\n";
  for (const Entry::Part &part : entry.parts)
    body += "blob sha256:" + part.digest + " " + std::to_string(part.bytes) +
            " " + part.name + "\n";
  for (const std::string &line : entry.from)
    body += "from " + line + "\n";
  return std::string(kHeader) + sha256Hex(body) + "\n" + body;
}

Expected<Entry> cache::parseEntry(std::string_view text) {
  size_t end = text.find('\n');
  if (!text.starts_with(kHeader) || end != kHeader.size() + 64)
    return badInput("it does not begin with '" + std::string(kHeader) + "'");
  std::string_view said = text.substr(kHeader.size(), 64);
  std::string_view body = text.substr(end + 1);
  if (std::string digest = sha256Hex(body); digest != said)
    return badInput("it has digest sha256:" + digest +
                    ", its first line says sha256:" + std::string(said));
  Entry entry;
  auto after = [](std::string_view line, std::string_view word) {
    return line.starts_with(word)
               ? std::optional(line.substr(word.size()))
               : std::optional<std::string_view>();
  };
  while (!body.empty()) {
    size_t stop = std::min(body.find('\n'), body.size());
    std::string_view line = body.substr(0, stop);
    body.remove_prefix(std::min(stop + 1, body.size()));
    if (auto key = after(line, "key "))
      entry.key = *key;
    else if (auto kind = after(line, "kind "))
      entry.kind = *kind;
    else if (auto from = after(line, "from "))
      entry.from.emplace_back(*from);
    else if (auto blob = after(line, "blob sha256:")) {
      Entry::Part part;
      size_t space = std::min(blob->find(' '), blob->size());
      part.digest = blob->substr(0, space);
      const char *first = blob->data() + std::min(space + 1, blob->size());
      const char *last = blob->data() + blob->size();
      auto [rest, error] = std::from_chars(first, last, part.bytes);
      if (error != std::errc() || rest == last || *rest != ' ')
        return badInput("it has the line '" + std::string(line) + "'");
      part.name.assign(rest + 1, last);
      if (!isDigest(part.digest) || !isName(part.name))
        return badInput("it has the line '" + std::string(line) + "'");
      entry.parts.push_back(std::move(part));
    } else
      return badInput("it has the line '" + std::string(line) + "'");
  }
  if (!isDigest(entry.key) || !isName(entry.kind) || entry.kind.size() > 16)
    return badInput("it has no key or kind");
  return entry;
}

Expected<std::string> cache::readBlob(const std::string &folder,
                                      const Entry::Part &part) {
  Expected<std::string> bytes =
      readFile(blobPath(folder, part.digest), "blob", UINT64_MAX);
  if (!bytes)
    return bytes;
  if (bytes->size() != part.bytes)
    return badInput("it has " + std::to_string(bytes->size()) +
                    " bytes, expected " + std::to_string(part.bytes));
  if (std::string digest = sha256Hex(*bytes); digest != part.digest)
    return badInput("it has digest sha256:" + digest);
  return bytes;
}

//===----------------------------------------------------------------------===//
// The lock
//===----------------------------------------------------------------------===//

Expected<Lock> Lock::take(const std::string &folder, Kind kind,
                          std::chrono::milliseconds patience) {
  if (Status status = makeDirectories(folder); !status)
    return status.error();
  std::string path = folder + "/lock";
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0)
    return Error{ErrorCode::Missing,
                 "cannot write '" + path + "': " + std::strerror(errno),
                 {}};
  Lock lock(fd);
  auto until = std::chrono::steady_clock::now() + patience;
  int how = kind == Kind::Shared ? LOCK_SH : LOCK_EX;
  for (;;) {
    if (::flock(fd, how | LOCK_NB) == 0)
      return lock;
    if (errno != EWOULDBLOCK && errno != EINTR)
      return Error{ErrorCode::Missing,
                   "cannot lock '" + path + "': " + std::strerror(errno),
                   {}};
    if (std::chrono::steady_clock::now() >= until)
      return Error{ErrorCode::Missing,
                   "the lock '" + path + "' was not free within " +
                       std::to_string(patience.count()) + " ms",
                   "another novac is at work there: try again"};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Lock::Lock(Lock &&other) noexcept : fd(std::exchange(other.fd, -1)) {}

Lock::~Lock() {
  if (fd >= 0)
    ::close(fd); // which unlocks
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::map<std::string, Found> cache::filesBelow(const std::string &folder) {
  std::map<std::string, Found> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    struct stat info;
    std::string path = it->path().string();
    // What somebody else has just removed is not there.
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
      continue;
    files[path.substr(folder.size() + 1)] = {
        path, uint64_t(info.st_size),
        int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec};
  }
  return files;
}

std::string cache::quarantine(const std::string &folder,
                              const std::string &path) {
  std::random_device random;
  std::string target = folder + "/quarantine/" +
                       fs::path(path).filename().string() + "-" +
                       std::to_string(::getpid()) + "-" +
                       std::to_string(random());
  if (!makeDirectories(folder + "/quarantine") ||
      ::rename(path.c_str(), target.c_str()) != 0)
    return "it cannot be moved to '" + target + "': " + std::strerror(errno);
  return "it is now '" + target + "'";
}
