//===- Lexer.cpp - PTX text as words --------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lexer.h"

#include <cctype>

using namespace nova::sim::ptx;

static bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

std::vector<Word> nova::sim::ptx::split(std::string_view text) {
  std::vector<Word> words;
  uint32_t line = 1;
  size_t i = 0;
  auto at = [&](size_t k) { return k < text.size() ? text[k] : '\0'; };
  while (i < text.size()) {
    char c = text[i];
    if (c == '\n') {
      ++line, ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == '\0') {
      ++i;
    } else if (c == '/' && at(i + 1) == '/') {
      while (i < text.size() && text[i] != '\n')
        ++i;
    } else if (c == '/' && at(i + 1) == '*') {
      for (i += 2; i < text.size() && !(text[i] == '*' && at(i + 1) == '/');
           ++i)
        line += text[i] == '\n';
      i += 2;
    } else if (c == '"') {
      size_t end = text.find('"', i + 1);
      if (end == std::string_view::npos)
        end = text.size();
      words.push_back({text.substr(i + 1, end - i - 1), line, true});
      i = end + 1;
    } else if (isWordCharacter(c)) {
      size_t end = i;
      // "::" is inside a modifier (.shared::cta); a single ':' ends a label.
      while (end < text.size() && (isWordCharacter(text[end]) ||
                                   (text[end] == ':' && at(end + 1) == ':')))
        end += text[end] == ':' ? 2 : 1;
      words.push_back({text.substr(i, end - i), line});
      i = end;
    } else {
      words.push_back({text.substr(i, 1), line});
      ++i;
    }
  }
  words.push_back({{}, line});
  return words;
}
