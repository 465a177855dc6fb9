//===- Windows.h - What slides over a convolution's or pooling's input ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A window of kernel K, stride s, dilation d over an input [N, C, S...] padded
// by p on both sides. Tap t of the window (one place of the kernel) reads a
// strided slice of the padded input, of the output's extents: all that windows
// are made of.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_IMPORT_WINDOWS_H
#define NOVA_SRC_IMPORT_WINDOWS_H

#include "Call.h"

namespace nova::importer {

struct Windows {
  llvm::SmallVector<int64_t> input;  ///< [N, C, S...]
  llvm::SmallVector<int64_t> kernel; ///< per spatial dimension, as below
  llvm::SmallVector<int64_t> stride, padding, dilation;
  llvm::SmallVector<int64_t> count; ///< of windows: the output's extents

  int64_t spatialRank() const { return int64_t(kernel.size()); }
  int64_t taps() const;
  /// The kernel's coordinates of tap t, row-major.
  llvm::SmallVector<int64_t> tap(int64_t t) const;
  int64_t windows() const;
  /// Windows lie side by side and nothing is padded.
  bool cutsPatches() const;
};

/// Reads `kernel` (given), and the call's stride (empty: the kernel), padding
/// and dilation, each one number or one per dimension. `ceil`: a last window
/// that begins inside may end outside. Without `dilated` the call has no
/// dilation.
mlir::FailureOr<Windows> readWindows(Call &call, mlir::Value input,
                                     llvm::ArrayRef<int64_t> kernel, bool ceil,
                                     bool dilated = true);

/// The input padded with `value`, so far that every tap of every window lies
/// inside.
mlir::Value padWindows(Call &call, const Windows &w, mlir::Value input,
                       const Number &value);
/// What tap t reads: [N, C, count...].
mlir::Value readTap(Call &call, const Windows &w, mlir::Value padded,
                    int64_t t);
/// The transpose: the sum over taps of `parts[t]` [N, C, count...] put where
/// the tap reads, without the padding: [N, C, S...].
mlir::Value sumTaps(Call &call, const Windows &w,
                    llvm::ArrayRef<mlir::Value> parts);

} // namespace nova::importer

#endif // NOVA_SRC_IMPORT_WINDOWS_H
