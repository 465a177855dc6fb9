//===- CudaStrands.cpp - Which launches of a graph may run side by side ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaStrands.h"

#include <algorithm>

using namespace nova::rt::cuda;

std::vector<std::vector<uint32_t>>
nova::rt::cuda::edgesInStrands(const std::vector<std::vector<uint32_t>> &after,
                               unsigned most) {
  // In a strand launches follow one another, so what comes before a launch is
  // known by the last such launch of each strand: one number per strand, 0 for
  // none, else the launch's index and one.
  size_t count = after.size();
  std::vector<std::vector<uint32_t>> edges(count);
  std::vector<std::vector<uint32_t>> before(count);
  std::vector<uint32_t> strandOf(count), tails; // tails: index and one
  auto comesBefore = [&](uint32_t earlier, uint32_t launch) {
    return earlier < before[launch][strandOf[earlier]];
  };
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<uint32_t> &mine = before[i];
    mine.assign(most, 0);
    auto add = [&](uint32_t earlier) {
      for (unsigned s = 0; s < most; ++s)
        mine[s] = std::max(mine[s], before[earlier][s]);
      uint32_t &own = mine[strandOf[earlier]];
      own = std::max(own, earlier + 1);
    };
    for (uint32_t earlier : after[i])
      add(earlier);
    edges[i] = after[i];
    // The strand: the one that ends last among those it follows anyway.
    size_t strand = tails.size();
    for (size_t s = 0; s < tails.size(); ++s)
      if (mine[s] == tails[s] &&
          (strand == tails.size() || tails[s] > tails[strand]))
        strand = s;
    if (strand == tails.size() && tails.size() == most) {
      strand = static_cast<size_t>(
          std::min_element(tails.begin(), tails.end()) - tails.begin());
      add(tails[strand] - 1);
      edges[i].push_back(tails[strand] - 1);
    } else if (strand == tails.size()) {
      tails.push_back(0);
    }
    strandOf[i] = static_cast<uint32_t>(strand);
    tails[strand] = i + 1;
    // What another edge implies need not be said.
    std::vector<uint32_t> &list = edges[i];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    std::vector<uint32_t> all = list;
    std::erase_if(list, [&](uint32_t one) {
      return std::any_of(all.begin(), all.end(), [&](uint32_t other) {
        return other != one && comesBefore(one, other);
      });
    });
  }
  return edges;
}
