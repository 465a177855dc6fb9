//===- TileCandidates.h - Schedules worth a look ---------------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_CONFIG_TILECANDIDATES_H
#define NOVA_SRC_CONFIG_TILECANDIDATES_H

#include "nova/Config/Tiles.h"

namespace nova::config {

/// Schedules for the problem, each once, of which nothing is known yet: tile,
/// warps, stages, family and what the reason begins with ("products of tiles").
/// The first of several that are as good is to be preferred. Never empty.
std::vector<TileSchedule> enumerate(const TileProblem &problem, const target::Device &device);

} // namespace nova::config

#endif // NOVA_SRC_CONFIG_TILECANDIDATES_H
