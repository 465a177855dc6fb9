//===- InterpreterValues.h - Elements as bits, and tiles of them ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every element is held as the bits of its own type, so that what only moves
// (loads, stores, selects, bit casts) is exact for NaNs too; arithmetic decodes
// and encodes.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILE_INTERPRETERVALUES_H
#define NOVA_TILE_INTERPRETERVALUES_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nova::tile {

/// How the elements of a type are encoded.
struct Format {
  enum Kind { F64, F32, F16, BF16, Integer } kind = Integer;
  unsigned width = 64; ///< In bits.

  bool isFloat() const { return kind != Integer; }
  /// In memory; a narrow integer has a byte of its own.
  unsigned bytes() const { return width < 8 ? 1 : width / 8; }
  const llvm::fltSemantics &semantics() const;

  /// The number that the bits are (of a float type); always exact.
  double decode(uint64_t bits) const;
  /// The nearest number of the type, ties to even.
  uint64_t encode(double value) const;
  /// Integers: the low `width` bits, and those as a signed number.
  uint64_t wrap(uint64_t value) const;
  int64_t toSigned(uint64_t bits) const;
};

/// Of a scalar type or of the elements of a tensor or memref; none if the
/// interpreter does not have that type.
std::optional<Format> formatOf(mlir::Type type);

/// What an SSA value holds: a scalar (one element) or a tile (row-major). A
/// memref, buffer or token holds one number that says which.
struct Held {
  mlir::Type type;
  std::vector<uint64_t> bits;

  Held() = default;
  Held(mlir::Type type, uint64_t scalar) : type(type), bits{scalar} {}
  /// A tile of zeros.
  explicit Held(mlir::RankedTensorType type)
      : type(type), bits(type.getNumElements()) {}

  bool isTile() const { return mlir::isa<mlir::RankedTensorType>(type); }
  llvm::ArrayRef<int64_t> shape() const {
    return mlir::cast<mlir::RankedTensorType>(type).getShape();
  }
};

using Coordinates = llvm::SmallVector<int64_t, 4>;

/// Coordinates of a row-major number, and the number of coordinates.
Coordinates coordinatesOf(llvm::ArrayRef<int64_t> shape, int64_t linear);
int64_t linearOf(llvm::ArrayRef<int64_t> shape,
                 llvm::ArrayRef<int64_t> coordinates);
/// "(0, 5)".
std::string textOf(llvm::ArrayRef<int64_t> coordinates);

} // namespace nova::tile

#endif // NOVA_TILE_INTERPRETERVALUES_H
