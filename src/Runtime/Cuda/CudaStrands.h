//===- CudaStrands.h - Which launches of a graph may run side by side -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime. A pure function over indices.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDASTRANDS_H
#define NOVA_RUNTIME_CUDA_CUDASTRANDS_H

#include <cstdint>
#include <vector>

namespace nova::rt::cuda {

/// The edges of a graph of launches, per launch the earlier ones that it comes
/// right after: everything that `after` orders stays in order, nothing is said
/// twice, and at most `most` launches are ever free to run at once.
///
/// A launch of the driver pays for every branch of a graph: 454 launches with
/// 50 in one place side by side take 22 us of the CPU on an H200, the same ones
/// in 8 strands 3 us, and a GPU gains nothing from more branches than it has
/// room for. Launches are dealt to strands in their order: to one that ends in
/// a launch which comes before this one anyway, else to one that is not begun,
/// else to the one that ended first, which adds an edge.
std::vector<std::vector<uint32_t>>
edgesInStrands(const std::vector<std::vector<uint32_t>> &after, unsigned most);

} // namespace nova::rt::cuda

#endif // NOVA_RUNTIME_CUDA_CUDASTRANDS_H
