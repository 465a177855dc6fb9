//===- Layout.h - The files of a store -------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_CACHE_LAYOUT_H
#define NOVA_LIB_CACHE_LAYOUT_H

#include "nova/Cache/Store.h"

#include <map>

namespace nova::cache {

/// An entry file, read.
struct Entry {
  struct Part {
    std::string digest; ///< 64 digits.
    uint64_t bytes = 0;
    std::string name;
  };
  std::string kind, key;
  std::vector<Part> parts;
  std::vector<std::string> from;
};

std::string entryPath(const std::string &folder, std::string_view kind,
                      std::string_view key);
std::string blobPath(const std::string &folder, std::string_view digest);

std::string writeEntry(const Entry &entry);
/// The message of an error says what is wrong, without the file's name.
Expected<Entry> parseEntry(std::string_view text);

/// 64 lower-case hexadecimal digits.
bool isDigest(std::string_view text);
/// Something that may be part of a file's name.
bool isName(std::string_view text);

/// flock() on DIR/lock, waited for until patience is out.
class Lock {
public:
  enum class Kind { Shared, Alone };
  /// The folder is made if it is not there.
  static Expected<Lock> take(const std::string &folder, Kind kind,
                             std::chrono::milliseconds patience);
  Lock(Lock &&other) noexcept;
  Lock &operator=(Lock &&) = delete;
  ~Lock();

private:
  explicit Lock(int fd) : fd(fd) {}
  int fd;
};

struct Found {
  std::string path;
  uint64_t bytes = 0;
  int64_t used = 0; ///< Nanoseconds since 1970.
};

/// Files below DIR, with paths from DIR on, sorted; an empty list if there is no
/// such folder.
std::map<std::string, Found> filesBelow(const std::string &folder);

/// Moves a file to DIR/quarantine; the words to say so.
std::string quarantine(const std::string &folder, const std::string &path);

/// Reads a blob and checks size and digest; the error says what is wrong.
Expected<std::string> readBlob(const std::string &folder, const Entry::Part &part);

} // namespace nova::cache

#endif // NOVA_LIB_CACHE_LAYOUT_H
