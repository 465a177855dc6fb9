//===- Convert.cpp - cvt
//---------------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.9.21. Source and result registers may be wider than the types:
// what is above a source is ignored, a result is extended as its type says.
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"
#include "../Numbers.h"

#include <algorithm>
#include <limits>

using namespace nova::sim;

namespace {

enum Format : uint8_t { F64, F32, Tf32, F16, Bf16 };

/// Inst::aux, packed: what a conversion is.
struct How {
  uint8_t from, to; ///< Formats, or bits of integers.
  bool fromSigned, toSigned;
  Rounding rounding;
  bool ftz, sat, relu, wideFrom, wideTo; ///< wide: rows of 64 bits.
  uint32_t pack() const {
    return from | uint32_t(to) << 8 | uint32_t(fromSigned) << 16 |
           uint32_t(toSigned) << 17 | uint32_t(rounding) << 18 |
           uint32_t(ftz) << 21 | uint32_t(sat) << 22 | uint32_t(relu) << 23 |
           uint32_t(wideFrom) << 24 | uint32_t(wideTo) << 25;
  }
  static How unpack(uint32_t v) {
    return {uint8_t(v),        uint8_t(v >> 8),       bool(v >> 16 & 1),
            bool(v >> 17 & 1), Rounding(v >> 18 & 7), bool(v >> 21 & 1),
            bool(v >> 22 & 1), bool(v >> 23 & 1),     bool(v >> 24 & 1),
            bool(v >> 25 & 1)};
  }
};

std::optional<Format> formatOf(const TypeMod &t) {
  if (t.kind == 'f')
    return t.bits == 64 ? F64 : t.bits == 32 ? F32 : F16;
  if (t.kind == 'h')
    return Bf16;
  if (t.kind == 't')
    return Tf32;
  return std::nullopt;
}

double readFloat(uint8_t format, uint64_t bits, bool ftz) {
  switch (format) {
  case F64:
    return std::bit_cast<double>(bits);
  case F32:
  case Tf32: {
    float v = std::bit_cast<float>(static_cast<uint32_t>(bits));
    return ftz ? flush(v) : v;
  }
  case F16:
    return fromHalf(static_cast<uint16_t>(bits));
  default:
    return fromBfloat(static_cast<uint16_t>(bits));
  }
}

/// The NaN that an H200 makes of one: float64 and bfloat16 keep sign and
/// payload, made quiet, as far as there is room; others give the NaN of all
/// arithmetic.
uint64_t writeNan(const How &how, uint64_t bits) {
  uint64_t sign = bits >> 63, payload = bits & ((uint64_t(1) << 52) - 1);
  if (how.from == F64 && how.to == F32)
    return sign << 31 | 0x7fc00000 | payload >> 29;
  if (how.from == F64 && how.to == F16)
    return sign << 15 | 0x7e00 | payload >> 42;
  if (how.from == Bf16 && how.to == F32)
    return bits << 16 & 0xffffffff;
  if (how.from == F16 && how.to == F64)
    return (bits & 0x8000) << 48 | uint64_t(0x7ff8) << 48 |
           (bits & 0x3ff) << 42;
  switch (how.to) {
  case F64:
    if (how.from == F32 && !how.ftz)
      return std::bit_cast<uint64_t>(
          double(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    return how.from == F64 ? bits | uint64_t(1) << 51 : 0x7fffffffe0000000;
  case F32:
    return kNan32;
  case Tf32:
    return how.rounding == Rounding::Rna ? bits & ~uint64_t(0x1fff) & 0xffffffff
                                         : kNan32 & ~uint32_t(0x1fff);
  default:
    return kNan16;
  }
}

uint64_t writeFloat(uint8_t format, double v, const How &how) {
  // ISA 9.7.9.21: .sat is [0, 1] with NaN to +0; .relu the same from below but
  // keeps NaN.
  if (how.sat)
    v = saturate(v);
  if (how.relu && (v < 0 || (v == 0 && std::signbit(v))))
    v = 0;
  switch (format) {
  case F64:
    return std::bit_cast<uint64_t>(v);
  case F32: {
    float f = toFloat(v, how.rounding);
    return std::bit_cast<uint32_t>(how.ftz ? flush(f) : f);
  }
  case Tf32:
    // The layout of float32 with 13 bits fewer.
    return roundTo<10, 8>(v, how.rounding) << 13;
  case F16:
    return toHalf(v, how.rounding);
  default:
    return toBfloat(v, how.rounding);
  }
}

/// Rounded to an integer.
double integral(double v, Rounding mode) {
  switch (mode) {
  case Rounding::Rz:
    return std::trunc(v);
  case Rounding::Rm:
    return std::floor(v);
  case Rounding::Rp:
    return std::ceil(v);
  default:
    return std::nearbyint(v);
  }
}

uint64_t readRow(Warp &w, uint32_t row, unsigned lane, bool wide) {
  return wide ? w.row<uint64_t>(row)[lane] : w.row<uint32_t>(row)[lane];
}
void writeRow(Warp &w, uint32_t row, unsigned lane, bool wide, uint64_t value) {
  if (wide)
    w.row<uint64_t>(row)[lane] = value;
  else
    w.row<uint32_t>(row)[lane] = static_cast<uint32_t>(value);
}

template <typename F>
void eachLane(Warp &w, const Inst &i, uint32_t mask, F f) {
  How how = How::unpack(i.aux);
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    writeRow(w, i.op[0], l, how.wideTo,
             f(how, readRow(w, i.op[1], l, how.wideFrom)));
  }
}

uint64_t extend(uint64_t bits, unsigned width, bool isSigned) {
  if (width >= 64)
    return bits;
  uint64_t mask = (uint64_t(1) << width) - 1;
  bits &= mask;
  return isSigned && (bits >> (width - 1)) ? bits | ~mask : bits;
}

void integerToInteger(Warp &w, const Inst &i, uint32_t mask) {
  eachLane(w, i, mask, [](const How &how, uint64_t bits) {
    uint64_t v = extend(bits, how.from, how.fromSigned);
    if (how.sat) {
      auto wide = how.fromSigned
                      ? static_cast<__int128>(static_cast<int64_t>(v))
                      : static_cast<__int128>(v);
      __int128 most = (static_cast<__int128>(1) << (how.to - how.toSigned)) - 1;
      __int128 least = how.toSigned ? -most - 1 : 0;
      v = static_cast<uint64_t>(std::clamp(wide, least, most));
    }
    return extend(v, how.to, how.toSigned);
  });
}

void floatToInteger(Warp &w, const Inst &i, uint32_t mask) {
  eachLane(w, i, mask, [](const How &how, uint64_t bits) -> uint64_t {
    double v = readFloat(how.from, bits, how.ftz);
    if (v != v)
      return how.from == F64 || how.to == 64
                 ? extend(uint64_t(1) << (how.to - 1), how.to, how.toSigned)
                 : 0;
    v = integral(v, how.rounding);
    double most = std::ldexp(1.0, how.to - how.toSigned);
    uint64_t top = how.to - how.toSigned == 64
                       ? ~uint64_t(0)
                       : (uint64_t(1) << (how.to - how.toSigned)) - 1;
    if (v >= most)
      return top;
    if (how.toSigned)
      return v < -most ? ~top : static_cast<uint64_t>(static_cast<int64_t>(v));
    return v <= 0 ? 0 : static_cast<uint64_t>(v);
  });
}

void integerToFloat(Warp &w, const Inst &i, uint32_t mask) {
  eachLane(w, i, mask, [](const How &how, uint64_t bits) {
    uint64_t v = extend(bits, how.from, how.fromSigned);
    auto exact = how.fromSigned ? static_cast<__int128>(static_cast<int64_t>(v))
                                : static_cast<__int128>(v);
    // Rounded to odd, unless double is the goal.
    auto nearest = static_cast<double>(exact);
    auto error = static_cast<double>(exact - static_cast<__int128>(nearest));
    if (how.to == F64) {
      double r = nearest;
      bool below = error > 0; // nearest lies below the exact value.
      if (error != 0) {
        bool wantUp = how.rounding == Rounding::Rp ||
                      (how.rounding == Rounding::Rz && exact < 0);
        bool wantDown = how.rounding == Rounding::Rm ||
                        (how.rounding == Rounding::Rz && exact > 0);
        if (wantUp && below)
          r = std::nextafter(r, INFINITY);
        if (wantDown && !below)
          r = std::nextafter(r, -INFINITY);
      }
      return std::bit_cast<uint64_t>(r);
    }
    return writeFloat(how.to, toOdd(nearest, error), how);
  });
}

void floatToFloat(Warp &w, const Inst &i, uint32_t mask) {
  eachLane(w, i, mask, [](const How &how, uint64_t bits) {
    double v = readFloat(how.from, bits, how.ftz);
    return v != v && !how.sat ? writeNan(how, bits)
                              : writeFloat(how.to, v, how);
  });
}

void floatToIntegral(Warp &w, const Inst &i, uint32_t mask) {
  eachLane(w, i, mask, [](How how, uint64_t bits) {
    double v = integral(readFloat(how.from, bits, how.ftz), how.rounding);
    if (v != v && !how.sat)
      return writeNan(how, bits);
    how.rounding = Rounding::Rn;
    return writeFloat(how.to, v, how);
  });
}

/// d = {a to the upper, b to the lower half}.
void pairOfFloats(Warp &w, const Inst &i, uint32_t mask) {
  How how = How::unpack(i.aux);
  const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]);
  uint32_t *to = w.row<uint32_t>(i.op[0]);
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    auto half = [&](uint32_t bits) {
      double v = readFloat(F32, bits, false);
      return static_cast<uint32_t>(v != v && !how.sat
                                       ? writeNan(how, bits)
                                       : writeFloat(how.to, v, how));
    };
    to[l] = half(a[l]) << 16 | half(b[l]);
  }
}

Rounding takeRounding(Decoder &d, bool &integer) {
  static constexpr std::pair<std::string_view, Rounding> names[] = {
      {"rn", Rounding::Rn},  {"rz", Rounding::Rz},   {"rm", Rounding::Rm},
      {"rp", Rounding::Rp},  {"rna", Rounding::Rna}, {"rni", Rounding::Rn},
      {"rzi", Rounding::Rz}, {"rmi", Rounding::Rm},  {"rpi", Rounding::Rp}};
  integer = false;
  for (auto [name, mode] : names)
    if (d.take(name)) {
      integer = name.size() == 3 && name != "rna";
      return mode;
    }
  return Rounding::Rn;
}

bool decodeCvt(Decoder &d) {
  if (d.take("pack"))
    d.fail("cvt.pack");
  bool integer = false;
  How how{};
  how.rounding = takeRounding(d, integer);
  how.relu = d.take("relu");
  if (d.take("satfinite"))
    d.fail(".satfinite");
  how.ftz = d.take("ftz");
  how.sat = d.take("sat");
  TypeMod to = d.type(), from = d.type();
  auto toFormat = formatOf(to), fromFormat = formatOf(from);
  if (to.kind == 'p' || from.kind == 'p' || from.packed ||
      (!toFormat && !to.isInteger()) || (!fromFormat && !from.isInteger()))
    d.fail("types " + std::string(to.name) + " and " + std::string(from.name));
  how.toSigned = to.kind == 's', how.fromSigned = from.kind == 's';
  how.to = toFormat ? uint8_t(*toFormat) : static_cast<uint8_t>(to.bits);
  how.from =
      fromFormat ? uint8_t(*fromFormat) : static_cast<uint8_t>(from.bits);
  if (to.packed) {
    if (!toFormat || from.kind != 'f' || from.bits != 32)
      d.fail("types " + std::string(to.name) + " and " +
             std::string(from.name));
    d.expectCount(3, 3);
    d.out.op[0] = d.target(0, 32);
    d.out.op[1] = d.source(1, from);
    d.out.op[2] = d.source(2, from);
    d.out.aux = how.pack();
    d.out.run = pairOfFloats;
    return true;
  }
  d.expectCount(2, 2);
  const auto &source = d.operand(1);
  unsigned sourceWidth = d.widthOf(source);
  if (sourceWidth && sourceWidth < from.bits)
    d.fail("a source of " + std::to_string(sourceWidth) + " bits");
  TypeMod row = from;
  if (sourceWidth)
    row = {'b', sourceWidth, false, "b"};
  d.out.op[1] = d.source(source, row);
  how.wideFrom = sourceWidth ? sourceWidth == 64 : from.bits == 64;
  d.out.op[0] = d.target(0, 0);
  unsigned targetWidth = d.widthOf(d.operand(0));
  if (targetWidth && targetWidth < to.bits)
    d.fail("a result of " + std::to_string(targetWidth) + " bits");
  how.wideTo = targetWidth ? targetWidth == 64 : to.bits == 64;
  d.out.aux = how.pack();
  if (!toFormat && !fromFormat) {
    d.out.run = integerToInteger;
    if (!how.sat) {
      // The common ones, by whole rows.
      if (how.wideTo && !how.wideFrom && from.bits == 32 && to.bits == 64)
        d.out.run = how.fromSigned
                        ? handler<int64_t, int32_t>(
                              [](int32_t v) { return int64_t(v); })
                        : handler<uint64_t, uint32_t>(
                              [](uint32_t v) { return uint64_t(v); });
      else if (!how.wideTo && how.wideFrom && to.bits == 32 && from.bits == 64)
        d.out.run = handler<uint32_t, uint64_t>(
            [](uint64_t v) { return static_cast<uint32_t>(v); });
    }
  } else if (!toFormat) {
    d.out.run = floatToInteger;
  } else if (!fromFormat) {
    d.out.run = integerToFloat;
  } else if (integer) {
    d.out.run = floatToIntegral;
  } else {
    d.out.run = floatToFloat;
    if (*toFormat == Tf32 && how.rounding == Rounding::Rna && !how.relu)
      d.out.run = handler<uint32_t, uint32_t>([](uint32_t v) {
        uint32_t r = (v + 0x1000) & ~uint32_t(0x1fff);
        bool special = (v & 0x7f800000) == 0x7f800000;
        return special ? v & ~uint32_t(0x1fff) : r;
      });
    else if (*toFormat == F64 && *fromFormat == F32 && !how.sat && !how.ftz)
      d.out.run = handler<double, float>([](float v) { return double(v); });
    else if (*toFormat == F32 && *fromFormat == F64 && !how.sat && !how.ftz &&
             how.rounding == Rounding::Rn)
      d.out.run = handler<uint32_t, double>([](double v) {
        uint64_t bits = std::bit_cast<uint64_t>(v);
        auto nan = static_cast<uint32_t>(bits >> 63 << 31 | 0x7fc00000 |
                                         (bits << 12 >> 41));
        return v != v ? nan : std::bit_cast<uint32_t>(static_cast<float>(v));
      });
  }
  return true;
}

} // namespace

void nova::sim::addConvertInstructions(InstructionTable &table) {
  table.add("cvt", decodeCvt);
}
