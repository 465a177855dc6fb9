//===- TensorBox.cpp - What a tensor map's box is in memory ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TensorBox.h"

#include "nova/Bundle/TensorMapWords.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace nova::sim;

namespace {
enum Element : unsigned { // Places in kMapElementTypes.
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat32Ftz = 10,
  kTfloat32 = 11,
  kTfloat32Ftz = 12
};
} // namespace

TensorBox::TensorBox(const TensorMap &map) : map(map) {
  rank = static_cast<unsigned>(map.sizes.size());
  elementBytes = bundle::kMapElementBytes[map.elementType];
  span = map.swizzle ? 16u << map.swizzle : 0;
  bytes = elementBytes;
  for (unsigned d = 0; d < rank; ++d) {
    // Without an interleave the innermost dimension has no stride (driver API,
    // cuTensorMapEncodeTiled).
    uint64_t step = d ? map.elementStrides[d] : 1;
    counts[d] = (map.box[d] + step - 1) / step;
    bytes *= counts[d];
  }
  rowBytes = counts[0] * elementBytes;
}

std::vector<BoxRow>
TensorBox::rows(const std::array<int32_t, 5> &coordinates) const {
  std::vector<BoxRow> rows;
  std::array<uint64_t, 5> at{};
  auto size = [&](unsigned d) { return static_cast<int64_t>(map.sizes[d]); };
  for (uint64_t place = 0; place < bytes; place += rowBytes) {
    BoxRow row;
    row.place = place;
    row.memory = static_cast<int64_t>(map.offset) +
                 int64_t(coordinates[0]) * elementBytes;
    bool inside = true;
    for (unsigned d = 1; d < rank; ++d) {
      int64_t index =
          coordinates[d] + static_cast<int64_t>(at[d] * map.elementStrides[d]);
      inside &= index >= 0 && index < size(d);
      row.memory += index * static_cast<int64_t>(map.strides[d - 1]);
    }
    if (inside) {
      row.first = std::max<int64_t>(0, -int64_t(coordinates[0]));
      row.end =
          std::min(static_cast<int64_t>(counts[0]), size(0) - coordinates[0]);
      row.first = std::min(row.first, std::max<int64_t>(row.end, 0));
      row.end = std::max(row.end, row.first);
    }
    rows.push_back(row);
    for (unsigned d = 1; d < rank && ++at[d] == counts[d]; ++d)
      at[d] = 0;
  }
  return rows;
}

/// To TF32, to nearest, ties to even.
static uint32_t roundedToTf32(uint32_t bits) {
  if ((bits & 0x7f800000) == 0x7f800000)
    return bits & 0xffffe000;
  return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

void TensorBox::load(const BoxRow &row, const uint8_t *from,
                     uint8_t *to) const {
  if (map.fill && map.elementType >= bundle::kFirstFloatMapElement) {
    // A NaN of all ones but the sign, whatever the type.
    static constexpr uint8_t ones[] = {0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0x7f};
    for (uint64_t k = 0; k < rowBytes; k += elementBytes)
      std::memcpy(to + k, ones + (8 - elementBytes), elementBytes);
  } else {
    std::memset(to, 0, rowBytes);
  }
  auto begin = static_cast<uint64_t>(row.first) * elementBytes,
       end = static_cast<uint64_t>(row.end) * elementBytes;
  if (begin < end)
    std::memcpy(to + begin, from + begin, end - begin);
  bool flushes =
      map.elementType == kFloat32Ftz || map.elementType == kTfloat32Ftz;
  bool rounds = map.elementType == kTfloat32 || map.elementType == kTfloat32Ftz;
  if (!flushes && !rounds)
    return;
  for (uint64_t k = begin; k < end; k += 4) {
    uint32_t bits;
    std::memcpy(&bits, to + k, 4);
    if (flushes && !(bits & 0x7f800000))
      bits &= 0x80000000;
    if (rounds)
      bits = roundedToTf32(bits);
    std::memcpy(to + k, &bits, 4);
  }
}
