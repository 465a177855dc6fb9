//===- LowerKernelsToLinalgContractions.cpp - Products of matrices
//---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace nova::lowering {

Value KernelLowering::contract(RankedTensorType type, Value lhs,
                               ArrayRef<int64_t> lhsDims, Value rhs,
                               ArrayRef<int64_t> rhsDims) {
  int64_t rank = type.getRank();
  Type wide = computeType(type.getElementType());
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Read a = readReduced(lhs, mapTo(rank + 1, lhsDims), rank);
  Read b = readReduced(rhs, mapTo(rank + 1, rhsDims), rank);
  Read out{filled(type.clone(wide), getZeroAttr(wide)),
           AffineMap::getMultiDimIdentityMap(rank + 1, getContext())
               .dropResult(rank)};
  auto product =
      generic({a, b}, out, iterators,
              [](ImplicitLocOpBuilder &b, ValueRange in, ValueRange outs) {
                Value x = widen(b, in[0]), y = widen(b, in[1]);
                Value term = arith::MulFOp::create(b, x, y);
                return Values{arith::AddFOp::create(b, outs[0], term)};
              });
  contractionOps.insert(product);
  return product.getResult(0);
}

/// Iteration dimensions of a matrix [.., rows, columns] of `rank`: its batch
/// dimensions lead.
static SmallVector<int64_t> matrixDims(int64_t rank, int64_t rows,
                                       int64_t columns, bool transposed) {
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  dims.push_back(transposed ? columns : rows);
  dims.push_back(transposed ? rows : columns);
  return dims;
}

Values KernelLowering::lower(MatmulOp op) {
  RankedTensorType type = typeOf(op.getResult());
  int64_t rank = type.getRank(), m = rank - 2, n = rank - 1, k = rank;
  Value product = contract(
      type, op.getLhs(), matrixDims(rank, m, k, op.getTransposeLhs()),
      op.getRhs(),
      matrixDims(typeOf(op.getRhs()).getRank(), k, n, op.getTransposeRhs()));
  return {rounded(product, type.getElementType())};
}

Values KernelLowering::lower(LinearOp op) {
  RankedTensorType type = typeOf(op.getResult());
  int64_t rank = type.getRank(), n = rank - 1, k = rank;
  auto inputDims = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  inputDims.push_back(k);
  Value product = contract(type, op.getInput(), inputDims, op.getWeight(),
                           matrixDims(2, k, n, op.getTransposeWeight()));
  Read ins[] = {readWhole(product),
                readBroadcast(op.getBias(), type.getShape())};
  return {pointwise(type, ins, [&](ImplicitLocOpBuilder &b, ValueRange in) {
    Value sum = arith::AddFOp::create(b, in[0], widen(b, in[1]));
    return convertFloat(b, sum, type.getElementType());
  })};
}

} // namespace nova::lowering
