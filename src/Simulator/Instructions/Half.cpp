//===- Half.cpp - Arithmetic of float16 and bfloat16, single and paired ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.4 (half precision): add sub mul fma neg abs min max, rounded
// once to nearest even.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"
#include "../Numbers.h"

using namespace nova::sim;

namespace {

enum Op : uint32_t { Add, Sub, Mul, Fma, Neg, Abs, Min, Max };
enum : uint32_t {
  kFtz = 16,
  kSat = 32,
  kNan = 64,
  kRelu = 128,
  kBf = 256,
  kPair = 512
};

uint16_t compute(uint32_t aux, uint16_t a, uint16_t b, uint16_t c) {
  bool bf = aux & kBf;
  auto in = [&](uint16_t v) -> double {
    // ISA 9.7.4: .ftz flushes subnormal float16.
    if ((aux & kFtz) && !(v & (bf ? 0x7f80 : 0x7c00)))
      v &= 0x8000;
    return bf ? fromBfloat(v) : fromHalf(v);
  };
  double x = in(a), y = in(b), r = 0;
  switch (aux & 15) {
  case Neg:
    return x != x ? kNan16 : static_cast<uint16_t>(a ^ 0x8000);
  case Abs:
    return x != x ? kNan16 : static_cast<uint16_t>(a & 0x7fff);
  case Add:
    r = addOdd(x, y, Rounding::Rn);
    break;
  case Sub:
    r = addOdd(x, -y, Rounding::Rn);
    break;
  case Mul:
    r = x * y;
    break;
  case Fma:
    r = addOdd(x * y, in(c), Rounding::Rn);
    break;
  default: {
    bool max = (aux & 15) == Max;
    if (x != x || y != y)
      r = (aux & kNan) || (x != x && y != y) ? NAN : x != x ? y : x;
    else
      r = (max ? x > y : x < y) || (x == y && std::signbit(x) != max) ? x : y;
  }
  }
  uint16_t bits = bf ? toBfloat(r) : toHalf(r);
  if ((aux & kFtz) && !(bits & (bf ? 0x7f80 : 0x7c00)))
    bits &= 0x8000;
  if (aux & kSat) {
    double v = saturate(bf ? double(fromBfloat(bits)) : double(fromHalf(bits)));
    bits = bf ? toBfloat(v) : toHalf(v);
  }
  if ((aux & kRelu) && r == r && (bits & 0x8000))
    bits = 0;
  return bits;
}

void run(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]),
                 *c = w.row<uint32_t>(i.op[3]);
  alignas(64) uint32_t values[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    auto part = [](uint32_t v, unsigned half) {
      return static_cast<uint16_t>(v >> (16 * half));
    };
    uint32_t r = 0;
    for (unsigned half = 0; half < ((i.aux & kPair) ? 2u : 1u); ++half)
      r |= uint32_t(compute(i.aux, part(a[l], half), part(b[l], half),
                            part(c[l], half)))
           << (16 * half);
    values[l] = r;
  }
  store(w.row<uint32_t>(i.op[0]), values, mask);
}

bool decode(Decoder &d) {
  size_t dot = d.in.opcode.rfind('.');
  auto last = typeModifier(d.in.opcode.substr(dot + 1));
  if (!last || (last->kind != 'f' && last->kind != 'h') || last->bits != 16)
    return false;
  static constexpr std::pair<std::string_view, uint32_t> ops[] = {
      {"add", Add}, {"sub", Sub}, {"mul", Mul}, {"fma", Fma},
      {"neg", Neg}, {"abs", Abs}, {"min", Min}, {"max", Max}};
  uint32_t aux = 0;
  for (auto [name, op] : ops)
    if (name == d.root)
      aux = op;
  unsigned sources = aux == Fma ? 3 : aux == Neg || aux == Abs ? 1 : 2;
  d.take("rn");
  aux |= d.take("ftz") ? uint32_t(kFtz) : 0;
  aux |= d.take("sat") ? uint32_t(kSat) : 0;
  aux |= d.take("NaN") ? uint32_t(kNan) : 0;
  aux |= d.take("relu") ? uint32_t(kRelu) : 0;
  TypeMod t = d.type();
  aux |= t.kind == 'h' ? uint32_t(kBf) : 0;
  aux |= t.packed ? uint32_t(kPair) : 0;
  operands(d, t, sources);
  for (unsigned k = sources + 1; k <= 3; ++k)
    d.out.op[k] = d.out.op[1];
  d.out.aux = aux;
  d.out.run = run;
  return true;
}

} // namespace

void nova::sim::addHalfInstructions(InstructionTable &table) {
  for (const char *root :
       {"add", "sub", "mul", "fma", "neg", "abs", "min", "max"})
    table.add(root, decode);
}
