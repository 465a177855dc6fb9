//===- LowerKernelsToLinalg.h - Parts of nova-lower-kernels-to-linalg
//------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two steps. KernelLowering turns each nova operation of a kernel into generics
// of its own; views stay until the end and become the indexing maps of those
// who read through them. fuseGenerics then composes what is elementwise.
//
// Elementwise generics iterate over the shape of their result: their output
// maps are identities. Fusion builds on that.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_LOWERKERNELSTOLINALG_H
#define NOVA_SRC_TRANSFORMS_LOWERKERNELSTOLINALG_H

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

namespace nova::lowering {

using Values = llvm::SmallVector<mlir::Value>;

/// An operand of a generic: a tensor, and where iteration point d reads it.
struct Read {
  mlir::Value value;
  mlir::AffineMap map;
};

/// Generics that multiply and accumulate for a back end to recognise; nothing
/// is fused into their operands.
using Contractions = llvm::SmallPtrSet<mlir::Operation *, 8>;

//===----------------------------------------------------------------------===//
// Scalars (LowerKernelsToLinalgScalars.cpp)
//===----------------------------------------------------------------------===//

/// Scalar arithmetic is done in this type: f32 for narrower floats, else
/// itself.
mlir::Type computeType(mlir::Type element);
/// `value` in its computeType.
mlir::Value widen(mlir::ImplicitLocOpBuilder &b, mlir::Value value);
/// A float `value` rounded (or widened) to `type`.
mlir::Value convertFloat(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                         mlir::Type type);
/// A constant of a float or integer type.
mlir::Value constant(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                     double value);
/// `value` != `value`.
mlir::Value isNaN(mlir::ImplicitLocOpBuilder &b, mlir::Value value);
/// What the Pointwise operation `op` computes of one element of each operand.
mlir::Value scalarOf(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op,
                     mlir::ValueRange operands);

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class KernelLowering : public mlir::ImplicitLocOpBuilder {
public:
  explicit KernelLowering(mlir::func::FuncOp kernel)
      : ImplicitLocOpBuilder(kernel.getLoc(), kernel.getContext()),
        kernel(kernel) {}

  /// Replaces every operation; failure after an error naming kernel and op.
  mlir::LogicalResult run();
  Contractions &contractions() { return contractionOps; }

private:
  /// Scalars in, scalars out. `outs` is what the initial values hold.
  using Body =
      llvm::function_ref<Values(mlir::ImplicitLocOpBuilder &,
                                mlir::ValueRange ins, mlir::ValueRange outs)>;
  using ScalarBody = llvm::function_ref<mlir::Value(
      mlir::ImplicitLocOpBuilder &, mlir::ValueRange ins)>;
  using Iterators = llvm::ArrayRef<mlir::utils::IteratorType>;

  mlir::InFlightDiagnostic refuse(mlir::Operation *op);
  mlir::LogicalResult check(mlir::Operation *op);
  Values lower(mlir::Operation *op);

  // Building blocks (LowerKernelsToLinalg.cpp).
  mlir::RankedTensorType typeOf(mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  mlir::Type elementOf(mlir::Value value) {
    return typeOf(value).getElementType();
  }
  /// The read of `value` at `map`, through the views that define it.
  Read read(mlir::Value value, mlir::AffineMap map);
  /// ... where iteration runs over `shape`, to which `value` broadcasts.
  Read readBroadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// ... where iteration runs over the shape of `value`.
  Read readWhole(mlir::Value value);
  /// ... that tells how far the iteration dimensions `dims` run.
  Read readReduced(mlir::Value value, mlir::AffineMap map,
                   llvm::ArrayRef<int64_t> dims);
  /// A map from `dims` iteration dimensions to the given ones; -1 is constant
  /// 0.
  mlir::AffineMap mapTo(unsigned dims, llvm::ArrayRef<int64_t> positions);
  /// `value` as a tensor of its own, where an operation needs one.
  mlir::Value materialise(mlir::Value value);
  mlir::Value empty(mlir::RankedTensorType type);
  mlir::Value filled(mlir::RankedTensorType type, mlir::TypedAttr value);
  /// Reads of constants become scalars of the body.
  mlir::linalg::GenericOp generic(llvm::ArrayRef<Read> ins,
                                  llvm::ArrayRef<Read> outs,
                                  Iterators iterators, Body body);
  /// All parallel over `type`'s shape, one result.
  mlir::Value pointwise(mlir::RankedTensorType type, llvm::ArrayRef<Read> ins,
                        ScalarBody body);
  /// Sum of products into a tensor of `type`'s shape and computeType. Iteration
  /// runs over the result's dimensions, then the reduction; the operands say
  /// along which of them each of their dimensions runs.
  mlir::Value contract(mlir::RankedTensorType type, mlir::Value lhs,
                       llvm::ArrayRef<int64_t> lhsDims, mlir::Value rhs,
                       llvm::ArrayRef<int64_t> rhsDims);
  /// `value` (in computeType) as `element`.
  mlir::Value rounded(mlir::Value value, mlir::Type element);

  struct Reduction {
    llvm::SmallVector<mlir::utils::IteratorType> iterators;
    llvm::SmallVector<int64_t> shape;
    mlir::AffineMap map;
  };
  /// Iterators, result shape and result map of a reduction.
  Reduction reductionOver(mlir::RankedTensorType input,
                          llvm::ArrayRef<int64_t> dims, bool keep);
  /// Reduction of `input` along `dims` by the associative `combine`.
  mlir::Value
  reduce(mlir::Value input, llvm::ArrayRef<int64_t> dims, bool keep,
         mlir::TypedAttr init,
         llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &,
                                        mlir::Value acc, mlir::Value x)>
             combine);

  Values lowerPointwise(mlir::Operation *op);
  Values lower(IotaOp op);
  // Reductions.cpp
  Values lower(SumOp op);
  Values lowerExtremum(mlir::Value input, llvm::ArrayRef<int64_t> dims,
                       bool keep, bool largest);
  Values lowerArgExtremum(mlir::Value input, int64_t dim, bool keep,
                          bool largest);
  // Contractions.cpp
  Values lower(MatmulOp op);
  Values lower(LinearOp op);
  // Attention.cpp
  struct Scores;
  Values lower(AttentionOp op);
  Values lower(AttentionBackwardQueryOp op);
  Values lower(AttentionBackwardKeyValueOp op);
  // Gather.cpp
  Values lower(IndexOp op);
  Values lower(GatherOp op);
  Values lower(PadOp op);
  Values lower(ConcatOp op);
  mlir::Value padComputed(PadOp op);
  /// The element of `source` at the given indices of the viewed tensor.
  mlir::Value extract(mlir::ImplicitLocOpBuilder &b, const Read &source,
                      mlir::ValueRange indices);
  /// `index` within [0, size), or 0; `valid` becomes whether it was.
  mlir::Value clampIndex(mlir::ImplicitLocOpBuilder &b, mlir::Value index,
                         int64_t size, bool wrapNegative, mlir::Value &valid);

  mlir::func::FuncOp kernel;
  Contractions contractionOps;
};

//===----------------------------------------------------------------------===//
// Fusion (LowerKernelsToLinalgFusion.cpp)
//===----------------------------------------------------------------------===//

/// Composes the elementwise generics of a kernel body.
void fuseGenerics(mlir::func::FuncOp kernel, Contractions &contractions);

} // namespace nova::lowering

#endif // NOVA_SRC_TRANSFORMS_LOWERKERNELSTOLINALG_H
