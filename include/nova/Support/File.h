//===- File.h - Reading files, and publishing them atomically --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Standard library and POSIX only: libnova_rt links this.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SUPPORT_FILE_H
#define NOVA_SUPPORT_FILE_H

#include "nova/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nova {

/// Reads a whole regular file. Fails with BadInput naming the path and the
/// reason (missing, a directory, no permission, larger than `maxBytes`).
/// `what` is the reader's word for the file ("graph", "manifest", ...).
Expected<std::string> readFile(const std::string &path, std::string_view what,
                               uint64_t maxBytes = UINT64_MAX);

/// A file written aside (a unique temporary in the same folder, O_EXCL) and
/// published by commit(): fsync, rename, fsync of the folder. Without commit()
/// the destructor removes the temporary: nothing half-written is ever seen.
class AtomicFile {
public:
  /// Opens the temporary for `path`. ErrorCode::Missing when the folder is not
  /// writable or the disk is full.
  static Expected<AtomicFile> open(const std::string &path);
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&other) noexcept;
  ~AtomicFile();

  Status write(std::string_view bytes);
  /// Publishes. After it (or a failure of it) the object is inert.
  Status commit();

private:
  AtomicFile() = default;
  std::string path, temporary;
  int fd = -1;
};

/// Publishes `bytes` as `path` unless it holds them already (then its time
/// stamp is kept). Returns whether the file changed.
Expected<bool> writeIfChanged(const std::string &path, std::string_view bytes);

/// mkdir -p. ErrorCode::Missing with the path and the reason on failure.
Status makeDirectories(const std::string &path);

} // namespace nova

#endif // NOVA_SUPPORT_FILE_H
