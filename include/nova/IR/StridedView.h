//===- StridedView.h - Views of tensors as offset and strides --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The algebra by which a chain of nova views becomes one offset and one stride
// per dimension: what a kernel argument is.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_IR_STRIDEDVIEW_H
#define NOVA_IR_STRIDEDVIEW_H

#include "nova/IR/Nova.h"

#include <optional>

namespace nova {

/// Element (i0, i1, ...) lies at offset + sum i_d * strides[d], in elements of
/// the underlying memory.
struct StridedView {
  int64_t offset = 0;
  llvm::SmallVector<int64_t> shape, strides;

  static StridedView contiguous(llvm::ArrayRef<int64_t> shape);
  bool operator==(const StridedView &) const = default;

  /// Row-major, without gaps, from offset 0. Strides of dimensions of size 1
  /// do not count; an empty view is contiguous.
  bool isContiguous() const;

  StridedView transpose(llvm::ArrayRef<int64_t> permutation) const;
  StridedView slice(llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> steps) const;
  StridedView broadcast(llvm::ArrayRef<int64_t> to) const;
  /// The same elements in row-major order under another shape; nothing when no
  /// single set of strides says that.
  std::optional<StridedView> reshape(llvm::ArrayRef<int64_t> to) const;
};

/// The view of `op`'s result, given the view of its input; nothing where it has
/// no strided form. `op` must be view-like.
std::optional<StridedView> applyView(mlir::Operation *op, const StridedView &input);

/// Whether `op` only rearranges (nova's view-like operations).
bool isView(mlir::Operation *op);

/// The value that holds the memory `value` is a view of (itself, if no view
/// made it), and how it lies there. `view` is empty when the chain has no
/// strided form; `blocker` is then the first view operation without one.
struct ResolvedView {
  mlir::Value base;
  std::optional<StridedView> view;
  mlir::Operation *blocker = nullptr;
};
ResolvedView resolveView(mlir::Value value);

/// How a value that is no view lies in memory: contiguous, or as `nova.strides`
/// of its step argument says.
StridedView baseLayout(mlir::Value base);

/// The inverse of a permutation.
llvm::SmallVector<int64_t> invertPermutation(llvm::ArrayRef<int64_t> permutation);

} // namespace nova

#endif // NOVA_IR_STRIDEDVIEW_H
