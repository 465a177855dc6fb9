//===- ContractionLowering.h - A matrix product in blocks
//------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A linalg.generic that sums products of two operands becomes
//
//   for batch and other parallel dims
//     C = init                                    (if k takes several blocks)
//     for other reduction dims, k by KC
//       for n by NC: pack B[KC x NC] into panels of NR columns
//         for m by MC: pack A[MC x KC] into panels of MR rows, where needed
//           for NR columns, MR rows: C += A B in MR x NR registers
//
// in float32 FMA. A panel of B (KC x NR) stays in the first cache while rows of
// A stream by. A whose k is contiguous is read where it is. Edges: a last panel
// of fewer columns stores under a mask, fewer rows take a kernel of that size
// where the size is known and else repeat the last row and store what exists.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_HOSTCODEGEN_CONTRACTIONLOWERING_H
#define NOVA_LIB_HOSTCODEGEN_CONTRACTIONLOWERING_H

#include "GenericBody.h"

namespace nova::host {

/// The roles of dimensions and operands.
struct Roles {
  unsigned a = 0, b = 1; // Operand numbers.
  unsigned m = 0, n = 0, k = 0;
  llvm::SmallVector<unsigned> parallel, reductions; // The others.
};

class ContractionLowering {
public:
  ContractionLowering(LoopEmitter &e, GenericBody &body, const Roles &roles)
      : e(e), body(body), roles(roles), a(body.accesses[roles.a]),
        b(body.accesses[roles.b]), c(body.result(0)), init(body.init(0)) {
    aM = a.coef[roles.m];
    aK = a.coef[roles.k];
    bK = b.coef[roles.k];
    bN = b.coef[roles.n];
    cM = c.coef[roles.m];
  }
  void emit();

private:
  /// Where the loops around have arrived.
  struct Place {
    mlir::Value aBase, bBase, cBase, initBase;
    /// Sizes of the block at hand.
    mlir::OpFoldResult mc, nc, kc;
  };
  /// Rows or columns of one register tile: `full` computed; fewer of them real
  /// where `real` is set (a constant or a value).
  struct Part {
    int64_t full = 0;
    mlir::OpFoldResult real;
  };

  void chooseTile();
  void emitParallel(unsigned level, const Cursor &at);
  void emitReductions(unsigned level, const Cursor &at);
  void emitMatrix(const Cursor &at);
  /// for (iv = 0; iv < size; iv += step) body(iv, size of the block).
  void blocks(mlir::OpFoldResult size, int64_t maxSize, int64_t step,
              llvm::function_ref<void(mlir::Value, mlir::OpFoldResult)> body);
  /// The loop over full parts of `size` by `step`, then the rest. With
  /// `unrolled` a known number of parts leaves no loop.
  void parts(mlir::OpFoldResult size, int64_t step, bool exactRest,
             llvm::function_ref<void(mlir::Value, Part)> body,
             bool unrolled = false);
  void packB(const Place &at);
  void packBTransposed(mlir::Value panel, mlir::Value source,
                       const Part &columns, mlir::OpFoldResult kc);
  void packA(const Place &at);
  void microKernel(const Place &at, mlir::Value i, const Part &rows,
                   mlir::Value j, const Part &columns);
  mlir::Value wide(mlir::Value value);
  mlir::Value mask(const Part &columns, int64_t vector);
  llvm::SmallVector<mlir::Value> transpose(llvm::ArrayRef<mlir::Value> rows);
  Access flat(mlir::Value buffer) {
    return {buffer, e.getF32Type(), e.index(0), {}, {}};
  }

  LoopEmitter &e;
  GenericBody &body;
  const Roles &roles;
  const Access &a, &b, &c, &init;
  int64_t aM, aK, bK, bN, cM;
  /// Register tile: rows, and vectors of 8 columns.
  int64_t mr = 6, nv = 2;
  int64_t blockK = 0, blockN = 0, blockM = 0;
  bool packsA = false;
  /// The sum over k is done in one block: it starts from the init.
  bool oneBlock = false;
  mlir::Value packedA, packedB;
};

} // namespace nova::host

#endif // NOVA_LIB_HOSTCODEGEN_CONTRACTIONLOWERING_H
