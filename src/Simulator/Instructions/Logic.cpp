//===- Logic.cpp - Logic, shifts, and instructions on bits ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.8 (logic and shift), and of 9.7.1 what works on bits: popc, clz,
// bfind, fns, brev, bfe, bfi, szext, bmsk, dp4a, dp2a.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"

#include <algorithm>

using namespace nova::sim;

namespace {

/// Of predicates: one word operation.
template <typename F> bool predicateLogic(Decoder &d, unsigned sources, F) {
  d.expectCount(sources + 1, sources + 1);
  d.out.op[0] = d.target(0, 1);
  bool negated[2] = {};
  for (unsigned k = 0; k < sources; ++k) {
    d.out.op[k + 1] = d.predicate(d.operand(k + 1), negated[k]);
    if (negated[k])
      d.out.aux |= 1u << k;
  }
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    uint32_t a = w.predicate(i.op[1]), b = 0;
    if (i.op[2] != kNone)
      b = w.predicate(i.op[2]);
    a = (i.aux & 1) ? ~a : a;
    b = (i.aux & 2) ? ~b : b;
    uint32_t &to = w.predicate(i.op[0]);
    to = (to & ~mask) | (F()(a, b) & mask);
  };
  return true;
}

template <typename F> Handler forBits(const TypeMod &t, F f) {
  switch (t.bits) {
  case 16:
    return f.template operator()<uint16_t>();
  case 32:
    return f.template operator()<uint32_t>();
  case 64:
    return f.template operator()<uint64_t>();
  default:
    return nullptr;
  }
}

bool decodeLogic(Decoder &d) {
  TypeMod t = d.type();
  bool isAnd = d.root == "and", isOr = d.root == "or";
  if (t.kind == 'p') {
    if (isAnd)
      return predicateLogic(d, 2, [](uint32_t a, uint32_t b) { return a & b; });
    if (isOr)
      return predicateLogic(d, 2, [](uint32_t a, uint32_t b) { return a | b; });
    return predicateLogic(d, 2, [](uint32_t a, uint32_t b) { return a ^ b; });
  }
  operands(d, t, 2);
  d.out.run = forBits(t, [&]<typename T>() {
    return isAnd  ? handler<T, T, T>([](T a, T b) { return T(a & b); })
           : isOr ? handler<T, T, T>([](T a, T b) { return T(a | b); })
                  : handler<T, T, T>([](T a, T b) { return T(a ^ b); });
  });
  return d.out.run != nullptr;
}

bool decodeNot(Decoder &d) {
  TypeMod t = d.type();
  if (t.kind == 'p')
    return predicateLogic(d, 1, [](uint32_t a, uint32_t) { return ~a; });
  bool c = d.root == "cnot";
  operands(d, t, 1);
  d.out.run = forBits(t, [&]<typename T>() {
    return c ? handler<T, T>([](T a) { return T(a == 0 ? 1 : 0); })
             : handler<T, T>([](T a) { return T(~a); });
  });
  return d.out.run != nullptr;
}

/// ISA 9.7.8.6: a table of the eight combinations of three bits.
bool decodeLop3(Decoder &d) {
  bool disjunction = d.take("or"), conjunction = d.take("and");
  if (disjunction || conjunction)
    d.fail("its form with a predicate");
  TypeMod t = d.type();
  d.expectCount(5, 5);
  if (t.bits != 32)
    d.fail("type " + std::string(t.name));
  d.out.op[0] = d.target(0, 32);
  for (unsigned k = 1; k <= 3; ++k)
    d.out.op[k] = d.source(k, t);
  d.out.aux = static_cast<uint32_t>(d.constantOf(d.operand(4), t));
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]),
                   *c = w.row<uint32_t>(i.op[3]);
    uint32_t on[8];
    for (unsigned k = 0; k < 8; ++k)
      on[k] = (i.aux >> k & 1) ? ~0u : 0u;
    alignas(64) uint32_t values[kLanes];
    NOVA_LANES {
      uint32_t x = a[l], y = b[l], z = c[l];
      values[l] = (~x & ~y & ~z & on[0]) | (~x & ~y & z & on[1]) |
                  (~x & y & ~z & on[2]) | (~x & y & z & on[3]) |
                  (x & ~y & ~z & on[4]) | (x & ~y & z & on[5]) |
                  (x & y & ~z & on[6]) | (x & y & z & on[7]);
    }
    store(w.row<uint32_t>(i.op[0]), values, mask);
  };
  return true;
}

/// ISA 9.7.8.8: amounts above the width are the width.
bool decodeShift(Decoder &d) {
  bool left = d.root == "shl";
  TypeMod t = d.type();
  d.expectCount(3, 3);
  d.out.op[0] = d.target(0, t.bits);
  d.out.op[1] = d.source(1, t);
  d.out.op[2] = d.source(2, {'u', 32, false, "u32"});
  d.out.run = forInteger(t, [&]<typename T>() {
    using U = typename Unsigned<T>::type;
    if (left)
      return handler<T, T, uint32_t>([](T a, uint32_t n) {
        return n >= 8 * sizeof(T) ? T(0)
                                  : static_cast<T>(static_cast<U>(a) << n);
      });
    return handler<T, T, uint32_t>([](T a, uint32_t n) {
      if (n < 8 * sizeof(T))
        return static_cast<T>(a >> n);
      return a < T(0) ? static_cast<T>(-1) : T(0);
    });
  });
  return d.out.run != nullptr;
}

/// ISA 9.7.8.7: 64 bits shifted, one half taken.
bool decodeFunnel(Decoder &d) {
  bool left = d.take("l");
  if (!left && !d.take("r"))
    d.fail("no .l or .r");
  bool clamp = d.take("clamp");
  if (!clamp && !d.take("wrap"))
    d.fail("no .clamp or .wrap");
  TypeMod t = d.type();
  operands(d, t, 3);
  if (t.bits != 32)
    d.fail("type " + std::string(t.name));
  using T = uint32_t;
  auto limit = [](bool clamps) { return clamps ? 1 : 0; };
  switch ((left ? 2 : 0) | limit(clamp)) {
  case 3:
    d.out.run = handler<T, T, T, T>([](T a, T b, T c) {
      uint64_t v = uint64_t(b) << 32 | a;
      return static_cast<T>((v << (c > 32 ? 32 : c)) >> 32);
    });
    break;
  case 2:
    d.out.run = handler<T, T, T, T>([](T a, T b, T c) {
      return static_cast<T>(((uint64_t(b) << 32 | a) << (c & 31)) >> 32);
    });
    break;
  case 1:
    d.out.run = handler<T, T, T, T>([](T a, T b, T c) {
      return static_cast<T>((uint64_t(b) << 32 | a) >> (c > 32 ? 32 : c));
    });
    break;
  default:
    d.out.run = handler<T, T, T, T>([](T a, T b, T c) {
      return static_cast<T>((uint64_t(b) << 32 | a) >> (c & 31));
    });
  }
  return true;
}

bool decodeCount(Decoder &d) {
  bool popc = d.root == "popc";
  TypeMod t = d.type();
  d.expectCount(2, 2);
  d.out.op[0] = d.target(0, 32);
  d.out.op[1] = d.source(1, t);
  if (t.bits == 64)
    d.out.run = popc ? handler<uint32_t, uint64_t>([](uint64_t a) {
      return static_cast<uint32_t>(std::popcount(a));
    })
                     : handler<uint32_t, uint64_t>([](uint64_t a) {
                         return static_cast<uint32_t>(std::countl_zero(a));
                       });
  else if (t.bits == 32)
    d.out.run = popc ? handler<uint32_t, uint32_t>([](uint32_t a) {
      return static_cast<uint32_t>(std::popcount(a));
    })
                     : handler<uint32_t, uint32_t>([](uint32_t a) {
                         return static_cast<uint32_t>(std::countl_zero(a));
                       });
  else
    return false;
  return true;
}

/// ISA 9.7.1.16: the most significant bit that is no sign, or -1.
bool decodeBfind(Decoder &d) {
  bool amount = d.take("shiftamt");
  TypeMod t = d.type();
  d.expectCount(2, 2);
  d.out.op[0] = d.target(0, 32);
  d.out.op[1] = d.source(1, t);
  d.out.run = forInteger(t, [&]<typename T>() {
    auto find = [](T a) {
      using U = typename Unsigned<T>::type;
      U v = static_cast<U>(a < T(0) ? ~a : a);
      return static_cast<uint32_t>(8 * sizeof(T)) - 1 -
             static_cast<uint32_t>(std::countl_zero(v));
    };
    if (amount)
      return handler<uint32_t, T>([](T a) {
        uint32_t at = decltype(find)()(a);
        return at == ~0u ? at : static_cast<uint32_t>(8 * sizeof(T)) - 1 - at;
      });
    return handler<uint32_t, T>(find);
  });
  return d.out.run != nullptr && t.bits >= 32;
}

template <typename T> T reversed(T v) {
  T r = 0;
  for (unsigned k = 0; k < 8 * sizeof(T); ++k)
    r = static_cast<T>(r << 1 | (v >> k & 1));
  return r;
}

bool decodeBrev(Decoder &d) {
  TypeMod t = d.type();
  operands(d, t, 1);
  d.out.run =
      t.bits == 64
          ? handler<uint64_t, uint64_t>([](uint64_t a) { return reversed(a); })
          : handler<uint32_t, uint32_t>([](uint32_t a) { return reversed(a); });
  return true;
}

/// ISA 9.7.1.19: a field of up to 255 bits from bit `pos` on; beyond the top
/// the sign, which is the field's own highest bit.
bool decodeBfe(Decoder &d) {
  TypeMod t = d.type();
  TypeMod u32{'u', 32, false, "u32"};
  d.expectCount(4, 4);
  d.out.op[0] = d.target(0, t.bits);
  d.out.op[1] = d.source(1, t);
  d.out.op[2] = d.source(2, u32);
  d.out.op[3] = d.source(3, u32);
  if (t.bits < 32)
    return false;
  d.out.run = forInteger(t, [&]<typename T>() {
    return handler<T, T, uint32_t, uint32_t>(
        [](T a, uint32_t pos, uint32_t len) {
          using U = typename Unsigned<T>::type;
          constexpr uint32_t top = 8 * sizeof(T) - 1;
          pos &= 0xff, len &= 0xff;
          U sign = 0;
          if (std::is_signed_v<T> && len) {
            uint32_t at = pos + len - 1;
            sign = static_cast<U>(a) >> (at > top ? top : at) & 1;
          }
          U field = pos > top ? U(0) : static_cast<U>(static_cast<U>(a) >> pos);
          uint32_t got = pos > top ? 0 : top + 1 - pos;
          uint32_t kept = len < got ? len : got;
          U mask = kept > top ? ~U(0) : static_cast<U>((U(1) << kept) - 1);
          return static_cast<T>((field & mask) |
                                (sign ? static_cast<U>(~mask) : U(0)));
        });
  });
  return d.out.run != nullptr;
}

/// ISA 9.7.1.20.
bool decodeBfi(Decoder &d) {
  TypeMod t = d.type();
  TypeMod u32{'u', 32, false, "u32"};
  d.expectCount(5, 5);
  d.out.op[0] = d.target(0, t.bits);
  d.out.op[1] = d.source(1, t);
  d.out.op[2] = d.source(2, t);
  d.out.op[3] = d.source(3, u32);
  d.out.op[4] = d.source(4, u32);
  auto make = []<typename T>() {
    return handler<T, T, T, uint32_t, uint32_t>(
        [](T a, T b, uint32_t pos, uint32_t len) {
          constexpr uint32_t bits = 8 * sizeof(T);
          pos &= 0xff, len &= 0xff;
          if (pos >= bits || len == 0)
            return b;
          T field = len >= bits ? ~T(0) : static_cast<T>((T(1) << len) - 1);
          T mask = static_cast<T>(field << pos);
          return static_cast<T>((b & ~mask) | ((a << pos) & mask));
        });
  };
  d.out.run =
      t.bits == 64 ? make.operator()<uint64_t>() : make.operator()<uint32_t>();
  return true;
}

/// ISA 9.7.1.17: the position of the n-th set bit from `base` on.
bool decodeFns(Decoder &d) {
  TypeMod t = d.type();
  operands(d, t, 3);
  d.out.run = handler<uint32_t, uint32_t, uint32_t, int32_t>(
      [](uint32_t mask, uint32_t base, int32_t offset) -> uint32_t {
        if (base > 31)
          return ~0u;
        if (offset == 0)
          return (mask >> base & 1) ? base : ~0u;
        int step = offset > 0 ? 1 : -1, left = offset > 0 ? offset : -offset;
        for (int p = static_cast<int>(base); p >= 0 && p < 32; p += step)
          if ((mask >> p & 1) && --left == 0)
            return static_cast<uint32_t>(p);
        return ~0u;
      });
  return true;
}

/// ISA 9.7.1.21: the sign of bit n - 1 extended.
bool decodeSzext(Decoder &d) {
  bool wrap = d.take("wrap");
  if (!wrap && !d.take("clamp"))
    d.fail("no .clamp or .wrap");
  TypeMod t = d.type();
  operands(d, t, 2);
  d.out.aux = (wrap ? 1 : 0) | (t.kind == 's' ? 2 : 0);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]);
    alignas(64) uint32_t values[kLanes];
    for (unsigned l = 0; l < kLanes; ++l) {
      uint32_t n = (i.aux & 1) ? b[l] & 31 : std::min(b[l], 32u);
      uint32_t low = n >= 32 ? ~0u : (1u << n) - 1;
      bool sign = (i.aux & 2) && n && (a[l] >> (n - 1) & 1);
      values[l] = (a[l] & low) | (sign ? ~low : 0);
    }
    store(w.row<uint32_t>(i.op[0]), values, mask);
  };
  return true;
}

/// ISA 9.7.1.22: b bits from bit a on.
bool decodeBmsk(Decoder &d) {
  bool wrap = d.take("wrap");
  if (!wrap && !d.take("clamp"))
    d.fail("no .clamp or .wrap");
  TypeMod t = d.type();
  operands(d, t, 2);
  if (wrap)
    d.out.run =
        handler<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b) {
          return ((1u << (b & 31)) - 1) << (a & 31);
        });
  else
    d.out.run =
        handler<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b) {
          uint32_t field = b >= 32 ? ~0u : (1u << b) - 1;
          return a >= 32 ? 0u : field << a;
        });
  return true;
}

/// ISA 9.7.1.23 and 9.7.1.24: products of bytes, summed.
bool decodeDot(Decoder &d) {
  bool four = d.root == "dp4a";
  bool high = !four && d.take("hi");
  if (!four && !high && !d.take("lo"))
    d.fail("no .lo or .hi");
  TypeMod ta = d.type(), tb = d.type();
  TypeMod i32{ta.kind == 's' || tb.kind == 's' ? 's' : 'u', 32, false, ""};
  operands(d, i32, 3);
  d.out.aux = (ta.kind == 's' ? 1 : 0) | (tb.kind == 's' ? 2 : 0) |
              (four ? 4 : 0) | (high ? 8 : 0);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]),
                   *c = w.row<uint32_t>(i.op[3]);
    auto part = [](uint32_t v, unsigned at, unsigned bits, bool s) -> int64_t {
      uint32_t field = v >> at & ((1u << bits) - 1);
      return s && (field >> (bits - 1) & 1) ? int64_t(field) - (1 << bits)
                                            : field;
    };
    alignas(64) uint32_t values[kLanes];
    for (unsigned l = 0; l < kLanes; ++l) {
      auto sum = static_cast<int64_t>(c[l]);
      bool four = i.aux & 4;
      for (unsigned k = 0; k < (four ? 4u : 2u); ++k)
        sum += part(a[l], four ? 8 * k : 16 * k, four ? 8 : 16, i.aux & 1) *
               part(b[l], 8 * k + ((i.aux & 8) ? 16 : 0), 8, i.aux & 2);
      values[l] = static_cast<uint32_t>(sum);
    }
    store(w.row<uint32_t>(i.op[0]), values, mask);
  };
  return true;
}

} // namespace

void nova::sim::addLogicInstructions(InstructionTable &table) {
  for (const char *root : {"and", "or", "xor"})
    table.add(root, decodeLogic);
  table.add("not", decodeNot);
  table.add("cnot", decodeNot);
  table.add("lop3", decodeLop3);
  table.add("shl", decodeShift);
  table.add("shr", decodeShift);
  table.add("shf", decodeFunnel);
  table.add("popc", decodeCount);
  table.add("clz", decodeCount);
  table.add("bfind", decodeBfind);
  table.add("brev", decodeBrev);
  table.add("bfe", decodeBfe);
  table.add("bfi", decodeBfi);
  table.add("fns", decodeFns);
  table.add("szext", decodeSzext);
  table.add("bmsk", decodeBmsk);
  table.add("dp4a", decodeDot);
  table.add("dp2a", decodeDot);
}
