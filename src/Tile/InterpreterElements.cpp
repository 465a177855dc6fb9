//===- InterpreterElements.cpp - Comparisons, conversions, dispatch -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/APSInt.h"

#include <cmath>

using namespace mlir;

namespace nova::tile {

static bool holds(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return a != b;
  }
  return false;
}

ElementFunction comparison(Operation *op, Format format) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return [format, predicate = compare.getPredicate()](const uint64_t *in,
                                                        uint64_t *out) {
      *out = holds(predicate, format.decode(in[0]), format.decode(in[1]));
      return nullptr;
    };
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return [format, predicate = compare.getPredicate()](const uint64_t *in,
                                                        uint64_t *out) {
      *out =
          arith::applyCmpPredicate(predicate, llvm::APInt(format.width, in[0]),
                                   llvm::APInt(format.width, in[1]));
      return nullptr;
    };
  return {};
}

/// Integer to float, rounded once.
static uint64_t toFloat(Format from, Format to, uint64_t bits, bool isSigned) {
  llvm::APFloat number(to.semantics());
  number.convertFromAPInt(llvm::APInt(from.width, bits), isSigned,
                          llvm::APFloat::rmNearestTiesToEven);
  return number.bitcastToAPInt().getZExtValue();
}

/// Float to integer: towards zero, clamped; NaN gives 0.
static uint64_t toInteger(Format from, Format to, uint64_t bits,
                          bool isSigned) {
  llvm::APFloat number(from.semantics(), llvm::APInt(from.width, bits));
  llvm::APSInt result(to.width, !isSigned);
  bool exact;
  number.convertToInteger(result, llvm::APFloat::rmTowardZero, &exact);
  return result.getZExtValue();
}

ElementFunction conversion(Operation *op, Format from, Format to) {
  auto each = [](auto function) -> ElementFunction {
    return [function](const uint64_t *in, uint64_t *out) {
      *out = function(in[0]);
      return nullptr;
    };
  };
  if (auto truncate = dyn_cast<arith::TruncFOp>(op))
    if (truncate.getRoundingmode().value_or(
            arith::RoundingMode::to_nearest_even) !=
        arith::RoundingMode::to_nearest_even)
      return {};
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return each([=](uint64_t bits) { return to.encode(from.decode(bits)); });
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return each([=](uint64_t bits) { return to.wrap(from.toSigned(bits)); });
  if (isa<arith::ExtUIOp, arith::TruncIOp, arith::IndexCastUIOp>(op))
    return each([=](uint64_t bits) { return to.wrap(bits); });
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return each([=, isSigned = isa<arith::SIToFPOp>(op)](uint64_t bits) {
      return toFloat(from, to, bits, isSigned);
    });
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    return each([=, isSigned = isa<arith::FPToSIOp>(op)](uint64_t bits) {
      return toInteger(from, to, bits, isSigned);
    });
  if (isa<arith::BitcastOp>(op))
    return each([](uint64_t bits) { return bits; });
  return {};
}

ElementFunction elementFunction(Operation *op) {
  // The region and attributes of an operation outside these two mean nothing
  // here.
  StringRef dialect = op->getName().getDialectNamespace();
  if ((dialect != "arith" && dialect != "math") || op->getNumOperands() == 0 ||
      op->getNumResults() == 0)
    return {};
  if (isa<arith::SelectOp>(op))
    return [](const uint64_t *in, uint64_t *out) {
      *out = in[0] ? in[1] : in[2];
      return nullptr;
    };
  std::optional<Format> from = formatOf(op->getOperand(0).getType());
  std::optional<Format> to = formatOf(op->getResult(0).getType());
  if (!from || !to)
    return {};
  if (ElementFunction function = comparison(op, *from))
    return function;
  if (ElementFunction function = conversion(op, *from, *to))
    return function;
  return from->isFloat() ? floatFunction(op, *from)
                         : integerFunction(op, *from);
}

uint64_t roundToTF32(uint64_t bits) {
  // Adding half of the last kept bit rounds the magnitude; a carry into the
  // exponent is the next binade, and at the top infinity. NaN stays as it is.
  if ((bits & 0x7f800000) == 0x7f800000)
    return bits;
  return (bits + 0x1000) & 0xffffe000;
}

} // namespace nova::tile
