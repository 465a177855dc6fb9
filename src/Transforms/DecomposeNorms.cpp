//===- DecomposeNorms.cpp - Softmax and layer norm as row reductions
//-------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decompose.h"

using namespace mlir;
using namespace nova;

//===----------------------------------------------------------------------===//
// Softmax: nothing guards rows of -inf; PyTorch gives NaN there, and so do we.
//===----------------------------------------------------------------------===//

Replacements nova::decompose(SoftmaxOp op) {
  if (op.use_empty())
    return {Value()};
  TensorEmitter b(op);
  int64_t dim = op.getDim();
  Value x = b.wide(op.getInput());
  Value e = b.exp(b.sub(x, b.maxKeep(x, {dim})));
  return {b.cast(b.div(e, b.sumKeep(e, {dim})), elementType(op.getResult()))};
}

Replacements nova::decompose(LogSoftmaxOp op) {
  if (op.use_empty())
    return {Value()};
  TensorEmitter b(op);
  int64_t dim = op.getDim();
  Value x = b.wide(op.getInput());
  Value shifted = b.sub(x, b.maxKeep(x, {dim}));
  Value logSum = b.log(b.sumKeep(b.exp(shifted), {dim}));
  return {b.cast(b.sub(shifted, logSum), elementType(op.getResult()))};
}

Replacements nova::decompose(SoftmaxBackwardOp op) {
  if (op.use_empty())
    return {Value()};
  TensorEmitter b(op);
  int64_t dim = op.getDim();
  Value grad = b.wide(op.getGrad()), output = b.wide(op.getOutput());
  Value inner = b.sumKeep(b.mul(grad, output), {dim});
  return {
      b.cast(b.mul(output, b.sub(grad, inner)), elementType(op.getResult()))};
}

Replacements nova::decompose(LogSoftmaxBackwardOp op) {
  if (op.use_empty())
    return {Value()};
  TensorEmitter b(op);
  int64_t dim = op.getDim();
  Value grad = b.wide(op.getGrad()), output = b.wide(op.getOutput());
  Value whole = b.sumKeep(grad, {dim});
  return {b.cast(b.sub(grad, b.mul(b.exp(output), whole)),
                 elementType(op.getResult()))};
}

//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

namespace {
/// The dimensions a norm over the trailing `axes` reduces, those it runs over,
/// and the number of elements of a row.
struct NormDims {
  NormDims(RankedTensorType type, int64_t axes) {
    for (int64_t i = 0, split = type.getRank() - axes; i < type.getRank();
         ++i) {
      (i < split ? rows : normalised).push_back(i);
      if (i >= split)
        size *= type.getDimSize(i);
    }
  }
  SmallVector<int64_t> rows, normalised;
  int64_t size = 1;
};
} // namespace

Replacements nova::decompose(LayerNormOp op) {
  TensorEmitter b(op);
  Type element = elementType(op.getInput()), compute = b.computeType(element);
  NormDims dims(tensorType(op.getInput()), op.getAxes());
  bool needResult = !op.getResult().use_empty();
  bool needRstd = needResult || !op.getRstd().use_empty();
  if (!needRstd && op.getMean().use_empty())
    return {Value(), Value(), Value()};

  Value x = b.wide(op.getInput());
  Value size = b.constant((double)dims.size, compute);
  Value mean = b.div(b.sumKeep(x, dims.normalised), size);
  Value rstd, y;
  if (needRstd) {
    // The variance from deviations: a difference of moments would cancel.
    Value deviation = b.sub(x, mean);
    Value variance =
        b.div(b.sumKeep(b.mul(deviation, deviation), dims.normalised), size);
    rstd = b.rsqrt(
        b.add(variance, b.constant(op.getEps().convertToDouble(), compute)));
    if (needResult) {
      y = b.mul(deviation, rstd);
      if (op.getWeight())
        y = b.mul(y, b.cast(op.getWeight(), compute));
      if (op.getBias())
        y = b.add(y, b.cast(op.getBias(), compute));
      y = b.cast(y, element);
    }
    rstd = b.cast(rstd, element);
  }
  return {y, b.cast(mean, element), rstd};
}

Replacements nova::decompose(LayerNormBackwardOp op) {
  TensorEmitter b(op);
  Type element = elementType(op.getInput()), compute = b.computeType(element);
  NormDims dims(tensorType(op.getInput()), op.getAxes());
  bool needInput = !op.getDInput().use_empty(),
       needWeight = !op.getDWeight().use_empty();

  Value grad = b.wide(op.getGrad());
  Value h, rstd, dInput, dWeight, dBias;
  if (needInput || needWeight) {
    rstd = b.wide(op.getRstd());
    Value x = b.wide(op.getInput()), mean = b.wide(op.getMean());
    h = b.mul(b.sub(x, mean), rstd);
  }
  if (needInput) {
    Value size = b.constant((double)dims.size, compute);
    Value g =
        op.getWeight() ? b.mul(grad, b.cast(op.getWeight(), compute)) : grad;
    Value meanG = b.div(b.sumKeep(g, dims.normalised), size);
    Value meanGh = b.div(b.sumKeep(b.mul(g, h), dims.normalised), size);
    Value centred = b.sub(g, meanG);
    dInput = b.cast(b.mul(rstd, b.sub(centred, b.mul(h, meanGh))), element);
  }
  if (needWeight)
    dWeight = b.cast(b.sum(b.mul(grad, h), dims.rows), element);
  if (!op.getDBias().use_empty())
    dBias = b.cast(b.sum(grad, dims.rows), element);
  return {dInput, dWeight, dBias};
}
