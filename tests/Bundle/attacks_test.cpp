//===- attacks_test.cpp - Every bad manifest gives its one error ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attacks/table.txt names the files and the errors; attacks/make_attacks.py
// writes the files.
//
//===----------------------------------------------------------------------===//

#include "Goldens.h"
#include "nova/Bundle/Manifest.h"
#include "nova/Support/File.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

using namespace nova;
using namespace nova::bundle;

namespace {

const std::string folder = NOVA_TEST_SOURCE "/attacks";

struct Attack {
  std::string name, expected;
};

/// The lines of the table; comments go to `head`.
std::vector<Attack> readTable(std::string *head = nullptr) {
  std::vector<Attack> attacks;
  std::istringstream in(*readFile(folder + "/table.txt", "table"));
  for (std::string line; std::getline(in, line);) {
    size_t tab = line.find('\t');
    if (tab != std::string::npos)
      attacks.push_back({line.substr(0, tab), line.substr(tab + 1)});
    else if (head)
      *head += line + "\n";
  }
  return attacks;
}

std::string errorOf(const std::string &name) {
  Expected<std::string> text =
      readFile(folder + "/" + name + ".json", "attack");
  if (!text)
    return text.error().message;
  Expected<Manifest> r = readManifest(*text, "manifest");
  return r ? "accepted" : r.error().message;
}

} // namespace

bool test::regenerateAttacks() {
  std::string out;
  for (const Attack &attack : readTable(&out))
    out += attack.name + "\t" + errorOf(attack.name) + "\n";
  return static_cast<bool>(writeIfChanged(folder + "/table.txt", out));
}

TEST(Attacks, EachGivesItsError) {
  std::vector<Attack> attacks = readTable();
  EXPECT_GT(attacks.size(), 100u);
  for (const Attack &attack : attacks) {
    EXPECT_NE(attack.expected, "accepted") << attack.name;
    EXPECT_EQ(errorOf(attack.name), attack.expected) << attack.name;
  }
}

TEST(Attacks, TheTableNamesEveryFile) {
  size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    files += entry.path().extension() == ".json";
  EXPECT_EQ(files, readTable().size());
}
