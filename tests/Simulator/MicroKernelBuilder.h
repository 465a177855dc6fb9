//===- MicroKernelBuilder.h - Kernels and their inputs --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_SIMULATOR_MICROKERNELBUILDER_H
#define NOVA_TESTS_SIMULATOR_MICROKERNELBUILDER_H

#include "MicroKernels.h"

#include <iterator>

namespace micro {

class Random {
public:
  explicit Random(const std::string &name) {
    state = 0xcbf29ce484222325;
    for (char c : name)
      state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return next() % n; }

private:
  uint64_t state;
};

/// Bits of a float of the format from its exponent field's range.
struct Layout {
  unsigned significand, exponent;
};
inline Layout layoutOf(char format) {
  switch (format) {
  case 'h':
    return {10, 5};
  case 'b':
    return {7, 8};
  case 'd':
    return {52, 11};
  default:
    return {23, 8};
  }
}

/// A float: an edge, any bits at all, or of moderate size.
inline uint64_t floatBits(Random &r, char format) {
  Layout l = layoutOf(format);
  uint64_t sign = (r.next() & 1) << (l.significand + l.exponent);
  uint64_t ones = (uint64_t(1) << l.significand) - 1;
  uint64_t top = (uint64_t(1) << l.exponent) - 1, bias = top / 2;
  switch (r.below(8)) {
  case 0: {
    const uint64_t edges[] = {
        0,
        1,
        ones,
        uint64_t(1) << l.significand,
        (top << l.significand) - 1,
        top << l.significand,
        (top << l.significand) | (uint64_t(1) << (l.significand - 1)),
        bias << l.significand,
        (bias << l.significand) + 1,
        (bias << l.significand) - 1,
        (bias + 1) << l.significand,
        (bias - 1) << l.significand,
        (bias << l.significand) | (uint64_t(1) << (l.significand - 1))};
    return sign | edges[r.below(std::size(edges))];
  }
  case 1:
    return r.next() &
           ((sign ? sign << 1 : uint64_t(2) << (l.significand + l.exponent)) -
            1);
  case 2: // Few significant bits: ties.
    return sign | (bias - 4 + r.below(9)) << l.significand |
           (r.next() & ones & ~(ones >> 4));
  default:
    return sign | (bias - 8 + r.below(16)) << l.significand | (r.next() & ones);
  }
}

inline uint64_t integerBits(Random &r, unsigned bits) {
  uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  switch (r.below(4)) {
  case 0: {
    const uint64_t edges[] = {
        0, 1, 2, mask, mask - 1, mask >> 1, (mask >> 1) + 1, 31, 32, 33};
    return edges[r.below(std::size(edges))] & mask;
  }
  case 1:
    return (r.next() >> r.below(bits)) & mask;
  default:
    return r.next() & mask;
  }
}

/// A lane's operand, by a letter: i j k integers of 16, 32, 64 bits; h b s d
/// floats; H B pairs of 16-bit floats; n a small number; 0 to 7 a moderate
/// positive float32.
inline uint64_t draw(Random &r, char what) {
  switch (what) {
  case 'i':
    return integerBits(r, 16);
  case 'j':
    return integerBits(r, 32);
  case 'k':
    return integerBits(r, 64);
  case 'n':
    return r.below(70);
  case 'h':
  case 'b':
  case 's':
  case 'd':
    return floatBits(r, what);
  case 'H':
    return floatBits(r, 'h') | floatBits(r, 'h') << 16;
  case 'B':
    return floatBits(r, 'b') | floatBits(r, 'b') << 16;
  case 'P': // Pairs of finite float16 near 1: mma.
  case 'Q': {
    auto one = [&]() -> uint64_t {
      uint64_t sign = (r.next() & 1) << 15;
      return what == 'P' ? sign | (12 + r.below(6)) << 10 | (r.next() & 0x3ff)
                         : sign | (123 + r.below(8)) << 7 | (r.next() & 0x7f);
    };
    return one() | one() << 16;
  }
  case 'T': // float32 near 1.
    return (r.next() & 1) << 31 | (123 + r.below(8)) << 23 |
           (r.next() & 0x7fffff);
  case 'D':
    return (r.next() & 1) << 63 | (1019 + r.below(8)) << 52 |
           (r.next() & 0xfffffffffffff);
  default:
    return r.next();
  }
}

inline char registerOf(char what) {
  switch (what) {
  case 'i':
  case 'h':
  case 'b':
    return 'h'; // %h, 16 bits
  case 'k':
  case 'd':
  case 'D':
    return 'd'; // %d, 64 bits
  default:
    return 'r'; // %r, 32 bits
  }
}

inline std::string number(unsigned n) { return std::to_string(n); }

inline std::string wrap(const std::string &body, unsigned inputs,
                        unsigned outputs, const std::string &target,
                        const std::string &globals) {
  std::string s = ".version 8.0\n.target " + target + "\n.address_size 64\n" +
                  globals +
                  ".visible .entry micro(.param .u64 in, .param .u64 out)\n"
                  ".reqntid " +
                  number(kThreads) +
                  ", 1, 1\n{\n"
                  "  .reg .pred %p<10>;\n  .reg .b16 %h<20>;\n"
                  "  .reg .b32 %r<100>;\n  .reg .b64 %d<100>;\n"
                  "  mov.u32 %r90, %tid.x;\n"
                  "  ld.param.u64 %d90, [in];\n  ld.param.u64 %d91, [out];\n"
                  "  mad.wide.u32 %d90, %r90, " +
                  number(8 * inputs) +
                  ", %d90;\n"
                  "  mad.wide.u32 %d91, %r90, " +
                  number(8 * outputs) + ", %d91;\n";
  for (unsigned k = 0; k < inputs; ++k)
    s += "  ld.global.u64 %d" + number(k) + ", [%d90+" + number(8 * k) + "];\n";
  s += body;
  for (unsigned k = 0; k < outputs; ++k)
    s += "  st.global.u64 [%d91+" + number(8 * k) + "], %d" + number(50 + k) +
         ";\n";
  return s + "  ret;\n}\n";
}

class Builder {
public:
  std::vector<Case> all;

  /// `sources` names the operands' kinds, `result` that of the result (p for a
  /// predicate).
  void simple(const std::string &family, const std::string &instruction,
              char result, const std::string &sources, Tolerance tolerance = {},
              const std::string &target = "sm_80",
              const std::string &tail = "") {
    std::string body;
    std::string operands;
    for (unsigned k = 0; k < sources.size(); ++k) {
      char reg = registerOf(sources[k]);
      std::string name = std::string("%") + reg + number(k);
      if (reg == 'r')
        body += "  cvt.u32.u64 " + name + ", %d" + number(k) + ";\n";
      else if (reg == 'h')
        body += "  cvt.u16.u64 " + name + ", %d" + number(k) + ";\n";
      operands += ", " + name;
    }
    if (result == 'p') {
      body += "  " + instruction + " %p1" + operands + tail + ";\n" +
              "  selp.u64 %d50, 1, 0, %p1;\n";
    } else {
      char reg = registerOf(result);
      std::string name = std::string("%") + reg + "50";
      if (reg == 'h')
        name = "%h19";
      body += "  " + instruction + " " + name + operands + tail + ";\n";
      if (reg == 'r')
        body += "  cvt.u64.u32 %d50, " + name + ";\n";
      else if (reg == 'h')
        body += "  cvt.u64.u16 %d50, " + name + ";\n";
    }
    custom(family, instruction + tail, body, sources, 1, tolerance, target);
  }

  void custom(const std::string &family, const std::string &name,
              const std::string &body, const std::string &sources,
              unsigned outputs, Tolerance tolerance = {},
              const std::string &target = "sm_80",
              const std::string &globals = "") {
    Case c;
    c.name = name;
    c.family = family;
    c.inputs = static_cast<unsigned>(sources.size());
    c.outputs = outputs;
    c.ptx = wrap(body, c.inputs, outputs, target, globals);
    c.tolerance = tolerance;
    Random r(name);
    for (unsigned t = 0; t < kThreads; ++t)
      for (char what : sources)
        c.in.push_back(draw(r, what));
    all.push_back(std::move(c));
  }
};

const Tolerance kExact{};

/// mbarriers, tensor maps, products of warpgroups, clusters: HopperKernels.cpp.
void hopper(Builder &b);

} // namespace micro

#endif // NOVA_TESTS_SIMULATOR_MICROKERNELBUILDER_H
