//===- Safetensors.cpp - Reading and writing safetensors files ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Support/Safetensors.h"

#include "SafetensorsInternal.h"
#include "nova/Support/File.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace nova;
using namespace nova::safetensors;

namespace {

constexpr uint64_t headerCap = 100'000'000;

struct DtypeRow {
  const char *file;
  const char *graph; // null: a graph file has no name for it
  uint64_t bytes;
};
constexpr DtypeRow dtypes[] = {
    {"F64", "float64", 8},   {"F32", "float32", 4},   {"F16", "float16", 2},
    {"BF16", "bfloat16", 2}, {"I64", "int64", 8},     {"I32", "int32", 4},
    {"I16", "int16", 2},     {"I8", "int8", 1},       {"U8", "uint8", 1},
    {"BOOL", "bool", 1},     {"U64", nullptr, 8},     {"U32", nullptr, 4},
    {"U16", nullptr, 2},     {"F8_E4M3", nullptr, 1}, {"F8_E5M2", nullptr, 1},
};

std::string quoted(std::string_view raw) {
  static const char *digits = "0123456789abcdef";
  std::string out = "\"";
  for (char c : raw) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out += "\\u00";
      out += digits[static_cast<uint8_t>(c) >> 4];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// pread until done; false with errno set, or with errno 0 at end of file.
bool readFully(int fd, void *out, uint64_t size, uint64_t offset) {
  char *p = static_cast<char *>(out);
  while (size) {
    // Linux moves at most 2 GB at a time.
    ssize_t n = ::pread(fd, p, std::min<uint64_t>(size, 1u << 30),
                        static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      if (n == 0)
        errno = 0;
      return false;
    }
    p += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<uint64_t>(n);
  }
  return true;
}

std::string reason() {
  return errno ? std::strerror(errno) : "the file became shorter";
}

} // namespace

uint64_t nova::safetensorsElementBytes(std::string_view dtype) {
  for (const DtypeRow &row : dtypes)
    if (dtype == row.file)
      return row.bytes;
  return 0;
}

std::string_view nova::safetensorsDtypeOf(std::string_view graphDtype) {
  for (const DtypeRow &row : dtypes)
    if (row.graph && graphDtype == row.graph)
      return row.file;
  return {};
}

std::string_view nova::graphDtypeOf(std::string_view safetensorsDtype) {
  for (const DtypeRow &row : dtypes)
    if (row.graph && safetensorsDtype == row.file)
      return row.graph;
  return {};
}

std::string nova::safetensors::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<uint64_t>
nova::safetensors::denseBytes(std::string_view dtype,
                              const std::vector<int64_t> &shape) {
  uint64_t bytes = safetensorsElementBytes(dtype);
  if (bytes == 0)
    return std::nullopt;
  // A zero extent makes the product zero, but the others must still be sane.
  for (int64_t extent : shape)
    if (extent < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
      return std::nullopt;
  return bytes;
}

SafetensorsFile::SafetensorsFile(SafetensorsFile &&other) noexcept
    : filePath(std::move(other.filePath)), table(std::move(other.table)),
      byName(std::move(other.byName)), pairs(std::move(other.pairs)),
      dataStart(other.dataStart), fd(std::exchange(other.fd, -1)) {}

SafetensorsFile &SafetensorsFile::operator=(SafetensorsFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(table, other.table);
  std::swap(byName, other.byName);
  std::swap(pairs, other.pairs);
  std::swap(dataStart, other.dataStart);
  std::swap(fd, other.fd);
  return *this;
}

SafetensorsFile::~SafetensorsFile() {
  if (fd >= 0)
    ::close(fd);
}

Expected<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  auto bad = [&](const std::string &what) {
    return badInput("safetensors file " + path + ": " + what);
  };
  SafetensorsFile file;
  file.filePath = path;
  // O_NONBLOCK: a FIFO must be refused below, not waited for here.
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0)
    return bad(reason());
  struct stat info;
  if (::fstat(file.fd, &info) != 0)
    return bad(reason());
  if (!S_ISREG(info.st_mode))
    return bad("is not a regular file");
  uint64_t total = static_cast<uint64_t>(info.st_size);
  uint8_t prefix[8];
  if (total < sizeof prefix)
    return bad("has " + std::to_string(total) + " bytes, expected at least 8");
  if (!readFully(file.fd, prefix, sizeof prefix, 0))
    return bad(reason());
  uint64_t size = 0;
  for (int i = 7; i >= 0; --i)
    size = size << 8 | prefix[i];
  if (size > headerCap)
    return bad("the header has " + std::to_string(size) +
               " bytes, the limit is " + std::to_string(headerCap));
  if (size > total - 8)
    return bad("the header has " + std::to_string(size) +
               " bytes, the file only " + std::to_string(total - 8) +
               " after the size");
  std::string header(size, '\0');
  if (!readFully(file.fd, header.data(), size, 8))
    return bad(reason());
  file.dataStart = 8 + size;
  auto entries =
      parseSafetensorsHeader(header, total - file.dataStart, &file.pairs);
  if (!entries)
    return bad(entries.error().message);
  file.table = std::move(*entries);
  file.byName.resize(file.table.size());
  for (size_t i = 0; i < file.byName.size(); ++i)
    file.byName[i] = i;
  std::sort(file.byName.begin(), file.byName.end(), [&](size_t a, size_t b) {
    return file.table[a].name < file.table[b].name;
  });
  return file;
}

const SafetensorsEntry *SafetensorsFile::find(std::string_view name) const {
  auto it = std::lower_bound(
      byName.begin(), byName.end(), name,
      [&](size_t i, std::string_view n) { return table[i].name < n; });
  return it != byName.end() && table[*it].name == name ? &table[*it] : nullptr;
}

Status SafetensorsFile::read(const SafetensorsEntry &entry, void *out) const {
  if (!readFully(fd, out, entry.size, dataStart + entry.offset))
    return badInput("safetensors file " + filePath + ": tensor \"" +
                    entry.name + "\": " + reason());
  return Status::ok();
}

Expected<std::string>
SafetensorsFile::read(const SafetensorsEntry &entry) const {
  std::string bytes(entry.size, '\0');
  if (Status s = read(entry, bytes.data()); !s)
    return s.error();
  return bytes;
}

Expected<std::string> nova::safetensorsHeader(
    std::vector<SafetensorsTensor> &tensors,
    const std::vector<std::pair<std::string, std::string>> &metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) {
    uint64_t left = safetensorsElementBytes(a.dtype);
    uint64_t right = safetensorsElementBytes(b.dtype);
    return left != right ? left > right : a.name < b.name;
  });
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (size_t i = 0; i < metadata.size(); ++i)
      json += (i ? "," : "") + quoted(metadata[i].first) + ":" +
              quoted(metadata[i].second);
    json += "}";
  }
  uint64_t offset = 0;
  std::set<std::string> names;
  for (const SafetensorsTensor &tensor : tensors) {
    auto bad = [&](const std::string &what) {
      return Error{ErrorCode::Internal,
                   "writing tensor \"" + tensor.name + "\": " + what,
                   {}};
    };
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      return bad("the name is taken");
    std::optional<uint64_t> bytes = denseBytes(tensor.dtype, tensor.shape);
    if (!bytes || *bytes != tensor.size)
      return bad(std::to_string(tensor.size) + " bytes are not " +
                 tensor.dtype + " " + shapeText(tensor.shape));
    json += (json.size() > 1 ? "," : "") + quoted(tensor.name) +
            ":{\"dtype\":\"" + tensor.dtype +
            "\",\"shape\":" + shapeText(tensor.shape) + ",\"data_offsets\":[" +
            std::to_string(offset) + "," +
            std::to_string(offset + tensor.size) + "]}";
    offset += tensor.size;
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string out;
  for (int i = 0; i < 8; ++i)
    out += static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i));
  return out + json;
}

Status nova::writeSafetensors(
    const std::string &path, std::vector<SafetensorsTensor> tensors,
    const std::vector<std::pair<std::string, std::string>> &metadata) {
  auto header = safetensorsHeader(tensors, metadata);
  if (!header)
    return header.error();
  auto file = AtomicFile::open(path);
  if (!file)
    return file.error();
  if (Status s = file->write(*header); !s)
    return s;
  for (const SafetensorsTensor &tensor : tensors)
    if (Status s =
            file->write({static_cast<const char *>(tensor.data), tensor.size});
        !s)
      return s;
  return file->commit();
}
