//===- Compare.cpp - Comparison and selection -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.6 (comparison and select) and 9.7.7 (half precision comparison):
// setp set selp slct.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"
#include "../Numbers.h"

using namespace nova::sim;

namespace {

/// ISA 9.3.1: lo ls hi hs are the unsigned ones by other names; the u forms
/// hold when an operand is NaN.
enum Comparison : uint32_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};

std::optional<uint32_t> takeComparison(Decoder &d) {
  static constexpr std::pair<std::string_view, uint32_t> names[] = {
      {"eq", Eq},   {"ne", Ne},   {"lt", Lt},   {"le", Le},   {"gt", Gt},
      {"ge", Ge},   {"equ", Equ}, {"neu", Neu}, {"ltu", Ltu}, {"leu", Leu},
      {"gtu", Gtu}, {"geu", Geu}, {"num", Num}, {"nan", Nan}, {"lo", Lt},
      {"ls", Le},   {"hi", Gt},   {"hs", Ge}};
  for (auto [name, c] : names)
    if (d.nextIs(name)) {
      d.take(name);
      return c;
    }
  return std::nullopt;
}

template <uint32_t C, typename T> bool compare(T a, T b) {
  bool unordered = a != a || b != b;
  switch (C) {
  case Eq:
    return a == b;
  case Ne:
    return !unordered && a != b;
  case Lt:
    return a < b;
  case Le:
    return a <= b;
  case Gt:
    return a > b;
  case Ge:
    return a >= b;
  case Equ:
    return unordered || a == b;
  case Neu:
    return a != b;
  case Ltu:
    return !(a >= b);
  case Leu:
    return !(a > b);
  case Gtu:
    return !(a <= b);
  case Geu:
    return !(a < b);
  case Num:
    return !unordered;
  default:
    return unordered;
  }
}

using Test = uint32_t (*)(Warp &, const Inst &);

/// The lanes for which op[2] compares with op[3].
template <typename T, typename Of> Test testOf(uint32_t c) {
  auto make = []<uint32_t C>() -> Test {
    return [](Warp &w, const Inst &i) {
      auto f = [](T a, T b) { return compare<C>(Of()(a), Of()(b)); };
      return testRows<decltype(f), T, T>(w, i, 2, std::index_sequence<0, 1>());
    };
  };
  switch (c) {
#define CASE(X)                                                                \
  case X:                                                                      \
    return make.template operator()<X>()
    CASE(Eq);
    CASE(Ne);
    CASE(Lt);
    CASE(Le);
    CASE(Gt);
    CASE(Ge);
    CASE(Equ);
    CASE(Neu);
    CASE(Ltu);
    CASE(Leu);
    CASE(Gtu);
    CASE(Geu);
    CASE(Num);
    CASE(Nan);
#undef CASE
  default:
    return nullptr;
  }
}

template <typename T> struct Same {
  T operator()(T v) const { return v; }
};
struct Flushed {
  float operator()(float v) const { return flush(v); }
};
struct HalfValue {
  float operator()(uint16_t v) const { return fromHalf(v); }
};
struct BfloatValue {
  float operator()(uint16_t v) const { return fromBfloat(v); }
};

Test chooseTest(const TypeMod &t, uint32_t c, bool ftz) {
  if (t.packed)
    return nullptr;
  switch (t.kind) {
  case 'f':
    if (t.bits == 64)
      return testOf<double, Same<double>>(c);
    if (t.bits == 32)
      return ftz ? testOf<float, Flushed>(c) : testOf<float, Same<float>>(c);
    return testOf<uint16_t, HalfValue>(c);
  case 'h':
    return testOf<uint16_t, BfloatValue>(c);
  case 's':
    return t.bits == 64   ? testOf<int64_t, Same<int64_t>>(c)
           : t.bits == 32 ? testOf<int32_t, Same<int32_t>>(c)
                          : testOf<int16_t, Same<int16_t>>(c);
  default:
    return t.bits == 64   ? testOf<uint64_t, Same<uint64_t>>(c)
           : t.bits == 32 ? testOf<uint32_t, Same<uint32_t>>(c)
                          : testOf<uint16_t, Same<uint16_t>>(c);
  }
}

/// The test stands in `immediate`. small: 1 and, 2 or, 3 xor with op[4] (|4
/// negated); 8: a second result in op[1].
uint32_t tested(Warp &w, const Inst &i) {
  return reinterpret_cast<Test>(i.immediate)(w, i);
}
uint32_t combined(Warp &w, const Inst &i, uint32_t bits) {
  if (!(i.small & 3))
    return bits;
  uint32_t other = w.predicate(i.op[4]);
  if (i.small & 4)
    other = ~other;
  return (i.small & 3) == 1   ? bits & other
         : (i.small & 3) == 2 ? bits | other
                              : bits ^ other;
}

void takeBoolean(Decoder &d) {
  if (d.take("and"))
    d.out.small = 1;
  else if (d.take("or"))
    d.out.small = 2;
  else if (d.take("xor"))
    d.out.small = 3;
}

void takeTest(Decoder &d, uint32_t c, const TypeMod &t, bool ftz) {
  Test test = chooseTest(t, c, ftz);
  if (!test)
    d.fail("a comparison of type " + std::string(t.name));
  d.out.immediate = reinterpret_cast<int64_t>(test);
  bool third = d.out.small & 3;
  d.expectCount(third ? 4 : 3, third ? 4 : 3);
  d.out.op[2] = d.source(1, t);
  d.out.op[3] = d.source(2, t);
  if (third) {
    bool negated = false;
    d.out.op[4] = d.predicate(d.operand(3), negated);
    d.out.small |= negated ? 4 : 0;
  }
}

bool decodeSetp(Decoder &d) {
  auto c = takeComparison(d);
  if (!c)
    d.fail("no comparison that the simulator knows");
  takeBoolean(d);
  bool ftz = d.take("ftz");
  TypeMod t = d.type();
  takeTest(d, *c, t, ftz);
  const auto &first = d.operand(0);
  if (first.kind == nova::sim::ptx::Operand::Pair) {
    d.out.op[0] = d.target(first.items[0], 1);
    d.out.op[1] = d.target(first.items[1], 1);
    d.out.small |= 8;
  } else {
    d.out.op[0] = d.target(0, 1);
  }
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    uint32_t bits = tested(w, i);
    uint32_t first = combined(w, i, bits), second = combined(w, i, ~bits);
    uint32_t &to = w.predicate(i.op[0]);
    to = (to & ~mask) | (first & mask);
    if (i.small & 8) {
      uint32_t &also = w.predicate(i.op[1]);
      also = (also & ~mask) | (second & mask);
    }
  };
  return true;
}

/// ISA 9.7.6.1: all ones for an integer result, 1.0 for a float one.
bool decodeSet(Decoder &d) {
  auto c = takeComparison(d);
  if (!c)
    d.fail("no comparison that the simulator knows");
  takeBoolean(d);
  bool ftz = d.take("ftz");
  TypeMod result = d.type(), t = d.type();
  takeTest(d, *c, t, ftz);
  d.out.op[0] = d.target(0, result.width());
  if (result.bits == 64 || result.packed)
    d.fail("result type " + std::string(result.name));
  d.out.aux = result.kind == 'f' && result.bits == 32 ? 0x3f800000
              : result.kind == 'f'                    ? 0x3c00
              : result.kind == 'h'                    ? 0x3f80
                                                      : ~0u;
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    uint32_t bits = combined(w, i, tested(w, i));
    uint32_t *to = w.row<uint32_t>(i.op[0]);
    for (uint32_t left = mask; left; left &= left - 1) {
      auto l = static_cast<unsigned>(std::countr_zero(left));
      to[l] = (bits >> l & 1) ? i.aux : 0;
    }
  };
  return true;
}

template <typename T> void selectRows(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t choice = w.predicate(i.op[3]);
  if (i.aux)
    choice = ~choice;
  const T *a = w.row<T>(i.op[1]), *b = w.row<T>(i.op[2]);
  T *to = w.row<T>(i.op[0]);
  if (mask == kAllLanes) {
    NOVA_LANES to[l] = (choice >> l & 1) ? a[l] : b[l];
    return;
  }
  alignas(64) T values[kLanes];
  NOVA_LANES values[l] = (choice >> l & 1) ? a[l] : b[l];
  store(to, values, mask);
}

bool decodeSelp(Decoder &d) {
  TypeMod t = d.type();
  d.expectCount(4, 4);
  bool negated = false;
  if (t.kind == 'p') {
    d.fail("type pred");
  }
  d.out.op[0] = d.target(0, t.bits);
  d.out.op[1] = d.source(1, t);
  d.out.op[2] = d.source(2, t);
  d.out.op[3] = d.predicate(d.operand(3), negated);
  d.out.aux = negated;
  d.out.run = t.bits == 64 ? selectRows<uint64_t> : selectRows<uint32_t>;
  return true;
}

/// ISA 9.7.6.4: by the sign of the third operand; NaN selects the second.
bool decodeSlct(Decoder &d) {
  bool ftz = d.take("ftz");
  TypeMod t = d.type(), by = d.type();
  d.expectCount(4, 4);
  d.out.op[0] = d.target(0, t.bits);
  d.out.op[1] = d.source(1, t);
  d.out.op[2] = d.source(2, t);
  d.out.op[3] = d.source(3, by);
  if (by.bits != 32)
    d.fail("type " + std::string(by.name));
  d.out.aux = (by.kind == 'f' ? 1 : 0) | (ftz ? 2 : 0);
  auto make = []<typename T>() -> Handler {
    return [](Warp &w, const Inst &i, uint32_t mask) {
      const T *a = w.row<T>(i.op[1]), *b = w.row<T>(i.op[2]);
      const uint32_t *c = w.row<uint32_t>(i.op[3]);
      T *to = w.row<T>(i.op[0]);
      for (uint32_t left = mask; left; left &= left - 1) {
        auto l = static_cast<unsigned>(std::countr_zero(left));
        float f = std::bit_cast<float>(c[l]);
        bool first = (i.aux & 1) ? ((i.aux & 2) ? flush(f) : f) >= 0
                                 : static_cast<int32_t>(c[l]) >= 0;
        to[l] = first ? a[l] : b[l];
      }
    };
  };
  d.out.run =
      t.bits == 64 ? make.operator()<uint64_t>() : make.operator()<uint32_t>();
  return true;
}

} // namespace

void nova::sim::addCompareInstructions(InstructionTable &table) {
  table.add("setp", decodeSetp);
  table.add("set", decodeSet);
  table.add("selp", decodeSelp);
  table.add("slct", decodeSlct);
}
