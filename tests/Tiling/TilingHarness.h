//===- TilingHarness.h - Kernels as tile programs, run and compared --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_TILING_TILINGHARNESS_H
#define NOVA_TESTS_TILING_TILINGHARNESS_H

#include "../HostCodegen/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace nova::test {

struct TilingOptions {
  /// Random integers of argument i lie in [first, second].
  std::map<unsigned, std::pair<int64_t, int64_t>> range;
  std::pair<int64_t, int64_t> integers = {-3, 20};
  /// Arguments of rank 1 whose integers do not decrease.
  std::set<unsigned> sorted;
  /// Random floats lie in [first, second].
  std::pair<double, double> floats = {-1, 1};
  /// Mixes NaN and infinities into the floats, one in so many; 0: none.
  unsigned specials = 0;
  /// Largest error relative to the largest element of a result.
  double tolerance = 1e-5;
  unsigned seed = 1;
};

/// A context with the dialects of kernels and of tile programs.
mlir::MLIRContext &context();

/// About how many steps the reference takes for `kernel`.
int64_t referenceWork(mlir::func::FuncOp kernel);

/// Runs the kernel's tile program and the kernel itself (an interpreter of whole
/// tensors in double precision) on random arguments and compares every result.
/// A kernel without nova.local_tile is configured for a GPU first.
void checkTiles(mlir::func::FuncOp kernel, const TilingOptions &options = {});

/// The same for the kernel in `text`.
void checkTiles(const std::string &text, const TilingOptions &options = {});

/// Replaces every $NAME in `text`.
std::string filled(std::string text, const std::map<std::string, std::string> &values);

} // namespace nova::test

#endif // NOVA_TESTS_TILING_TILINGHARNESS_H
