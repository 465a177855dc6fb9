//===- ImportContractions.cpp - Products of matrices ----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

static LogicalResult needRank(Call &call, StringRef name, mlir::Value value,
                              int64_t rank) {
  if (rankOf(value) == rank)
    return success();
  return call.failAt(name, "got shape " + shapeText(shapeOf(value)) +
                               ", expected rank " + Twine(rank));
}

static LogicalResult needSameFloats(Call &call, StringRef name, mlir::Value a,
                                    mlir::Value b) {
  if (dtypeOf(a) == dtypeOf(b) && graph::isFloating(dtypeOf(a)))
    return success();
  return call.failAt(name, "got " + Twine(dtypeName(dtypeOf(b)).data()) +
                               " with " + dtypeName(dtypeOf(a)).data() +
                               ", expected equal floating types");
}

template <int rank> static LogicalResult importProduct(Call &call) {
  mlir::Value a = call.tensor("self"), b = call.tensor("mat2");
  if (failed(needRank(call, "self", a, rank)) ||
      failed(needRank(call, "mat2", b, rank)) ||
      failed(needSameFloats(call, "mat2", a, b)))
    return failure();
  return call.result(call.emit<MatmulOp>({a, b}));
}

/// beta * self + alpha * (a b), added in the type of computing.
template <int rank>
static LogicalResult importAddedProduct(Call &call, StringRef first,
                                        StringRef second) {
  mlir::Value bias = call.tensor("self"), a = call.tensor(first),
              b = call.tensor(second);
  if (failed(needRank(call, first, a, rank)) ||
      failed(needRank(call, second, b, rank)) ||
      failed(needSameFloats(call, second, a, b)) ||
      failed(needSameFloats(call, "self", a, bias)))
    return failure();
  double beta = call.number("beta").asDouble(),
         alpha = call.number("alpha").asDouble();
  SmallVector<int64_t> shape(shapeOf(a).drop_back());
  shape.push_back(shapeOf(b).back());
  auto wide = broadcastShapes(shape, shapeOf(bias));
  if (failed(wide) || *wide != shape)
    return call.failAt("self", "got " + shapeText(shapeOf(bias)) +
                                   ", expected a shape that expands to " +
                                   shapeText(shape));
  if (rank == 2 && beta == 1 && alpha == 1 && rankOf(bias) == 1 &&
      shapeOf(bias)[0] == shape.back())
    return call.result(call.emit<LinearOp>({a, b, bias}));
  DType type = dtypeOf(a), math = computeType(type);
  mlir::Value sum = call.cast(call.emit<MatmulOp>({a, b}), math);
  if (alpha != 1)
    sum = call.emit<MulOp>({sum, call.splat(alpha, math)});
  // With beta 0 self is not looked at: its NaNs do not count.
  if (beta != 0) {
    mlir::Value scaled = call.cast(bias, math);
    if (beta != 1)
      scaled = call.emit<MulOp>({scaled, call.splat(beta, math)});
    sum = call.emit<AddOp>({sum, scaled});
  }
  return call.result(call.cast(sum, type));
}

static LogicalResult importAddmm(Call &call) {
  return importAddedProduct<2>(call, "mat1", "mat2");
}
static LogicalResult importBaddbmm(Call &call) {
  return importAddedProduct<3>(call, "batch1", "batch2");
}

static LogicalResult importLinear(Call &call) {
  mlir::Value x = call.tensor("input"), weight = call.tensor("weight"),
              bias = call.tensor("bias");
  if (rankOf(x) < 1)
    return call.failAt("input", "got a 0-d tensor, expected a dimension");
  if (failed(needRank(call, "weight", weight, 2)) ||
      failed(needSameFloats(call, "weight", x, weight)))
    return failure();
  if (bias && rankOf(bias) == 1)
    return call.result(call.emit<LinearOp>(
        {x, weight, bias}, {call.unitAttr("transpose_weight")}));
  if (bias)
    return call.failAt("bias", "got shape " + shapeText(shapeOf(bias)) +
                                   ", expected rank 1");
  bool vector = rankOf(x) == 1;
  mlir::Value product =
      call.emit<MatmulOp>({vector ? call.unsqueeze(x, 0) : x, weight},
                          {call.unitAttr("transpose_rhs")});
  return call.result(vector ? call.squeeze(product, 0) : product);
}

/// numpy.matmul: vectors become matrices, leading dimensions broadcast.
static LogicalResult importMatmul(Call &call) {
  mlir::Value a = call.tensor("self"), b = call.tensor("other");
  if (rankOf(a) < 1 || rankOf(b) < 1)
    return call.fail("got a 0-d tensor, expected at least one dimension");
  if (failed(needSameFloats(call, "other", a, b)))
    return failure();
  bool rowVector = rankOf(a) == 1, columnVector = rankOf(b) == 1;
  if (rowVector)
    a = call.unsqueeze(a, 0);
  if (columnVector)
    b = call.unsqueeze(b, 1);
  ArrayRef<int64_t> leadA = shapeOf(a).drop_back(2),
                    leadB = shapeOf(b).drop_back(2);
  if (!leadB.empty() && leadA != leadB) {
    auto lead = broadcastShapes(leadA, leadB);
    if (failed(lead))
      return call.fail("leading dimensions " + shapeText(leadA) + " and " +
                       shapeText(leadB) + " do not broadcast");
    auto widened = [&](mlir::Value value) {
      SmallVector<int64_t> shape(*lead);
      llvm::append_range(shape, shapeOf(value).take_back(2));
      return call.broadcast(value, shape);
    };
    a = widened(a);
    b = widened(b);
  }
  mlir::Value product = call.emit<MatmulOp>({a, b});
  if (product && columnVector)
    product = call.squeeze(product, rankOf(product) - 1);
  if (product && rowVector)
    product = call.squeeze(product, rankOf(product) - (columnVector ? 1 : 2));
  return call.result(product);
}

/// Vector products as matrices of one row or column.
static LogicalResult importMv(Call &call) {
  mlir::Value a = call.tensor("self"), b = call.tensor("vec");
  if (failed(needRank(call, "self", a, 2)) ||
      failed(needRank(call, "vec", b, 1)) ||
      failed(needSameFloats(call, "vec", a, b)))
    return failure();
  mlir::Value product = call.emit<MatmulOp>({a, call.unsqueeze(b, 1)});
  return call.result(call.squeeze(product, 1));
}

llvm::ArrayRef<OpEntry> importer::contractionTable() {
  static const OpEntry table[] = {
      {"aten.mm.default", "(Tensor self, Tensor mat2)", "", importProduct<2>},
      {"aten.bmm.default", "(Tensor self, Tensor mat2)", "", importProduct<3>},
      {"aten.addmm.default",
       "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
       "alpha=1)",
       "", importAddmm},
      {"aten.baddbmm.default",
       "(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
       "alpha=1)",
       "", importBaddbmm},
      {"aten.linear.default",
       "(Tensor input, Tensor weight, Tensor? bias=None)", "", importLinear},
      {"aten.matmul.default", "(Tensor self, Tensor other)", "", importMatmul},
      {"aten.mv.default", "(Tensor self, Tensor vec)", "", importMv},
  };
  return table;
}
