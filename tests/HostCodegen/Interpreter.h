//===- Interpreter.h - Kernel functions, the slow and obvious way ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference of the host code generator's tests: whole tensors, op by op,
// in double precision, knowing nothing of grids, tiles or memory.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_HOSTCODEGEN_INTERPRETER_H
#define NOVA_TESTS_HOSTCODEGEN_INTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace nova::test {

/// One element: integers (and i1) in `i`, floats in `f`.
struct Scalar {
  double f = 0;
  int64_t i = 0;
};

/// A tensor in row-major order.
struct Tensor {
  mlir::Type elementType;
  std::vector<int64_t> shape;
  std::vector<Scalar> elements;

  explicit Tensor(mlir::RankedTensorType type)
      : elementType(type.getElementType()), shape(type.getShape()),
        elements(type.getNumElements()) {}
  Tensor() = default;
  int64_t linear(const std::vector<int64_t> &index) const;
};

/// Calls `visit` with every index of `shape`, row-major.
void forEachIndex(
    const std::vector<int64_t> &shape,
    const std::function<void(const std::vector<int64_t> &)> &visit);

/// The results of `kernel` on `arguments`. Aborts on an op it does not know.
std::vector<Tensor> interpret(mlir::func::FuncOp kernel,
                              const std::vector<Tensor> &arguments);

} // namespace nova::test

#endif // NOVA_TESTS_HOSTCODEGEN_INTERPRETER_H
