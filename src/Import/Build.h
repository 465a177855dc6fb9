//===- Build.h - Making nova operations from importers --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every helper takes and returns null values for "failed already": an importer
// can chain helpers and look once, at the end. The first failure of a chain has
// emitted its diagnostic.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_IMPORT_BUILD_H
#define NOVA_SRC_IMPORT_BUILD_H

#include "Promotion.h"
#include "nova/IR/Nova.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace nova::importer {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return typeOf(value).getShape();
}
inline int64_t rankOf(mlir::Value value) { return typeOf(value).getRank(); }
inline graph::DType dtypeOf(mlir::Value value) {
  return dtypeOf(typeOf(value).getElementType());
}
/// "[3,40]".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// What MLIR says while `check` fails; empty if it succeeds.
std::string objections(mlir::MLIRContext *context,
                       llvm::function_ref<mlir::LogicalResult()> check);

/// As a graph file would spell it.
std::string numberText(double value);

class Build {
public:
  Build(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}
  virtual ~Build() = default;

  mlir::MLIRContext *context() { return builder.getContext(); }

  /// Emits "PATH: what" for the node; always failure.
  virtual mlir::LogicalResult fail(const llvm::Twine &what) = 0;

  //===--------------------------------------------------------------------===//
  // Any operation
  //===--------------------------------------------------------------------===//

  /// An operation by name. Without `types` they are inferred; what inference
  /// objects to is reported as the node's error. Null on failure, and where an
  /// operand is null.
  mlir::Operation *create(llvm::StringRef name,
                          llvm::ArrayRef<mlir::Value> operands,
                          llvm::ArrayRef<mlir::NamedAttribute> attributes,
                          mlir::TypeRange types = {});
  /// The first result of an operation with inferred types.
  template <typename Op>
  mlir::Value emit(llvm::ArrayRef<mlir::Value> operands,
                   llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    mlir::Operation *op = create(Op::getOperationName(), operands, attributes);
    return op ? op->getResult(0) : mlir::Value();
  }
  /// All results; empty on failure.
  template <typename Op>
  llvm::SmallVector<mlir::Value>
  emitAll(llvm::ArrayRef<mlir::Value> operands,
          llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    mlir::Operation *op = create(Op::getOperationName(), operands, attributes);
    if (!op)
      return {};
    return llvm::to_vector_of<mlir::Value>(op->getResults());
  }

  // Attributes by name.
  mlir::NamedAttribute namedAttr(llvm::StringRef name, mlir::Attribute value) {
    return {builder.getStringAttr(name), value};
  }
  mlir::NamedAttribute intAttr(llvm::StringRef name, int64_t value) {
    return namedAttr(name, builder.getI64IntegerAttr(value));
  }
  mlir::NamedAttribute realAttr(llvm::StringRef name, double value) {
    return namedAttr(name, builder.getF64FloatAttr(value));
  }
  mlir::NamedAttribute listAttr(llvm::StringRef name,
                                llvm::ArrayRef<int64_t> value) {
    return namedAttr(name, builder.getDenseI64ArrayAttr(value));
  }
  mlir::NamedAttribute unitAttr(llvm::StringRef name) {
    return namedAttr(name, builder.getUnitAttr());
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// A tensor of one repeated number; a floating number in an integer tensor is
  /// truncated, one too large for a narrow float becomes infinite.
  mlir::Value splat(const Number &number, graph::DType dtype,
                    llvm::ArrayRef<int64_t> shape = {});
  mlir::Value splat(double value, graph::DType dtype,
                    llvm::ArrayRef<int64_t> shape = {}) {
    return splat(Number::ofFloat(value), dtype, shape);
  }
  /// start, start + step, ...: `count` of them.
  mlir::Value iota(const Number &start, const Number &step, graph::DType dtype,
                   int64_t count);
  /// The element attribute behind splat().
  mlir::TypedAttr element(const Number &number, graph::DType dtype);

  mlir::Value cast(mlir::Value value, graph::DType dtype);
  mlir::Value compare(ComparePredicate predicate, mlir::Value lhs,
                      mlir::Value rhs);
  /// value != 0, as bool.
  mlir::Value truth(mlir::Value value);

  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// NumPy broadcasting to exactly `shape`.
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  /// Elements start, start + step, ... along one dimension; in range already.
  mlir::Value sliceDim(mlir::Value value, int64_t dim, int64_t start,
                       int64_t size, int64_t step = 1);
  /// Size-1 dimensions put in, or taken out, before dimension `dim`.
  mlir::Value unsqueeze(mlir::Value value, int64_t dim);
  mlir::Value squeeze(mlir::Value value, int64_t dim);

  mlir::Value sum(mlir::Value value, llvm::ArrayRef<int64_t> dims, bool keep);

protected:
  /// Whether a tensor of this shape has less than 2^63 bytes, whatever its
  /// type; if not, that is the node's error.
  bool isSized(llvm::ArrayRef<int64_t> shape);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// All dimensions of a rank.
llvm::SmallVector<int64_t> allDims(int64_t rank);

} // namespace nova::importer

#endif // NOVA_SRC_IMPORT_BUILD_H
