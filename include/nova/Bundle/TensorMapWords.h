//===- TensorMapWords.h - The words of a tensormap in the manifest --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensormap says exactly what cuTensorMapEncodeTiled is given. Each list here
// is in the order of the driver's enumeration, so the place of a word is the
// driver's value: new words go to the end, where the driver put theirs.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_BUNDLE_TENSORMAPWORDS_H
#define NOVA_BUNDLE_TENSORMAPWORDS_H

#include <array>
#include <optional>
#include <string_view>

namespace nova::bundle {

/// CUtensorMapDataType. `_ftz` flushes subnormals; `tfloat32` reads float32
/// memory and rounds each element on the way to shared memory.
inline constexpr std::array<std::string_view, 13> kMapElementTypes = {
    "uint8",       "uint16",   "uint32",      "int32",   "uint64",
    "int64",       "float16",  "float32",     "float64", "bfloat16",
    "float32_ftz", "tfloat32", "tfloat32_ftz"};
/// Bytes of an element in memory, in the order of kMapElementTypes.
inline constexpr std::array<unsigned, 13> kMapElementBytes = {
    1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
/// From this element type on they are floating point, which `nan` fills.
inline constexpr unsigned kFirstFloatMapElement = 6;
/// CUtensorMapInterleave
inline constexpr std::array<std::string_view, 3> kMapInterleaves = {
    "none", "16b", "32b"};
/// CUtensorMapSwizzle: the bytes of a row that are permuted.
inline constexpr std::array<std::string_view, 4> kMapSwizzles = {"none", "32b",
                                                                 "64b", "128b"};
/// CUtensorMapL2promotion: the least that a miss fetches.
inline constexpr std::array<std::string_view, 4> kMapL2Promotions = {
    "none", "64b", "128b", "256b"};
/// CUtensorMapFloatOOBfill: what a load puts where the box leaves the tensor.
inline constexpr std::array<std::string_view, 2> kMapFills = {"zero", "nan"};

/// The place of a word in one of the lists.
template <size_t N>
constexpr std::optional<unsigned>
wordIndex(const std::array<std::string_view, N> &words, std::string_view word) {
  for (size_t i = 0; i < N; ++i)
    if (words[i] == word)
      return static_cast<unsigned>(i);
  return std::nullopt;
}

} // namespace nova::bundle

#endif // NOVA_BUNDLE_TENSORMAPWORDS_H
