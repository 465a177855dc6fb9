//===- Memory.cpp - ld st, and hints
//---------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.9.8 (ld), 9.7.9.9 (ld.global.nc), 9.7.9.11 (st), 9.7.9.15
// (prefetch). Registers may be wider than the type: loads extend as the type
// says, stores take the low bits (9.4.1).
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"

#include <array>

using namespace nova::sim;
using nova::sim::ptx::Operand;

namespace {

/// Cache operators, eviction priorities and prefetch sizes change no value.
void takeHints(Decoder &d) {
  for (const char *hint :
       {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_normal",
        "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
        "L1::no_allocate", "L2::evict_normal", "L2::evict_first",
        "L2::evict_last", "L2::64B", "L2::128B", "L2::256B"})
    d.take(hint);
}

/// Two operands, and with a hint the cache policy, which changes no value.
void takePolicy(Decoder &d) {
  bool hint = d.take("L2::cache_hint");
  d.expectCount(2 + hint, 2 + hint);
  if (hint)
    d.source(2, {'b', 64, false, "b64"});
}

/// Memory order and scope: one warp at a time executes here, in order.
void takeOrder(Decoder &d) {
  for (const char *order : {"weak", "volatile", "relaxed", "acquire", "release",
                            "cta", "cluster", "gpu", "sys"})
    d.take(order);
}

AccessSpace takeSpace(Decoder &d) {
  if (d.take("global") || d.take("const"))
    return AccessSpace::Global;
  if (d.take("shared") || d.take("shared::cta") || d.take("shared::cluster"))
    return AccessSpace::Shared;
  if (d.take("local"))
    return AccessSpace::Local;
  return AccessSpace::Generic;
}

unsigned takeVector(Decoder &d) {
  return d.take("v2") ? 2 : d.take("v4") ? 4 : d.take("v8") ? 8 : 1;
}

/// The bytes of parameters that a lane reads.
const uint8_t *readParameters(Warp &w, unsigned lane, uint64_t address,
                              unsigned bytes) {
  const std::string &all = w.block->launch.parameters;
  uint64_t at = address - kParameterBase;
  if (at >= all.size() || all.size() - at < bytes || (address & (bytes - 1)))
    throw FaultFound{(address & (bytes - 1)) ? FaultKind::Misaligned
                                             : FaultKind::OutOfBounds,
                     "reads " + std::to_string(bytes) + " bytes at offset " +
                         std::to_string(static_cast<int64_t>(at)) +
                         " of the parameters, which have " +
                         std::to_string(all.size()),
                     lane, address, "parameters"};
  return reinterpret_cast<const uint8_t *>(all.data()) + at;
}

/// aux: number of elements | 256 sign extension | 512 rows of 64 bits.
template <unsigned E, AccessSpace Space, bool Parameters = false>
void load(Warp &w, const Inst &i, uint32_t mask) {
  using T = typename Int<E == 1 ? 16 : E * 8>::U;
  unsigned count = i.aux & 255;
  const uint32_t *rows = w.list(i);
  bool extend = i.aux & 256, wide = i.aux & 512;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    uint64_t address = addressOf(w, i, 0, l);
    const uint8_t *from;
    if constexpr (Parameters)
      from = readParameters(w, l, address, E * count);
    else
      from = readBytes(w, Space, l, address, E * count);
    for (unsigned k = 0; k < count; ++k) {
      T v = 0;
      std::memcpy(&v, from + k * E, E);
      if constexpr (E == 8) {
        w.row<uint64_t>(rows[k])[l] = v;
      } else {
        auto value = static_cast<uint64_t>(v);
        if (extend && (value >> (8 * E - 1) & 1))
          value |= ~uint64_t(0) << (8 * E);
        if (wide)
          w.row<uint64_t>(rows[k])[l] = value;
        else
          w.row<uint32_t>(rows[k])[l] = static_cast<uint32_t>(value);
      }
    }
  }
}

template <unsigned E, AccessSpace Space>
void storeTo(Warp &w, const Inst &i, uint32_t mask) {
  unsigned count = i.aux & 255;
  const uint32_t *rows = w.list(i);
  bool wide = i.aux & 512;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    uint8_t value[32];
    for (unsigned k = 0; k < count; ++k)
      if (E == 8 || wide)
        std::memcpy(value + k * E, w.row<uint64_t>(rows[k]) + l, E);
      else
        std::memcpy(value + k * E, w.row<uint32_t>(rows[k]) + l, E > 4 ? 4 : E);
    writeBytes(w, Space, l, addressOf(w, i, 0, l), E * count, value);
  }
}

template <template <unsigned, AccessSpace> class H, unsigned E>
Handler bySpace(AccessSpace s) {
  switch (s) {
  case AccessSpace::Global:
    return H<E, AccessSpace::Global>::run;
  case AccessSpace::Shared:
    return H<E, AccessSpace::Shared>::run;
  case AccessSpace::Local:
    return H<E, AccessSpace::Local>::run;
  default:
    return H<E, AccessSpace::Generic>::run;
  }
}
template <template <unsigned, AccessSpace> class H>
Handler bySize(unsigned bytes, AccessSpace s) {
  switch (bytes) {
  case 1:
    return bySpace<H, 1>(s);
  case 2:
    return bySpace<H, 2>(s);
  case 4:
    return bySpace<H, 4>(s);
  case 8:
    return bySpace<H, 8>(s);
  default:
    return nullptr;
  }
}
template <unsigned E, AccessSpace S> struct Load {
  static constexpr Handler run = load<E, S>;
};
template <unsigned E, AccessSpace S> struct LoadParameter {
  static constexpr Handler run = load<E, S, true>;
};
template <unsigned E, AccessSpace S> struct Store {
  static constexpr Handler run = storeTo<E, S>;
};

/// Rows of the vector operand, all of one width, which is returned in bits.
unsigned rowsOf(Decoder &d, const Operand &o, unsigned count, const TypeMod &t,
                bool results) {
  std::vector<const Operand *> items;
  if (o.kind == Operand::List)
    for (const Operand &item : o.items)
      items.push_back(&item);
  else
    items.push_back(&o);
  if (items.size() != count)
    d.fail(std::to_string(items.size()) + " registers, expected " +
           std::to_string(count));
  unsigned width = 0;
  for (const Operand *item : items) {
    unsigned own = d.widthOf(*item);
    if (own && own < t.bits)
      d.fail("a register of " + std::to_string(own) + " bits");
    if (own && width && own != width)
      d.fail("registers of different widths");
    width = own ? own : width;
  }
  if (!width)
    width = t.bits == 64 ? 64 : 32;
  std::vector<uint32_t> rows;
  for (const Operand *item : items) {
    TypeMod row = d.isImmediate(*item) ? t : TypeMod{'b', width, false, "b"};
    if (d.isImmediate(*item) && width == 64 && t.bits < 64)
      d.fail("a number beside registers of 64 bits");
    rows.push_back(results ? d.target(*item, width) : d.source(*item, row));
  }
  d.out.list = d.addList(rows);
  return width;
}

bool loadParameter(Decoder &d, unsigned count, const TypeMod &t) {
  const Operand &o = d.operand(1);
  if (o.kind != Operand::Address || o.items.size() != 1 ||
      o.items[0].kind != Operand::Name)
    d.fail("an address that is no parameter");
  const Parameter *p = d.names.parameter(o.items[0].name);
  if (!p) {
    // An address that was computed: a choice between parameters.
    unsigned width = rowsOf(d, d.operand(0), count, t, true);
    d.address(o, 0);
    d.out.aux = count | (t.kind == 's' ? 256 : 0) | (width == 64 ? 512 : 0);
    d.out.run = bySize<LoadParameter>(t.bits / 8, AccessSpace::Local);
    return true;
  }
  auto at = static_cast<uint64_t>(o.value + o.items[0].value);
  if (at + count * t.bits / 8 > p->bytes)
    d.fail("offset " + std::to_string(at) + " of a parameter of " +
           std::to_string(p->bytes) + " bytes");
  unsigned width = rowsOf(d, d.operand(0), count, t, true);
  d.out.immediate = static_cast<int64_t>(p->offset + at);
  d.out.aux = count | (t.kind == 's' ? 256 : 0) | (width == 64 ? 512 : 0) |
              (t.bits / 8) << 16;
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    const std::string &bytes = w.block->launch.parameters;
    unsigned size = i.aux >> 16;
    for (unsigned k = 0; k < (i.aux & 255); ++k) {
      uint64_t v = 0;
      std::memcpy(&v, bytes.data() + i.immediate + k * size, size);
      if ((i.aux & 256) && size < 8 && (v >> (8 * size - 1) & 1))
        v |= ~uint64_t(0) << (8 * size);
      uint32_t row = w.list(i)[k];
      for (uint32_t left = mask; left; left &= left - 1) {
        auto l = static_cast<unsigned>(std::countr_zero(left));
        if (i.aux & 512)
          w.row<uint64_t>(row)[l] = v;
        else
          w.row<uint32_t>(row)[l] = static_cast<uint32_t>(v);
      }
    }
  };
  return true;
}

bool decodeLd(Decoder &d) {
  takeOrder(d);
  bool param = d.take("param") || d.take("param::entry");
  AccessSpace space = param ? AccessSpace::Generic : takeSpace(d);
  takeHints(d);
  unsigned count = takeVector(d);
  TypeMod t = d.type();
  takePolicy(d);
  if (t.bits > 64 || t.packed || t.kind == 'p')
    d.fail("type " + std::string(t.name));
  if (param)
    return loadParameter(d, count, t);
  unsigned bytes = t.bits / 8;
  if (bytes * count > 16)
    d.fail("vectors of " + std::to_string(bytes * count) + " bytes");
  unsigned width = rowsOf(d, d.operand(0), count, t, true);
  d.address(d.operand(1), 0);
  if (space == AccessSpace::Shared || space == AccessSpace::Generic)
    d.sharedAccess(bytes * count);
  d.out.aux = count | (t.kind == 's' ? 256 : 0) | (width == 64 ? 512 : 0);
  d.out.run = bySize<Load>(bytes, space);
  return true;
}

bool decodeSt(Decoder &d) {
  takeOrder(d);
  if (d.nextIs("async") || d.nextIs("bulk"))
    return false;
  AccessSpace space = takeSpace(d);
  takeHints(d);
  unsigned count = takeVector(d);
  TypeMod t = d.type();
  takePolicy(d);
  if (t.bits > 64 || t.packed || t.kind == 'p')
    d.fail("type " + std::string(t.name));
  unsigned bytes = t.bits / 8;
  if (bytes * count > 16)
    d.fail("vectors of " + std::to_string(bytes * count) + " bytes");
  unsigned width = rowsOf(d, d.operand(1), count, t, false);
  d.address(d.operand(0), 0);
  if (space == AccessSpace::Shared || space == AccessSpace::Generic)
    d.sharedAccess(bytes * count);
  d.out.aux = count | (width == 64 ? 512 : 0);
  d.out.run = bySize<Store>(bytes, space);
  return true;
}

/// Hints: nothing to do, whatever the address.
bool decodePrefetch(Decoder &d) {
  takeSpace(d);
  for (const char *level :
       {"L1", "L2", "tensormap", "L2::evict_last", "L2::evict_normal", "param"})
    d.take(level);
  d.out.run = [](Warp &, const Inst &, uint32_t) {};
  return true;
}

} // namespace

void nova::sim::addMemoryInstructions(InstructionTable &table) {
  table.add("ld", decodeLd);
  table.add("ldu", decodeLd);
  table.add("st", decodeSt);
  table.add("prefetch", decodePrefetch);
  table.add("prefetchu", decodePrefetch);
}
