//===- LinearLayout.h - Where the elements of a tile are ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout algebra of the tile level. A pure library: no MLIR.
//
// A tile has rank n and the shape core[d] * outer[d], core[d] a power of two.
// The core's elements are numbered row-major; as every extent is a power of two,
// such a number is the concatenation of its coordinates' bits. A layout says
// which elements thread (lane, warp) holds in its registers: the number of the
// core element is
//
//   element(r, lane, warp) = XOR of registers[i] for each bit i set in r
//                        XOR of lanes[i]     for each bit i set in lane
//                        XOR of warps[i]     for each bit i set in warp
//
// a linear map over the bits (a matrix over F2 whose columns are the bases). A
// zero basis among lanes or warps means that those threads hold copies. The
// outer factors repeat the core: they are the slow part of the register index,
// row-major, so widths such as 96, 192 or 768 are no bits of the map.
//
// Every question is a function of the matrix: equality up to the order of
// registers, slices, transposes, how many neighbours a thread holds, whether a
// conversion stays inside a thread, a warp or a block.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LAYOUT_LINEARLAYOUT_H
#define NOVA_LAYOUT_LINEARLAYOUT_H

#include <cstdint>
#include <string>
#include <vector>

namespace nova {

/// Threads of a warp, and the bits of a lane's number.
inline constexpr int64_t kWarpSize = 32;
inline constexpr unsigned kLaneBits = 5;

/// Largest power of two that divides `n` (n >= 1).
int64_t powerOfTwoPart(int64_t n);
/// Smallest power of two that is not less than `n`.
int64_t ceilPowerOfTwo(int64_t n);
/// Number of bits of a power of two: log2.
unsigned log2Exact(int64_t powerOfTwo);

class LinearLayout {
public:
  using Bases = std::vector<int64_t>;
  using Coordinates = std::vector<int64_t>;

  LinearLayout() = default;
  /// `core` extents are powers of two; `outer` has the same length (empty: all
  /// one). Bases are numbers of core elements.
  LinearLayout(std::vector<int64_t> core, std::vector<int64_t> outer,
               Bases registers, Bases lanes, Bases warps);

  /// Lanes, then registers, then warps spread along `order` (dimensions, the
  /// fastest first): each thread takes `vector` neighbours along order[0], the
  /// warp's lanes and then the warps follow along the order, what is left goes to
  /// registers; where the tile ends first, threads hold copies. Each extent of
  /// `shape` is split into its power-of-two part and an outer factor.
  static LinearLayout blocked(const std::vector<int64_t> &shape,
                              const std::vector<unsigned> &order,
                              int64_t vector, int64_t warps);

  unsigned rank() const { return core.size(); }
  std::vector<int64_t> shape() const;
  int64_t elements() const;      ///< Of the whole tile.
  int64_t coreElements() const;
  int64_t outerElements() const; ///< Product of the outer factors.
  int64_t warpCount() const { return int64_t{1} << warps.size(); }
  int64_t threadCount() const { return kWarpSize * warpCount(); }
  /// Values of the tile that one thread holds.
  int64_t registerCount() const;

  /// Number (in the core) of what register `r` (of the core's registers), lane
  /// and warp hold.
  int64_t coreElement(int64_t r, int64_t lane, int64_t warp) const;
  /// Coordinates in the tile of register `r` (of all) of a thread.
  Coordinates coordinates(int64_t r, int64_t lane, int64_t warp) const;
  /// The share of register `r` (of all) in the coordinates: what is added (by
  /// XOR, in the core) to the coordinates of register 0 of the thread.
  Coordinates registerCoordinates(int64_t r) const;
  Coordinates split(int64_t coreElement) const;   ///< Core number to coordinates.
  int64_t join(const Coordinates &coords) const;  ///< And back.

  /// Every element is somewhere: the bases span the core.
  bool isSurjective() const;
  /// No two registers of one thread hold the same element.
  bool registersAreDistinct() const;
  /// Bits of the lane (warp) whose value does not matter: threads that differ
  /// there alone hold copies. Exact for layouts whose other bases are
  /// independent; a copy is then also what any thread with such a bit set holds.
  int64_t freeLaneBits() const;
  int64_t freeWarpBits() const;
  /// Adding (not XOR) the parts of register, lane and warp gives the element:
  /// no bit of the core is in two bases.
  bool isDisjoint() const;

  /// The layout of this tile without dimension `dim`: what a reduction along it
  /// leaves and what a broadcast along it takes. Registers that would repeat
  /// are dropped; lanes and warps that ran along `dim` hold copies.
  LinearLayout slice(unsigned dim) const;
  /// Dimension `order[i]` becomes dimension i. Every thread keeps its elements, and
  /// their registers too unless two dimensions have outer factors: repeats are
  /// row-major in the new dimensions.
  LinearLayout transposed(const std::vector<unsigned> &order) const;
  /// A dimension of extent one at position `dim`.
  LinearLayout expanded(unsigned dim) const;

  /// Registers 0 to n-1, n to 2n-1, ... of every thread are neighbours along
  /// `dim`, ascending: the largest such n within the core, a power of two.
  int64_t contiguousRegisters(unsigned dim) const;

  bool operator==(const LinearLayout &other) const = default;
  /// Equal up to the order of registers within a thread: a conversion is a
  /// renaming, the same in all threads. `mapping`, if given, gets for each register
  /// of `to` the one of this layout that holds the same element. Where threads of
  /// this layout hold copies, `to` may have fewer registers. Layouts that split
  /// a shape into different cores count as different.
  bool sameThreads(const LinearLayout &to, std::vector<int64_t> *mapping = nullptr) const;

  std::string str() const;

  std::vector<int64_t> core, outer;
  Bases registers, lanes, warps;
};

} // namespace nova

#endif // NOVA_LAYOUT_LINEARLAYOUT_H
