//===- LoopEmitter.h - Building blocks of kernel loops
//---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What every lowering in this folder builds with: index arithmetic, loops,
// memory accesses with linear offsets, and values in lanes.
//
// All memory is flat: a memref of one dimension and an offset counted in
// elements. A tensor i1 is a memref of i8.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_HOSTCODEGEN_LOOPEMITTER_H
#define NOVA_LIB_HOSTCODEGEN_LOOPEMITTER_H

#include "KernelModel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace nova::host {

/// Lanes of an x86-64-v3 vector of f32; wider elements take several registers.
inline constexpr int64_t kVectorWidth = 8;

/// One value for each of W lanes.
struct Lanes {
  enum class Form {
    /// The same scalar in every lane.
    Uniform,
    /// Integer or index: lane l holds value + l.
    Step,
    /// A vector of W elements.
    Vector,
  };
  Form form = Form::Uniform;
  mlir::Value value;
};

/// How one tensor operand is reached from the iteration dimensions of an op:
/// element offset = base + sum of coef[d] * iv[d].
struct Access {
  mlir::Value memref;
  /// Element type of the tensor (i1 where memory holds i8).
  mlir::Type elementType;
  mlir::Value base;
  llvm::SmallVector<int64_t> coef;
  /// Set instead of memref for a value whose elements all equal this.
  mlir::Value splat;
};

/// One iteration dimension within a tile.
struct LoopDim {
  /// Iterations in this tile: a constant, or a value for tiles cut at the edge.
  mlir::OpFoldResult size;
  /// Most iterations any tile has.
  int64_t maxSize = 0;
  /// What to add for the index in the whole tensor (null: nothing).
  mlir::Value start;
  bool reduction = false;

  std::optional<int64_t> staticSize() const {
    return mlir::getConstantIntValue(size);
  }
};

class LoopEmitter : public mlir::ImplicitLocOpBuilder {
public:
  LoopEmitter(const KernelModel &model, mlir::OpBuilder builder,
              mlir::Location loc)
      : ImplicitLocOpBuilder(loc, builder), model(model) {}

  const KernelModel &model;
  /// Flat memrefs of the arguments, results and scratch slots.
  llvm::SmallVector<mlir::Value> arguments, results, slots;
  /// Of the tile at hand, per space dimension.
  llvm::SmallVector<mlir::Value> starts;
  llvm::SmallVector<mlir::OpFoldResult> sizes;
  /// Index of the tile along each space dimension.
  llvm::SmallVector<mlir::Value> tileIndex;
  /// Where stack buffers are made (the function's entry).
  mlir::Block *entry = nullptr;
  /// Bytes of stack taken so far.
  int64_t stackBytes = 0;

  // Index arithmetic; folds constants, and never wraps (offsets are within
  // an address space and not negative).
  mlir::Value index(int64_t value);
  mlir::Value asValue(mlir::OpFoldResult value);
  mlir::Value addIndex(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mulIndex(mlir::Value lhs, int64_t rhs);
  mlir::Value minIndex(mlir::Value lhs, mlir::Value rhs);
  /// value - value % divisor.
  mlir::OpFoldResult roundDown(mlir::OpFoldResult value, int64_t divisor);

  /// for (iv = lower; iv < upper; iv += step) with carried values. A loop of
  /// no or one iteration, where that is known, leaves no loop behind.
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value iv, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> loop(mlir::OpFoldResult lower,
                                      mlir::OpFoldResult upper, int64_t step,
                                      mlir::ValueRange carried, LoopBody body);
  void loop(mlir::OpFoldResult lower, mlir::OpFoldResult upper, int64_t step,
            llvm::function_ref<void(mlir::Value iv)> body);

  // Lanes.
  mlir::VectorType laneType(mlir::Type element, int64_t width);
  /// The lanes as a vector of `width` elements (the scalar itself if 1).
  mlir::Value materialise(const Lanes &lanes, int64_t width);
  mlir::Value lane(const Lanes &lanes, int64_t l);

  // Memory.
  mlir::Type memoryType(mlir::Type element);
  mlir::Value scalarConstant(mlir::Attribute value);
  /// A stack buffer made once, at the function's entry, aligned to a cache
  /// line.
  mlir::Value stackBuffer(mlir::Type memoryElement, int64_t elements);
  /// Lane l is at offset + l * laneStride.
  Lanes load(const Access &access, mlir::Value offset, int64_t laneStride,
             int64_t width);
  void store(const Access &access, mlir::Value offset, int64_t laneStride,
             int64_t width, const Lanes &value);
  mlir::Value loadScalar(const Access &access, mlir::Value offset);
  void storeScalar(const Access &access, mlir::Value offset, mlir::Value value);

  /// Access to `value` through `map` from iteration dimensions `dims`.
  Access access(mlir::Value value, mlir::AffineMap map,
                llvm::ArrayRef<LoopDim> dims);
  /// Access to function result `r`, one dimension per tensor dimension.
  Access accessResult(unsigned r, llvm::ArrayRef<LoopDim> dims);
  /// Iteration dimensions over the region of a value in this tile.
  llvm::SmallVector<LoopDim> regionOf(mlir::Value value);
  LoopDim dimFor(int64_t extent, int64_t space);
  mlir::Value offsetAt(const Access &access, llvm::ArrayRef<mlir::Value> ivs);

private:
  Access accessMemory(mlir::Value memref, mlir::Type element,
                      llvm::ArrayRef<int64_t> strides, bool wholeTensor,
                      mlir::AffineMap map, llvm::ArrayRef<LoopDim> dims);
};

/// `cond ? body : nothing`.
void emitIf(LoopEmitter &e, mlir::Value condition,
            llvm::function_ref<void()> body);

// One lowering per op; failure after an error.
mlir::LogicalResult emitGeneric(LoopEmitter &e, mlir::linalg::GenericOp op);
/// Lowers op as a blocked matrix product if it is one worth it; false if not.
bool emitContraction(LoopEmitter &e, mlir::linalg::GenericOp op);
void emitConcat(LoopEmitter &e, mlir::Operation *op);
void emitCumsum(LoopEmitter &e, mlir::Operation *op);
void emitScatter(LoopEmitter &e, mlir::Operation *op);
void emitIndexPut(LoopEmitter &e, mlir::Operation *op);
/// Copies `source` to function result `result`, over the tile's region.
void emitResultCopy(LoopEmitter &e, const ResultCopy &copy);
/// Copies the region of `to` from `from` (same shape and binding).
void emitCopy(LoopEmitter &e, llvm::ArrayRef<LoopDim> dims, const Access &from,
              const Access &to);

} // namespace nova::host

#endif // NOVA_LIB_HOSTCODEGEN_LOOPEMITTER_H
