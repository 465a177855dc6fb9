//===- TensorBox.h - What a tensor map's box is in memory -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 5.5 (tensors, boxes, tiled mode, swizzling modes). In shared memory a
// box is dense, its first dimension inside; 16-byte pieces of it change places
// by the bits of their address above (swizzledAddress).
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_TENSORBOX_H
#define NOVA_SIMULATOR_TENSORBOX_H

#include "nova/Simulator/Simulator.h"

#include <array>
#include <vector>

namespace nova::sim {

/// Where 16 bytes at `address` of shared memory lie. `span`: bytes that are
/// permuted, 32, 64 or 128, or 0; `turned`: rows of 128 bytes by which the
/// pattern begins later (a descriptor's base offset).
inline uint64_t swizzledAddress(uint64_t address, unsigned span,
                                unsigned turned = 0) {
  if (span <= 16)
    return address;
  uint64_t row = ((address >> 7) - turned) & (span / 16 - 1);
  return address ^ row << 4;
}

/// Part of a row of a box, and whether it is inside the tensor.
struct BoxRow {
  uint64_t place = 0; ///< In the box, bytes from its start.
  int64_t memory = 0; ///< Of the row's first element, in the map's memory.
  int64_t first = 0;  ///< Elements [first, end) of the row are inside.
  int64_t end = 0;
};

class TensorBox {
public:
  explicit TensorBox(const TensorMap &map);
  /// Of the box at `coordinates`, innermost first.
  std::vector<BoxRow> rows(const std::array<int32_t, 5> &coordinates) const;

  const TensorMap &map;
  unsigned rank = 1, elementBytes = 1;
  unsigned span = 0;     ///< Of the swizzle, in bytes.
  uint64_t rowBytes = 0; ///< Of the box.
  uint64_t bytes = 0;    ///< Of the box; what its copy counts.

  /// The bytes of a row as they are in shared memory: copied, rounded where the
  /// type says so, filled outside. `from` is the row's first element.
  void load(const BoxRow &row, const uint8_t *from, uint8_t *to) const;

private:
  std::array<uint64_t, 5> counts{1, 1, 1, 1, 1}; ///< Elements along each.
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_TENSORBOX_H
