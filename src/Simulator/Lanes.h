//===- Lanes.h - One operation on the 32 lanes of a row -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// handler<Result, Sources...>(f) is an instruction that computes f lane by
// lane: op[0] is the result, op[1], op[2], ... the sources. All lanes are
// computed, in a loop that vectorises, and those of the mask are stored.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_LANES_H
#define NOVA_SIMULATOR_LANES_H

#include "Decoder.h"
#include "Machine.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace nova::sim {

/// The type of a lane of a row that holds values of type T.
template <typename T>
using Lane = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T> struct Unsigned {
  using type = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<
          sizeof(T) == 2, uint16_t,
          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
};

template <typename T> inline T fromLane(Lane<T> bits) {
  return std::bit_cast<T>(static_cast<typename Unsigned<T>::type>(bits));
}
template <typename T> inline Lane<T> toLane(T value) {
  return std::bit_cast<typename Unsigned<T>::type>(value);
}

#define NOVA_LANES _Pragma("GCC ivdep") for (unsigned l = 0; l < kLanes; ++l)

template <typename R> inline void store(R *to, const R *values, uint32_t mask) {
  if (mask == kAllLanes) {
    std::memcpy(to, values, kLanes * sizeof(R));
    return;
  }
  NOVA_LANES to[l] = (mask >> l & 1) ? values[l] : to[l];
}

template <typename F, typename R, typename... A, size_t... K>
inline void mapRows(Warp &w, const Inst &i, uint32_t mask,
                    std::index_sequence<K...>) {
  F f;
  Lane<R> *to = w.row<Lane<R>>(i.op[0]);
  auto from = std::make_tuple(
      static_cast<const Lane<A> *>(w.row<Lane<A>>(i.op[K + 1]))...);
  if (mask == kAllLanes) {
    NOVA_LANES to[l] = toLane<R>(f(fromLane<A>(std::get<K>(from)[l])...));
    return;
  }
  alignas(64) Lane<R> values[kLanes];
  NOVA_LANES values[l] = toLane<R>(f(fromLane<A>(std::get<K>(from)[l])...));
  store(to, values, mask);
}

template <typename F, typename R, typename... A>
void mapHandler(Warp &w, const Inst &i, uint32_t mask) {
  mapRows<F, R, A...>(w, i, mask, std::index_sequence_for<A...>());
}

template <typename R, typename... A, typename F> constexpr Handler handler(F) {
  return &mapHandler<F, R, A...>;
}

/// Bits of the lanes for which f holds, of rows op[first], op[first + 1], ...
template <typename F, typename... A, size_t... K>
inline uint32_t testRows(Warp &w, const Inst &i, unsigned first,
                         std::index_sequence<K...>) {
  F f;
  auto from = std::make_tuple(
      static_cast<const Lane<A> *>(w.row<Lane<A>>(i.op[first + K]))...);
  alignas(64) uint8_t bits[kLanes];
  NOVA_LANES bits[l] = f(fromLane<A>(std::get<K>(from)[l])...) ? 1 : 0;
  uint32_t result = 0;
  for (unsigned b = 0; b < 4; ++b) {
    uint64_t eight;
    std::memcpy(&eight, bits + 8 * b, 8);
    // Gathers the lowest bit of each byte.
    result |= static_cast<uint32_t>((eight * 0x0102040810204080) >> 56)
              << (8 * b);
  }
  return result;
}

/// Sets the register operands op[0..] of a plain instruction whose sources all
/// have the type of the result.
inline void operands(Decoder &d, const TypeMod &type, unsigned sources) {
  d.expectCount(sources + 1, sources + 1);
  d.out.op[0] = d.target(0, type.width());
  for (unsigned k = 1; k <= sources; ++k)
    d.out.op[k] = d.source(k, type);
}

/// The unsigned and signed integers of a width.
template <unsigned Bits> struct Int;
template <> struct Int<16> {
  using U = uint16_t;
  using S = int16_t;
};
template <> struct Int<32> {
  using U = uint32_t;
  using S = int32_t;
};
template <> struct Int<64> {
  using U = uint64_t;
  using S = int64_t;
};

/// f.operator()<T>() with the C++ type of an integer type.
template <typename F> Handler forInteger(const TypeMod &t, F f) {
  bool s = t.kind == 's';
  switch (t.bits) {
  case 16:
    return s ? f.template operator()<int16_t>()
             : f.template operator()<uint16_t>();
  case 32:
    return s ? f.template operator()<int32_t>()
             : f.template operator()<uint32_t>();
  case 64:
    return s ? f.template operator()<int64_t>()
             : f.template operator()<uint64_t>();
  default:
    return nullptr;
  }
}

} // namespace nova::sim

#endif // NOVA_SIMULATOR_LANES_H
