//===- Random.h - Reproducible inputs by index ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_MATH_RANDOM_H
#define NOVA_TESTS_MATH_RANDOM_H

#include <cstdint>

namespace nova::test {

/// The i-th of a fixed sequence of well mixed 64-bit values: a multiplicative
/// counter whose bits are folded until each depends on all.
inline uint64_t random64(uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
  for (int round = 0; round < 3; ++round) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
  }
  return x ^ (x >> 32);
}

/// In [0, 1).
inline double randomUnit(uint64_t i) {
  return double(random64(i) >> 11) * 0x1p-53;
}

} // namespace nova::test

#endif // NOVA_TESTS_MATH_RANDOM_H
