//===- Help.cpp - Help, generated from the tables -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Driver/Options.h"
#include "nova/Support/Version.h"

#include <algorithm>
#include <array>

using namespace nova;
using namespace nova::driver;

static constexpr size_t kWidth = 80;

static constexpr std::string_view kExitStatus =
    "Exit status:\n"
    "  0  done\n"
    "  1  the input is missing, unreadable or rejected\n"
    "  2  usage: unknown flag, target, stage or value\n"
    "  3  internal error: a reproducer is written, its path is the last line\n"
    "  4  something this needs is missing here: assembler, driver, GPU, a\n"
    "     writable output, disk space\n"
    "  5  verification failed: numbers, or a wrong digest\n";

static constexpr std::array<std::pair<Category, std::string_view>, 6>
    kCategories = {{{Category::Output, "What is written"},
                    {Category::Codegen, "Code generation"},
                    {Category::Cache, "Cache"},
                    {Category::Insight, "Insight"},
                    {Category::Data, "Data"},
                    {Category::General, "General"}}};

/// Appends `left`, padded to `indent`, and `words` wrapped beside it.
static void appendRow(std::string &out, std::string left, size_t indent,
                      std::string_view words) {
  if (left.size() + 2 > indent) {
    out += left + "\n";
    left.clear();
  }
  left.resize(indent, ' ');
  size_t column = indent;
  out += left;
  for (size_t begin = 0; begin < words.size();) {
    size_t end = std::min(words.find(' ', begin), words.size());
    std::string_view word = words.substr(begin, end - begin);
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    begin = end + 1;
  }
  out += '\n';
}

static std::string title(const VerbInfo &info) {
  std::string text = "novac " + std::string(info.name);
  if (!info.operands.empty())
    text += " " + std::string(info.operands);
  return text;
}

std::string driver::generalHelp() {
  std::string out = "novac " + std::string(versionString()) +
                    ": compiles a whole training step ahead of time\n\n"
                    "Usage: novac VERB ... [flags]\n\n";
  for (const VerbInfo &info : verbs())
    appendRow(out, "  " + title(info).substr(6), 24,
              std::string(info.help) +
                  (info.available ? "" : " (not in this version)"));
  out += "\n`novac VERB --help` lists the flags of a verb.\n\n";
  out += "GRAPH is nova.graph JSON, or nova MLIR (text or bytecode), or - for "
         "standard\ninput. Data goes to standard output, everything else to "
         "standard error.\n\n";
  return out + std::string(kExitStatus);
}

std::string driver::verbHelp(Verb verb) {
  const VerbInfo &info = verbInfo(verb);
  std::string out = title(info) + " [flags]\n\n";
  appendRow(out, "", 2, info.help);
  if (!info.available)
    out += "\nThis verb is not in this version.\n";
  for (auto [category, heading] : kCategories) {
    bool first = true;
    for (const Flag &flag : flags()) {
      if (flag.category != category || !flag.verbs.has(verb))
        continue;
      if (first)
        out += "\n" + std::string(heading) + ":\n";
      first = false;
      std::string left =
          flag.letter ? std::string("  -") + flag.letter + ", --" : "      --";
      left += flag.name;
      if (!flag.value.empty())
        left += " " + std::string(flag.value);
      std::string help(flag.help);
      if (flag.effect == Effect::OutputChanging)
        help += " [changes the output]";
      if (!flag.missing.empty())
        help += " (not in this version)";
      appendRow(out, left, 30, help);
    }
  }
  return out;
}
