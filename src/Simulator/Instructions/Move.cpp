//===- Move.cpp - mov prmt cvta isspacep
//-----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.9.1 (mov, with packing and unpacking), 9.7.9.7 (prmt), 9.7.9.19
// (isspacep), 9.7.9.20 (cvta).
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"

using namespace nova::sim;
using nova::sim::ptx::Operand;

namespace {

template <typename T> void copyRow(Warp &w, const Inst &i, uint32_t mask) {
  store(w.row<T>(i.op[0]), w.row<T>(i.op[1]), mask);
}

/// Part k of the list is bits [k * immediate, ...) of op[0]; aux parts.
/// small: 1 the whole has 64 bits, 2 the parts have.
uint64_t get(Warp &w, uint32_t row, unsigned lane, bool wide) {
  return wide ? w.row<uint64_t>(row)[lane] : w.row<uint32_t>(row)[lane];
}
void put(Warp &w, uint32_t row, unsigned lane, bool wide, uint64_t v) {
  if (wide)
    w.row<uint64_t>(row)[lane] = v;
  else
    w.row<uint32_t>(row)[lane] = static_cast<uint32_t>(v);
}

void packRows(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *parts = w.list(i);
  uint64_t field = (uint64_t(1) << i.immediate) - 1;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    uint64_t v = 0;
    for (uint32_t k = 0; k < i.aux; ++k)
      v |= (get(w, parts[k], l, false) & field) << (k * i.immediate);
    put(w, i.op[0], l, i.small & 1, v);
  }
}

void unpackRows(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *parts = w.list(i);
  uint64_t field = (uint64_t(1) << i.immediate) - 1;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    uint64_t v = get(w, i.op[0], l, i.small & 1);
    for (uint32_t k = 0; k < i.aux; ++k)
      put(w, parts[k], l, false, v >> (k * i.immediate) & field);
  }
}

bool decodeMov(Decoder &d) {
  TypeMod t = d.type();
  d.expectCount(2, 2);
  const Operand &to = d.operand(0), &from = d.operand(1);
  if (t.kind == 'p') {
    bool negated = false;
    d.out.op[0] = d.target(0, 1);
    d.out.op[1] = d.predicate(from, negated);
    d.out.aux = negated;
    d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
      uint32_t v = w.predicate(i.op[1]);
      uint32_t &r = w.predicate(i.op[0]);
      r = (r & ~mask) | ((i.aux ? ~v : v) & mask);
    };
    return true;
  }
  if (to.kind == Operand::List || from.kind == Operand::List) {
    const Operand &list = to.kind == Operand::List ? to : from;
    auto parts = static_cast<unsigned>(list.items.size());
    if (t.bits > 64 || (parts != 2 && parts != 4) || t.bits / parts < 8 ||
        t.bits / parts > 32)
      d.fail(std::to_string(parts) + " parts of " + std::to_string(t.bits) +
             " bits");
    unsigned part = t.bits / parts;
    std::vector<uint32_t> rows;
    for (const Operand &item : list.items)
      rows.push_back(&list == &to ? d.target(item, part)
                                  : d.source(item, {'b', part, false, "b"}));
    d.out.list = d.addList(rows);
    d.out.aux = parts;
    d.out.immediate = part;
    d.out.small = t.bits == 64;
    if (&list == &to) {
      d.out.op[0] = d.source(from, t);
      d.out.run = unpackRows;
    } else {
      d.out.op[0] = d.target(0, t.bits);
      d.out.run = packRows;
    }
    return true;
  }
  d.out.op[0] = d.target(0, t.bits);
  d.out.op[1] = d.source(from, t);
  d.out.run = t.bits == 64 ? copyRow<uint64_t> : copyRow<uint32_t>;
  return true;
}

uint32_t permuted(uint64_t bytes, uint32_t selector) {
  uint32_t r = 0;
  for (unsigned k = 0; k < 4; ++k) {
    uint32_t s = selector >> (4 * k) & 15;
    auto byte = static_cast<uint32_t>(bytes >> (8 * (s & 7)) & 0xff);
    if (s & 8) // The sign of the byte instead.
      byte = (byte & 0x80) ? 0xff : 0;
    r |= byte << (8 * k);
  }
  return r;
}

/// The selector that a mode makes of the two low bits of c (ISA 9.7.9.7).
uint32_t selectorOf(uint32_t mode, uint32_t c) {
  static constexpr uint16_t table[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
      {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
      {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
      {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
      {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
      {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
  };
  return mode ? table[mode - 1][c & 3] : c;
}

bool decodePrmt(Decoder &d) {
  TypeMod t = d.type();
  static constexpr std::string_view modes[] = {"f4e", "b4e", "rc8",
                                               "ecl", "ecr", "rc16"};
  for (uint32_t k = 0; k < 6; ++k)
    if (d.take(modes[k]))
      d.out.aux = k + 1;
  operands(d, t, 3);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]),
                   *c = w.row<uint32_t>(i.op[3]);
    alignas(64) uint32_t values[kLanes];
    for (unsigned l = 0; l < kLanes; ++l)
      values[l] =
          permuted(uint64_t(b[l]) << 32 | a[l], selectorOf(i.aux, c[l]));
    store(w.row<uint32_t>(i.op[0]), values, mask);
  };
  return true;
}

/// What is added to an address of a state space to make it generic.
std::optional<uint64_t> takeWindow(Decoder &d) {
  if (d.take("shared") || d.take("shared::cta") || d.take("shared::cluster"))
    return kSharedWindow;
  if (d.take("param") || d.take("param::entry"))
    return kParameterWindow;
  if (d.take("local"))
    return kLocalWindow;
  if (d.take("global") || d.take("const"))
    return 0;
  return std::nullopt;
}

bool decodeCvta(Decoder &d) {
  bool to = d.take("to");
  auto window = takeWindow(d);
  if (!window)
    d.fail("no state space that the simulator knows");
  TypeMod t = d.type();
  operands(d, t, 1);
  if (t.bits != 64)
    d.fail("addresses of 32 bits");
  d.out.immediate = static_cast<int64_t>(to ? 0 - *window : *window);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    const uint64_t *a = w.row<uint64_t>(i.op[1]);
    alignas(64) uint64_t values[kLanes];
    NOVA_LANES values[l] = a[l] + static_cast<uint64_t>(i.immediate);
    store(w.row<uint64_t>(i.op[0]), values, mask);
  };
  return true;
}

bool decodeIsspacep(Decoder &d) {
  auto window = takeWindow(d);
  if (!window)
    d.fail("no state space that the simulator knows");
  d.expectCount(2, 2);
  d.out.op[0] = d.target(0, 1);
  d.out.op[1] = d.source(1, {'u', 64, false, "u64"});
  d.out.immediate = static_cast<int64_t>(*window);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    const uint64_t *a = w.row<uint64_t>(i.op[1]);
    uint32_t bits = 0;
    auto window = static_cast<uint64_t>(i.immediate) >> kWindowShift;
    for (unsigned l = 0; l < kLanes; ++l) {
      uint64_t in = a[l] >> kWindowShift;
      bool global = in != kSharedWindow >> kWindowShift &&
                    in != kLocalWindow >> kWindowShift;
      bits |= uint32_t(window ? in == window : global) << l;
    }
    uint32_t &to = w.predicate(i.op[0]);
    to = (to & ~mask) | (bits & mask);
  };
  return true;
}

} // namespace

void nova::sim::addMoveInstructions(InstructionTable &table) {
  table.add("mov", decodeMov);
  table.add("prmt", decodePrmt);
  table.add("cvta", decodeCvta);
  table.add("isspacep", decodeIsspacep);
}
