//===- NovaInfer.cpp - Result types, and what operands must satisfy --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inference doubles as verification: MLIR's InferTypeOpInterface verifies every
// operation by inferring again, so each rule about operands stands here once.
//
//===----------------------------------------------------------------------===//
#include "nova/IR/Nova.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace nova;

using Loc = std::optional<Location>;
using Types = SmallVectorImpl<Type>;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}
static LogicalResult sameElements(Loc loc, StringRef op, Value a, Value b) {
  if (typeOf(a).getElementType() == typeOf(b).getElementType())
    return success();
  return emitOptionalError(loc, op, ": element types differ: ", a.getType(),
                           " and ", b.getType());
}
static LogicalResult checkDim(Loc loc, StringRef op, int64_t dim, int64_t rank) {
  if (dim >= 0 && dim < rank)
    return success();
  return emitOptionalError(loc, op, ": dimension ", dim,
                           " is outside [0, ", rank, ")");
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

#define NOVA_SAME_AS_INPUT(OP)                                                 \
  LogicalResult OP::inferReturnTypes(MLIRContext *, Loc, Adaptor a, Types &out) { \
    out.push_back(a.getOperands().front().getType());                          \
    return success();                                                          \
  }
NOVA_SAME_AS_INPUT(NegOp)
NOVA_SAME_AS_INPUT(AbsOp)
NOVA_SAME_AS_INPUT(ExpOp)
NOVA_SAME_AS_INPUT(LogOp)
NOVA_SAME_AS_INPUT(SqrtOp)
NOVA_SAME_AS_INPUT(RsqrtOp)
NOVA_SAME_AS_INPUT(ReciprocalOp)
NOVA_SAME_AS_INPUT(TanhOp)
NOVA_SAME_AS_INPUT(SigmoidOp)
NOVA_SAME_AS_INPUT(ErfOp)
NOVA_SAME_AS_INPUT(SinOp)
NOVA_SAME_AS_INPUT(CosOp)
NOVA_SAME_AS_INPUT(ReluOp)
NOVA_SAME_AS_INPUT(NotOp)
NOVA_SAME_AS_INPUT(GeluOp)
NOVA_SAME_AS_INPUT(GeluBackwardOp)
NOVA_SAME_AS_INPUT(TanhBackwardOp)
NOVA_SAME_AS_INPUT(SigmoidBackwardOp)
NOVA_SAME_AS_INPUT(ThresholdBackwardOp)
NOVA_SAME_AS_INPUT(CopyOp)

static LogicalResult inferBroadcast(Loc loc, StringRef op, ValueRange operands,
                                    Type element, Types &out) {
  SmallVector<int64_t> shape(typeOf(operands[0]).getShape());
  for (Value operand : operands.drop_front()) {
    auto wider = broadcastShapes(shape, typeOf(operand).getShape());
    if (failed(wider))
      return emitOptionalError(loc, op, ": shapes do not broadcast: ",
                               operands[0].getType(), " and ", operand.getType());
    shape = *wider;
  }
  out.push_back(RankedTensorType::get(shape, element));
  return success();
}

#define NOVA_BINARY(OP)                                                        \
  LogicalResult OP::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,        \
                                     Types &out) {                             \
    if (failed(sameElements(loc, getOperationName(), a.getLhs(), a.getRhs()))) \
      return failure();                                                        \
    return inferBroadcast(loc, getOperationName(), {a.getLhs(), a.getRhs()},   \
                          typeOf(a.getLhs()).getElementType(), out);           \
  }
NOVA_BINARY(AddOp)
NOVA_BINARY(SubOp)
NOVA_BINARY(MulOp)
NOVA_BINARY(DivOp)
NOVA_BINARY(FloorDivOp)
NOVA_BINARY(TruncDivOp)
NOVA_BINARY(RemainderOp)
NOVA_BINARY(PowOp)
NOVA_BINARY(MaximumOp)
NOVA_BINARY(MinimumOp)
NOVA_BINARY(AndOp)
NOVA_BINARY(OrOp)
NOVA_BINARY(XorOp)

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context, Loc loc,
                                          Adaptor a, Types &out) {
  if (failed(sameElements(loc, getOperationName(), a.getLhs(), a.getRhs())))
    return failure();
  return inferBroadcast(loc, getOperationName(), {a.getLhs(), a.getRhs()},
                        IntegerType::get(context, 1), out);
}

LogicalResult SelectOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                         Types &out) {
  if (failed(sameElements(loc, getOperationName(), a.getOnTrue(), a.getOnFalse())))
    return failure();
  return inferBroadcast(loc, getOperationName(),
                        {a.getCondition(), a.getOnTrue(), a.getOnFalse()},
                        typeOf(a.getOnTrue()).getElementType(), out);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                            Types &out) {
  auto type = typeOf(a.getInput());
  ArrayRef<int64_t> perm = a.getPermutation();
  llvm::SmallBitVector seen(type.getRank());
  SmallVector<int64_t> shape;
  for (int64_t p : perm) {
    if (p < 0 || p >= type.getRank() || seen.test(p))
      return emitOptionalError(loc, getOperationName(), ": [", perm,
                               "] is no permutation of rank ", type.getRank());
    seen.set(p);
    shape.push_back(type.getDimSize(p));
  }
  if ((int64_t)perm.size() != type.getRank())
    return emitOptionalError(loc, getOperationName(), ": permutation of ",
                             perm.size(), " dimensions for rank ", type.getRank());
  out.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                        Types &out) {
  auto type = typeOf(a.getInput());
  auto offsets = a.getOffsets(), sizes = a.getSizes(), strides = a.getStrides();
  size_t rank = type.getRank();
  if (offsets.size() != rank || sizes.size() != rank || strides.size() != rank)
    return emitOptionalError(loc, getOperationName(),
                             ": offsets, sizes and strides need ", rank, " entries");
  for (size_t i = 0; i < rank; ++i) {
    int64_t dim = type.getDimSize(i);
    bool inside = offsets[i] >= 0 && sizes[i] >= 0 && strides[i] >= 1 &&
                  (sizes[i] == 0 ? offsets[i] <= dim
                                 : offsets[i] + (sizes[i] - 1) * strides[i] < dim);
    if (!inside)
      return emitOptionalError(loc, getOperationName(), ": dimension ", i,
                               ": offset ", offsets[i], ", size ", sizes[i],
                               ", stride ", strides[i], " leaves the size ", dim);
  }
  out.push_back(RankedTensorType::get(sizes, type.getElementType()));
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                         Types &out) {
  if (a.getInputs().empty())
    return emitOptionalError(loc, getOperationName(), ": needs an input");
  auto first = typeOf(a.getInputs().front());
  int64_t dim = a.getDim(), total = 0;
  if (failed(checkDim(loc, getOperationName(), dim, first.getRank())))
    return failure();
  for (Value input : a.getInputs()) {
    auto type = typeOf(input);
    bool agrees = type.getRank() == first.getRank() &&
                  type.getElementType() == first.getElementType();
    for (int64_t i = 0; agrees && i < first.getRank(); ++i)
      agrees = i == dim || type.getDimSize(i) == first.getDimSize(i);
    if (!agrees)
      return emitOptionalError(loc, getOperationName(), ": ", type,
                               " does not stand beside ", first, " along dimension ", dim);
    total += type.getDimSize(dim);
  }
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = total;
  out.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                      Types &out) {
  auto type = typeOf(a.getInput());
  auto low = a.getLow(), high = a.getHigh();
  if ((int64_t)low.size() != type.getRank() || high.size() != low.size())
    return emitOptionalError(loc, getOperationName(), ": low and high need ",
                             type.getRank(), " entries");
  if (auto value = dyn_cast_or_null<TypedAttr>(a.getValue());
      !value || value.getType() != type.getElementType())
    return emitOptionalError(loc, getOperationName(),
                             ": the value must have element type ", type.getElementType());
  SmallVector<int64_t> shape(type.getShape());
  for (size_t i = 0; i < low.size(); ++i) {
    if (low[i] < 0 || high[i] < 0)
      return emitOptionalError(loc, getOperationName(), ": negative padding at dimension ", i);
    shape[i] += low[i] + high[i];
  }
  out.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static LogicalResult inferReduce(Loc loc, StringRef op, Value input,
                                 ArrayRef<int64_t> dims, bool keep, Types &out) {
  auto type = typeOf(input);
  llvm::SmallBitVector reduced(type.getRank());
  for (int64_t d : dims) {
    if (failed(checkDim(loc, op, d, type.getRank())))
      return failure();
    if (reduced.test(d))
      return emitOptionalError(loc, op, ": dimension ", d, " twice");
    reduced.set(d);
  }
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!reduced.test(i))
      shape.push_back(type.getDimSize(i));
    else if (keep)
      shape.push_back(1);
  out.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

#define NOVA_REDUCE(OP)                                                        \
  LogicalResult OP::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) { \
    return inferReduce(loc, getOperationName(), a.getInput(), a.getDims(),     \
                       a.getKeepdims(), out);                                  \
  }
NOVA_REDUCE(SumOp)
NOVA_REDUCE(MaxOp)
NOVA_REDUCE(MinOp)

#define NOVA_ARG_REDUCE(OP)                                                    \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, Loc loc, Adaptor a, \
                                     Types &out) {                             \
    if (failed(inferReduce(loc, getOperationName(), a.getInput(),              \
                           {(int64_t)a.getDim()}, a.getKeepdims(), out)))      \
      return failure();                                                        \
    out.push_back(cast<RankedTensorType>(out[0]).clone(IntegerType::get(context, 64))); \
    return success();                                                          \
  }
NOVA_ARG_REDUCE(ArgMaxOp)
NOVA_ARG_REDUCE(ArgMinOp)

LogicalResult CumsumOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                         Types &out) {
  out.push_back(a.getInput().getType());
  return checkDim(loc, getOperationName(), a.getDim(), typeOf(a.getInput()).getRank());
}

#define NOVA_ALONG_DIM(OP, FIRST)                                              \
  LogicalResult OP::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a, Types &out) { \
    out.push_back(a.FIRST().getType());                                        \
    return checkDim(loc, getOperationName(), a.getDim(), typeOf(a.FIRST()).getRank()); \
  }
NOVA_ALONG_DIM(SoftmaxOp, getInput)
NOVA_ALONG_DIM(LogSoftmaxOp, getInput)
NOVA_ALONG_DIM(SoftmaxBackwardOp, getGrad)
NOVA_ALONG_DIM(LogSoftmaxBackwardOp, getGrad)

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

static LogicalResult checkIndices(Loc loc, StringRef op, ValueRange indices) {
  if (indices.empty())
    return emitOptionalError(loc, op, ": needs an index tensor");
  for (Value index : indices)
    if (typeOf(index).getShape() != typeOf(indices[0]).getShape())
      return emitOptionalError(loc, op, ": index tensors differ in shape: ",
                               indices[0].getType(), " and ", index.getType());
  return success();
}

LogicalResult IndexOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                        Types &out) {
  auto type = typeOf(a.getInput());
  auto dims = a.getDims();
  if (failed(checkIndices(loc, getOperationName(), a.getIndices())))
    return failure();
  if (dims.size() != a.getIndices().size())
    return emitOptionalError(loc, getOperationName(), ": ", dims.size(), " dims for ",
                             a.getIndices().size(), " index tensors");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (failed(checkDim(loc, getOperationName(), dims[i], type.getRank())))
      return failure();
    if (i && dims[i] != dims[i - 1] + 1)
      return emitOptionalError(loc, getOperationName(), ": dims [", dims,
                               "] are not adjacent and increasing");
  }
  SmallVector<int64_t> shape(type.getShape().take_front(dims[0]));
  llvm::append_range(shape, typeOf(a.getIndices()[0]).getShape());
  llvm::append_range(shape, type.getShape().drop_front(dims.back() + 1));
  out.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}

/// torch.gather / torch.scatter: `index` fits in `whole` but along `dim`.
static LogicalResult checkAlong(Loc loc, StringRef op, Value whole, Value index,
                                int64_t dim) {
  auto type = typeOf(whole), indexType = typeOf(index);
  if (failed(checkDim(loc, op, dim, type.getRank())))
    return failure();
  bool fits = type.getRank() == indexType.getRank();
  for (int64_t i = 0; fits && i < type.getRank(); ++i)
    fits = i == dim || indexType.getDimSize(i) <= type.getDimSize(i);
  if (!fits)
    return emitOptionalError(loc, op, ": index ", indexType, " does not fit ", type,
                             " along dimension ", dim);
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                         Types &out) {
  out.push_back(RankedTensorType::get(typeOf(a.getIndex()).getShape(),
                                      typeOf(a.getInput()).getElementType()));
  return checkAlong(loc, getOperationName(), a.getInput(), a.getIndex(), a.getDim());
}

LogicalResult ScatterOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                          Types &out) {
  out.push_back(a.getInit().getType());
  if (typeOf(a.getIndex()).getShape() != typeOf(a.getUpdates()).getShape())
    return emitOptionalError(loc, getOperationName(), ": index ", a.getIndex().getType(),
                             " and updates ", a.getUpdates().getType(), " differ in shape");
  if (failed(sameElements(loc, getOperationName(), a.getInit(), a.getUpdates())))
    return failure();
  return checkAlong(loc, getOperationName(), a.getInit(), a.getIndex(), a.getDim());
}

LogicalResult IndexPutOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                           Types &out) {
  auto type = typeOf(a.getInit());
  out.push_back(type);
  if (failed(checkIndices(loc, getOperationName(), a.getIndices())) ||
      failed(sameElements(loc, getOperationName(), a.getInit(), a.getUpdates())))
    return failure();
  size_t count = a.getIndices().size();
  if ((int64_t)count > type.getRank())
    return emitOptionalError(loc, getOperationName(), ": ", count,
                             " index tensors for rank ", type.getRank());
  SmallVector<int64_t> shape(typeOf(a.getIndices()[0]).getShape());
  llvm::append_range(shape, type.getShape().drop_front(count));
  if (ArrayRef<int64_t>(shape) != typeOf(a.getUpdates()).getShape())
    return emitOptionalError(loc, getOperationName(), ": updates are ",
                             a.getUpdates().getType(), ", expected shape [", shape, "]");
  return success();
}
