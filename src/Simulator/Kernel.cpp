//===- Kernel.cpp - A kernel of a PTX text, decoded
//------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"
#include "nova/Simulator/Simulator.h"

#include <charconv>
#include <map>

using namespace nova;
using namespace nova::sim;

InstructionTable::InstructionTable() {
  addIntegerInstructions(*this);
  addLogicInstructions(*this);
  addFloatInstructions(*this);
  addHalfInstructions(*this);
  addSpecialFunctionInstructions(*this);
  addCompareInstructions(*this);
  addConvertInstructions(*this);
  addMoveInstructions(*this);
  addMemoryInstructions(*this);
  addAtomicInstructions(*this);
  addAsyncCopyInstructions(*this);
  addMatrixInstructions(*this);
  addWarpInstructions(*this);
  addBarrierInstructions(*this);
  addFenceInstructions(*this);
  addMbarrierInstructions(*this);
  addBulkCopyInstructions(*this);
  addWarpgroupInstructions(*this);
  addClusterInstructions(*this);
  addControlInstructions(*this);
}

static Inst decode(Names &names, const ptx::Instruction &in, uint32_t scope,
                   std::vector<Touched> &touched) {
  static const InstructionTable table;
  std::string_view root = in.opcode.substr(0, in.opcode.find('.'));
  const std::vector<Decode> *decoders = table.find(root);
  if (decoders)
    for (Decode decode : *decoders) {
      Decoder d(names, in, scope);
      if (!decode(d))
        continue;
      d.finish();
      if (!in.guard.empty()) {
        ptx::Operand guard;
        guard.kind = ptx::Operand::Name;
        guard.name = in.guard;
        bool negated = false;
        d.out.guard = d.predicate(guard, negated);
        d.out.guardNegated = in.guardNegated;
      }
      touched.push_back({std::move(d.reads), std::move(d.writes)});
      return d.out;
    }
  Decoder(names, in, scope)
      .fail("an instruction that the simulator does not know");
}

/// What a compiler of ours says of the lines that .loc names: comments
/// "//tiles LINE TEXT" (nova/GpuCodegen/PtxEmitter.h).
static std::map<uint32_t, std::string> listedLines(std::string_view text) {
  static constexpr std::string_view mark = "\n//tiles ";
  std::map<uint32_t, std::string> lines;
  for (size_t at = text.find(mark); at != std::string_view::npos;
       at = text.find(mark, at + 1)) {
    std::string_view rest = text.substr(at + mark.size());
    rest = rest.substr(0, rest.find('\n'));
    uint32_t number = 0;
    auto end = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (end.ec == std::errc() && end.ptr != rest.data() + rest.size())
      lines[number] = std::string(end.ptr + 1, rest.data() + rest.size());
  }
  return lines;
}

Expected<Kernel> Kernel::load(std::string_view text, std::string_view symbol,
                              std::string_view name) {
  auto code = std::make_shared<Code>();
  code->name = name;
  code->symbol = symbol;
  code->text = text;
  // The tree's names are views of this copy.
  Expected<ptx::Module> module = ptx::parse(code->text);
  auto about = [&](const Error &error) {
    Error e = error;
    e.message = "kernel '" + std::string(name) + "': " + e.message;
    return e;
  };
  if (!module)
    return about(module.error());
  const ptx::Entry *entry = nullptr;
  for (const ptx::Entry &e : module->entries)
    if (e.name == symbol)
      entry = &e;
  if (!entry)
    return about(
        badInput("its PTX has no kernel '" + std::string(symbol) + "'"));
  if (entry->requiredThreads)
    code->requiredThreads = *entry->requiredThreads;
  if (entry->maxThreads)
    code->maxThreads = *entry->maxThreads;
  try {
    Names names(*module, *entry, *code);
    std::vector<Touched> touched;
    for (size_t k = 0; k < entry->body.size(); ++k)
      code->body.push_back(
          decode(names, entry->body[k], entry->instructionScopes[k], touched));
    // Who runs past the last instruction ends there.
    ptx::Instruction last;
    last.opcode = "exit";
    last.line = entry->body.empty() ? entry->line : entry->body.back().line;
    code->body.push_back(decode(names, last, 0, touched));
    watchRegisters(*code, touched);
  } catch (Unknown &unknown) {
    return about(unknown.error);
  }
  findReconvergence(*code);
  std::map<uint32_t, std::string> listed = listedLines(code->text);
  for (const ptx::Location &l : module->locations) {
    auto file = module->files.find(l.file);
    auto line = listed.find(l.line);
    std::string source;
    if (file != module->files.end())
      source = file->second + ":" + std::to_string(l.line) +
               (l.column ? ":" + std::to_string(l.column) : std::string());
    if (line != listed.end())
      source += " '" + line->second + "'";
    code->sources.push_back(source);
  }
  Kernel kernel;
  kernel.code = std::move(code);
  return kernel;
}

size_t Kernel::parameterCount() const { return code->parameters.size(); }
uint64_t Kernel::parameterBytes(size_t i) const {
  return code->parameters[i].bytes;
}
