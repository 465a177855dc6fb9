//===- KernelModel.h - What a kernel function computes, where, and how
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The analysis behind nova-lower-kernels-to-loops. It reads a kernel function
// (attributes nova.kernel, nova.space, nova.tile, nova.map, nova.strides,
// nova.inplace), finds for every value in its body which dimension follows
// which dimension of the parallel space, and decides where the value lives.
// It changes nothing; every refusal is an error on the op at fault that names
// the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_HOSTCODEGEN_KERNELMODEL_H
#define NOVA_LIB_HOSTCODEGEN_KERNELMODEL_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace nova::host {

/// Marks a tensor dimension that every grid point sees whole.
inline constexpr int64_t kLocal = -1;

/// Per tensor dimension: the space dimension it follows, or kLocal. Space
/// dimensions of extent 1 count as local: the two mean the same.
using Binding = llvm::SmallVector<int64_t>;

/// Where the elements of a value are.
enum class Storage {
  /// Nowhere: every element equals one scalar (a splat constant or a fill).
  Splat,
  /// Nowhere: undefined contents (tensor.empty).
  Undefined,
  /// The memory behind a kernel argument; indices are those of the whole
  /// tensor.
  Argument,
  /// The memory of a function result; indices are those of the whole tensor.
  Result,
  /// A buffer on the stack that holds one tile: bound dimensions are relative
  /// to the tile's start.
  Scratch,
  /// Nobody reads it.
  Dead,
};

struct ValuePlan {
  Storage storage = Storage::Dead;
  Binding binding;
  /// Argument, result or scratch-slot number.
  unsigned index = 0;
  /// Element strides of the memory.
  llvm::SmallVector<int64_t> strides;
};

/// A stack buffer; values whose lives do not overlap share one.
struct ScratchSlot {
  mlir::Type elementType;
  int64_t elements = 0;
};

/// A copy to make at the end of a grid point: from a value to a function
/// result that could not be written in place.
struct ResultCopy {
  mlir::Value source;
  unsigned result = 0;
};

struct KernelModel {
  mlir::func::FuncOp func;
  /// Extent and tile of each space dimension.
  llvm::SmallVector<int64_t> space, tile;
  llvm::DenseMap<mlir::Value, ValuePlan> values;
  /// Body ops with work to do, in program order.
  llvm::SmallVector<mlir::Operation *> work;
  llvm::SmallVector<ScratchSlot> slots;
  llvm::SmallVector<ResultCopy> copies;
  /// Binding and element strides of each function result.
  llvm::SmallVector<Binding> resultBinding;
  llvm::SmallVector<llvm::SmallVector<int64_t>> resultStrides;
  /// Pairs of argument and result that may share memory, and the arguments and
  /// results that any pair names.
  llvm::SmallVector<std::pair<unsigned, unsigned>> inplace;
  llvm::SmallVector<bool> argumentAliases, resultAliases;

  int64_t gridPoints() const;
  /// Number of tiles along a space dimension.
  int64_t tiles(int64_t dim) const;
  llvm::StringRef name() { return func.getSymName(); }
  const ValuePlan &plan(mlir::Value value) const {
    return values.find(value)->second;
  }
};

/// Analyses `func`; failure after an error on the op at fault.
mlir::FailureOr<KernelModel> modelKernel(mlir::func::FuncOp func);

/// Decides where every bound value lives (the second half of modelKernel).
mlir::LogicalResult planStorage(KernelModel &model);

/// An error on `op` that begins by naming the kernel.
mlir::InFlightDiagnostic refuse(mlir::func::FuncOp func, mlir::Operation *op);

/// The scalar that fills a Splat value: an attribute for a constant, or the
/// fill's operand.
mlir::OpFoldResult splatValue(mlir::Value value);

/// Binding of every iteration dimension of a generic whose results are planned.
Binding iterationBinding(const KernelModel &model, mlir::linalg::GenericOp op);

/// Elements from the first to the last that a strided view touches; 0 if empty.
int64_t spannedElements(llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<int64_t> strides);

} // namespace nova::host

#endif // NOVA_LIB_HOSTCODEGEN_KERNELMODEL_H
