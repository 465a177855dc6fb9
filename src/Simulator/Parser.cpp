//===- Parser.cpp - PTX text to a tree ------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lexer.h"
#include "Ptx.h"

#include <bit>
#include <cctype>
#include <charconv>

using namespace nova;
using namespace nova::sim;
using namespace nova::sim::ptx;

namespace {

/// Caught in parse(): nothing else of the library sees it.
struct Refused {
  Error error;
};

class Parser {
public:
  explicit Parser(std::string_view text) : words(split(text)) {}
  Module run();

private:
  const Word &peek(size_t ahead = 0) const {
    return words[std::min(next + ahead, words.size() - 1)];
  }
  std::string_view take() {
    std::string_view text = peek().text;
    if (next + 1 < words.size())
      ++next;
    return text;
  }
  bool accept(std::string_view text) {
    if (peek().text != text || peek().quoted)
      return false;
    take();
    return true;
  }
  [[noreturn]] void fail(std::string_view expected) const {
    std::string got = peek().text.empty() && !peek().quoted
                          ? "the end of the text"
                          : "'" + std::string(peek().text) + "'";
    throw Refused{badInput("PTX line " + std::to_string(peek().line) + ": " +
                           got + ", expected " + std::string(expected))};
  }
  void expect(std::string_view text) {
    if (!accept(text))
      fail("'" + std::string(text) + "'");
  }
  bool atNumber() const {
    return !peek().text.empty() &&
           std::isdigit(static_cast<unsigned char>(peek().text[0]));
  }
  uint64_t takeInteger();
  uint32_t takeSmall() { return static_cast<uint32_t>(takeInteger()); }
  std::vector<uint32_t> takeExtents();
  void skipTo(std::string_view end) {
    while (peek().text != end && next + 1 < words.size())
      take();
    expect(end);
  }

  std::optional<Type> typeOf(std::string_view word) const;
  Operand number();
  int64_t offset();
  Operand operand();
  Operand primary();
  Variable variable(Space space);
  void variables(Space space, std::vector<Variable> &into);
  void params(Entry &entry);
  void registers(Entry &entry, uint32_t scope);
  void entry();
  void body(Entry &entry, uint32_t scope);
  void instruction(Entry &entry, uint32_t scope);
  bool directive(Entry *entry, uint32_t scope);
  void section();

  std::vector<Word> words;
  size_t next = 0;
  Module module;
  uint32_t location = 0;
};

uint64_t Parser::takeInteger() {
  std::string_view text = peek().text;
  if (!text.empty() && (text.back() == 'U' || text.back() == 'u'))
    text.remove_suffix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X"))
    text.remove_prefix(2), base = 16;
  else if (text.starts_with("0b") || text.starts_with("0B"))
    text.remove_prefix(2), base = 2;
  else if (text.size() > 1 && text[0] == '0')
    text.remove_prefix(1), base = 8;
  uint64_t value = 0;
  auto end =
      std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || end.ec != std::errc() ||
      end.ptr != text.data() + text.size())
    fail("an integer");
  take();
  return value;
}

std::vector<uint32_t> Parser::takeExtents() {
  std::vector<uint32_t> extents{takeSmall()};
  while (accept(","))
    extents.push_back(takeSmall());
  return extents;
}

std::optional<Type> Parser::typeOf(std::string_view word) const {
  if (word == ".pred")
    return Type{'p', 1};
  if (word.size() < 3 || word[0] != '.')
    return std::nullopt;
  unsigned bits = 0;
  auto end = std::from_chars(word.data() + 2, word.data() + word.size(), bits);
  if (end.ec != std::errc() || end.ptr != word.data() + word.size() ||
      std::string_view("busf").find(word[1]) == std::string_view::npos)
    return std::nullopt;
  return Type{word[1], bits};
}

/// ISA 4.5: 0f and 0d give the bits; other reals are decimal.
Operand Parser::number() {
  Operand o;
  std::string_view text = peek().text;
  bool hex = text.size() > 2 && text[0] == '0';
  if (hex &&
      (text[1] == 'f' || text[1] == 'F' || text[1] == 'd' || text[1] == 'D')) {
    bool single = text[1] == 'f' || text[1] == 'F';
    uint64_t bits = 0;
    auto end =
        std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (end.ptr != text.data() + text.size() ||
        text.size() != (single ? 10 : 18))
      fail("0f with 8 or 0d with 16 hexadecimal digits");
    o.kind = single ? Operand::Single : Operand::Real;
    o.value = static_cast<int64_t>(bits);
    take();
    return o;
  }
  if (text.find('.') != std::string_view::npos) {
    double value = 0;
    auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size())
      fail("a number");
    o.kind = Operand::Real;
    o.value = std::bit_cast<int64_t>(value);
    take();
    return o;
  }
  o.value = static_cast<int64_t>(takeInteger());
  return o;
}

/// "+16", "+-16", "-16", or nothing.
int64_t Parser::offset() {
  uint64_t sum = 0;
  while (peek().text == "+" || peek().text == "-") {
    bool minus = take() == "-";
    if (accept("-"))
      minus = !minus;
    uint64_t value = takeInteger();
    sum += minus ? 0 - value : value;
  }
  return static_cast<int64_t>(sum);
}

Operand Parser::primary() {
  Operand o;
  if (accept("!")) {
    o = primary();
    o.negated = true;
    return o;
  }
  if (accept("-")) {
    o = number();
    if (o.kind == Operand::Integer)
      o.value = static_cast<int64_t>(0 - static_cast<uint64_t>(o.value));
    else
      o.value ^= int64_t(1) << (o.kind == Operand::Single ? 31 : 63);
    return o;
  }
  if (accept("{")) {
    o.kind = Operand::List;
    do
      o.items.push_back(operand());
    while (accept(","));
    expect("}");
    return o;
  }
  if (accept("[")) {
    o.kind = Operand::Address;
    o.items.push_back(primary());
    o.value = offset();
    while (accept(","))
      o.items.push_back(operand());
    expect("]");
    return o;
  }
  if (atNumber())
    return number();
  if (peek().text.empty() || peek().quoted ||
      !(std::isalpha(static_cast<unsigned char>(peek().text[0])) ||
        std::string_view("_$%").find(peek().text[0]) != std::string_view::npos))
    fail("an operand");
  o.kind = Operand::Name;
  o.name = take();
  // A variable and an offset: mov.b64 %rd, name+16.
  o.value = offset();
  return o;
}

Operand Parser::operand() {
  Operand first = primary();
  if (!accept("|"))
    return first;
  Operand pair;
  pair.kind = Operand::Pair;
  pair.items.push_back(std::move(first));
  pair.items.push_back(primary());
  return pair;
}

Variable Parser::variable(Space space) {
  Variable v;
  v.space = space;
  bool typed = false;
  while (peek().text.starts_with(".")) {
    if (accept(".align")) {
      v.alignment = takeInteger();
    } else if (accept(".ptr")) {
      // What a pointer points to is the manifest's to say.
    } else if (auto type = typeOf(peek().text)) {
      v.type = *type, typed = true;
      take();
    } else if (typed && (peek().text == ".global" || peek().text == ".shared" ||
                         peek().text == ".const" || peek().text == ".local")) {
      take();
    } else {
      fail("a type, .align or .ptr");
    }
  }
  if (!typed)
    fail("a type");
  // The alignment after .ptr is the pointee's.
  if (space == Space::Param && v.type.kind != 'b')
    v.alignment = v.type.bits / 8;
  v.alignment = std::max<uint64_t>(v.alignment, std::max(v.type.bits / 8, 1u));
  v.name = take();
  while (accept("[")) {
    v.elements = peek().text == "]" ? 0 : v.elements * takeInteger();
    expect("]");
  }
  if (accept("=")) {
    bool braces = accept("{");
    do {
      Operand o = primary();
      if (o.kind == Operand::Name || o.kind == Operand::List)
        fail("numbers as the initial value of '" + std::string(v.name) + "'");
      v.initial.push_back(o.value);
    } while (braces && accept(","));
    if (braces)
      expect("}");
  }
  return v;
}

void Parser::variables(Space space, std::vector<Variable> &into) {
  into.push_back(variable(space));
  expect(";");
}

void Parser::registers(Entry &entry, uint32_t scope) {
  auto type = typeOf(peek().text);
  if (!type)
    fail("a register type");
  take();
  do {
    Register r{take(), *type, std::nullopt, scope};
    if (accept("<")) {
      r.count = takeSmall();
      expect(">");
    }
    entry.registers.push_back(r);
  } while (accept(","));
  expect(";");
}

void Parser::section() {
  take();
  skipTo("{");
  skipTo("}");
}

/// Directives that may stand among instructions or between kernels; returns
/// whether there was one.
bool Parser::directive(Entry *entry, uint32_t scope) {
  std::string_view word = peek().text;
  if (word == ".loc") {
    take();
    Location l;
    l.file = takeSmall(), l.line = takeSmall(), l.column = takeSmall();
    // ISA 11.5.1: ", function_name label[+n], inlined_at file line column".
    while (accept(",")) {
      std::string_view attribute = take();
      if (attribute == "function_name") {
        take();
        if (accept("+"))
          takeInteger();
      } else if (attribute == "inlined_at") {
        takeInteger(), takeInteger(), takeInteger();
      } else {
        fail("function_name or inlined_at");
      }
    }
    location = static_cast<uint32_t>(module.locations.size());
    module.locations.push_back(l);
    return true;
  }
  if (word == ".file") {
    take();
    uint32_t index = takeSmall();
    module.files[index] = std::string(take());
    while (accept(","))
      takeInteger();
    return true;
  }
  if (word == ".section") {
    section();
    return true;
  }
  if (word == ".pragma") {
    skipTo(";");
    return true;
  }
  if (!entry)
    return false;
  if (word == ".reg") {
    take();
    registers(*entry, scope);
  } else if (word == ".shared" || word == ".local") {
    take();
    variables(word == ".local" ? Space::Local : Space::Shared,
              entry->variables);
  } else {
    return false;
  }
  return true;
}

void Parser::instruction(Entry &entry, uint32_t scope) {
  Instruction i;
  if (accept("@")) {
    i.guardNegated = accept("!");
    i.guard = take();
  }
  i.line = peek().line;
  i.location = location;
  if (peek().text.empty() ||
      !std::isalpha(static_cast<unsigned char>(peek().text[0])))
    fail("an instruction");
  i.opcode = take();
  if (peek().text != ";") {
    do
      i.operands.push_back(operand());
    while (accept(","));
  }
  expect(";");
  entry.body.push_back(std::move(i));
  entry.instructionScopes.push_back(scope);
}

void Parser::body(Entry &entry, uint32_t scope) {
  while (!accept("}")) {
    if (accept("{")) {
      entry.scopes.push_back(scope);
      body(entry, static_cast<uint32_t>(entry.scopes.size() - 1));
    } else if (peek(1).text == ":" && !peek().text.starts_with(".")) {
      std::string_view label = take();
      take();
      if (accept(".branchtargets")) {
        std::vector<std::string_view> &targets = entry.branchTargets[label];
        do
          targets.push_back(take());
        while (accept(","));
        expect(";");
      } else {
        entry.labels.push_back(
            {label, static_cast<uint32_t>(entry.body.size()), scope});
      }
    } else if (!directive(&entry, scope)) {
      instruction(entry, scope);
    }
  }
}

void Parser::params(Entry &entry) {
  if (!accept("("))
    return;
  if (accept(")"))
    return;
  do {
    expect(".param");
    entry.params.push_back(variable(Space::Param));
  } while (accept(","));
  expect(")");
}

void Parser::entry() {
  Entry e;
  e.line = peek().line;
  e.name = take();
  params(e);
  while (peek().text != "{") {
    if (accept(".reqntid"))
      e.requiredThreads = takeExtents();
    else if (accept(".maxntid"))
      e.maxThreads = takeExtents();
    else if (accept(".maxnreg"))
      e.maxRegisters = takeSmall();
    else if (accept(".minnctapersm") || accept(".maxclusterrank"))
      takeInteger();
    else if (accept(".reqnctapercluster"))
      takeExtents();
    else if (accept(".explicitcluster"))
      continue;
    else if (!directive(nullptr, 0))
      fail("'{' or a directive of the kernel");
  }
  expect("{");
  body(e, 0);
  module.entries.push_back(std::move(e));
}

Module Parser::run() {
  while (!peek().text.empty() || peek().quoted) {
    if (accept(".version")) {
      std::string_view text = take();
      size_t dot = text.find('.');
      if (dot == std::string_view::npos)
        fail("a version such as 8.0");
      unsigned major = 0, minor = 0;
      std::from_chars(text.data(), text.data() + dot, major);
      std::from_chars(text.data() + dot + 1, text.data() + text.size(), minor);
      module.version = 10 * major + minor;
    } else if (accept(".target")) {
      module.target = take();
      while (accept(","))
        take();
    } else if (accept(".address_size")) {
      if (takeInteger() != 64)
        throw Refused{
            badInput("PTX line " + std::to_string(peek().line) +
                     ": 32-bit addresses, expected .address_size 64")};
    } else if (accept(".extern") || accept(".visible") || accept(".weak") ||
               accept(".common")) {
      // Linkage: a kernel is found by its name, whatever it is.
    } else if (accept(".entry")) {
      entry();
    } else if (peek().text == ".func" || peek().text == ".alias") {
      throw Refused{
          Error{ErrorCode::Missing,
                "PTX line " + std::to_string(peek().line) +
                    ": a device function, which the simulator does not know",
                "kernels are simulated with everything inlined"}};
    } else if (accept(".shared")) {
      variables(Space::Shared, module.variables);
    } else if (accept(".global")) {
      variables(Space::Global, module.variables);
    } else if (accept(".const")) {
      variables(Space::Const, module.variables);
    } else if (!directive(nullptr, 0)) {
      fail("a directive");
    }
  }
  return std::move(module);
}

} // namespace

Expected<Module> ptx::parse(std::string_view text) {
  try {
    return Parser(text).run();
  } catch (Refused &refused) {
    return std::move(refused.error);
  }
}
