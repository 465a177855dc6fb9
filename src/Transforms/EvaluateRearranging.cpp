//===- EvaluateRearranging.cpp - Views, look-ups and scans of constants
//----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything here keeps repeated dimensions repeated: a result dimension along
// which the operation and all its operands repeat is computed once.
//
//===----------------------------------------------------------------------===//
#include "Evaluate.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cstring>
#include <numeric>

using namespace mlir;
using namespace nova;

using Result = std::optional<ConstantTensor>;

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}
static RankedTensorType resultType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

//===----------------------------------------------------------------------===//
// Views, concat, pad
//===----------------------------------------------------------------------===//

static Result evaluateView(Operation *op, const ConstantTensor &input,
                           int64_t maxElements) {
  if (auto view = applyView(op, input.view()))
    return input.withView(*view);
  // A reshape without a strided form: the elements, in order.
  SmallVector<int64_t> shape(input.shape());
  if (product(shape) > maxElements)
    return std::nullopt;
  ConstantTensor flat = makeRepeated(input.elementType(), shape, shape);
  copyElements(input, shape, flat.data(), flat.strides());
  return flat.withView(StridedView::contiguous(resultType(op).getShape()));
}

/// The strides of a result dense over its core, without the zeros: where to
/// write the one element of a repeated dimension.
static SmallVector<int64_t> coreStrides(const ConstantTensor &result) {
  return contiguousStrides(result.coreShape());
}

static Result evaluateConcat(ConcatOp op, ArrayRef<ConstantTensor> inputs,
                             int64_t maxElements) {
  auto type = resultType(op);
  size_t dim = op.getDim();
  SmallVector<int64_t> core(type.getShape());
  for (size_t i = 0; i < core.size(); ++i)
    if (i != dim && core[i] != 0 &&
        llvm::all_of(inputs,
                     [&](const ConstantTensor &t) { return t.isRepeated(i); }))
      core[i] = 1;
  if (product(core) > maxElements)
    return std::nullopt;
  ConstantTensor result =
      makeRepeated(type.getElementType(), type.getShape(), core);
  SmallVector<int64_t> strides = contiguousStrides(core);
  char *target = result.data();
  for (const ConstantTensor &input : inputs) {
    SmallVector<int64_t> part(core);
    part[dim] = input.shape()[dim];
    copyElements(input, part, target, strides);
    target += part[dim] * strides[dim] * bytesOf(result.kind());
  }
  return result;
}

static Result evaluatePad(PadOp op, const ConstantTensor &input,
                          int64_t maxElements) {
  auto type = resultType(op);
  SmallVector<int64_t> core(type.getShape()), part(input.shape());
  for (size_t i = 0; i < core.size(); ++i)
    if (op.getLow()[i] == 0 && op.getHigh()[i] == 0 && core[i] != 0 &&
        input.isRepeated(i))
      core[i] = part[i] = 1;
  auto value = dyn_cast<TypedAttr>(op.getValue());
  auto fill =
      value ? ConstantTensor::splat(
                  RankedTensorType::get(core, type.getElementType()), value)
            : Result();
  if (!fill || product(core) > maxElements)
    return std::nullopt;
  ConstantTensor result =
      makeRepeated(type.getElementType(), type.getShape(), core);
  SmallVector<int64_t> strides = contiguousStrides(core);
  copyElements(*fill, core, result.data(), strides);
  char *target = result.data();
  for (size_t i = 0; i < core.size(); ++i)
    target += op.getLow()[i] * strides[i] * bytesOf(result.kind());
  copyElements(input, part, target, strides);
  return result;
}

//===----------------------------------------------------------------------===//
// Look-ups
//===----------------------------------------------------------------------===//

/// An index within [0, size), counted from the end where negative; -1 outside.
static int64_t resolveIndex(int64_t index, int64_t size) {
  if (index < 0)
    index += size;
  return index >= 0 && index < size ? index : -1;
}

/// Writes the element an index outside its dimension yields: NaN, 0 for
/// integers.
static void storeOutside(ElementKind kind, char *target) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  int64_t zero = 0;
  if (isFloat(kind))
    storeFloats(kind, &nan, 1, target);
  else
    storeIntegers(kind, &zero, 1, target);
}

/// Whether every index is inside a dimension of `size`.
static bool allInside(const ConstantTensor &index, int64_t size) {
  bool inside = true;
  forEachOffset(
      index.coreShape(), {index.strides()}, [&](ArrayRef<int64_t> offsets) {
        inside = inside && resolveIndex(index.integerAt(offsets[0]), size) >= 0;
      });
  return inside;
}

static Result evaluateIndex(IndexOp op, ArrayRef<ConstantTensor> operands,
                            int64_t maxElements) {
  const ConstantTensor &input = operands[0];
  ArrayRef<int64_t> dims = op.getDims();
  auto type = resultType(op);
  // Along a dimension in which the input repeats, any valid index reads the
  // same.
  struct Lookup {
    const ConstantTensor *index;
    int64_t size, stride;
  };
  SmallVector<Lookup> lookups;
  for (auto [k, dim] : llvm::enumerate(dims)) {
    Lookup lookup{&operands[k + 1], input.shape()[dim], input.strides()[dim]};
    if (!input.isRepeated(dim) || !allInside(*lookup.index, lookup.size))
      lookups.push_back(lookup);
  }

  // Result dimensions: those before, those of the index, those behind. Each of
  // input and lookups strides along them.
  size_t before = dims.front(), indexRank = operands[1].shape().size();
  size_t rank = type.getRank();
  SmallVector<SmallVector<int64_t>> strides(lookups.size() + 1,
                                            SmallVector<int64_t>(rank, 0));
  for (size_t i = 0; i < rank; ++i)
    if (i < before)
      strides[0][i] = input.strides()[i];
    else if (i >= before + indexRank)
      strides[0][i] = input.strides()[i - indexRank + dims.size()];
    else
      for (auto [k, lookup] : llvm::enumerate(lookups))
        strides[k + 1][i] = lookup.index->strides()[i - before];
  SmallVector<int64_t> core(type.getShape());
  for (size_t i = 0; i < rank; ++i)
    if (core[i] != 0 &&
        llvm::all_of(strides, [&](ArrayRef<int64_t> s) { return s[i] == 0; }))
      core[i] = 1;
  if (product(core) > maxElements)
    return std::nullopt;

  ConstantTensor result =
      makeRepeated(type.getElementType(), type.getShape(), core);
  int64_t size = bytesOf(result.kind());
  char *target = result.data();
  SmallVector<ArrayRef<int64_t>> views(strides.begin(), strides.end());
  forEachOffset(core, views, [&](ArrayRef<int64_t> offsets) {
    int64_t at = offsets[0];
    bool inside = true;
    for (auto [k, lookup] : llvm::enumerate(lookups)) {
      int64_t index =
          resolveIndex(lookup.index->integerAt(offsets[k + 1]), lookup.size);
      inside = inside && index >= 0;
      at += index * lookup.stride;
    }
    if (inside)
      std::memcpy(target, input.data() + at * size, size);
    else
      storeOutside(result.kind(), target);
    target += size;
  });
  return result;
}

static Result evaluateGather(GatherOp op, const ConstantTensor &input,
                             const ConstantTensor &index, int64_t maxElements) {
  auto type = resultType(op);
  size_t dim = op.getDim();
  SmallVector<int64_t> core(type.getShape()), fromInput(input.strides());
  fromInput[dim] = 0;
  for (size_t i = 0; i < core.size(); ++i)
    if (core[i] != 0 && index.isRepeated(i) && fromInput[i] == 0)
      core[i] = 1;
  if (product(core) > maxElements)
    return std::nullopt;
  ConstantTensor result =
      makeRepeated(type.getElementType(), type.getShape(), core);
  int64_t size = bytesOf(result.kind());
  char *target = result.data();
  forEachOffset(
      core, {fromInput, index.strides()}, [&](ArrayRef<int64_t> offsets) {
        // As in a kernel (and torch.gather) a negative index is outside.
        int64_t at = index.integerAt(offsets[1]);
        if (at >= 0 && at < input.shape()[dim])
          std::memcpy(target,
                      input.data() +
                          (offsets[0] + at * input.strides()[dim]) * size,
                      size);
        else
          storeOutside(result.kind(), target);
        target += size;
      });
  return result;
}

//===----------------------------------------------------------------------===//
// Scans and reductions of integers
//===----------------------------------------------------------------------===//

static Result evaluateCumsum(CumsumOp op, const ConstantTensor &input,
                             int64_t maxElements) {
  if (isFloat(input.kind()))
    return std::nullopt;
  size_t dim = op.getDim();
  SmallVector<int64_t> core = input.coreShape();
  core[dim] = input.shape()[dim];
  if (product(core) > maxElements)
    return std::nullopt;
  ConstantTensor result =
      makeRepeated(input.elementType(), input.shape(), core);
  SmallVector<int64_t> outer(core), to = coreStrides(result);
  outer[dim] = 1;
  int64_t size = bytesOf(result.kind());
  char *target = result.data();
  forEachOffset(outer, {input.strides(), to}, [&](ArrayRef<int64_t> offsets) {
    uint64_t total = 0;
    for (int64_t i = 0; i < core[dim]; ++i) {
      total += static_cast<uint64_t>(
          input.integerAt(offsets[0] + i * input.strides()[dim]));
      auto value = static_cast<int64_t>(total);
      storeIntegers(result.kind(), &value, 1,
                    target + (offsets[1] + i * to[dim]) * size);
    }
  });
  return result;
}

/// Sum, largest or smallest of integers.
static Result evaluateReduce(Operation *op, ArrayRef<int64_t> dims, bool keep,
                             const ConstantTensor &input, int64_t maxElements) {
  bool isSum = isa<SumOp>(op), isMax = isa<MaxOp>(op);
  if (isFloat(input.kind()) || (!isSum && input.empty()))
    return std::nullopt;
  // What is repeated along a reduced dimension counts that often in a sum.
  SmallVector<int64_t> core = input.coreShape(), reduced(core.size(), 1),
                       kept(core);
  uint64_t times = 1;
  for (int64_t dim : dims) {
    reduced[dim] = core[dim];
    kept[dim] = 1;
    if (core[dim] != input.shape()[dim])
      times *= static_cast<uint64_t>(input.shape()[dim]);
  }
  if (product(core) > maxElements)
    return std::nullopt;
  SmallVector<int64_t> shape(input.shape());
  for (int64_t dim : dims)
    shape[dim] = 1;
  ConstantTensor result = makeRepeated(input.elementType(), shape, kept);
  int64_t size = bytesOf(result.kind());
  char *target = result.data();
  forEachOffset(kept, {input.strides()}, [&](ArrayRef<int64_t> row) {
    std::optional<int64_t> best;
    uint64_t sum = 0;
    forEachOffset(reduced, {input.strides()}, [&](ArrayRef<int64_t> offsets) {
      int64_t value = input.integerAt(row[0] + offsets[0]);
      sum += static_cast<uint64_t>(value);
      if (!best || (isMax ? value > *best : value < *best))
        best = value;
    });
    int64_t value = isSum ? static_cast<int64_t>(sum * times) : *best;
    storeIntegers(result.kind(), &value, 1, target);
    target += size;
  });
  if (keep)
    return result;
  StridedView view{0, {}, {}};
  for (size_t i = 0; i < shape.size(); ++i)
    if (!llvm::is_contained(dims, (int64_t)i)) {
      view.shape.push_back(shape[i]);
      view.strides.push_back(result.strides()[i]);
    }
  return result.withView(view);
}

static Result evaluateIota(IotaOp op, int64_t maxElements) {
  auto type = resultType(op);
  auto start = dyn_cast<IntegerAttr>(op.getStart()),
       step = dyn_cast<IntegerAttr>(op.getStep());
  // A float iota rounds in ways only its kernel knows.
  if (!start || !step || type.getNumElements() > maxElements)
    return std::nullopt;
  ConstantTensor result =
      makeRepeated(type.getElementType(), type.getShape(), type.getShape());
  int64_t size = bytesOf(result.kind());
  auto number = [](IntegerAttr attr) {
    return attr.getType().isUnsignedInteger() || attr.getType().isInteger(1)
               ? attr.getValue().getZExtValue()
               : static_cast<uint64_t>(attr.getValue().getSExtValue());
  };
  uint64_t value = number(start);
  for (int64_t i = 0; i < type.getNumElements(); ++i, value += number(step)) {
    auto wide = static_cast<int64_t>(value);
    storeIntegers(result.kind(), &wide, 1, result.data() + i * size);
  }
  return result;
}

//===----------------------------------------------------------------------===//

std::optional<ConstantTensor>
nova::evaluateRearranging(Operation *op, ArrayRef<ConstantTensor> in,
                          int64_t maxElements) {
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp o) { return ConstantTensor::of(o.getValue()); })
      .Case([&](IotaOp o) { return evaluateIota(o, maxElements); })
      .Case<ReshapeOp, BroadcastOp, TransposeOp, SliceOp>(
          [&](auto o) { return evaluateView(o, in[0], maxElements); })
      .Case([&](ConcatOp o) { return evaluateConcat(o, in, maxElements); })
      .Case([&](PadOp o) { return evaluatePad(o, in[0], maxElements); })
      .Case([&](IndexOp o) { return evaluateIndex(o, in, maxElements); })
      .Case([&](GatherOp o) {
        return evaluateGather(o, in[0], in[1], maxElements);
      })
      .Case([&](CumsumOp o) { return evaluateCumsum(o, in[0], maxElements); })
      .Case<SumOp, MaxOp, MinOp>([&](auto o) {
        return evaluateReduce(o, o.getDims(), o.getKeepdims(), in[0],
                              maxElements);
      })
      .Default([](Operation *) { return Result(); });
}

std::optional<ConstantTensor> nova::evaluate(Operation *op,
                                             ArrayRef<ConstantTensor> operands,
                                             int64_t maxElements) {
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        !tensor || !elementKind(tensor.getElementType()))
      return std::nullopt;
  if (op->hasTrait<nova::Pointwise>())
    return evaluateElementwise(op, operands, maxElements);
  return evaluateRearranging(op, operands, maxElements);
}
