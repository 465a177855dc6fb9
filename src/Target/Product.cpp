//===- Product.cpp - Which row a product is -------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Target/Target.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

using namespace nova;

/// Runs of letters and digits, in lower case.
static std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words(1);
  for (unsigned char c : text) {
    if (std::isalnum(c))
      words.back() += static_cast<char>(std::tolower(c));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty())
    words.pop_back();
  return words;
}

bool target::isProduct(std::string_view row, std::string_view product) {
  std::string wanted;
  for (const std::string &word : wordsOf(row))
    wanted += word;
  if (wanted.empty())
    return false;
  std::vector<std::string> words = wordsOf(product);
  for (size_t first = 0; first < words.size(); ++first) {
    std::string joined;
    for (size_t last = first; last < words.size(); ++last) {
      joined += words[last];
      if (joined.size() < wanted.size())
        continue;
      if (joined != wanted)
        break;
      // A cut-down or raised product of the same number.
      constexpr std::string_view others[] = {"ti", "super", "laptop", "mobile",
                                             "max"};
      return std::none_of(words.begin() + static_cast<ptrdiff_t>(last) + 1,
                          words.end(), [&](const std::string &word) {
                            return std::find(std::begin(others),
                                             std::end(others),
                                             word) != std::end(others);
                          });
    }
  }
  return false;
}

const target::Device *target::deviceOf(std::string_view arch,
                                       std::string_view product) {
  for (const Device &device : devices())
    if (device.arch == arch && isProduct(device.name, product))
      return &device;
  for (const Device &device : devices())
    if (device.arch == arch && device.canonical)
      return &device;
  return nullptr;
}
