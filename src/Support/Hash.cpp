//===- Hash.cpp - SHA-256, and keys made of labelled sections -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Support/Hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace nova;

namespace {

/// The first 32 bits of the fractional parts of the cube roots of the first 64
/// primes (FIPS 180-4, 4.2.2).
constexpr uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t loadBigEndian(const uint8_t *p) {
  return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 |
         p[3];
}

std::string hex(const std::array<uint8_t, 32> &digest) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(64);
  for (uint8_t byte : digest) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

/// A section as it is hashed: both lengths stand before both texts, so that no
/// two different lists of sections give the same bytes.
void hashSection(Sha256 &sha, std::string_view name, std::string_view value) {
  for (uint64_t size : {uint64_t(name.size()), uint64_t(value.size())}) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i)
      bytes[i] = static_cast<uint8_t>(size >> (8 * i));
    sha.update(bytes, sizeof bytes);
  }
  sha.update(name).update(value);
}

} // namespace

Sha256::Sha256()
    : state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::block(const uint8_t *p) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = loadBigEndian(p + 4 * i);
  for (int i = 16; i < 64; ++i) {
    uint32_t x = w[i - 15], y = w[i - 2];
    uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
    uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  // Working variables rotate by renaming: eight rounds per iteration, no moves.
  uint32_t v[8];
  std::memcpy(v, state.data(), sizeof v);
  auto round = [&](uint32_t a, uint32_t b, uint32_t c, uint32_t &d, uint32_t e,
                   uint32_t f, uint32_t g, uint32_t &h, int i) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + (g ^ (e & (f ^ g))) + roundConstants[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    d += t1;
    h = t1 + s0 + ((a & b) | (c & (a | b)));
  };
  for (int i = 0; i < 64; i += 8) {
    round(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], i);
    round(v[7], v[0], v[1], v[2], v[3], v[4], v[5], v[6], i + 1);
    round(v[6], v[7], v[0], v[1], v[2], v[3], v[4], v[5], i + 2);
    round(v[5], v[6], v[7], v[0], v[1], v[2], v[3], v[4], i + 3);
    round(v[4], v[5], v[6], v[7], v[0], v[1], v[2], v[3], i + 4);
    round(v[3], v[4], v[5], v[6], v[7], v[0], v[1], v[2], i + 5);
    round(v[2], v[3], v[4], v[5], v[6], v[7], v[0], v[1], i + 6);
    round(v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[0], i + 7);
  }
  for (int i = 0; i < 8; ++i)
    state[i] += v[i];
}

Sha256 &Sha256::update(const void *data, size_t size) {
  const uint8_t *p = static_cast<const uint8_t *>(data);
  size_t used = length % 64;
  length += size;
  if (used) {
    size_t take = std::min(size, size_t(64) - used);
    std::memcpy(buffer.data() + used, p, take);
    p += take;
    size -= take;
    if (used + take < 64)
      return *this;
    block(buffer.data());
  }
  for (; size >= 64; p += 64, size -= 64)
    block(p);
  if (size)
    std::memcpy(buffer.data(), p, size);
  return *this;
}

std::array<uint8_t, 32> Sha256::finish() {
  // A one bit, zeros up to 56 bytes modulo 64, then the length in bits.
  uint64_t bits = length * 8;
  uint8_t tail[72] = {0x80};
  size_t used = length % 64;
  size_t padding = (used < 56 ? 56 : 120) - used;
  for (int i = 0; i < 8; ++i)
    tail[padding + i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  update(tail, padding + 8);
  std::array<uint8_t, 32> digest;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 4; ++j)
      digest[4 * i + j] = static_cast<uint8_t>(state[i] >> (24 - 8 * j));
  return digest;
}

std::string Sha256::finishHex() { return hex(finish()); }

std::string nova::sha256Hex(std::string_view bytes) {
  return Sha256().update(bytes).finishHex();
}

KeyBuilder &KeyBuilder::section(std::string_view name, std::string_view value) {
  sections.emplace_back(name, value);
  return *this;
}

std::string KeyBuilder::key() const {
  Sha256 sha;
  for (const auto &[name, value] : sections)
    hashSection(sha, name, value);
  return sha.finishHex();
}

std::string KeyBuilder::text() const {
  // Longer than a line of a terminal, or not one line: the digest stands for
  // it.
  constexpr size_t longest = 120;
  std::string out;
  for (const auto &[name, value] : sections) {
    out += name + ": ";
    if (value.size() > longest || value.find('\n') != std::string::npos)
      out += "sha256:" + sha256Hex(value) + " (" +
             std::to_string(value.size()) + " bytes)";
    else
      out += value;
    out += '\n';
  }
  return out;
}
