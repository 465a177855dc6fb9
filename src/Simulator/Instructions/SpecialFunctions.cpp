//===- SpecialFunctions.cpp - ex2 lg2 sin cos tanh rsqrt, approximate -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.3.14 to 9.7.3.20 document a largest error of each: ex2 2 ulp, lg2
// 2^-22 absolute near 1 and relative elsewhere, sin and cos 2^-20.5 absolute in
// [-2 pi, 2 pi], tanh 2^-11 relative, rsqrt 2 ulp, rcp.approx.ftz.f64 the upper
// 20 bits of the significand. Here each is the double function rounded: a
// device's result lies within the documented error of it, and so within that
// of the truth.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"
#include "../Numbers.h"

using namespace nova::sim;

namespace {

enum Function : uint32_t { Ex2, Lg2, Sin, Cos, Tanh, Rsqrt };

double compute(uint32_t f, double x) {
  switch (f) {
  case Ex2:
    return std::exp2(x);
  case Lg2:
    return std::log2(x);
  case Sin:
    return std::sin(x);
  case Cos:
    return std::cos(x);
  case Tanh:
    return std::tanh(x);
  default:
    return 1 / std::sqrt(x);
  }
}

std::optional<uint32_t> functionOf(std::string_view root) {
  static constexpr std::string_view names[] = {"ex2", "lg2",  "sin",
                                               "cos", "tanh", "rsqrt"};
  for (uint32_t k = 0; k < 6; ++k)
    if (names[k] == root)
      return k;
  return std::nullopt;
}

double flushed(double x) {
  return std::fabs(x) < 0x1p-1022 ? std::copysign(0.0, x) : x;
}

bool decode(Decoder &d) {
  uint32_t f = *functionOf(d.root);
  if (!d.take("approx"))
    d.fail("expected .approx");
  bool ftz = d.take("ftz");
  TypeMod t = d.type();
  operands(d, t, 1);
  d.out.aux =
      f | (ftz ? 16 : 0) | (t.kind == 'h' ? 32 : 0) | (t.packed ? 64 : 0);
  if (t.bits == 64) {
    if (f != Rsqrt)
      d.fail("type f64");
    // ISA 9.7.3.17: rsqrt.approx.ftz.f64 has the lower 32 bits zero.
    if (ftz)
      d.out.run = handler<uint64_t, double>([](double x) {
        double r = 1 / std::sqrt(flushed(x));
        return std::bit_cast<uint64_t>(r) & ~uint64_t(0xffffffff);
      });
    else
      d.out.run =
          handler<double, double>([](double x) { return 1 / std::sqrt(x); });
    return true;
  }
  if (t.bits == 32)
    d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
      const uint32_t *a = w.row<uint32_t>(i.op[1]);
      uint32_t *to = w.row<uint32_t>(i.op[0]);
      for (uint32_t left = mask; left; left &= left - 1) {
        auto l = static_cast<unsigned>(std::countr_zero(left));
        float x = std::bit_cast<float>(a[l]);
        if (i.aux & 16)
          x = flush(x);
        float r = canonical(static_cast<float>(compute(i.aux & 15, x)));
        to[l] = std::bit_cast<uint32_t>((i.aux & 16) ? flush(r) : r);
      }
    };
  else
    d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
      const uint32_t *a = w.row<uint32_t>(i.op[1]);
      uint32_t *to = w.row<uint32_t>(i.op[0]);
      for (uint32_t left = mask; left; left &= left - 1) {
        auto l = static_cast<unsigned>(std::countr_zero(left));
        uint32_t r = 0;
        for (unsigned h = 0; h < ((i.aux & 64) ? 32u : 16u); h += 16) {
          auto bits = static_cast<uint16_t>(a[l] >> h);
          bool bf = i.aux & 32;
          double y =
              compute(i.aux & 15, bf ? fromBfloat(bits) : fromHalf(bits));
          r |= uint32_t(bf ? toBfloat(y) : toHalf(y)) << h;
        }
        to[l] = r;
      }
    };
  return true;
}

/// ISA 9.7.3.13: the quotient's upper 32 bits, the lower ones zero.
bool decodeRcp64(Decoder &d) {
  d.take("approx");
  d.take("ftz");
  TypeMod t = d.type();
  operands(d, t, 1);
  d.out.run = handler<uint64_t, double>([](double x) {
    double r = 1 / flushed(x);
    uint64_t bits = std::bit_cast<uint64_t>(r) & ~uint64_t(0xffffffff);
    bool subnormal = !(bits & 0x7ff0000000000000);
    return subnormal ? bits & (uint64_t(1) << 63) : bits;
  });
  return true;
}

} // namespace

void nova::sim::addSpecialFunctionInstructions(InstructionTable &table) {
  for (const char *root : {"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"})
    table.add(root, decode);
  table.add("rcp", decodeRcp64);
}
