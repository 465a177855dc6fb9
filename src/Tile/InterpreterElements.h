//===- InterpreterElements.h - Operations on single elements --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILE_INTERPRETERELEMENTS_H
#define NOVA_TILE_INTERPRETERELEMENTS_H

#include "InterpreterValues.h"

#include "mlir/IR/Operation.h"

#include <functional>

namespace nova::tile {

/// One element of each result from one of each operand. Returns null, or what
/// is undefined about these operands.
using ElementFunction =
    std::function<const char *(const uint64_t *operands, uint64_t *results)>;

/// What an operation of arith or math computes for each element; empty if the
/// interpreter does not have it.
ElementFunction elementFunction(mlir::Operation *op);

// The parts of it, by the types of operands and results.
ElementFunction floatFunction(mlir::Operation *op, Format format);
ElementFunction integerFunction(mlir::Operation *op, Format format);
ElementFunction comparison(mlir::Operation *op, Format format);
ElementFunction conversion(mlir::Operation *op, Format from, Format to);

/// Operands of a product as `precision` has them: rounded to nearest, ties away
/// from zero, to the ten mantissa bits of tf32.
uint64_t roundToTF32(uint64_t bits);

} // namespace nova::tile

#endif // NOVA_TILE_INTERPRETERELEMENTS_H
