//===- Lexer.h - PTX text as words ----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, 4.1 "Source Format" to 4.5 "Constants". A word is a directive
// (.reg), an opcode with its modifiers, a name, a number or one punctuation
// character; dots join an opcode's modifiers into one word.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_LEXER_H
#define NOVA_SIMULATOR_LEXER_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace nova::sim::ptx {

struct Word {
  std::string_view text;
  uint32_t line = 0;
  bool quoted = false;
};

/// The words of `text`; the last one is empty and has the last line.
std::vector<Word> split(std::string_view text);

} // namespace nova::sim::ptx

#endif // NOVA_SIMULATOR_LEXER_H
