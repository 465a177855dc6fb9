//===- File.cpp - Reading files, and publishing them atomically -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Support/File.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace nova;

namespace {

/// Closes on every way out; errno of what failed survives.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd < 0)
      return;
    int saved = errno;
    ::close(fd);
    errno = saved;
  }
};

std::string folderOf(const std::string &path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error cannot(const std::string &verb, const std::string &path, int reason,
             std::string hint = {}) {
  return {ErrorCode::Missing,
          "cannot " + verb + " '" + path + "': " + std::strerror(reason),
          std::move(hint)};
}

std::string hintFor(int reason) {
  if (reason == ENOSPC || reason == EDQUOT)
    return "free some disk space, or choose another folder";
  if (reason == EACCES || reason == EPERM || reason == EROFS)
    return "choose a folder that you may write to";
  if (reason == ENOENT || reason == ENOTDIR)
    return "the folder must exist before the file is written";
  return {};
}

} // namespace

Expected<std::string> nova::readFile(const std::string &path,
                                     std::string_view what, uint64_t maxBytes) {
  auto fail = [&](const std::string &reason) {
    return badInput("cannot read " + std::string(what) + " '" + path +
                    "': " + reason);
  };
  // O_NONBLOCK: a FIFO is refused below rather than waited for.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0)
    return fail(std::strerror(errno));
  struct stat info;
  if (::fstat(file.fd, &info) != 0)
    return fail(std::strerror(errno));
  if (S_ISDIR(info.st_mode))
    return fail("it is a folder, expected a file");
  if (!S_ISREG(info.st_mode))
    return fail("it is not a regular file");
  uint64_t size = static_cast<uint64_t>(info.st_size);
  if (size > maxBytes)
    return fail("it has " + std::to_string(size) + " bytes, the limit is " +
                std::to_string(maxBytes));
  std::string bytes;
  bytes.resize(size);
  uint64_t done = 0;
  while (done < size) {
    // Linux moves at most 2 GB at a time.
    ssize_t n = ::read(file.fd, bytes.data() + done,
                       std::min<uint64_t>(size - done, 1u << 30));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail(std::strerror(errno));
    if (n == 0)
      return fail(
          "it became shorter while it was read: " + std::to_string(done) +
          " of " + std::to_string(size) + " bytes");
    done += static_cast<uint64_t>(n);
  }
  return bytes;
}

Expected<AtomicFile> AtomicFile::open(const std::string &path) {
  // Unique within the process by the counter, between processes by the id, and
  // O_EXCL against what a crashed process of the same id left.
  static std::atomic<uint64_t> counter{0};
  AtomicFile file;
  file.path = path;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::string name = path + ".tmp-" + std::to_string(::getpid()) + "-" +
                       std::to_string(counter++);
    // 0666 less the user's umask, as any file; not mkstemp's 0600.
    int fd =
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      file.temporary = std::move(name);
      file.fd = fd;
      return file;
    }
    if (errno != EEXIST)
      break;
  }
  int reason = errno;
  return cannot("write", path, reason, hintFor(reason));
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path(std::move(other.path)),
      temporary(std::exchange(other.temporary, std::string())),
      fd(std::exchange(other.fd, -1)) {}

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(temporary, other.temporary);
  std::swap(fd, other.fd);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd >= 0)
    ::close(fd);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status AtomicFile::write(std::string_view bytes) {
  if (fd < 0)
    return Error{ErrorCode::Internal,
                 "write to '" + path + "' after it was committed",
                 {}};
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(),
                        std::min<size_t>(bytes.size(), size_t(1) << 30));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      int reason = errno;
      return cannot("write", path, reason, hintFor(reason));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Status::ok();
}

Status AtomicFile::commit() {
  if (fd < 0)
    return Error{ErrorCode::Internal, "'" + path + "' committed twice", {}};
  auto fail = [&] {
    int reason = errno;
    if (fd >= 0)
      ::close(std::exchange(fd, -1));
    ::unlink(std::exchange(temporary, std::string()).c_str());
    return cannot("write", path, reason, hintFor(reason));
  };
  // Without the first fsync a crash may leave the new name with no bytes.
  if (::fsync(fd) != 0 || ::close(std::exchange(fd, -1)) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0)
    return fail();
  temporary.clear();
  // The rename itself is durable once the folder is. Some file systems have no
  // fsync on folders; the file is published all the same.
  Descriptor folder{
      ::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder.fd >= 0)
    ::fsync(folder.fd);
  return Status::ok();
}

Expected<bool> nova::writeIfChanged(const std::string &path,
                                    std::string_view bytes) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
      static_cast<uint64_t>(info.st_size) == bytes.size()) {
    // An unreadable file is simply replaced.
    Expected<std::string> old = readFile(path, "file");
    if (old && *old == bytes)
      return false;
  }
  Expected<AtomicFile> file = AtomicFile::open(path);
  if (!file)
    return file.error();
  if (Status s = file->write(bytes); !s)
    return s.error();
  if (Status s = file->commit(); !s)
    return s.error();
  return true;
}

Status nova::makeDirectories(const std::string &path) {
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    std::string prefix = path.substr(0, end);
    // Racing another creator is success.
    if (::mkdir(prefix.c_str(), 0777) == 0 || errno == EEXIST)
      continue;
    int reason = errno;
    struct stat info;
    if (::stat(prefix.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      continue; // e.g. EROFS for a folder that is there
    return cannot("create folder", prefix, reason, hintFor(reason));
  }
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return cannot("create folder", path, errno, hintFor(errno));
  if (!S_ISDIR(info.st_mode))
    return cannot("create folder", path, ENOTDIR,
                  "a file of that name is in the way");
  return Status::ok();
}
