//===- Decoder.cpp - Modifiers and operands of one instruction ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include <algorithm>
#include <bit>
#include <charconv>

using namespace nova;
using namespace nova::sim;

std::optional<TypeMod> sim::typeModifier(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    char kind;
    unsigned bits;
    bool packed;
  } rows[] = {{"b8", 'b', 8, false},     {"b16", 'b', 16, false},
              {"b32", 'b', 32, false},   {"b64", 'b', 64, false},
              {"u8", 'u', 8, false},     {"u16", 'u', 16, false},
              {"u32", 'u', 32, false},   {"u64", 'u', 64, false},
              {"s8", 's', 8, false},     {"s16", 's', 16, false},
              {"s32", 's', 32, false},   {"s64", 's', 64, false},
              {"f16", 'f', 16, false},   {"f32", 'f', 32, false},
              {"f64", 'f', 64, false},   {"bf16", 'h', 16, false},
              {"f16x2", 'f', 16, true},  {"bf16x2", 'h', 16, true},
              {"tf32", 't', 32, false},  {"pred", 'p', 1, false},
              {"u16x2", 'u', 16, true},  {"s16x2", 's', 16, true},
              {"b128", 'b', 128, false}, {"e4m3x2", 'e', 8, true},
              {"e5m2x2", 'g', 8, true}};
  for (const auto &row : rows)
    if (row.name == name)
      return TypeMod{row.kind, row.bits, row.packed, row.name};
  return std::nullopt;
}

Decoder::Decoder(Names &names, const ptx::Instruction &in, uint32_t scope)
    : names(names), in(in), scope(scope) {
  std::string_view rest = in.opcode;
  size_t dot = rest.find('.');
  root = rest.substr(0, dot);
  while (dot != std::string_view::npos) {
    rest.remove_prefix(dot + 1);
    dot = rest.find('.');
    mods.push_back(rest.substr(0, dot));
  }
  taken.resize(mods.size());
  out.line = in.line;
  // Where the text of it begins, for reports; its guard belongs to it.
  const std::string &text = names.code.text;
  const char *begin = in.guard.empty() ? in.opcode.data() : in.guard.data();
  if (begin >= text.data() && begin < text.data() + text.size()) {
    out.text = static_cast<uint32_t>(begin - text.data());
    if (!in.guard.empty())
      out.text -= in.guardNegated ? 2 : 1;
  }
  out.location = in.location;
}

void Decoder::fail(const std::string &why) const {
  throw Unknown{{ErrorCode::Missing,
                 "PTX line " + std::to_string(in.line) + ": '" +
                     std::string(in.opcode) + "': " + why,
                 "verify on a machine that has the device, or without "
                 "--simulate"}};
}

bool Decoder::take(std::string_view modifier) {
  for (size_t k = 0; k < mods.size(); ++k)
    if (!taken[k] && mods[k] == modifier)
      return taken[k] = true;
  return false;
}

std::optional<std::string_view> Decoder::peek() const {
  for (size_t k = 0; k < mods.size(); ++k)
    if (!taken[k])
      return mods[k];
  return std::nullopt;
}

bool Decoder::nextIs(std::string_view name) const {
  return peek() == std::optional<std::string_view>(name);
}

std::string_view Decoder::takeAny() {
  for (size_t k = 0; k < mods.size(); ++k)
    if (!taken[k]) {
      taken[k] = true;
      return mods[k];
    }
  fail("a modifier is missing");
}

std::optional<TypeMod> Decoder::takeType() {
  for (size_t k = 0; k < mods.size(); ++k)
    if (!taken[k]) {
      if (auto type = typeModifier(mods[k])) {
        taken[k] = true;
        return type;
      }
    }
  return std::nullopt;
}

TypeMod Decoder::type() {
  if (auto t = takeType())
    return *t;
  fail("no type among its modifiers that the simulator knows");
}

void Decoder::expectCount(size_t from, size_t to) {
  if (count() < from || count() > to)
    fail(std::to_string(count()) + " operands, expected " +
         std::to_string(from) +
         (to == from ? std::string() : " to " + std::to_string(to)));
}

const ptx::Operand &Decoder::operand(size_t k) const {
  if (k >= in.operands.size())
    fail("operand " + std::to_string(k + 1) + " is missing");
  return in.operands[k];
}

static unsigned rowWidth(unsigned bits) {
  return bits > 1 && bits <= 8 ? 16 : bits;
}

uint32_t Decoder::target(const ptx::Operand &o, unsigned width) {
  // ISA 9.7.9: the sink `_` takes a result that nobody wants.
  if (o.kind == ptx::Operand::Name && o.name == "_")
    return names.allocate(width ? width : 64);
  if (o.kind != ptx::Operand::Name)
    fail("a result that is no register");
  const Names::Row *row = names.find(o.name, scope);
  if (!row)
    fail("'" + std::string(o.name) + "' is no register");
  if (width ? row->width != rowWidth(width) : row->width == 1)
    fail("register '" + std::string(o.name) + "' has " +
         std::to_string(row->width) + " bits, expected " +
         std::to_string(width));
  if (row->width != 1)
    writes.push_back(row->offset);
  return row->offset;
}

unsigned Decoder::widthOf(const ptx::Operand &o) {
  if (o.kind == ptx::Operand::Name) {
    if (const Names::Row *row = names.find(o.name, scope))
      return row->width;
    if (auto special = names.special(o.name))
      return special->width;
  }
  return 0;
}

bool Decoder::isImmediate(const ptx::Operand &o) const {
  return o.kind == ptx::Operand::Integer || o.kind == ptx::Operand::Real ||
         o.kind == ptx::Operand::Single ||
         (o.kind == ptx::Operand::Name && o.name == "WARP_SZ");
}

uint64_t Decoder::constantOf(const ptx::Operand &o, const TypeMod &type) {
  bool wide = type.bits == 64;
  switch (o.kind) {
  case ptx::Operand::Integer:
    if (type.kind == 'f' && type.bits >= 32) {
      double value = static_cast<double>(o.value);
      return wide ? std::bit_cast<uint64_t>(value)
                  : std::bit_cast<uint32_t>(static_cast<float>(value));
    }
    return static_cast<uint64_t>(o.value);
  case ptx::Operand::Single: {
    auto bits = static_cast<uint32_t>(o.value);
    if (wide && type.kind == 'f')
      return std::bit_cast<uint64_t>(double(std::bit_cast<float>(bits)));
    return bits;
  }
  case ptx::Operand::Real:
    if (type.bits == 32)
      return std::bit_cast<uint32_t>(
          static_cast<float>(std::bit_cast<double>(o.value)));
    return static_cast<uint64_t>(o.value);
  case ptx::Operand::Name:
    if (o.name == "WARP_SZ")
      return kLanes;
    break;
  default:
    break;
  }
  fail("an operand that is no constant, expected one");
}

uint32_t Decoder::source(const ptx::Operand &o, const TypeMod &type) {
  unsigned width = type.width();
  if (type.kind == 'p') {
    fail("a predicate where the simulator expects a value");
  }
  if (isImmediate(o))
    return names.constant(constantOf(o, type), width == 64 ? 64 : 32);
  if (o.kind != ptx::Operand::Name)
    fail("an operand that is neither a register nor a number");
  if (const Names::Row *row = names.find(o.name, scope)) {
    if (row->width == 1)
      fail("'" + std::string(o.name) + "' is a predicate, expected " +
           std::to_string(width) + " bits");
    if (row->width != rowWidth(width))
      fail("register '" + std::string(o.name) + "' has " +
           std::to_string(row->width) + " bits, expected " +
           std::to_string(width));
    reads.push_back(row->offset);
    return row->offset;
  }
  if (auto row = names.special(o.name))
    return row->offset;
  if (auto address = names.address(o.name)) {
    if (names.isShared(o.name))
      return names.sharedAddress(*address + static_cast<uint64_t>(o.value),
                                 width == 64 ? 64 : 32);
    return names.constant(*address + static_cast<uint64_t>(o.value),
                          width == 64 ? 64 : 32);
  }
  fail("'" + std::string(o.name) +
       "' is neither a register nor a variable that the simulator knows");
}

uint32_t Decoder::predicate(const ptx::Operand &o, bool &negated) {
  negated = o.negated;
  if (o.kind == ptx::Operand::Integer)
    return names.constant(o.value != 0, 1);
  const Names::Row *row =
      o.kind == ptx::Operand::Name ? names.find(o.name, scope) : nullptr;
  if (!row || row->width != 1)
    fail("an operand that is no predicate, expected one");
  return row->offset;
}

void Decoder::address(const ptx::Operand &o, unsigned slot) {
  if (o.kind != ptx::Operand::Address || o.items.size() != 1)
    fail("an operand that is no address, expected [register + offset]");
  const ptx::Operand &base = o.items[0];
  out.immediate = o.value + (base.kind == ptx::Operand::Name ? base.value : 0);
  if (base.kind == ptx::Operand::Integer) {
    out.immediate += base.value;
    out.op[slot] = names.constant(0, 64);
    return;
  }
  if (base.kind == ptx::Operand::Name) {
    if (const Names::Row *row = names.find(base.name, scope)) {
      if (row->width != 32 && row->width != 64)
        fail("an address of " + std::to_string(row->width) + " bits");
      if (row->width == 32)
        out.small |= 0x8000;
      out.op[slot] = row->offset;
      reads.push_back(row->offset);
      return;
    }
    if (auto address = names.address(base.name)) {
      out.immediate += static_cast<int64_t>(*address);
      out.op[slot] = names.isShared(base.name) ? names.sharedAddress(0, 64)
                                               : names.constant(0, 64);
      return;
    }
  }
  fail("an address that is neither a register nor a variable");
}

uint32_t Decoder::addList(const std::vector<uint32_t> &rows) {
  auto at = static_cast<uint32_t>(names.code.lists.size());
  names.code.lists.insert(names.code.lists.end(), rows.begin(), rows.end());
  return at;
}

uint32_t Decoder::branchTarget(const ptx::Operand &o) {
  if (o.kind == ptx::Operand::Name)
    if (auto at = names.label(o.name, scope))
      return *at;
  fail("'" + std::string(o.name) + "' is no label");
}

void Decoder::sharedAccess(unsigned bytes) {
  names.code.granule = std::min(names.code.granule, bytes);
}

void Decoder::finish() const {
  for (size_t k = 0; k < mods.size(); ++k)
    if (!taken[k])
      fail("modifier '." + std::string(mods[k]) +
           "' is not one that the simulator knows here");
}
