//===- Hash.h - SHA-256, and keys made of labelled sections ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain C++ (no LLVM): the loader verifies digests with it.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SUPPORT_HASH_H
#define NOVA_SUPPORT_HASH_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nova {

/// SHA-256 (FIPS 180-4), incremental.
class Sha256 {
public:
  Sha256();
  Sha256 &update(const void *data, size_t size);
  Sha256 &update(std::string_view bytes) {
    return update(bytes.data(), bytes.size());
  }
  /// The digest of all bytes so far; the object must not be used afterwards.
  std::array<uint8_t, 32> finish();
  /// finish() as 64 lower-case hexadecimal digits.
  std::string finishHex();

private:
  void block(const uint8_t *p);
  std::array<uint32_t, 8> state;
  std::array<uint8_t, 64> buffer;
  uint64_t length = 0;
};

/// 64 lower-case hexadecimal digits of SHA-256(bytes).
std::string sha256Hex(std::string_view bytes);

/// A cache key made of named sections. Each section is length-prefixed before
/// it is hashed, so no two different lists of sections give the same bytes,
/// and text() shows what was hashed, for `--explain-miss`.
class KeyBuilder {
public:
  KeyBuilder &section(std::string_view name, std::string_view value);
  /// 64 hexadecimal digits over all sections in order.
  std::string key() const;
  /// One "name: value" line per section; long values as their digest.
  std::string text() const;

private:
  std::vector<std::pair<std::string, std::string>> sections;
};

} // namespace nova

#endif // NOVA_SUPPORT_HASH_H
