//===- Integer.cpp - Integer arithmetic -----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.1 (integer arithmetic) and 9.7.2 (extended precision: add.cc and
// the rest, through a condition code per thread).
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"

#include <limits>

using namespace nova::sim;

namespace {

using U128 = unsigned __int128;
using S128 = __int128;

template <typename T>
using Double = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, S128, U128>,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename T> T high(T a, T b) {
  return static_cast<T>(
      (static_cast<Double<T>>(a) * static_cast<Double<T>>(b)) >>
      (8 * sizeof(T)));
}
/// Wrapping arithmetic of any width, without the promotion to int.
template <typename T> T low(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename T> T plus(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename T> T minus(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename T> T clampSigned(S128 v) {
  S128 lowest = std::numeric_limits<T>::min(),
       most = std::numeric_limits<T>::max();
  return static_cast<T>(v < lowest ? lowest : v > most ? most : v);
}

bool isPlainInteger(const Decoder &d) {
  // The type is the last modifier.
  size_t dot = d.in.opcode.rfind('.');
  auto t = typeModifier(d.in.opcode.substr(dot + 1));
  return t && t->isInteger() && !t->packed;
}

bool decodeAddSub(Decoder &d) {
  if (!isPlainInteger(d))
    return false;
  bool add = d.root[0] == 'a';
  bool carryIn = d.root.back() == 'c'; // addc, subc
  bool carryOut = d.take("cc");
  bool saturate = d.take("sat");
  TypeMod t = d.type();
  operands(d, t, 2);
  if (carryIn || carryOut) {
    // ISA 9.7.2: CC.CF holds the carry of an addition and the borrow of a
    // subtraction.
    if (t.bits < 32)
      d.fail("extended precision of 16 bits");
    d.out.op[3] = d.names.carry();
    d.out.aux = (add ? 0 : 1) | (carryIn ? 2 : 0) | (carryOut ? 4 : 0);
    auto run = []<typename T>() -> Handler {
      return [](Warp &w, const Inst &i, uint32_t mask) {
        Lane<T> *to = w.row<Lane<T>>(i.op[0]);
        const Lane<T> *a = w.row<Lane<T>>(i.op[1]),
                      *b = w.row<Lane<T>>(i.op[2]);
        uint32_t &flag = w.predicate(i.op[3]);
        uint32_t result = 0;
        for (unsigned l = 0; l < kLanes; ++l) {
          if (!(mask >> l & 1))
            continue;
          U128 in = (i.aux & 2) ? (flag >> l & 1) : 0;
          U128 sum = (i.aux & 1) ? U128(a[l]) - U128(b[l]) - in
                                 : U128(a[l]) + U128(b[l]) + in;
          to[l] = static_cast<Lane<T>>(sum);
          result |= static_cast<uint32_t>((sum >> (8 * sizeof(T))) & 1) << l;
        }
        if (i.aux & 4)
          flag = (flag & ~mask) | result;
      };
    };
    d.out.run =
        t.bits == 64 ? run.operator()<uint64_t>() : run.operator()<uint32_t>();
    return true;
  }
  if (saturate) {
    if (t.kind != 's' || t.bits != 32)
      d.fail(".sat is for .s32");
    d.out.run =
        add ? handler<int32_t, int32_t, int32_t>([](int32_t a, int32_t b) {
          return clampSigned<int32_t>(S128(a) + b);
        })
            : handler<int32_t, int32_t, int32_t>([](int32_t a, int32_t b) {
                return clampSigned<int32_t>(S128(a) - b);
              });
    return true;
  }
  d.out.run = forInteger(t, [&]<typename T>() {
    return add ? handler<T, T, T>([](T a, T b) { return plus<T>(a, b); })
               : handler<T, T, T>([](T a, T b) { return minus<T>(a, b); });
  });
  return d.out.run != nullptr;
}

template <typename T> Handler mulHandler(unsigned how, bool add) {
  using W = std::conditional_t<
      sizeof(T) == 2,
      std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
      std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
  if (how == 2) {
    if constexpr (sizeof(T) == 8) {
      return nullptr;
    } else {
      if (add)
        return handler<W, T, T, W>([](T a, T b, W c) {
          return plus<W>(static_cast<W>(a) * static_cast<W>(b), c);
        });
      return handler<W, T, T>([](T a, T b) {
        return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
      });
    }
  }
  if (how == 1)
    return add ? handler<T, T, T, T>(
                     [](T a, T b, T c) { return plus<T>(high<T>(a, b), c); })
               : handler<T, T, T>([](T a, T b) { return high<T>(a, b); });
  return add ? handler<T, T, T, T>(
                   [](T a, T b, T c) { return plus<T>(low<T>(a, b), c); })
             : handler<T, T, T>([](T a, T b) { return low<T>(a, b); });
}

bool decodeMul(Decoder &d) {
  if (!isPlainInteger(d))
    return false;
  bool add = d.root == "mad";
  bool wide = d.take("wide");
  bool hi = !wide && d.take("hi");
  if (!wide && !hi && !d.take("lo"))
    d.fail("no .lo, .hi or .wide");
  TypeMod t = d.type();
  TypeMod result = t;
  if (wide)
    result.bits *= 2;
  d.expectCount(add ? 4 : 3, add ? 4 : 3);
  d.out.op[0] = d.target(0, result.bits);
  d.out.op[1] = d.source(1, t);
  d.out.op[2] = d.source(2, t);
  if (add)
    d.out.op[3] = d.source(3, result);
  if (wide && t.bits == 64)
    d.fail("a product of 128 bits");
  d.out.run = forInteger(t, [&]<typename T>() {
    return mulHandler<T>(wide ? 2 : hi ? 1 : 0, add);
  });
  return d.out.run != nullptr;
}

bool decodeMul24(Decoder &d) {
  bool add = d.root == "mad24";
  bool hi = d.take("hi");
  if (!hi && !d.take("lo"))
    d.fail("no .lo or .hi");
  TypeMod t = d.type();
  if (t.bits != 32 || !t.isInteger())
    d.fail("type " + std::string(t.name));
  operands(d, t, add ? 3 : 2);
  // ISA 9.7.1.5: of the 48 bits of the product, the low or the high 32.
  d.out.aux = hi ? 16 : 0;
  auto run = [&]<typename T>() -> Handler {
    return [](Warp &w, const Inst &i, uint32_t mask) {
      uint32_t *to = w.row<uint32_t>(i.op[0]);
      const uint32_t *a = w.row<uint32_t>(i.op[1]),
                     *b = w.row<uint32_t>(i.op[2]);
      const uint32_t *c = i.op[3] == kNone ? nullptr : w.row<uint32_t>(i.op[3]);
      for (unsigned l = 0; l < kLanes; ++l) {
        if (!(mask >> l & 1))
          continue;
        auto narrow = [](uint32_t v) {
          return static_cast<int64_t>(static_cast<T>(v << 8) >> 8);
        };
        auto product = static_cast<uint64_t>(narrow(a[l]) * narrow(b[l]));
        to[l] = static_cast<uint32_t>(product >> i.aux) + (c ? c[l] : 0);
      }
    };
  };
  d.out.run =
      t.kind == 's' ? run.operator()<int32_t>() : run.operator()<uint32_t>();
  return true;
}

bool decodeDivRem(Decoder &d) {
  if (!isPlainInteger(d))
    return false;
  bool rem = d.root == "rem";
  TypeMod t = d.type();
  operands(d, t, 2);
  // ISA 9.7.1.8: division by zero yields an unspecified value: all ones, as an
  // H200 does.
  d.out.run = forInteger(t, [&]<typename T>() {
    if (rem)
      return handler<T, T, T>([](T a, T b) -> T {
        if (b == 0)
          return static_cast<T>(-1);
        if constexpr (std::is_signed_v<T>)
          if (b == T(-1))
            return 0;
        return static_cast<T>(a % b);
      });
    return handler<T, T, T>([](T a, T b) -> T {
      if (b == 0)
        return static_cast<T>(-1);
      if constexpr (std::is_signed_v<T>)
        if (b == T(-1))
          return minus<T>(0, a);
      return static_cast<T>(a / b);
    });
  });
  return d.out.run != nullptr;
}

bool decodeUnary(Decoder &d) {
  if (!isPlainInteger(d))
    return false;
  bool neg = d.root == "neg";
  TypeMod t = d.type();
  operands(d, t, 1);
  d.out.run = forInteger(t, [&]<typename T>() {
    return neg ? handler<T, T>([](T a) { return minus<T>(0, a); })
               : handler<T, T>(
                     [](T a) { return a < T(0) ? minus<T>(0, a) : a; });
  });
  return d.out.run != nullptr;
}

bool decodeMinMax(Decoder &d) {
  size_t dot = d.in.opcode.rfind('.');
  auto last = typeModifier(d.in.opcode.substr(dot + 1));
  if (!last || !last->isInteger())
    return false;
  bool max = d.root == "max";
  bool relu = d.take("relu");
  TypeMod t = d.type();
  operands(d, t, 2);
  if (relu)
    d.fail(".relu");
  if (t.packed) {
    // u16x2 and s16x2: each half on its own.
    d.out.aux = (max ? 1 : 0) | (t.kind == 's' ? 2 : 0);
    d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
      uint32_t *to = w.row<uint32_t>(i.op[0]);
      const uint32_t *a = w.row<uint32_t>(i.op[1]),
                     *b = w.row<uint32_t>(i.op[2]);
      alignas(64) uint32_t values[kLanes];
      for (unsigned l = 0; l < kLanes; ++l) {
        uint32_t r = 0;
        for (unsigned h = 0; h < 32; h += 16) {
          auto x = static_cast<uint16_t>(a[l] >> h),
               y = static_cast<uint16_t>(b[l] >> h);
          bool less = (i.aux & 2) ? int16_t(x) < int16_t(y) : x < y;
          r |= uint32_t((less == bool(i.aux & 1)) ? y : x) << h;
        }
        values[l] = r;
      }
      store(to, values, mask);
    };
    return true;
  }
  d.out.run = forInteger(t, [&]<typename T>() {
    return max ? handler<T, T, T>([](T a, T b) { return a > b ? a : b; })
               : handler<T, T, T>([](T a, T b) { return a < b ? a : b; });
  });
  return d.out.run != nullptr;
}

bool decodeSad(Decoder &d) {
  TypeMod t = d.type();
  operands(d, t, 3);
  d.out.run = forInteger(t, [&]<typename T>() {
    return handler<T, T, T, T>([](T a, T b, T c) {
      return plus<T>(c, a > b ? minus<T>(a, b) : minus<T>(b, a));
    });
  });
  return d.out.run != nullptr;
}

} // namespace

void nova::sim::addIntegerInstructions(InstructionTable &table) {
  for (const char *root : {"add", "sub", "addc", "subc"})
    table.add(root, decodeAddSub);
  table.add("mul", decodeMul);
  table.add("mad", decodeMul);
  table.add("mul24", decodeMul24);
  table.add("mad24", decodeMul24);
  table.add("div", decodeDivRem);
  table.add("rem", decodeDivRem);
  table.add("neg", decodeUnary);
  table.add("abs", decodeUnary);
  table.add("min", decodeMinMax);
  table.add("max", decodeMinMax);
  table.add("sad", decodeSad);
}
