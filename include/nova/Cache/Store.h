//===- Store.h - What was compiled before, by what it was compiled from ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   DIR/entry/<kind>/<2 digits>/<64 digits of the key>   text, below
//   DIR/blob/<2 digits>/<64 digits of SHA-256>           bytes, shared by entries
//   DIR/quarantine/   what was found damaged
//   DIR/lock          held (flock) shared while something is put, alone while
//                     something is taken away; a process that dies holds nothing
//
// An entry is
//
//   novac cache entry 1 sha256:<digest of everything below this line>
//   key <64 digits>
//   kind <kind>
//   blob sha256:<64 digits> <bytes> <name>      one line for each blob
//   from <name>: <value>                        the sections of the key
//
// Every file is written aside, synced and renamed; blobs first, their entry last.
// Readers take no lock: they check the entry against its first line and each blob
// against the entry, and what is damaged is moved to quarantine, reported, and
// not used. When an entry is used, its time of modification is set: eviction
// takes the ones that were not used for longest.
//
// Thread-safe. Standard library and POSIX only.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_CACHE_STORE_H
#define NOVA_CACHE_STORE_H

#include "nova/Support/Error.h"
#include "nova/Support/Hash.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nova::cache {

/// 5 GiB: some thousand training steps.
inline constexpr uint64_t kDefaultLimit = uint64_t{5} << 30;

struct StoreOptions {
  std::string folder;
  /// Looked in after `folder`, and never written; empty: none.
  std::string secondFolder;
  /// Nothing is written: no entry, no time of use, no quarantine.
  bool readOnly = false;
  uint64_t limitBytes = kDefaultLimit;
  /// How long to wait for the lock.
  std::chrono::milliseconds patience{5000};
  /// Receives what people should know: damage, mostly. One line each.
  std::function<void(const std::string &)> warn = [](const std::string &) {};
};

/// Bytes with a name, of letters, digits, '.', '-' and '_'.
struct Blob {
  std::string name, bytes;
};

/// An entry as `list` shows it.
struct EntryInfo {
  std::string kind, key;
  uint64_t bytes = 0; ///< Of its blobs; several entries may share some.
  int64_t used = 0;   ///< Seconds since 1970.
  std::vector<std::string> from; ///< "name: value"
};

struct StoreStats {
  uint64_t entries = 0, blobs = 0, bytes = 0; ///< Bytes of both.
  uint64_t quarantined = 0, quarantinedBytes = 0;
  std::vector<std::pair<std::string, uint64_t>> kinds; ///< Entries of each.
};

struct Removed {
  uint64_t entries = 0, bytes = 0;
};

class Store {
public:
  explicit Store(StoreOptions options) : options(std::move(options)) {}

  const std::string &folder() const { return options.folder; }

  /// The blobs under that key, in the order in which they were put; nothing if
  /// there are none, or damaged ones.
  std::optional<std::vector<Blob>> find(std::string_view kind,
                                        const std::string &key) const;

  /// Publishes blobs under a key. ErrorCode::Missing if the folder cannot be
  /// written, the disk is full, or the lock is not free in time.
  Status put(std::string_view kind, const KeyBuilder &key,
             const std::vector<Blob> &blobs) const;

  /// Why nothing was found: the entry of that kind that agrees with the key in
  /// most sections, and each section in which they differ; the first is the
  /// first line.
  std::string explainMiss(std::string_view kind, const KeyBuilder &key) const;

  // --- maintenance (Maintenance.cpp); ErrorCode::Missing if the lock is not free
  // in time

  Expected<StoreStats> stats() const;
  /// By kind, then the most recently used first.
  Expected<std::vector<EntryInfo>> list() const;
  /// Reads everything. One line per damaged entry or blob, which is moved to
  /// quarantine; `checked` counts what was read.
  Expected<std::vector<std::string>> verify(uint64_t &checked) const;
  /// Removes the entries that were not used for longest until the rest is at most
  /// `limit` bytes, blobs of no entry, quarantine and remains of dead processes.
  Expected<Removed> collect(uint64_t limit) const;
  /// collect(), if there is more than the limit of the options: after put(). Does
  /// nothing when somebody else is at it.
  Status trim() const;

  // --- one file (Archive.cpp)

  /// Everything that is not damaged as one POSIX tar, which depends on the content
  /// only: sorted, without times and owners. Returns the number of entries.
  Expected<uint64_t> exportTo(const std::string &path) const;
  /// Adds the entries of such a file. BadInput, and nothing is added, for a file
  /// that is no such archive; Verification for a wrong digest.
  Expected<uint64_t> importFrom(const std::string &path) const;

private:
  StoreOptions options;
};

} // namespace nova::cache

#endif // NOVA_CACHE_STORE_H
