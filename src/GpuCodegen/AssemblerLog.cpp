//===- AssemblerLog.cpp - What ptxas -v prints ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   ptxas info    : 0 bytes gmem
//   ptxas info    : Compiling entry function 'f' for 'sm_90a'
//   ptxas info    : (C7511) Potential Performance Loss: ... in function 'f'
//   ptxas info    : Function properties for f
//       8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
//   ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem
//   ptxas warning : ...
//   ptxas /tmp/k.ptx, line 12; warning : ...
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/Assembler.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace nova {

/// The number before `unit` in a list like "8 bytes stack frame, ...", or 0.
static uint64_t numberBefore(StringRef line, StringRef unit) {
  SmallVector<StringRef> parts;
  line.split(parts, ',');
  for (StringRef part : parts) {
    part = part.trim();
    part.consume_front("Used ");
    uint64_t value;
    if (part.consume_back(unit) && !part.trim().getAsInteger(10, value))
      return value;
  }
  return 0;
}

/// Strips "ptxas warning : " and the like; the input keeps its line only.
static StringRef withoutPrefix(StringRef line) {
  size_t colon = line.find(" : ");
  return colon == StringRef::npos ? line : line.substr(colon + 3).trim();
}

void parseAssemblerLog(StringRef log, StringRef input, Assembled &result) {
  static const Regex codeForm("\\((C[0-9]{4})\\)");
  SmallVector<StringRef> lines;
  log.split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    AssembledEntry *entry =
        result.entries.empty() ? nullptr : &result.entries.back();
    SmallVector<StringRef> code;
    bool coded = codeForm.match(line, &code);
    size_t name = line.find("Compiling entry function '");
    if (name != StringRef::npos) {
      result.entries.emplace_back();
      result.entries.back().name =
          line.substr(name).split('\'').second.split('\'').first.str();
    } else if (coded || line.contains("warning")) {
      AssemblerWarning warning;
      if (coded)
        warning.code = code[1].str();
      StringRef text = withoutPrefix(line);
      if (coded)
        text.consume_front(("(" + code[1] + ")").str());
      warning.text = text.trim().str();
      size_t at = input.empty() ? StringRef::npos : line.find(input);
      if (at != StringRef::npos) // ", line 12; warning : text"
        warning.text =
            line.substr(at + input.size()).split(';').first.ltrim(", ").str() +
            ": " + warning.text;
      result.warnings.push_back(std::move(warning));
    } else if (entry && line.contains("bytes stack frame")) {
      entry->stackBytes = numberBefore(line, " bytes stack frame");
      entry->spillStoreBytes = numberBefore(line, " bytes spill stores");
      entry->spillLoadBytes = numberBefore(line, " bytes spill loads");
    } else if (entry && line.contains(": Used ")) {
      StringRef used = withoutPrefix(line);
      entry->registers = numberBefore(used, " registers");
      entry->staticSharedBytes = numberBefore(used, " bytes smem");
    }
  }
}

} // namespace nova
