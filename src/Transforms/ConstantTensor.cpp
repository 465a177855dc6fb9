//===- ConstantTensor.cpp - A tensor the compiler computes with
//------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ConstantTensor.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <cstring>

using namespace mlir;
using namespace nova;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

std::optional<ElementKind> nova::elementKind(Type type) {
  if (type.isF64())
    return ElementKind::F64;
  if (type.isF32())
    return ElementKind::F32;
  if (type.isBF16())
    return ElementKind::BF16;
  if (type.isF16())
    return ElementKind::F16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  switch (integer.getWidth()) {
  case 1:
    return ElementKind::Bool;
  case 8:
    return integer.isUnsigned() ? ElementKind::U8 : ElementKind::I8;
  case 16:
    return ElementKind::I16;
  case 32:
    return ElementKind::I32;
  case 64:
    return ElementKind::I64;
  default:
    return std::nullopt;
  }
}

int64_t nova::bytesOf(ElementKind kind) {
  constexpr int64_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return sizes[static_cast<int>(kind)];
}

/// Narrow floats by their bits; `F` is f32's own type, or a wrapper below.
static double widenHalf(uint16_t bits, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(semantics, llvm::APInt(16, bits));
  bool losesInfo = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}
static uint16_t narrowToHalf(double value,
                             const llvm::fltSemantics &semantics) {
  llvm::APFloat rounded(value);
  bool losesInfo = false;
  rounded.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return static_cast<uint16_t>(rounded.bitcastToAPInt().getZExtValue());
}
static const llvm::fltSemantics &halfSemantics(ElementKind kind) {
  return kind == ElementKind::F16 ? llvm::APFloat::IEEEhalf()
                                  : llvm::APFloat::BFloat();
}

template <typename Narrow, typename Wide>
static void widen(const char *source, int64_t stride, int64_t count, Wide *to) {
  auto *from = reinterpret_cast<const Narrow *>(source);
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<Wide>(from[i * stride]);
}
template <typename Narrow, typename Wide>
static void narrow(const Wide *from, int64_t count, char *target) {
  auto *to = reinterpret_cast<Narrow *>(target);
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<Narrow>(from[i]);
}

void nova::loadIntegers(ElementKind kind, const char *source, int64_t stride,
                        int64_t count, int64_t *to) {
  switch (kind) {
  case ElementKind::Bool:
  case ElementKind::U8:
    return widen<uint8_t>(source, stride, count, to);
  case ElementKind::I8:
    return widen<int8_t>(source, stride, count, to);
  case ElementKind::I16:
    return widen<int16_t>(source, stride, count, to);
  case ElementKind::I32:
    return widen<int32_t>(source, stride, count, to);
  case ElementKind::I64:
    return widen<int64_t>(source, stride, count, to);
  default:
    llvm_unreachable("floats are loaded by loadFloats");
  }
}

void nova::loadFloats(ElementKind kind, const char *source, int64_t stride,
                      int64_t count, double *to) {
  switch (kind) {
  case ElementKind::F32:
    return widen<float>(source, stride, count, to);
  case ElementKind::F64:
    return widen<double>(source, stride, count, to);
  case ElementKind::F16:
  case ElementKind::BF16: {
    // Masks hold two values: the last conversion usually serves again.
    auto *from = reinterpret_cast<const uint16_t *>(source);
    uint16_t last = 0;
    double lastWide = 0;
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits = from[i * stride];
      if (bits != last) {
        last = bits;
        lastWide = widenHalf(bits, halfSemantics(kind));
      }
      to[i] = lastWide;
    }
    return;
  }
  default:
    llvm_unreachable("integers are loaded by loadIntegers");
  }
}

void nova::storeIntegers(ElementKind kind, const int64_t *from, int64_t count,
                         char *to) {
  switch (kind) {
  case ElementKind::Bool:
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i] != 0;
    return;
  case ElementKind::I8:
  case ElementKind::U8:
    return narrow<uint8_t>(from, count, to);
  case ElementKind::I16:
    return narrow<uint16_t>(from, count, to);
  case ElementKind::I32:
    return narrow<uint32_t>(from, count, to);
  case ElementKind::I64:
    return narrow<int64_t>(from, count, to);
  default:
    llvm_unreachable("floats are stored by storeFloats");
  }
}

void nova::storeFloats(ElementKind kind, const double *from, int64_t count,
                       char *to) {
  switch (kind) {
  case ElementKind::F32:
    return narrow<float>(from, count, to);
  case ElementKind::F64:
    return narrow<double>(from, count, to);
  case ElementKind::F16:
  case ElementKind::BF16: {
    auto *target = reinterpret_cast<uint16_t *>(to);
    uint64_t last = 0; // the bits: 0.0 and -0.0 are two values
    uint16_t lastNarrow = 0;
    for (int64_t i = 0; i < count; ++i) {
      auto bits = llvm::bit_cast<uint64_t>(from[i]);
      if (bits != last) {
        last = bits;
        lastNarrow = narrowToHalf(from[i], halfSemantics(kind));
      }
      target[i] = lastNarrow;
    }
    return;
  }
  default:
    llvm_unreachable("integers are stored by storeIntegers");
  }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

ConstantTensor::ConstantTensor(Type element, StridedView view, int64_t count)
    : element(element), elements(*elementKind(element)),
      layout(std::move(view)), bytes(new char[std::max<int64_t>(count, 1) *
                                              bytesOf(*elementKind(element))],
                                     std::default_delete<char[]>()) {}

std::optional<ConstantTensor> ConstantTensor::of(ElementsAttr attribute) {
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  auto type = dyn_cast<RankedTensorType>(attribute.getShapedType());
  std::optional<ElementKind> kind =
      type ? elementKind(type.getElementType()) : std::nullopt;
  if (!dense || !kind)
    return std::nullopt;
  StridedView view = StridedView::contiguous(type.getShape());
  if (dense.isSplat())
    view.strides.assign(view.shape.size(), 0);
  if (*kind == ElementKind::Bool) { // bits in the attribute, bytes here
    ConstantTensor result(type.getElementType(), view,
                          dense.isSplat() ? 1 : type.getNumElements());
    if (dense.isSplat())
      result.data()[0] = dense.getSplatValue<bool>();
    else
      llvm::copy(dense.getValues<bool>(), result.data());
    return result;
  }
  // The attribute lives as long as the context, so its memory needs no owner.
  std::shared_ptr<char> memory(std::shared_ptr<char>(),
                               const_cast<char *>(dense.getRawData().data()));
  return ConstantTensor(type.getElementType(), *kind, std::move(view),
                        std::move(memory));
}

std::optional<ConstantTensor> ConstantTensor::splat(RankedTensorType type,
                                                    TypedAttr value) {
  return of(DenseElementsAttr::get(type, Attribute(value)));
}

ConstantTensor ConstantTensor::withView(StridedView other) const {
  return ConstantTensor(element, elements, std::move(other), bytes);
}

SmallVector<int64_t> ConstantTensor::coreShape() const {
  SmallVector<int64_t> core(layout.shape);
  for (size_t i = 0; i < core.size(); ++i)
    if (core[i] != 0 && isRepeated(i))
      core[i] = 1;
  return core;
}

int64_t ConstantTensor::integerAt(int64_t offset) const {
  int64_t value = 0;
  loadIntegers(elements, data() + offset * bytesOf(elements), 0, 1, &value);
  return value;
}
double ConstantTensor::floatAt(int64_t offset) const {
  double value = 0;
  loadFloats(elements, data() + offset * bytesOf(elements), 0, 1, &value);
  return value;
}

DenseElementsAttr ConstantTensor::coreAttribute() const {
  SmallVector<int64_t> core = coreShape();
  auto type = RankedTensorType::get(core, element);
  int64_t count = type.getNumElements();
  SmallVector<char> packed(count * bytesOf(elements));
  copyElements(*this, core, packed.data(), contiguousStrides(core));
  if (elements != ElementKind::Bool)
    return DenseElementsAttr::getFromRawBuffer(type, packed);
  return DenseElementsAttr::get(
      type, ArrayRef(reinterpret_cast<const bool *>(packed.data()), count));
}

ConstantTensor nova::makeRepeated(Type element, ArrayRef<int64_t> shape,
                                  ArrayRef<int64_t> core) {
  StridedView view{0, SmallVector<int64_t>(shape), contiguousStrides(core)};
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    count *= core[i];
    if (core[i] != shape[i])
      view.strides[i] = 0;
  }
  return ConstantTensor(element, std::move(view), count);
}

void nova::forEachOffset(ArrayRef<int64_t> shape,
                         ArrayRef<ArrayRef<int64_t>> strides,
                         llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> position(shape.size(), 0), offsets(strides.size(), 0);
  while (true) {
    body(offsets);
    size_t dim = shape.size();
    while (true) {
      if (dim == 0)
        return;
      --dim;
      if (++position[dim] < shape[dim])
        break;
      for (size_t k = 0; k < strides.size(); ++k)
        offsets[k] -= (shape[dim] - 1) * strides[k][dim];
      position[dim] = 0;
    }
    for (size_t k = 0; k < strides.size(); ++k)
      offsets[k] += strides[k][dim];
  }
}

void nova::copyElements(const ConstantTensor &from, ArrayRef<int64_t> shape,
                        char *to, ArrayRef<int64_t> toStrides) {
  int64_t size = bytesOf(from.kind());
  // The innermost dimension as one block where both sides are dense there.
  bool block = !shape.empty() && toStrides.back() == 1 &&
               (from.strides().back() == 1 || shape.back() == 1);
  ArrayRef<int64_t> outer = block ? shape.drop_back() : shape;
  int64_t run = block ? shape.back() : 1;
  if (run == 0)
    return;
  const char *source = from.data();
  forEachOffset(outer,
                {from.strides().take_front(outer.size()),
                 toStrides.take_front(outer.size())},
                [&](ArrayRef<int64_t> offsets) {
                  std::memcpy(to + offsets[1] * size,
                              source + offsets[0] * size, run * size);
                });
}
