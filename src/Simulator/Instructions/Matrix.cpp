//===- Matrix.cpp - ldmatrix stmatrix mma.sync
//-----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.14.5: mma (.14), ldmatrix (.15), stmatrix (.16), and the figures
// before them that say which lane holds which element.
//
// How sums are accumulated: ProductSums.h.
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"
#include "../Numbers.h"
#include "ProductSums.h"

#include <algorithm>

using namespace nova::sim;
using nova::sim::ptx::Operand;

namespace {

std::vector<uint32_t> rowsOf(Decoder &d, const Operand &o, unsigned count,
                             unsigned width, bool results) {
  std::vector<uint32_t> rows;
  size_t given = o.kind == Operand::List ? o.items.size() : 1;
  if (given != count)
    d.fail(std::to_string(given) + " registers, expected " +
           std::to_string(count));
  for (unsigned k = 0; k < count; ++k) {
    const Operand &item = o.kind == Operand::List ? o.items[k] : o;
    rows.push_back(results ? d.target(item, width)
                           : d.source(item, {'b', width, false, "b"}));
  }
  return rows;
}

// --- ldmatrix, stmatrix -----------------------------------------------------

/// aux: number of matrices | 256 transposed. Lane l of matrix m holds elements
/// (l/4, 2(l%4)) and (l/4, 2(l%4)+1); transposed, their mirror images.
void loadMatrices(Warp &w, const Inst &i, uint32_t) {
  for (unsigned m = 0; m < (i.aux & 255); ++m) {
    uint16_t element[8][8];
    for (unsigned r = 0; r < 8; ++r) {
      unsigned lane = 8 * m + r;
      uint64_t address = addressOf(w, i, 0, lane);
      resolve(AccessSpace::Shared, address);
      std::memcpy(element[r], readShared(w, lane, address, 16, true), 16);
    }
    uint32_t *to = w.row<uint32_t>(w.list(i)[m]);
    for (unsigned l = 0; l < kLanes; ++l) {
      unsigned r = l / 4, c = 2 * (l % 4);
      to[l] = (i.aux & 256) ? element[c][r] | uint32_t(element[c + 1][r]) << 16
                            : element[r][c] | uint32_t(element[r][c + 1]) << 16;
    }
  }
}

void storeMatrices(Warp &w, const Inst &i, uint32_t) {
  for (unsigned m = 0; m < (i.aux & 255); ++m) {
    uint16_t element[8][8];
    const uint32_t *from = w.row<uint32_t>(w.list(i)[m]);
    for (unsigned l = 0; l < kLanes; ++l) {
      unsigned r = l / 4, c = 2 * (l % 4);
      auto low = static_cast<uint16_t>(from[l]),
           high = static_cast<uint16_t>(from[l] >> 16);
      if (i.aux & 256)
        element[c][r] = low, element[c + 1][r] = high;
      else
        element[r][c] = low, element[r][c + 1] = high;
    }
    for (unsigned r = 0; r < 8; ++r) {
      unsigned lane = 8 * m + r;
      uint64_t address = addressOf(w, i, 0, lane);
      resolve(AccessSpace::Shared, address);
      writeShared(w, lane, address, 16,
                  reinterpret_cast<const uint8_t *>(element[r]), true);
    }
  }
}

bool decodeMatrixAccess(Decoder &d) {
  bool load = d.root == "ldmatrix";
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("no .sync.aligned");
  if (!d.take("m8n8"))
    d.fail("no shape that the simulator knows, expected .m8n8");
  unsigned count = d.take("x4") ? 4 : d.take("x2") ? 2 : d.take("x1") ? 1 : 0;
  if (!count)
    d.fail("no .x1, .x2 or .x4");
  bool transposed = d.take("trans");
  if (!d.take("shared"))
    d.take("shared::cta");
  if (!d.take("b16"))
    d.fail("no type that the simulator knows, expected .b16");
  d.expectCount(2, 2);
  d.out.list = d.addList(rowsOf(d, d.operand(load ? 0 : 1), count, 32, load));
  d.address(d.operand(load ? 1 : 0), 0);
  d.out.aux = count | (transposed ? 256 : 0);
  d.out.kind = Kind::Aligned;
  d.out.run = load ? loadMatrices : storeMatrices;
  d.sharedAccess(16);
  return true;
}

// --- mma.sync ---------------------------------------------------------------

enum class Multiplicand { F16, Bf16, Tf32, F64, U8, S8 };

/// A tf32 operand is a float32 whose low 13 bits the unit does not read.
float tf32(uint32_t bits) {
  return std::bit_cast<float>(bits & ~uint32_t(0x1fff));
}

/// The element of a register's part p.
template <Multiplicand T> float element(uint32_t bits, unsigned p) {
  if constexpr (T == Multiplicand::Tf32)
    return tf32(bits);
  else if constexpr (T == Multiplicand::F16)
    return fromHalf(static_cast<uint16_t>(bits >> (16 * p)));
  else if constexpr (T == Multiplicand::Bf16)
    return fromBfloat(static_cast<uint16_t>(bits >> (16 * p)));
  else if constexpr (T == Multiplicand::S8)
    return static_cast<int8_t>(bits >> (8 * p));
  else
    return static_cast<uint8_t>(bits >> (8 * p));
}

/// Rows of the list: D (4 or 2), A, B, C; aux is K. Lane 4g + t (figures of
/// 9.7.14.5), with P elements to a register: part p of register r is of A
/// (g + 8 (r % 2), P t + p + 4 P (r / 2)), of B (P t + p + 4 P r, g). Of C and
/// D it is (g + 8 (r / 2), 2 t + r % 2), in pairs (g + 8 r, 2 t + p).
template <Multiplicand T, bool HalfAccumulator>
void multiply(Warp &w, const Inst &i, uint32_t) {
  constexpr unsigned P = T == Multiplicand::Tf32 ? 1
                         : T == Multiplicand::F16 || T == Multiplicand::Bf16
                             ? 2
                             : 4;
  constexpr bool integer = T == Multiplicand::U8 || T == Multiplicand::S8;
  constexpr unsigned accumulators = HalfAccumulator ? 2 : 4;
  const unsigned K = i.aux;
  const unsigned aRegisters = K / (2 * P), bRegisters = K / (4 * P);
  const uint32_t *rows = w.list(i);
  const uint32_t *aRows = rows + accumulators, *bRows = aRows + aRegisters,
                 *cRows = bRows + bRegisters;
  alignas(64) float fa[16 * 32], fb[32 * 8], fc[16 * 8];
  alignas(64) int32_t sums[16 * 8];
  for (unsigned r = 0; r < aRegisters; ++r) {
    const uint32_t *bits = w.row<uint32_t>(aRows[r]);
    for (unsigned g = 0; g < 8; ++g)
      for (unsigned t = 0; t < 4; ++t)
        for (unsigned p = 0; p < P; ++p)
          fa[(g + 8 * (r % 2)) * K + P * t + p + 4 * P * (r / 2)] =
              element<T>(bits[4 * g + t], p);
  }
  for (unsigned r = 0; r < bRegisters; ++r) {
    const uint32_t *bits = w.row<uint32_t>(bRows[r]);
    for (unsigned t = 0; t < 4; ++t)
      for (unsigned p = 0; p < P; ++p)
        for (unsigned g = 0; g < 8; ++g)
          fb[(P * t + p + 4 * P * r) * 8 + g] = element<T>(bits[4 * g + t], p);
  }
  for (unsigned r = 0; r < accumulators; ++r) {
    const uint32_t *bits = w.row<uint32_t>(cRows[r]);
    for (unsigned g = 0; g < 8; ++g)
      for (unsigned t = 0; t < 4; ++t) {
        uint32_t v = bits[4 * g + t];
        unsigned at = HalfAccumulator ? (g + 8 * r) * 8 + 2 * t
                                      : (g + 8 * (r / 2)) * 8 + 2 * t + r % 2;
        if constexpr (HalfAccumulator) {
          fc[at] = fromHalf(static_cast<uint16_t>(v));
          fc[at + 1] = fromHalf(static_cast<uint16_t>(v >> 16));
        } else if constexpr (integer) {
          sums[at] = static_cast<int32_t>(v);
        } else {
          fc[at] = std::bit_cast<float>(v);
        }
      }
  }
  if constexpr (integer) {
    for (unsigned m = 0; m < 16; ++m)
      for (unsigned k = 0; k < K; ++k)
        for (unsigned n = 0; n < 8; ++n)
          sums[m * 8 + n] = static_cast<int32_t>(
              static_cast<uint32_t>(sums[m * 8 + n]) +
              static_cast<uint32_t>(static_cast<int32_t>(fa[m * K + k]) *
                                    static_cast<int32_t>(fb[k * 8 + n])));
  } else {
    addProducts(16, 8, K, fa, fb, fc, T == Multiplicand::F16 ? -14 : -126,
                HalfAccumulator);
  }
  for (unsigned r = 0; r < accumulators; ++r) {
    uint32_t *to = w.row<uint32_t>(rows[r]);
    for (unsigned g = 0; g < 8; ++g)
      for (unsigned t = 0; t < 4; ++t) {
        unsigned at = HalfAccumulator ? (g + 8 * r) * 8 + 2 * t
                                      : (g + 8 * (r / 2)) * 8 + 2 * t + r % 2;
        if constexpr (HalfAccumulator)
          to[4 * g + t] = toHalf(fc[at]) | uint32_t(toHalf(fc[at + 1])) << 16;
        else if constexpr (integer)
          to[4 * g + t] = static_cast<uint32_t>(sums[at]);
        else
          to[4 * g + t] = std::bit_cast<uint32_t>(fc[at]);
      }
  }
}

/// m8n8k4 of float64: IEEE arithmetic, fused, in the order of k.
void multiply64(Warp &w, const Inst &i, uint32_t) {
  const uint32_t *rows = w.list(i);
  double a[8][4], b[4][8], c[8][8];
  auto value = [&](uint32_t row, unsigned l) {
    return std::bit_cast<double>(w.row<uint64_t>(row)[l]);
  };
  for (unsigned l = 0; l < kLanes; ++l) {
    a[l / 4][l % 4] = value(rows[2], l);
    b[l % 4][l / 4] = value(rows[3], l);
    for (unsigned k = 0; k < 2; ++k)
      c[l / 4][2 * (l % 4) + k] = value(rows[4 + k], l);
  }
  for (auto m = 0; m < 8; ++m)
    for (auto n = 0; n < 8; ++n)
      for (auto k = 0; k < 4; ++k)
        c[m][n] = std::fma(a[m][k], b[k][n], c[m][n]);
  for (unsigned l = 0; l < kLanes; ++l)
    for (unsigned k = 0; k < 2; ++k)
      w.row<uint64_t>(rows[k])[l] =
          std::bit_cast<uint64_t>(c[l / 4][2 * (l % 4) + k]);
}

bool decodeMma(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("no .sync.aligned");
  std::string_view shape = d.takeAny();
  if (!d.take("row") || !d.take("col"))
    d.fail("no .row.col");
  TypeMod td = d.type(), ta = d.type(), tb = d.type(), tc = d.type();
  d.expectCount(4, 4);
  auto unknown = [&] { d.fail("no shape and types that the simulator knows"); };
  unsigned registers[4] = {4, 0, 0, 4}, width = 32;
  bool half = td.kind == 'f' && td.bits == 16;
  if (ta.name != tb.name || td.name != tc.name)
    unknown();
  if (ta.kind == 'f' && ta.bits == 64) {
    if (shape != "m8n8k4" || td.bits != 64 || td.kind != 'f')
      unknown();
    registers[0] = registers[3] = 2, registers[1] = registers[2] = 1;
    width = 64;
    d.out.run = multiply64;
  } else {
    if (!shape.starts_with("m16n8k"))
      unknown();
    unsigned K = shape == "m16n8k4"    ? 4
                 : shape == "m16n8k8"  ? 8
                 : shape == "m16n8k16" ? 16
                 : shape == "m16n8k32" ? 32
                                       : 0;
    unsigned bits = ta.kind == 't' ? 32 : ta.bits;
    // Of each type the ISA has two shapes: 128 and 256 bits of K, or half that.
    if (!K || (K * bits != 128 && K * bits != 256))
      unknown();
    registers[1] = K * bits / 64, registers[2] = K * bits / 128;
    d.out.aux = K;
    bool single = td.kind == 'f' && td.bits == 32;
    if (ta.kind == 't' && single)
      d.out.run = multiply<Multiplicand::Tf32, false>;
    else if (ta.kind == 'h' && single)
      d.out.run = multiply<Multiplicand::Bf16, false>;
    else if (ta.kind == 'f' && ta.bits == 16 && single)
      d.out.run = multiply<Multiplicand::F16, false>;
    else if (ta.kind == 'f' && ta.bits == 16 && half) {
      d.out.run = multiply<Multiplicand::F16, true>;
      registers[0] = registers[3] = 2;
    } else if (ta.bits == 8 && ta.kind == 's' && td.kind == 's')
      d.out.run = multiply<Multiplicand::S8, false>;
    else if (ta.bits == 8 && ta.kind == 'u' && td.kind == 's')
      d.out.run = multiply<Multiplicand::U8, false>;
    else
      unknown();
  }
  std::vector<uint32_t> rows;
  for (unsigned k = 0; k < 4; ++k)
    for (uint32_t row : rowsOf(d, d.operand(k), registers[k], width, k == 0))
      rows.push_back(row);
  d.out.list = d.addList(rows);
  d.out.kind = Kind::Aligned;
  return true;
}

} // namespace

void nova::sim::addMatrixInstructions(InstructionTable &table) {
  table.add("ldmatrix", decodeMatrixAccess);
  table.add("stmatrix", decodeMatrixAccess);
  table.add("mma", decodeMma);
}
