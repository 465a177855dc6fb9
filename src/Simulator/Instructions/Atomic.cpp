//===- Atomic.cpp - atom red ----------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.13.5 (atom) and 9.7.13.6 (red), scalar forms.
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"
#include "../Numbers.h"

#include <array>
#include <mutex>

using namespace nova::sim;

namespace {

enum Operation : uint32_t { And, Or, Xor, Cas, Exch, Add, Inc, Dec, Min, Max };

/// aux: operation | kind << 8 | bytes << 16 | packed << 24.
uint64_t apply(uint32_t aux, uint64_t old, uint64_t b, uint64_t c) {
  auto op = static_cast<Operation>(aux & 255);
  char kind = static_cast<char>(aux >> 8);
  unsigned bytes = aux >> 16 & 255;
  auto isSigned = kind == 's';
  switch (op) {
  case And:
    return old & b;
  case Or:
    return old | b;
  case Xor:
    return old ^ b;
  case Cas:
    return old == b ? c : old;
  case Exch:
    return b;
  case Inc:
    return static_cast<uint32_t>(old) >= static_cast<uint32_t>(b) ? 0 : old + 1;
  case Dec:
    return old == 0 || static_cast<uint32_t>(old) > static_cast<uint32_t>(b)
               ? b
               : old - 1;
  case Min:
  case Max: {
    bool less;
    if (bytes == 8)
      less = isSigned ? int64_t(old) < int64_t(b) : old < b;
    else
      less = isSigned ? int32_t(old) < int32_t(b) : uint32_t(old) < uint32_t(b);
    return less == (op == Min) ? old : b;
  }
  case Add:
    if (kind == 'f' && bytes == 8)
      return std::bit_cast<uint64_t>(std::bit_cast<double>(old) +
                                     std::bit_cast<double>(b));
    if (kind == 'f' && bytes == 4 && !(aux >> 24))
      return std::bit_cast<uint32_t>(
          canonical(std::bit_cast<float>(static_cast<uint32_t>(old)) +
                    std::bit_cast<float>(static_cast<uint32_t>(b))));
    if (kind == 'f' || kind == 'h') {
      uint64_t r = 0;
      for (unsigned h = 0; h < 8 * bytes; h += 16) {
        auto x = static_cast<uint16_t>(old >> h),
             y = static_cast<uint16_t>(b >> h);
        uint16_t s = kind == 'h'
                         ? toBfloat(double(fromBfloat(x)) + fromBfloat(y))
                         : toHalf(double(fromHalf(x)) + fromHalf(y));
        r |= uint64_t(s) << h;
      }
      return r;
    }
    return old + b;
  }
  return old;
}

/// Blocks run on several cores: those of one address take turns.
std::mutex &turnOf(const void *address) {
  static std::array<std::mutex, 64> mutexes;
  return mutexes[(reinterpret_cast<uintptr_t>(address) >> 4) % mutexes.size()];
}

/// op[0] result or kNone, op[1] address, op[2] b, op[3] c or kNone.
template <AccessSpace Space> void run(Warp &w, const Inst &i, uint32_t mask) {
  unsigned bytes = i.aux >> 16 & 255;
  auto read = [&](uint32_t row, unsigned l) -> uint64_t {
    if (row == kNone)
      return 0;
    uint64_t v = bytes == 8 ? w.row<uint64_t>(row)[l] : w.row<uint32_t>(row)[l];
    return bytes == 2 ? v & 0xffff : v;
  };
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    uint64_t address = addressOf(w, i, 1, l);
    uint8_t *place;
    AccessSpace space = resolve(Space, address);
    if (space == AccessSpace::Shared) {
      SharedPlace at = sharedPlace(w, l, address, bytes);
      Conflict found = at.block->shared.atomic(
          w.block->cluster.clocks, w.accessor(static_cast<uint8_t>(l)),
          at.offset, bytes);
      if (found.kind != Conflict::None)
        faultConflict(w, *at.block, l, address, true, found);
      place = at.block->shared.data() + at.offset;
    } else {
      readGlobal(w, l, address, bytes, bytes);
      place = writeGlobal(w, l, address, bytes);
    }
    std::unique_lock<std::mutex> turn;
    if (space != AccessSpace::Shared)
      turn = std::unique_lock(turnOf(place));
    uint64_t old = 0;
    std::memcpy(&old, place, bytes);
    uint64_t now = apply(i.aux, old, read(i.op[2], l), read(i.op[3], l));
    std::memcpy(place, &now, bytes);
    if (i.op[0] == kNone)
      continue;
    if (bytes == 8)
      w.row<uint64_t>(i.op[0])[l] = old;
    else
      w.row<uint32_t>(i.op[0])[l] = static_cast<uint32_t>(old);
  }
}

bool decode(Decoder &d) {
  bool result = d.root == "atom";
  for (const char *order : {"relaxed", "acquire", "release", "acq_rel", "cta",
                            "cluster", "gpu", "sys"})
    d.take(order);
  AccessSpace space = AccessSpace::Generic;
  if (d.take("global"))
    space = AccessSpace::Global;
  else if (d.take("shared") || d.take("shared::cta"))
    space = AccessSpace::Shared;
  static constexpr std::pair<std::string_view, Operation> names[] = {
      {"and", And}, {"or", Or},   {"xor", Xor}, {"cas", Cas}, {"exch", Exch},
      {"add", Add}, {"inc", Inc}, {"dec", Dec}, {"min", Min}, {"max", Max}};
  std::optional<Operation> op;
  for (auto [name, o] : names)
    if (!op && d.take(name))
      op = o;
  if (!op)
    d.fail("no operation that the simulator knows");
  d.take("noftz");
  TypeMod t = d.type();
  if (t.width() < 16 || t.width() > 64 || t.kind == 'p' ||
      ((t.kind == 'f' || t.kind == 'h') && *op != Add))
    d.fail("type " + std::string(t.name));
  size_t first = result ? 1 : 0;
  d.expectCount(first + (*op == Cas ? 3 : 2), first + (*op == Cas ? 3 : 2));
  if (result)
    d.out.op[0] = d.target(0, t.width());
  d.address(d.operand(first), 1);
  d.out.op[2] = d.source(first + 1, t);
  if (*op == Cas)
    d.out.op[3] = d.source(first + 2, t);
  unsigned bytes = t.width() / 8;
  d.out.aux = *op | uint32_t(static_cast<unsigned char>(t.kind)) << 8 |
              bytes << 16 | uint32_t(t.packed) << 24;
  if (space != AccessSpace::Global)
    d.sharedAccess(bytes);
  d.out.run = space == AccessSpace::Global   ? run<AccessSpace::Global>
              : space == AccessSpace::Shared ? run<AccessSpace::Shared>
                                             : run<AccessSpace::Generic>;
  return true;
}

} // namespace

void nova::sim::addAtomicInstructions(InstructionTable &table) {
  table.add("atom", decode);
  table.add("red", decode);
}
