//===- ConstantTensor.h - A tensor the compiler computes with
//--------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shared buffer seen through a strided view: broadcast, transpose, slice and
// most reshapes cost nothing. A stride of 0 means that the elements along the
// dimension are one and the same, which everything here keeps and exploits: a
// mask equal for every batch and head is held, computed and stored once.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_CONSTANTTENSOR_H
#define NOVA_SRC_TRANSFORMS_CONSTANTTENSOR_H

#include "nova/IR/StridedView.h"

#include <memory>

namespace nova {

/// How an element lies in memory: in its own width, i1 as a byte 0 or 1.
enum class ElementKind { Bool, I8, U8, I16, I32, I64, F16, BF16, F32, F64 };

/// Nothing for types the dialect's tensors do not have.
std::optional<ElementKind> elementKind(mlir::Type type);
int64_t bytesOf(ElementKind kind);
inline bool isFloat(ElementKind kind) { return kind >= ElementKind::F16; }

/// `count` elements from `source`, `stride` elements apart, as int64 (integers
/// and i1) or double (floats): every value of the dialect's types is exact in
/// the one or the other.
void loadIntegers(ElementKind kind, const char *source, int64_t stride,
                  int64_t count, int64_t *to);
void loadFloats(ElementKind kind, const char *source, int64_t stride,
                int64_t count, double *to);
/// Contiguous; integers wrap, i1 is value != 0, floats round once to nearest
/// even.
void storeIntegers(ElementKind kind, const int64_t *from, int64_t count,
                   char *to);
void storeFloats(ElementKind kind, const double *from, int64_t count, char *to);

class ConstantTensor {
public:
  /// An uninitialised tensor; `view` lies in a new buffer of `elements`
  /// elements.
  ConstantTensor(mlir::Type element, StridedView view, int64_t elements);
  /// The tensor a dense attribute holds: its memory, not a copy, but for i1.
  static std::optional<ConstantTensor> of(mlir::ElementsAttr attribute);
  /// One element repeated.
  static std::optional<ConstantTensor> splat(mlir::RankedTensorType type,
                                             mlir::TypedAttr value);

  /// The same elements seen differently.
  ConstantTensor withView(StridedView other) const;

  mlir::Type elementType() const { return element; }
  ElementKind kind() const { return elements; }
  const StridedView &view() const { return layout; }
  llvm::ArrayRef<int64_t> shape() const { return layout.shape; }
  llvm::ArrayRef<int64_t> strides() const { return layout.strides; }
  mlir::RankedTensorType type() const {
    return mlir::RankedTensorType::get(shape(), element);
  }
  bool empty() const { return llvm::is_contained(layout.shape, 0); }

  /// Whether all elements along the dimension are one and the same.
  bool isRepeated(size_t dim) const {
    return layout.strides[dim] == 0 || layout.shape[dim] == 1;
  }
  /// The shape with repeated dimensions as 1: what there is to compute.
  llvm::SmallVector<int64_t> coreShape() const;

  const char *data() const {
    return bytes.get() + layout.offset * bytesOf(elements);
  }
  char *data() { return const_cast<char *>(std::as_const(*this).data()); }
  /// Integers and i1; the element `offset` elements from the first.
  int64_t integerAt(int64_t offset) const;
  /// Floats.
  double floatAt(int64_t offset) const;

  /// The attribute of coreShape() (a splat where the core is one element).
  mlir::DenseElementsAttr coreAttribute() const;

private:
  ConstantTensor(mlir::Type element, ElementKind kind, StridedView view,
                 std::shared_ptr<char> bytes)
      : element(element), elements(kind), layout(std::move(view)),
        bytes(std::move(bytes)) {}

  mlir::Type element;
  ElementKind elements;
  StridedView layout;
  std::shared_ptr<char> bytes;
};

/// A new tensor of `shape` whose core is `core` (each size that of the shape,
/// or 1 for a repeated dimension), contiguous and uninitialised.
ConstantTensor makeRepeated(mlir::Type element, llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<int64_t> core);

/// Copies `from` (the sizes of `shape`, which must not exceed its own) to
/// memory with the given element strides.
void copyElements(const ConstantTensor &from, llvm::ArrayRef<int64_t> shape,
                  char *to, llvm::ArrayRef<int64_t> toStrides);

/// Calls `body(offsets)` for every position of `shape` in row-major order;
/// offsets[k] = sum of position * strides[k], in elements.
void forEachOffset(llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<llvm::ArrayRef<int64_t>> strides,
                   llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_CONSTANTTENSOR_H
