//===- Safetensors.h - Reading and writing safetensors files --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format, all of it:
//
//   8 bytes     N, the size of the header, unsigned little-endian
//   N bytes     one JSON object, UTF-8, may be padded with trailing spaces:
//                 {"NAME": {"dtype": "F32", "shape": [2, 3],
//                           "data_offsets": [BEGIN, END]}, ...,
//                  "__metadata__": {"KEY": "TEXT", ...}}     (optional)
//   the rest    the bytes of the tensors, row-major, little-endian; offsets
//               count from the first byte after the header
//
// The reader is strict: N is at most 100 MB, no key twice, no unknown field,
// sizes in checked 64-bit arithmetic, END - BEGIN is what dtype and shape say,
// and the tensors cover the data without holes, overlaps or a tail.
//
// No JSON library and no LLVM here: Graph (constants) and Runtime (step data)
// share this file.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SUPPORT_SAFETENSORS_H
#define NOVA_SUPPORT_SAFETENSORS_H

#include "nova/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nova {

/// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  /// As the file spells it: F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8
  /// BOOL F8_E4M3 F8_E5M2.
  std::string dtype;
  std::vector<int64_t> shape;
  /// Byte offset from the start of the data section, and size in bytes.
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Bytes per element of a safetensors dtype; 0 for an unknown name.
uint64_t safetensorsElementBytes(std::string_view dtype);

/// "float32" -> "F32", "bool" -> "BOOL", ...: the safetensors name of a
/// graph-file dtype. Empty for a name that is no graph dtype.
std::string_view safetensorsDtypeOf(std::string_view graphDtype);
/// The inverse. Empty for a dtype that a graph file has no name for.
std::string_view graphDtypeOf(std::string_view safetensorsDtype);

/// Parses and checks a header (the N bytes of JSON) against the size in bytes
/// of the data section. Entries come back in file order, by offset. `metadata`,
/// if given, receives the pairs of "__metadata__" in order of appearance.
Expected<std::vector<SafetensorsEntry>> parseSafetensorsHeader(
    std::string_view header, uint64_t dataSize,
    std::vector<std::pair<std::string, std::string>> *metadata = nullptr);

/// An open safetensors file: the header is read and checked at open, the bytes
/// of a tensor only when asked for.
class SafetensorsFile {
public:
  /// BadInput naming the path and what is wrong.
  static Expected<SafetensorsFile> open(const std::string &path);
  SafetensorsFile(SafetensorsFile &&other) noexcept;
  SafetensorsFile &operator=(SafetensorsFile &&other) noexcept;
  ~SafetensorsFile();

  const std::string &path() const { return filePath; }
  const std::vector<SafetensorsEntry> &entries() const { return table; }
  /// The entry of that name, or null.
  const SafetensorsEntry *find(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>> &metadata() const {
    return pairs;
  }

  /// Reads the bytes of one of entries() into `out` (entry.size bytes).
  Status read(const SafetensorsEntry &entry, void *out) const;
  /// The same, into a string.
  Expected<std::string> read(const SafetensorsEntry &entry) const;

private:
  SafetensorsFile() = default;
  std::string filePath;
  std::vector<SafetensorsEntry> table;
  std::vector<size_t> byName; // indices of `table`, sorted by name
  std::vector<std::pair<std::string, std::string>> pairs;
  uint64_t dataStart = 0;
  int fd = -1;
};

/// A tensor to write: `data` points to dense row-major little-endian bytes.
struct SafetensorsTensor {
  std::string name;
  std::string dtype; ///< safetensors spelling
  std::vector<int64_t> shape;
  const void *data = nullptr;
  uint64_t size = 0; ///< bytes; checked against dtype and shape
};

/// Publishes a file atomically (File.h). Order is by element size, largest
/// first, then by name, so every tensor is aligned to its element; the header
/// is padded to 8 bytes. Same tensors, same bytes.
Status writeSafetensors(
    const std::string &path, std::vector<SafetensorsTensor> tensors,
    const std::vector<std::pair<std::string, std::string>> &metadata = {});

/// The 8 + N leading bytes that writeSafetensors puts before the data;
/// `tensors` is brought into file order.
Expected<std::string> safetensorsHeader(
    std::vector<SafetensorsTensor> &tensors,
    const std::vector<std::pair<std::string, std::string>> &metadata = {});

} // namespace nova

#endif // NOVA_SUPPORT_SAFETENSORS_H
