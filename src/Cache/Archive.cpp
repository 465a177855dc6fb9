//===- Archive.cpp - A store as one file -----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tar of the POSIX kind ("ustar": IEEE Std 1003.1, pax, "ustar Interchange
// Format"), of the files blob/... and then entry/..., each sorted, all with mode
// 0644, time 0 and no owner.
//
//===----------------------------------------------------------------------===//
#include "Layout.h"
#include "nova/Support/File.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <set>

using namespace nova;
using namespace nova::cache;

static constexpr size_t kBlock = 512;

namespace {
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
  char type, link[100], magic[6], version[2], user[32], group[32], major[8],
      minor[8], prefix[155], unused[12];
};
static_assert(sizeof(Header) == kBlock);
} // namespace

static void octal(char *field, size_t width, uint64_t value) {
  field[width - 1] = 0;
  for (size_t i = width - 1; i-- > 0; value /= 8)
    field[i] = char('0' + value % 8);
}

static unsigned checksumOf(Header header) {
  std::memset(header.checksum, ' ', sizeof header.checksum);
  unsigned sum = 0;
  unsigned char bytes[kBlock];
  std::memcpy(bytes, &header, kBlock);
  for (unsigned char byte : bytes)
    sum += byte;
  return sum;
}

static Header headerOf(const std::string &name, uint64_t size) {
  Header header;
  std::memset(&header, 0, sizeof header);
  std::memcpy(header.name, name.data(), name.size());
  octal(header.mode, sizeof header.mode, 0644);
  octal(header.uid, sizeof header.uid, 0);
  octal(header.gid, sizeof header.gid, 0);
  octal(header.size, sizeof header.size, size);
  octal(header.mtime, sizeof header.mtime, 0);
  header.type = '0';
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  octal(header.checksum, 7, checksumOf(header));
  header.checksum[7] = ' ';
  return header;
}

//===----------------------------------------------------------------------===//
// Export
//===----------------------------------------------------------------------===//

Expected<uint64_t> Store::exportTo(const std::string &path) const {
  std::map<std::string, std::string> blobs; // name in the archive -> path
  std::map<std::string, std::string> entries; // -> text
  for (const auto &[name, file] : filesBelow(options.folder + "/entry")) {
    Expected<std::string> text = readFile(file.path, "cache entry");
    Expected<Entry> entry = text ? parseEntry(*text) : text.error();
    if (!entry || file.path != entryPath(options.folder, entry->kind, entry->key)) {
      if (file.path.find(".tmp-") == std::string::npos)
        options.warn("cache entry '" + file.path + "' is damaged and left out");
      continue;
    }
    bool whole = true;
    for (const Entry::Part &part : entry->parts) {
      std::string inside = blobPath("", part.digest).substr(1);
      if (blobs.count(inside))
        continue;
      if (Expected<std::string> bytes = readBlob(options.folder, part); !bytes) {
        options.warn("cache entry '" + file.path + "' is left out: its blob " +
                     part.digest + ": " + bytes.error().message);
        whole = false;
        break;
      }
    }
    if (!whole)
      continue;
    for (const Entry::Part &part : entry->parts)
      blobs[blobPath("", part.digest).substr(1)] =
          blobPath(options.folder, part.digest);
    entries["entry/" + name] = std::move(*text);
  }
  Expected<AtomicFile> file = AtomicFile::open(path);
  if (!file)
    return file.error();
  auto add = [&](const std::string &name, std::string_view bytes) -> Status {
    Header header = headerOf(name, bytes.size());
    static const char zeros[kBlock] = {};
    if (Status status = file->write({reinterpret_cast<char *>(&header), kBlock});
        !status)
      return status;
    if (Status status = file->write(bytes); !status)
      return status;
    return file->write({zeros, (kBlock - bytes.size() % kBlock) % kBlock});
  };
  for (const auto &[name, from] : blobs) {
    Expected<std::string> bytes = readFile(from, "blob");
    if (!bytes)
      return bytes.error();
    if (Status status = add(name, *bytes); !status)
      return status.error();
  }
  for (const auto &[name, text] : entries)
    if (Status status = add(name, text); !status)
      return status.error();
  if (Status status = file->write(std::string(2 * kBlock, '\0')); !status)
    return status.error();
  if (Status status = file->commit(); !status)
    return status.error();
  return entries.size();
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

/// The number in a field of octal digits; nullopt if it is none.
static std::optional<uint64_t> numberIn(const char *field, size_t width) {
  uint64_t value = 0;
  size_t i = 0;
  for (; i < width && field[i] >= '0' && field[i] <= '7'; ++i)
    value = value * 8 + uint64_t(field[i] - '0');
  if (i == 0 || i == width || (field[i] != 0 && field[i] != ' '))
    return std::nullopt;
  return value;
}

Expected<uint64_t> Store::importFrom(const std::string &path) const {
  Expected<std::string> archive = readFile(path, "cache archive");
  if (!archive)
    return archive.error();
  auto refuse = [&](const std::string &why) {
    return badInput("'" + path + "': " + why,
                    "expected a file that `novac cache export` wrote");
  };
  // All of it is checked before any of it is added.
  std::map<std::string, std::string_view> blobs;
  std::vector<std::pair<Entry, std::string_view>> entries;
  std::string_view rest = *archive;
  bool ended = false;
  while (rest.size() >= kBlock) {
    if (rest.substr(0, kBlock).find_first_not_of('\0') == rest.npos) {
      ended = true;
      break;
    }
    Header header;
    std::memcpy(&header, rest.data(), kBlock);
    rest.remove_prefix(kBlock);
    std::string name(header.name, strnlen(header.name, sizeof header.name));
    auto sum = numberIn(header.checksum, sizeof header.checksum);
    auto size = numberIn(header.size, sizeof header.size);
    if (std::memcmp(header.magic, "ustar", 6) != 0 || !sum || !size ||
        *sum != checksumOf(header))
      return refuse("it is no tar archive, or damaged, at byte " +
                    std::to_string(archive->size() - rest.size() - kBlock));
    if (header.type != '0' || header.prefix[0])
      return refuse("'" + name + "' is no file of a cache");
    if (*size > rest.size())
      return refuse("it ends inside '" + name + "'");
    std::string_view bytes = rest.substr(0, *size);
    rest.remove_prefix(std::min<uint64_t>(
        (*size + kBlock - 1) / kBlock * kBlock, rest.size()));
    std::string last = name.substr(name.rfind('/') + 1);
    if (name.starts_with("blob/")) {
      if (!isDigest(last) || name != blobPath("", last).substr(1))
        return refuse("'" + name + "' is no file of a cache");
      if (std::string digest = sha256Hex(bytes); digest != last)
        return Error{ErrorCode::Verification,
                     "'" + path + "': '" + name + "' has digest sha256:" + digest,
                     "the archive is damaged: export it again"};
      blobs[last] = bytes;
      continue;
    }
    if (!name.starts_with("entry/"))
      return refuse("'" + name + "' is no file of a cache");
    Expected<Entry> entry = parseEntry(bytes);
    if (!entry)
      return Error{ErrorCode::Verification,
                   "'" + path + "': '" + name + "': " + entry.error().message,
                   "the archive is damaged: export it again"};
    if (name != entryPath("", entry->kind, entry->key).substr(1))
      return refuse("'" + name + "' is the entry of " + entry->kind + " " +
                    entry->key);
    for (const Entry::Part &part : entry->parts)
      if (auto blob = blobs.find(part.digest);
          blob == blobs.end() || blob->second.size() != part.bytes)
        return refuse("'" + name + "' needs the blob " + part.digest +
                      ", which is not before it");
    entries.emplace_back(std::move(*entry), bytes);
  }
  if (!ended)
    return refuse("its end is missing");

  Expected<Lock> lock =
      Lock::take(options.folder, Lock::Kind::Shared, options.patience);
  if (!lock)
    return lock.error();
  auto publish = [&](const std::string &to, std::string_view bytes) -> Status {
    if (Status status =
            makeDirectories(std::filesystem::path(to).parent_path().string());
        !status)
      return status;
    Expected<bool> written = writeIfChanged(to, bytes);
    return written ? Status::ok() : Status(written.error());
  };
  for (const auto &[digest, bytes] : blobs)
    if (Status status = publish(blobPath(options.folder, digest), bytes); !status)
      return status.error();
  for (const auto &[entry, text] : entries)
    if (Status status =
            publish(entryPath(options.folder, entry.kind, entry.key), text);
        !status)
      return status.error();
  return entries.size();
}
