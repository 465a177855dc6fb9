//===- Ptx.h - PTX text as a tree -----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the text says, before anything is known about any instruction. Names
// are views into the text, which must outlive the tree.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_PTX_H
#define NOVA_SIMULATOR_PTX_H

#include "nova/Support/Error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nova::sim::ptx {

enum class Space { Reg, Param, Shared, Global, Const, Local, Generic };

/// A fundamental type: its letter (b u s f, p for predicates) and width. The
/// alternate formats (bf16, tf32, ...) exist in modifiers only.
struct Type {
  char kind = 'b';
  unsigned bits = 32;
};

struct Operand {
  enum Kind {
    Name,    ///< A register, special register, variable or label.
    Integer, ///< `value`.
    Real,    ///< `value` holds the bits of a double.
    Single,  ///< `value` holds the bits of a float (0f...).
    List,    ///< {items}
    Address, ///< [items[0] + value, items[1], ...]
    Pair,    ///< items[0] | items[1]
  };
  Kind kind = Integer;
  std::string_view name;
  int64_t value = 0;
  bool negated = false; ///< !p
  std::vector<Operand> items;
};

struct Instruction {
  std::string_view opcode; ///< With all modifiers.
  std::string_view guard;  ///< "" for none.
  bool guardNegated = false;
  std::vector<Operand> operands;
  uint32_t line = 0;     ///< In the PTX.
  uint32_t location = 0; ///< Index into Module::locations.
};

/// A .reg declaration: `name` or, with `count`, name0 ... name(count-1).
struct Register {
  std::string_view name;
  Type type;
  std::optional<uint32_t> count;
  uint32_t scope = 0;
};

/// A variable of memory. `elements` is 0 for an array whose size the launch
/// gives (.extern .shared).
struct Variable {
  std::string_view name;
  Space space = Space::Shared;
  Type type;
  uint64_t alignment = 1, elements = 1;
  std::vector<int64_t> initial;
  uint64_t bytes() const { return elements * (type.bits / 8); }
};

struct Label {
  std::string_view name;
  uint32_t at = 0; ///< Index of the instruction that follows.
  uint32_t scope = 0;
};

struct Entry {
  std::string_view name;
  uint32_t line = 0;
  std::vector<Variable> params, variables;
  std::vector<Register> registers;
  std::vector<Instruction> body;
  std::vector<Label> labels;
  /// Lists of labels that brx.idx names.
  std::map<std::string_view, std::vector<std::string_view>> branchTargets;
  /// scopes[i] is the parent of scope i; instructionScopes parallel to body.
  std::vector<uint32_t> scopes{0}, instructionScopes;
  std::optional<std::vector<uint32_t>> requiredThreads, maxThreads;
  std::optional<uint32_t> maxRegisters;
};

/// A .loc directive.
struct Location {
  uint32_t file = 0, line = 0, column = 0;
};

struct Module {
  uint32_t version = 0; ///< 10 major + minor.
  std::string_view target;
  std::vector<Variable> variables;
  std::vector<Entry> entries;
  std::vector<Location> locations{1};
  std::map<uint32_t, std::string> files;
};

/// BadInput names the line and what was expected there.
Expected<Module> parse(std::string_view text);

} // namespace nova::sim::ptx

#endif // NOVA_SIMULATOR_PTX_H
