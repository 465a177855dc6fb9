//===- Call.h - One graph node on its way to nova operations --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An importer is a function of a Call: it reads arguments by the names of the
// signature (their kinds were checked when they were bound), builds operations,
// and ends with `return call.result(...)`.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_IMPORT_CALL_H
#define NOVA_SRC_IMPORT_CALL_H

#include "Build.h"
#include "Signature.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace nova::importer {

class Call;

/// A row of the table of operations.
struct OpEntry {
  llvm::StringLiteral name;
  llvm::StringLiteral signature;
  llvm::StringLiteral constraints;
  mlir::LogicalResult (*import)(Call &call);
};

/// An argument that may be a tensor or a Python number.
struct Operand {
  mlir::Value value; ///< null for a number
  Number number;
  graph::DType dtype = graph::DType::Float32;
};

class Call : public Build {
public:
  Call(mlir::OpBuilder &builder, mlir::Location loc, const graph::Graph &graph,
       uint32_t index, const OpEntry &entry, const Signature &signature,
       const Bound &bound,
       llvm::function_ref<mlir::Value(const graph::Ref &)> lookup);

  const graph::Node &node() const { return graph.nodes[index]; }
  llvm::StringRef op() const { return entry.name; }

  //===--------------------------------------------------------------------===//
  // Arguments, by name
  //===--------------------------------------------------------------------===//

  bool isNull(llvm::StringRef name) const { return arg(name).isNull(); }
  /// Null where a `Tensor?` is null.
  mlir::Value tensor(llvm::StringRef name) const;
  /// Null for each null element.
  llvm::SmallVector<mlir::Value> tensors(llvm::StringRef name) const;
  Operand operand(llvm::StringRef name) const;
  int64_t integer(llvm::StringRef name) const;
  std::optional<int64_t> maybeInteger(llvm::StringRef name) const;
  /// Empty for null.
  llvm::SmallVector<int64_t> integers(llvm::StringRef name) const;
  double real(llvm::StringRef name) const;
  std::optional<double> maybeReal(llvm::StringRef name) const;
  bool flag(llvm::StringRef name) const;
  llvm::SmallVector<bool> flags(llvm::StringRef name) const;
  llvm::StringRef text(llvm::StringRef name) const;
  Number number(llvm::StringRef name) const;
  std::optional<Number> maybeNumber(llvm::StringRef name) const;
  std::optional<graph::DType> dtype(llvm::StringRef name) const;

  /// A dimension counted from either end, as one in [0, rank); a 0-d tensor
  /// counts as one of rank 1.
  mlir::FailureOr<int64_t> dim(llvm::StringRef name, int64_t rank);
  /// A list of them, sorted; all dimensions for null and for [].
  mlir::FailureOr<llvm::SmallVector<int64_t>> dims(llvm::StringRef name,
                                                   int64_t rank);
  /// `dims` in the order given, each normalised and distinct.
  mlir::FailureOr<llvm::SmallVector<int64_t>> dimsInOrder(llvm::StringRef name,
                                                          int64_t rank);

  //===--------------------------------------------------------------------===//
  // Operands of elementwise operations
  //===--------------------------------------------------------------------===//

  /// torch.result_type.
  static graph::DType resultType(llvm::ArrayRef<Operand> operands);
  /// The operand in `common`, then in `math` for computing: a tensor is rounded
  /// to `common`, a number is used as it is (PyTorch's opmath).
  mlir::Value materialize(const Operand &operand, graph::DType common,
                          graph::DType math);

  //===--------------------------------------------------------------------===//
  // Ends
  //===--------------------------------------------------------------------===//

  mlir::LogicalResult fail(const llvm::Twine &what) override;
  /// The same, at the JSON path of one argument.
  mlir::LogicalResult failAt(llvm::StringRef name, const llvm::Twine &what);
  /// The node's only result. Fails on null.
  mlir::LogicalResult result(mlir::Value value);
  /// Its results; null where the operation gives none (a masked gradient).
  mlir::LogicalResult results(llvm::ArrayRef<mlir::Value> values);

  llvm::SmallVector<mlir::Value> produced;

private:
  const graph::Value &arg(llvm::StringRef name) const;
  size_t paramIndex(llvm::StringRef name) const;

  const graph::Graph &graph;
  uint32_t index;
  const OpEntry &entry;
  const Signature &signature;
  const Bound &bound;
  llvm::function_ref<mlir::Value(const graph::Ref &)> lookup;
  bool reported = false;
};

// The tables, one per family.
llvm::ArrayRef<OpEntry> unaryTable();
llvm::ArrayRef<OpEntry> binaryTable();
llvm::ArrayRef<OpEntry> activationTable();
llvm::ArrayRef<OpEntry> viewTable();
llvm::ArrayRef<OpEntry> partTable();
llvm::ArrayRef<OpEntry> shapeTable();
llvm::ArrayRef<OpEntry> factoryTable();
llvm::ArrayRef<OpEntry> reductionTable();
llvm::ArrayRef<OpEntry> indexingTable();
llvm::ArrayRef<OpEntry> contractionTable();
llvm::ArrayRef<OpEntry> convolutionTable();
llvm::ArrayRef<OpEntry> poolingTable();
llvm::ArrayRef<OpEntry> lossTable();
llvm::ArrayRef<OpEntry> normTable();
llvm::ArrayRef<OpEntry> attentionTable();
llvm::ArrayRef<OpEntry> randomTable();

} // namespace nova::importer

#endif // NOVA_SRC_IMPORT_CALL_H
