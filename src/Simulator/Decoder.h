//===- Decoder.h - Instructions of the text to instructions that run ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each family of instructions (src/Simulator/Instructions) adds decoders under
// the opcodes it knows; several may share an opcode (add is of three
// families). A decoder says whether the instruction is its own, and takes
// modifiers and operands from it; what nobody took is an error.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_DECODER_H
#define NOVA_SIMULATOR_DECODER_H

#include "Code.h"
#include "Ptx.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace nova::sim {

/// Caught in Kernel::load.
struct Unknown {
  Error error;
};

/// A type as a modifier says it.
struct TypeMod {
  /// b u s f as in the ISA; h bf16, t tf32, p pred, e the 8-bit formats.
  char kind = 'b';
  unsigned bits = 32;  ///< Of one element.
  bool packed = false; ///< Two of them in 32 bits (f16x2).
  std::string_view name;
  bool isInteger() const { return kind == 'u' || kind == 's' || kind == 'b'; }
  unsigned width() const { return packed ? 2 * bits : bits; }
};
std::optional<TypeMod> typeModifier(std::string_view name);

/// What is known of a kernel's names while it is decoded.
class Names {
public:
  struct Row {
    uint32_t offset = 0;
    unsigned width = 32; ///< 1, 16, 32 or 64.
  };
  Names(const ptx::Module &module, const ptx::Entry &entry, Code &code);

  const Row *find(std::string_view name, uint32_t scope) const;
  uint32_t constant(uint64_t bits, unsigned width);
  std::optional<Row> special(std::string_view name);
  /// The address of a variable, in its own state space.
  std::optional<uint64_t> address(std::string_view name) const;
  /// A row with an address of the block's shared memory, 0 for where it begins
  /// in the cluster's.
  uint32_t sharedAddress(uint64_t address, unsigned width);
  bool isShared(std::string_view name) const {
    return sharedNames.contains(name);
  }
  const Parameter *parameter(std::string_view name) const;
  std::optional<uint32_t> label(std::string_view name, uint32_t scope) const;

  const ptx::Entry &entry;
  Code &code;
  uint32_t allocate(unsigned width);
  /// The condition code of extended-precision arithmetic, a bit per lane.
  uint32_t carry() {
    if (carryRow == kNone)
      carryRow = allocate(32);
    return carryRow;
  }

private:
  uint32_t carryRow = kNone;
  std::map<std::pair<uint32_t, std::string_view>, Row> rows;
  /// Of .reg %r<n>, by prefix.
  std::map<std::pair<uint32_t, std::string_view>, std::vector<Row>> numbered;
  std::map<std::pair<uint64_t, unsigned>, uint32_t> constants;
  std::map<Special, uint32_t> specials;
  std::map<std::pair<uint64_t, unsigned>, uint32_t> sharedRows;
  std::map<std::string_view, uint64_t> addresses;
  std::set<std::string_view> sharedNames;
};

class Decoder {
public:
  Decoder(Names &names, const ptx::Instruction &in, uint32_t scope);

  std::string_view root; ///< The opcode's first word.
  Inst out;

  // Modifiers. Each is taken once.
  bool take(std::string_view modifier);
  /// The next one, if it is a type.
  std::optional<TypeMod> takeType();
  TypeMod type();
  /// Whether the next one is `name`, without taking it.
  bool nextIs(std::string_view name) const;
  std::optional<std::string_view> peek() const;
  std::string_view takeAny();

  // Operands.
  size_t count() const { return in.operands.size(); }
  void expectCount(size_t from, size_t to);
  const ptx::Operand &operand(size_t k) const;
  /// A register to write. `width` 0: any but a predicate; its own is returned.
  uint32_t target(const ptx::Operand &o, unsigned width);
  uint32_t target(size_t k, unsigned width) {
    return target(operand(k), width);
  }
  /// A row to read as `width` bits: register, immediate, special register,
  /// address of a variable. `kind` f or h makes an integer immediate an error.
  uint32_t source(const ptx::Operand &o, const TypeMod &type);
  uint32_t source(size_t k, const TypeMod &type) {
    return source(operand(k), type);
  }
  /// A predicate; `negated` where the text says !p.
  uint32_t predicate(const ptx::Operand &o, bool &negated);
  unsigned widthOf(const ptx::Operand &o);
  /// [register + immediate] into op[slot] and `immediate`; op[slot] is a row
  /// of zeros for an absolute address. Sets `small` bit 15 for 32-bit bases.
  void address(const ptx::Operand &o, unsigned slot);
  uint32_t addList(const std::vector<uint32_t> &rows);
  uint64_t constantOf(const ptx::Operand &o, const TypeMod &type);
  uint32_t constantRow(uint64_t bits, unsigned width) {
    return names.constant(bits, width);
  }
  bool isImmediate(const ptx::Operand &o) const;
  uint32_t branchTarget(const ptx::Operand &o);
  uint32_t scratch(unsigned width) { return names.allocate(width); }

  /// Shared memory is accessed in units of so many bytes.
  void sharedAccess(unsigned bytes);

  /// An error that names the instruction and its line.
  [[noreturn]] void fail(const std::string &why) const;
  /// Nothing may be left over.
  void finish() const;

  Names &names;
  const ptx::Instruction &in;
  uint32_t scope;
  /// Registers that it reads and writes, but for predicates.
  std::vector<uint32_t> reads, writes;

private:
  std::vector<std::string_view> mods;
  std::vector<bool> taken;
};

/// Returns false, with nothing taken, for an instruction of another family.
using Decode = bool (*)(Decoder &);

class InstructionTable {
public:
  InstructionTable();
  void add(std::string_view root, Decode decode) {
    table[root].push_back(decode);
  }
  const std::vector<Decode> *find(std::string_view root) const {
    auto found = table.find(root);
    return found == table.end() ? nullptr : &found->second;
  }

private:
  std::unordered_map<std::string_view, std::vector<Decode>> table;
};

// One per family.
void addIntegerInstructions(InstructionTable &);
void addLogicInstructions(InstructionTable &);
void addFloatInstructions(InstructionTable &);
void addHalfInstructions(InstructionTable &);
void addSpecialFunctionInstructions(InstructionTable &);
void addCompareInstructions(InstructionTable &);
void addConvertInstructions(InstructionTable &);
void addMoveInstructions(InstructionTable &);
void addMemoryInstructions(InstructionTable &);
void addAtomicInstructions(InstructionTable &);
void addAsyncCopyInstructions(InstructionTable &);
void addMatrixInstructions(InstructionTable &);
void addWarpInstructions(InstructionTable &);
void addBarrierInstructions(InstructionTable &);
void addFenceInstructions(InstructionTable &);
void addMbarrierInstructions(InstructionTable &);
void addBulkCopyInstructions(InstructionTable &);
void addWarpgroupInstructions(InstructionTable &);
void addClusterInstructions(InstructionTable &);
void addControlInstructions(InstructionTable &);

/// Fills Inst::reconverge of every branch.
void findReconvergence(Code &code);

/// What the instructions of a kernel read and write.
struct Touched {
  std::vector<uint32_t> reads, writes;
};
/// Fills Code::watched and Code::watches.
void watchRegisters(Code &code, const std::vector<Touched> &touched);

} // namespace nova::sim

#endif // NOVA_SIMULATOR_DECODER_H
