//===- Promotion.h - PyTorch's type promotion -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands have three ranks: tensors with dimensions, 0-d tensors, and Python
// numbers. A higher rank decides within its category (bool < integer <
// floating); a lower rank only raises the category. A Python float counts as
// float32, a Python int as int64.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_IMPORT_PROMOTION_H
#define NOVA_SRC_IMPORT_PROMOTION_H

#include "nova/Graph/Graph.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace nova::importer {

/// A bool, an integer or a floating number, as Python wrote it.
struct Number {
  graph::DType dtype = graph::DType::Int64; ///< Bool, Int64 or Float32
  int64_t integer = 0;
  double floating = 0;

  static std::optional<Number> of(const graph::Value &value);
  static Number ofInt(int64_t value);
  static Number ofFloat(double value);
  /// As a double (int64 beyond 2^53 rounds).
  double asDouble() const;
  bool isFloat() const { return dtype == graph::DType::Float32; }
};

/// The dtype of two tensors of one rank together.
graph::DType promote(graph::DType a, graph::DType b);

/// Accumulates operands; result() is torch.result_type of them.
class ResultType {
public:
  void addTensor(graph::DType dtype, bool hasDims);
  void addNumber(const Number &number);
  graph::DType result() const;

private:
  std::optional<graph::DType> dims, zeroDims, numbers;
};

/// float32 for the 16-bit floats, which PyTorch computes in float32 and rounds
/// once; the dtype itself otherwise.
graph::DType computeType(graph::DType dtype);

/// The element type of a dtype, and back (for element types of nova tensors).
mlir::Type elementType(graph::DType dtype, mlir::MLIRContext *context);
graph::DType dtypeOf(mlir::Type elementType);

/// tensor<...> of a graph tensor.
mlir::RankedTensorType tensorType(const graph::Tensor &tensor,
                                  mlir::MLIRContext *context);

} // namespace nova::importer

#endif // NOVA_SRC_IMPORT_PROMOTION_H
