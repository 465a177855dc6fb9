//===- NovaDialect.cpp - Registration, attributes, shared shape helpers ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/IR/NovaKernelOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "nova/IR/NovaDialect.cpp.inc"
#include "nova/IR/NovaEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "nova/IR/NovaAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "nova/IR/NovaOps.cpp.inc"
#define GET_OP_CLASSES
#include "nova/IR/NovaKernelOps.cpp.inc"

void nova::NovaDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "nova/IR/NovaAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "nova/IR/NovaOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "nova/IR/NovaKernelOps.cpp.inc"
      >();
}

Operation *nova::NovaDialect::materializeConstant(OpBuilder &builder,
                                                  Attribute value, Type type,
                                                  Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getShapedType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

FailureOr<SmallVector<int64_t>> nova::broadcastShapes(ArrayRef<int64_t> lhs,
                                                      ArrayRef<int64_t> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  SmallVector<int64_t> result(lhs);
  size_t lead = lhs.size() - rhs.size();
  for (size_t i = 0; i < rhs.size(); ++i) {
    int64_t &dim = result[lead + i];
    if (dim == rhs[i] || rhs[i] == 1)
      continue;
    if (dim != 1)
      return failure();
    dim = rhs[i];
  }
  return result;
}

SmallVector<int64_t> nova::contiguousStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i)
    strides[i - 2] = strides[i - 1] * std::max<int64_t>(shape[i - 1], 1);
  return strides;
}

int64_t nova::elementBytes(Type type) {
  return std::max<int64_t>(1, type.getIntOrFloatBitWidth() / 8);
}
