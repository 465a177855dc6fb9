//===- TensorMapCheck.cpp - A tensormap among a launch's arguments --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object
// Managment"): the driver answers a breach of any of them with the same invalid
// value, and only where there is a GPU. One is left out, that each stride is a
// multiple of the one before: a transposed view breaks it, and works.
//
//===----------------------------------------------------------------------===//

#include "Checker.h"
#include "nova/Bundle/TensorMapWords.h"

using namespace nova;
using namespace nova::bundle;

namespace {

class TensorMapChecker {
public:
  TensorMapChecker(Checker &c, const TensorMap &map, const std::string &path)
      : c(c), map(map), path(path) {}

  bool shape() {
    if (map.rank < 1 || map.rank > 5) {
      c.fail(path + ".rank", map.rank, "1 to 5");
      return false;
    }
    length("sizes", map.sizes, map.rank);
    length("strides", map.strides, map.rank - 1);
    length("box", map.box, map.rank);
    length("element_strides", map.elementStrides, map.rank);
    words();
    if (c.failed())
      return false;
    within("sizes", map.sizes, uint64_t(1) << 32);
    within("box", map.box, 256);
    within("element_strides", map.elementStrides, 8);
    uint64_t unit = interleave == 2 ? 32 : 16;
    for (size_t i = 0; i < map.strides.size(); ++i)
      if (map.strides[i] % unit || map.strides[i] == 0 ||
          map.strides[i] >= uint64_t(1) << 40)
        c.fail(Checker::at(path + ".strides", i), map.strides[i],
               "a positive multiple of " + std::to_string(unit) +
                   " bytes less than 2^40");
    together();
    return !c.failed();
  }

  /// The memory, of which `room` bytes begin at the map's.
  void memory(uint64_t room) {
    uint64_t unit = interleave == 2 ? 32 : 16;
    uint64_t offset =
        std::visit([](const auto &ref) { return ref.offset; }, map.memory);
    if (offset % unit)
      return c.fail(path + ".memory.offset", offset,
                    "a multiple of " + std::to_string(unit) + " bytes");
    // Below 2^32 times below 2^40, four times, plus 2^35: no overflow in 128
    // bits.
    __extension__ using Wide = unsigned __int128;
    Wide reach = Wide(map.sizes[0]) * elementBytes;
    for (size_t i = 0; i < map.strides.size(); ++i)
      reach += Wide(map.sizes[i + 1] - 1) * map.strides[i];
    if (reach > room)
      c.fail(path + ".sizes", Checker::list(map.sizes),
             "a tensor within the " + std::to_string(room) + " bytes there");
  }

private:
  template <size_t N>
  unsigned word(const char *key, const std::string &given,
                const std::array<std::string_view, N> &list) {
    if (std::optional<unsigned> index = wordIndex(list, given))
      return *index;
    std::string all;
    for (std::string_view one : list)
      all += " " + std::string(one);
    c.fail(path + "." + key, Checker::quote(given), "one of" + all);
    return 0;
  }

  void words() {
    type = word("element_type", map.elementType, kMapElementTypes);
    elementBytes = kMapElementBytes[type];
    interleave = word("interleave", map.interleave, kMapInterleaves);
    swizzle = word("swizzle", map.swizzle, kMapSwizzles);
    word("l2_promotion", map.l2Promotion, kMapL2Promotions);
    fill = word("fill", map.fill, kMapFills);
  }

  /// What one key allows depends on another.
  void together() {
    if (fill == 1 && type < kFirstFloatMapElement)
      c.fail(path + ".fill", Checker::quote(map.fill),
             "zero, for elements of type " + map.elementType);
    if (interleave && map.rank < 3)
      c.fail(path + ".rank", map.rank, "3 to 5 where there is an interleave");
    if (interleave == 2 && swizzle != 1)
      c.fail(path + ".swizzle", Checker::quote(map.swizzle),
             "32b, for an interleave of 32b");
    if (interleave)
      return;
    uint64_t inner = map.box[0] * elementBytes;
    if (inner % 16)
      c.fail(Checker::at(path + ".box", 0), map.box[0],
             "a multiple of 16 bytes of " + map.elementType + ", " +
                 std::to_string(16 / elementBytes) + " elements");
    uint64_t row = uint64_t(16) << swizzle;
    if (swizzle && inner > row)
      c.fail(Checker::at(path + ".box", 0), map.box[0],
             "at most the " + std::to_string(row / elementBytes) +
                 " elements of " + map.elementType + " of a swizzle of " +
                 map.swizzle);
  }

  void length(const char *key, const std::vector<uint64_t> &values,
              size_t expected) {
    if (values.size() != expected)
      c.fail(path + "." + key, Checker::list(values),
             std::to_string(expected) + " integers for rank " +
                 std::to_string(map.rank));
  }

  void within(const char *key, const std::vector<uint64_t> &values,
              uint64_t most) {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] < 1 || values[i] > most)
        c.fail(Checker::at(path + "." + key, i), values[i],
               "1 to " + std::to_string(most));
  }

  Checker &c;
  const TensorMap &map;
  const std::string &path;
  unsigned type = 0, elementBytes = 1, interleave = 0, swizzle = 0, fill = 0;
};

} // namespace

void bundle::checkTensorMap(
    Checker &c, const TensorMap &map,
    const std::function<uint64_t(const std::string &)> &reach,
    const std::string &path) {
  TensorMapChecker checker(c, map, path);
  if (!checker.shape())
    return;
  uint64_t room = reach(path + ".memory");
  if (!c.failed())
    checker.memory(room);
}
