//===- NearestNames.cpp - "Did you mean" ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Graph/NearestNames.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace nova::graph;

size_t nova::graph::editDistance(std::string_view a, std::string_view b,
                                 size_t limit) {
  size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (gap > limit)
    return limit + 1;
  // Three rows of the table: the one before last is for swaps.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1),
      row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    size_t least = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least > limit)
      return limit + 1;
    std::swap(before, last);
    std::swap(last, row);
  }
  return std::min(last[b.size()], limit + 1);
}

std::vector<std::string>
nova::graph::nearestNames(std::string_view name,
                          const std::vector<std::string_view> &known,
                          size_t count) {
  size_t limit = std::max<size_t>(2, name.size() / 3);
  std::vector<std::pair<size_t, std::string_view>> found;
  for (std::string_view candidate : known) {
    size_t distance = editDistance(name, candidate, limit);
    if (distance <= limit)
      found.emplace_back(distance, candidate);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < found.size() && i < count; ++i)
    names.emplace_back(found[i].second);
  return names;
}
