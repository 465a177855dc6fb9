//===- GenericBody.h - A generic's body, one scalar or W lanes at a time
//---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes the body of a linalg.generic at one point of its iteration space, or
// at W consecutive points along one dimension. Values that are equal in all
// lanes stay scalar.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_HOSTCODEGEN_GENERICBODY_H
#define NOVA_LIB_HOSTCODEGEN_GENERICBODY_H

#include "LoopEmitter.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace nova::host {

/// A point of the iteration space: indices within the tile (null where the
/// dimension has not been entered yet) and the offset of every access there.
struct Cursor {
  llvm::SmallVector<mlir::Value> iv;
  llvm::SmallVector<mlir::Value> offset;
};

class GenericBody {
public:
  GenericBody(LoopEmitter &e, mlir::linalg::GenericOp op);

  LoopEmitter &e;
  mlir::linalg::GenericOp op;
  llvm::SmallVector<LoopDim> dims;
  /// Inputs, then inits, then results, as in Cursor::offset.
  llvm::SmallVector<Access> accesses;
  unsigned numInputs, numResults;

  const Access &init(unsigned r) const { return accesses[numInputs + r]; }
  const Access &result(unsigned r) const {
    return accesses[numInputs + numResults + r];
  }
  mlir::BlockArgument inputArg(unsigned i) {
    return op.getBody()->getArgument(i);
  }
  mlir::BlockArgument outArg(unsigned r) {
    return op.getBody()->getArgument(numInputs + r);
  }
  /// Does anybody read result r?
  bool isWritten(unsigned r) const {
    return static_cast<bool>(result(r).memref);
  }

  Cursor origin();
  /// The cursor with dimension d at `iv` (before: not entered).
  Cursor enter(const Cursor &at, unsigned d, mlir::Value iv);
  /// The cursor `by` further along dimension d (already entered).
  Cursor shift(const Cursor &at, unsigned d, int64_t by);

  /// What the init holds at a point (zero if the body never reads it).
  Lanes loadInit(const Cursor &at, unsigned r, int64_t vdim, int64_t width);
  void storeResult(const Cursor &at, unsigned r, int64_t vdim, int64_t width,
                   const Lanes &value);
  /// The yielded values at `width` points from `at` along `vdim`, given what
  /// the out arguments hold.
  llvm::SmallVector<Lanes> compute(const Cursor &at, int64_t vdim,
                                   int64_t width, llvm::ArrayRef<Lanes> outs);
  /// One body op on lanes.
  llvm::SmallVector<Lanes> apply(mlir::Operation *inner,
                                 llvm::ArrayRef<Lanes> operands, int64_t width);

  /// The op that folds a value into result r, if every out argument is used
  /// once, by an associative and commutative op whose result is yielded.
  mlir::Operation *combiner(unsigned r);
  /// The identity of a combiner.
  mlir::TypedAttr identity(mlir::Operation *combiner);

  /// What a value of the body looks like in lanes along `vdim`.
  llvm::DenseMap<mlir::Value, Lanes::Form> forms(int64_t vdim);

private:
  /// Makes one dimension of two that every access walks as one (contiguous
  /// rows, say): longer loops, fewer of them. The outer one keeps one
  /// iteration.
  void mergeDims();
  /// Bounds of an integer of the body that follows from iteration indices and
  /// constants alone; nothing if unknown or beyond 31 bits.
  std::optional<std::pair<int64_t, int64_t>> bounds(mlir::Value value);
  /// A comparison of two such integers in 32 bits; nothing if it is not one.
  std::optional<Lanes> compareNarrow(mlir::Operation *inner,
                                     llvm::ArrayRef<Lanes> operands,
                                     int64_t width);
  Lanes extract(mlir::tensor::ExtractOp extract, llvm::ArrayRef<Lanes> indices,
                int64_t width);
};

} // namespace nova::host

#endif // NOVA_LIB_HOSTCODEGEN_GENERICBODY_H
