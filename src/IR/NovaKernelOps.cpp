//===- NovaKernelOps.cpp - Result types of operations of kernels -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/IR/NovaKernelOps.h"

using namespace mlir;
using namespace nova;

LogicalResult SegmentSumOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a,
                                             SmallVectorImpl<Type> &out) {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  RankedTensorType type = typeOf(a.getInit()), updates = typeOf(a.getUpdates());
  out.push_back(type);
  int64_t rows = a.getRows(), inner = type.getRank() - rows;
  if (rows < 1 || inner < 0 || inner > updates.getRank() || updates.getElementType() != type.getElementType() ||
      updates.getShape().take_back(inner) != type.getShape().take_back(inner))
    return emitOptionalError(loc, getOperationName(), ": updates are ", updates, ", expected the dimensions of ", type,
                             " behind its ", rows, " of rows");
  int64_t count = 1;
  for (int64_t extent : type.getShape().take_front(rows))
    count *= extent;
  if (typeOf(a.getOrder()).getRank() != 1)
    return emitOptionalError(loc, getOperationName(), ": order is ", typeOf(a.getOrder()), ", expected rank 1");
  ArrayRef<int64_t> bounds = typeOf(a.getBounds()).getShape();
  if (bounds.size() != 1 || bounds[0] != count + 1)
    return emitOptionalError(loc, getOperationName(), ": bounds are ", typeOf(a.getBounds()), ", expected shape [",
                             count + 1, "]");
  return success();
}
