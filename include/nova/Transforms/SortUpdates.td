//===- SortUpdates.td - Updates sorted by their rows -------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_SORTUPDATES_TD
#define NOVA_TRANSFORMS_SORTUPDATES_TD

include "mlir/Pass/PassBase.td"

def SortUpdates : Pass<"nova-sort-updates", "::mlir::ModuleOp"> {
  let summary = "Sort the positions of accumulating index_puts by the row they go to";
  let description = [{
    For GPUs, before tiles are chosen. A grid point of a nova.index_put looks at all
    positions for those that fall into its rows. Where there are many, kernels that
    are launched before number the row of each position, sort the positions by it,
    stably, and find where each row's begin; nova.segment_sum then takes just its own.
    Each row's sum keeps the order of positions: its bits are what they were.
    Positions out of bounds come last, as a row that nobody takes.

    An entry of the order is the row, 32 bits, then the position: all differ, so that
    any sort is stable. Runs of up to 1024 are sorted by counting, for each entry, how
    many are less; then pairs of runs are merged, each place of the result finding its
    entry by bisection.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
  let options = [Option<"fewest", "fewest", "int64_t", "64", "positions from which on it is worth the launches">];
  let statistics = [Statistic<"numSorted", "sorted", "Accumulating index_puts whose positions are sorted">];
}

#endif // NOVA_TRANSFORMS_SORTUPDATES_TD
