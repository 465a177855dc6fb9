//===- Float.cpp - Arithmetic of float32 and float64 ----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.3: add sub mul fma mad div rcp sqrt neg abs min max copysign
// testp. All are IEEE 754 in the rounding they name; .approx and .full
// (9.7.3.8, documented to 2 ulp) are computed as if they were .rn.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"
#include "../Numbers.h"

#include <cfenv>

using namespace nova::sim;

namespace {

struct Modes {
  Rounding rounding = Rounding::Rn;
  bool ftz = false, sat = false;
};

Modes takeModes(Decoder &d) {
  Modes m;
  if (d.take("rz"))
    m.rounding = Rounding::Rz;
  else if (d.take("rm"))
    m.rounding = Rounding::Rm;
  else if (d.take("rp"))
    m.rounding = Rounding::Rp;
  else
    d.take("rn");
  m.ftz = d.take("ftz");
  m.sat = d.take("sat");
  return m;
}

bool isFloat(const Decoder &d) {
  size_t dot = d.in.opcode.rfind('.');
  auto t = typeModifier(d.in.opcode.substr(dot + 1));
  return t && t->kind == 'f' && t->bits >= 32;
}

/// A float32 result from one that is exact or rounded to odd.
float rounded(double value, const Inst &i) {
  return toFloat(value, static_cast<Rounding>(i.aux & 7));
}

enum class Op { Add, Sub, Mul, Fma, Div, Rcp, Sqrt };

template <Op O> double exactOrOdd(double a, double b, double c, Rounding mode) {
  switch (O) {
  case Op::Add:
    return addOdd(a, b, mode);
  case Op::Sub:
    return addOdd(a, -b, mode);
  case Op::Mul:
    return a * b;
  case Op::Fma:
    return addOdd(a * b, c, mode);
  case Op::Rcp:
    b = a, a = 1;
    [[fallthrough]];
  case Op::Div: {
    double q = a / b;
    if (!std::isfinite(q) || q == 0 || std::isinf(b))
      return q;
    double rest = std::fma(-q, b, a);
    return toOdd(q, b > 0 ? rest : -rest);
  }
  case Op::Sqrt: {
    double q = std::sqrt(a);
    return q > 0 && std::isfinite(q) ? toOdd(q, std::fma(-q, q, a)) : q;
  }
  }
}

template <Op O, typename T> T nearest(T a, T b, T c) {
  switch (O) {
  case Op::Add:
    return a + b;
  case Op::Sub:
    return a - b;
  case Op::Mul:
    return a * b;
  case Op::Fma:
    return std::fma(a, b, c);
  case Op::Div:
    return a / b;
  case Op::Rcp:
    return T(1) / a;
  case Op::Sqrt:
    return std::sqrt(a);
  }
}

/// aux: rounding, 8 ftz, 16 sat.
template <Op O> void directed32(Warp &w, const Inst &i, uint32_t mask) {
  auto mode = static_cast<Rounding>(i.aux & 7);
  const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]),
                 *c = w.row<uint32_t>(i.op[3]);
  alignas(64) uint32_t values[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    auto in = [&](const uint32_t *row) {
      float v = std::bit_cast<float>(row[l]);
      return (i.aux & 8) ? flush(v) : v;
    };
    float r = canonical(rounded(exactOrOdd<O>(in(a), in(b), in(c), mode), i));
    if (i.aux & 8)
      r = flush(r);
    if (i.aux & 16)
      r = saturate(r);
    values[l] = std::bit_cast<uint32_t>(r);
  }
  store(w.row<uint32_t>(i.op[0]), values, mask);
}

/// Directed rounding of float64: there is no wider format to go through.
template <Op O> void directed64(Warp &w, const Inst &i, uint32_t mask) {
  auto mode = static_cast<Rounding>(i.aux & 7);
  const uint64_t *a = w.row<uint64_t>(i.op[1]), *b = w.row<uint64_t>(i.op[2]),
                 *c = w.row<uint64_t>(i.op[3]);
  alignas(64) uint64_t values[kLanes];
  int before = std::fegetround();
  std::fesetround(mode == Rounding::Rz   ? FE_TOWARDZERO
                  : mode == Rounding::Rm ? FE_DOWNWARD
                                         : FE_UPWARD);
  for (unsigned l = 0; l < kLanes; ++l) {
    // volatile: the compiler takes rounding to be to nearest and might compute
    // before the mode is set.
    volatile double x = std::bit_cast<double>(a[l]),
                    y = std::bit_cast<double>(b[l]),
                    z = std::bit_cast<double>(c[l]);
    volatile double r = nearest<O, double>(x, y, z);
    values[l] = std::bit_cast<uint64_t>(static_cast<double>(r));
  }
  std::fesetround(before);
  store(w.row<uint64_t>(i.op[0]), values, mask);
}

template <Op O, typename T, bool Ftz, bool Sat> Handler toNearest() {
  auto finish = [](T r) {
    r = canonical(r);
    if constexpr (Ftz)
      r = flush(r);
    if constexpr (Sat)
      r = saturate(r);
    return r;
  };
  using Finish = decltype(finish);
  auto in = [](T v) { return Ftz ? flush(v) : v; };
  using In = decltype(in);
  if constexpr (O == Op::Fma)
    return handler<T, T, T, T>([](T a, T b, T c) {
      return Finish()(nearest<O, T>(In()(a), In()(b), In()(c)));
    });
  else if constexpr (O == Op::Rcp || O == Op::Sqrt)
    return handler<T, T>(
        [](T a) { return Finish()(nearest<O, T>(In()(a), T(0), T(0))); });
  else
    return handler<T, T, T>([](T a, T b) {
      return Finish()(nearest<O, T>(In()(a), In()(b), T(0)));
    });
}

template <Op O> void choose(Decoder &d, const TypeMod &t, const Modes &m) {
  constexpr unsigned sources = O == Op::Fma                    ? 3
                               : O == Op::Rcp || O == Op::Sqrt ? 1
                                                               : 2;
  operands(d, t, sources);
  if (m.rounding != Rounding::Rn) {
    for (unsigned k = sources + 1; k <= 3; ++k)
      d.out.op[k] = d.out.op[1];
    d.out.aux =
        static_cast<uint32_t>(m.rounding) | (m.ftz ? 8 : 0) | (m.sat ? 16 : 0);
    d.out.run = t.bits == 32 ? directed32<O> : directed64<O>;
    return;
  }
  if (t.bits == 64) {
    if (m.ftz || m.sat)
      d.fail(".ftz or .sat of .f64");
    d.out.run = toNearest<O, double, false, false>();
  } else if (m.ftz) {
    d.out.run = m.sat ? toNearest<O, float, true, true>()
                      : toNearest<O, float, true, false>();
  } else {
    d.out.run = m.sat ? toNearest<O, float, false, true>()
                      : toNearest<O, float, false, false>();
  }
}

/// ISA 9.7.3.8: a times the reciprocal of b, which is 0 for a large b.
template <bool Ftz> Handler approximateQuotient() {
  return handler<float, float, float>([](float a, float b) {
    if constexpr (Ftz)
      a = flush(a), b = flush(b);
    float size = std::fabs(b);
    float zero = std::copysign(0.0f, b);
    float r = size > 0x1p126f && size <= 0x1.fffffep127f ? a * zero : a / b;
    r = canonical(r);
    return Ftz ? flush(r) : r;
  });
}

bool decodeArithmetic(Decoder &d) {
  if (!isFloat(d))
    return false;
  bool approximate = d.take("approx");
  if (!approximate)
    d.take("full");
  Modes m = takeModes(d);
  TypeMod t = d.type();
  if (t.packed)
    d.fail("packed float32");
  if (d.root == "add")
    choose<Op::Add>(d, t, m);
  else if (d.root == "sub")
    choose<Op::Sub>(d, t, m);
  else if (d.root == "mul")
    choose<Op::Mul>(d, t, m);
  else if (d.root == "fma" || d.root == "mad")
    choose<Op::Fma>(d, t, m);
  else if (d.root == "div") {
    choose<Op::Div>(d, t, m);
    if (approximate)
      d.out.run =
          m.ftz ? approximateQuotient<true>() : approximateQuotient<false>();
  } else if (d.root == "rcp") {
    if (approximate && t.bits == 64)
      return false; // rcp.approx.ftz.f64: SpecialFunctions.cpp
    choose<Op::Rcp>(d, t, m);
  } else {
    choose<Op::Sqrt>(d, t, m);
  }
  return true;
}

/// A NaN comes out as from any arithmetic; of float64 it stays as it is.
template <typename T, bool Neg, bool Ftz> T withSign(T v) {
  using U = typename Unsigned<T>::type;
  constexpr U top = U(1) << (8 * sizeof(T) - 1);
  U bits = std::bit_cast<U>(Ftz ? flush(v) : v);
  T r = std::bit_cast<T>(static_cast<U>(Neg ? bits ^ top : bits & ~top));
  return v != v ? canonical(Neg ? v : r) : r;
}

bool decodeSign(Decoder &d) {
  if (!isFloat(d))
    return false;
  bool ftz = d.take("ftz");
  TypeMod t = d.type();
  operands(d, t, 1);
  bool neg = d.root == "neg";
  if (t.bits == 64)
    d.out.run = neg ? handler<double, double>([](double v) {
      return withSign<double, true, false>(v);
    })
                    : handler<double, double>([](double v) {
                        return withSign<double, false, false>(v);
                      });
  else if (ftz)
    d.out.run = neg ? handler<float, float>([](float v) {
      return withSign<float, true, true>(v);
    })
                    : handler<float, float>([](float v) {
                        return withSign<float, false, true>(v);
                      });
  else
    d.out.run = neg ? handler<float, float>([](float v) {
      return withSign<float, true, false>(v);
    })
                    : handler<float, float>([](float v) {
                        return withSign<float, false, false>(v);
                      });
  return true;
}

/// ISA 9.7.3.11: -0 is less than +0; a NaN loses against a number unless .NaN.
template <typename T, bool Max, bool Ftz, bool Nan> T least(T a, T b) {
  if constexpr (Ftz)
    a = flush(a), b = flush(b);
  bool aFirst = Max ? a > b : a < b;
  bool equal = a == b;
  bool negative = std::signbit(a);
  T r = aFirst || (equal && negative != Max) ? a : b;
  bool aNan = a != a, bNan = b != b;
  if constexpr (Nan)
    return aNan || bNan ? canonical(a + b) : r;
  r = bNan ? a : r;
  r = aNan ? b : r;
  return aNan && bNan ? canonical(a) : r;
}

template <typename T, bool Max> Handler leastHandler(bool ftz, bool nan) {
  if (ftz)
    return nan ? handler<T, T, T>(
                     [](T a, T b) { return least<T, Max, true, true>(a, b); })
               : handler<T, T, T>(
                     [](T a, T b) { return least<T, Max, true, false>(a, b); });
  return nan ? handler<T, T, T>(
                   [](T a, T b) { return least<T, Max, false, true>(a, b); })
             : handler<T, T, T>(
                   [](T a, T b) { return least<T, Max, false, false>(a, b); });
}

bool decodeMinMax(Decoder &d) {
  if (!isFloat(d))
    return false;
  bool ftz = d.take("ftz"), nan = d.take("NaN");
  TypeMod t = d.type();
  operands(d, t, 2);
  bool max = d.root == "max";
  if (t.bits == 64)
    d.out.run = max ? leastHandler<double, true>(false, nan)
                    : leastHandler<double, false>(false, nan);
  else
    d.out.run = max ? leastHandler<float, true>(ftz, nan)
                    : leastHandler<float, false>(ftz, nan);
  return true;
}

/// ISA 9.7.3.2: the sign of a, the rest of b.
bool decodeCopysign(Decoder &d) {
  TypeMod t = d.type();
  operands(d, t, 2);
  if (t.bits == 64)
    d.out.run =
        handler<uint64_t, uint64_t, uint64_t>([](uint64_t a, uint64_t b) {
          constexpr uint64_t top = uint64_t(1) << 63;
          return (a & top) | (b & ~top);
        });
  else
    d.out.run =
        handler<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b) {
          return (a & 0x80000000) | (b & 0x7fffffff);
        });
  return true;
}

template <typename T> bool hasProperty(unsigned which, T v) {
  bool subnormal = v != 0 && std::fabs(v) < std::numeric_limits<T>::min();
  switch (which) {
  case 0:
    return std::isfinite(v);
  case 1:
    return std::isinf(v);
  case 2:
    return v == v;
  case 3:
    return v != v;
  // ISA 9.7.3.1: zero is normal.
  case 4:
    return std::isfinite(v) && !subnormal;
  default:
    return subnormal;
  }
}

bool decodeTestp(Decoder &d) {
  static constexpr std::string_view names[] = {
      "finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  uint32_t which = 0;
  while (which < 6 && !d.take(names[which]))
    ++which;
  if (which == 6)
    d.fail("no property that the simulator knows");
  TypeMod t = d.type();
  d.expectCount(2, 2);
  d.out.op[0] = d.target(0, 1);
  d.out.op[1] = d.source(1, t);
  d.out.aux = which;
  auto make = []<typename T>() -> Handler {
    return [](Warp &w, const Inst &i, uint32_t mask) {
      const Lane<T> *a = w.row<Lane<T>>(i.op[1]);
      uint32_t bits = 0;
      for (unsigned l = 0; l < kLanes; ++l)
        bits |= uint32_t(hasProperty<T>(i.aux, fromLane<T>(a[l]))) << l;
      uint32_t &to = w.predicate(i.op[0]);
      to = (to & ~mask) | (bits & mask);
    };
  };
  d.out.run =
      t.bits == 64 ? make.operator()<double>() : make.operator()<float>();
  return true;
}

} // namespace

void nova::sim::addFloatInstructions(InstructionTable &table) {
  for (const char *root :
       {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt"})
    table.add(root, decodeArithmetic);
  table.add("neg", decodeSign);
  table.add("abs", decodeSign);
  table.add("min", decodeMinMax);
  table.add("max", decodeMinMax);
  table.add("copysign", decodeCopysign);
  table.add("testp", decodeTestp);
}
