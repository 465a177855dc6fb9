//===- StridedView.cpp - Views of tensors as offset and strides ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/IR/StridedView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nova;

StridedView StridedView::contiguous(ArrayRef<int64_t> shape) {
  return {0, SmallVector<int64_t>(shape), contiguousStrides(shape)};
}

bool StridedView::isContiguous() const {
  if (llvm::is_contained(shape, 0))
    return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1)
      continue;
    if (strides[i] != expected)
      return false;
    expected *= shape[i];
  }
  return offset == 0;
}

StridedView StridedView::transpose(ArrayRef<int64_t> permutation) const {
  StridedView result{offset, {}, {}};
  for (int64_t p : permutation) {
    result.shape.push_back(shape[p]);
    result.strides.push_back(strides[p]);
  }
  return result;
}

StridedView StridedView::slice(ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> steps) const {
  StridedView result{offset, SmallVector<int64_t>(sizes), {}};
  for (size_t i = 0; i < shape.size(); ++i) {
    result.offset += offsets[i] * strides[i];
    result.strides.push_back(strides[i] * steps[i]);
  }
  return result;
}

StridedView StridedView::broadcast(ArrayRef<int64_t> to) const {
  StridedView result{offset, SmallVector<int64_t>(to), SmallVector<int64_t>(to.size(), 0)};
  size_t lead = to.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    result.strides[lead + i] = shape[i] == to[lead + i] ? strides[i] : 0;
  return result;
}

std::optional<StridedView> StridedView::reshape(ArrayRef<int64_t> to) const {
  if (llvm::is_contained(to, 0) || shape.empty()) {
    StridedView result = contiguous(to);
    result.offset = offset;
    return result;
  }
  // Runs of dimensions that lie like one: {size, stride of the innermost}.
  SmallVector<std::pair<int64_t, int64_t>> runs;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1)
      continue;
    if (!runs.empty() && strides[i] == runs.back().first * runs.back().second)
      runs.back().first *= shape[i];
    else
      runs.push_back({shape[i], strides[i]});
  }
  // Each run must be cut into whole dimensions of the new shape.
  StridedView result{offset, SmallVector<int64_t>(to), SmallVector<int64_t>(to.size(), 1)};
  size_t run = 0;
  int64_t left = runs.empty() ? 1 : runs[0].first;
  int64_t stride = runs.empty() ? 1 : runs[0].second;
  for (size_t i = to.size(); i-- > 0;) {
    if (to[i] == 1) {
      result.strides[i] = stride;
      continue;
    }
    if (left == 1 && ++run < runs.size()) {
      left = runs[run].first;
      stride = runs[run].second;
    }
    if (left % to[i] != 0)
      return std::nullopt;
    result.strides[i] = stride;
    stride *= to[i];
    left /= to[i];
  }
  return result;
}

std::optional<StridedView> nova::applyView(Operation *op, const StridedView &in) {
  using Result = std::optional<StridedView>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](TransposeOp o) -> Result { return in.transpose(o.getPermutation()); })
      .Case([&](SliceOp o) -> Result {
        return in.slice(o.getOffsets(), o.getSizes(), o.getStrides());
      })
      .Case([&](BroadcastOp o) -> Result { return in.broadcast(o.getType().getShape()); })
      .Case([&](ReshapeOp o) -> Result { return in.reshape(o.getType().getShape()); })
      .Default([](Operation *) -> Result { return std::nullopt; });
}

bool nova::isView(Operation *op) {
  return op && op->hasTrait<nova::ViewLike>();
}

StridedView nova::baseLayout(Value base) {
  auto shape = cast<RankedTensorType>(base.getType()).getShape();
  StridedView view = StridedView::contiguous(shape);
  if (auto argument = dyn_cast<BlockArgument>(base))
    if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      if (auto strides = func.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(),
                                                                  attr::strides))
        view.strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
  return view;
}

ResolvedView nova::resolveView(Value value) {
  SmallVector<Operation *> chain;
  while (isView(value.getDefiningOp())) {
    chain.push_back(value.getDefiningOp());
    value = chain.back()->getOperand(0);
  }
  ResolvedView resolved{value, baseLayout(value)};
  for (Operation *op : llvm::reverse(chain)) {
    resolved.view = applyView(op, *resolved.view);
    if (!resolved.view) {
      resolved.blocker = op;
      return resolved;
    }
  }
  // No elements lie anywhere; an offset could be beyond a base without bytes.
  if (llvm::is_contained(resolved.view->shape, 0))
    resolved.view->offset = 0;
  return resolved;
}

SmallVector<int64_t> nova::invertPermutation(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, p] : llvm::enumerate(permutation))
    inverse[p] = i;
  return inverse;
}
