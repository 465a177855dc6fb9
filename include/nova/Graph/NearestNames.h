//===- NearestNames.h - "Did you mean" ------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_GRAPH_NEARESTNAMES_H
#define NOVA_GRAPH_NEARESTNAMES_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nova::graph {

/// Edit distance: insertions, deletions, replacements and swaps of neighbours
/// each cost 1. Returns `limit` + 1 as soon as it must be larger than `limit`.
size_t editDistance(std::string_view a, std::string_view b, size_t limit);

/// Up to `count` of `known`, nearest first (ties by name), none further away
/// than about a third of the name's length.
std::vector<std::string>
nearestNames(std::string_view name, const std::vector<std::string_view> &known,
             size_t count = 3);

} // namespace nova::graph

#endif // NOVA_GRAPH_NEARESTNAMES_H
