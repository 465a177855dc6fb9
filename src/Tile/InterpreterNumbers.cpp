//===- InterpreterNumbers.cpp - Arithmetic of floats and integers ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InterpreterElements.h"

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;

namespace nova::tile {

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// maximumf and minimumf: NaN if either is, -0 below +0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? a : b;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
static double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? a : b;
  return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
/// maxnumf and minnumf: the number if one is NaN.
static double maxnum(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : maximum(a, b);
}
static double minnum(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : minimum(a, b);
}

using Unary = double (*)(double);
using Binary = double (*)(double, double);
using Predicate = bool (*)(double);

static const llvm::StringMap<Unary> &unaries() {
  static const llvm::StringMap<Unary> map = {
      {"arith.negf", [](double x) { return -x; }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.acos", [](double x) { return std::acos(x); }},
      {"math.acosh", [](double x) { return std::acosh(x); }},
      {"math.asin", [](double x) { return std::asin(x); }},
      {"math.asinh", [](double x) { return std::asinh(x); }},
      {"math.atan", [](double x) { return std::atan(x); }},
      {"math.atanh", [](double x) { return std::atanh(x); }},
      {"math.cbrt", [](double x) { return std::cbrt(x); }},
      {"math.ceil", [](double x) { return std::ceil(x); }},
      {"math.cos", [](double x) { return std::cos(x); }},
      {"math.cosh", [](double x) { return std::cosh(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.erfc", [](double x) { return std::erfc(x); }},
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.floor", [](double x) { return std::floor(x); }},
      {"math.log", [](double x) { return std::log(x); }},
      {"math.log10", [](double x) { return std::log10(x); }},
      {"math.log1p", [](double x) { return std::log1p(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.round", [](double x) { return std::round(x); }},
      {"math.roundeven", [](double x) { return std::nearbyint(x); }},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},
      {"math.sinh", [](double x) { return std::sinh(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.tan", [](double x) { return std::tan(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
      {"math.trunc", [](double x) { return std::trunc(x); }},
  };
  return map;
}

// A sum, product or quotient of double precision rounded again to a type of at
// most 24 bits is the correctly rounded one (53 >= 2 * 24 + 2).
static const llvm::StringMap<Binary> &binaries() {
  static const llvm::StringMap<Binary> map = {
      {"arith.addf", [](double a, double b) { return a + b; }},
      {"arith.subf", [](double a, double b) { return a - b; }},
      {"arith.mulf", [](double a, double b) { return a * b; }},
      {"arith.divf", [](double a, double b) { return a / b; }},
      {"arith.remf", [](double a, double b) { return std::fmod(a, b); }},
      {"arith.maximumf", maximum},
      {"arith.minimumf", minimum},
      {"arith.maxnumf", maxnum},
      {"arith.minnumf", minnum},
      {"math.atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"math.copysign", [](double a, double b) { return std::copysign(a, b); }},
      {"math.powf", [](double a, double b) { return std::pow(a, b); }},
  };
  return map;
}

static const llvm::StringMap<Predicate> &predicates() {
  static const llvm::StringMap<Predicate> map = {
      {"math.isfinite", [](double x) { return bool(std::isfinite(x)); }},
      {"math.isinf", [](double x) { return bool(std::isinf(x)); }},
      {"math.isnan", [](double x) { return bool(std::isnan(x)); }},
  };
  return map;
}

ElementFunction floatFunction(Operation *op, Format format) {
  StringRef name = op->getName().getStringRef();
  if (Unary function = unaries().lookup(name))
    return [=](const uint64_t *in, uint64_t *out) {
      *out = format.encode(function(format.decode(in[0])));
      return nullptr;
    };
  if (Binary function = binaries().lookup(name))
    return [=](const uint64_t *in, uint64_t *out) {
      *out =
          format.encode(function(format.decode(in[0]), format.decode(in[1])));
      return nullptr;
    };
  if (Predicate function = predicates().lookup(name))
    return [=](const uint64_t *in, uint64_t *out) {
      *out = function(format.decode(in[0]));
      return nullptr;
    };
  if (name == "math.fma")
    return [=](const uint64_t *in, uint64_t *out) {
      double a = format.decode(in[0]), b = format.decode(in[1]),
             c = format.decode(in[2]);
      *out = format.encode(format.kind == Format::F64
                               ? std::fma(a, b, c)
                               : std::fmaf(float(a), float(b), float(c)));
      return nullptr;
    };
  if (name == "math.clampf")
    return [=](const uint64_t *in, uint64_t *out) {
      *out = format.encode(
          minimum(maximum(format.decode(in[0]), format.decode(in[1])),
                  format.decode(in[2])));
      return nullptr;
    };
  if (name == "math.fpowi") {
    std::optional<Format> exponent = formatOf(op->getOperand(1).getType());
    if (!exponent)
      return {};
    return [=, exponent = *exponent](const uint64_t *in, uint64_t *out) {
      *out = format.encode(
          std::pow(format.decode(in[0]), double(exponent.toSigned(in[1]))));
      return nullptr;
    };
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

using llvm::APInt;

static APInt floorDiv(const APInt &a, const APInt &b) {
  APInt quotient, remainder;
  APInt::sdivrem(a, b, quotient, remainder);
  if (!remainder.isZero() && a.isNegative() != b.isNegative())
    --quotient;
  return quotient;
}
static APInt ceilDiv(const APInt &a, const APInt &b) {
  APInt quotient, remainder;
  APInt::sdivrem(a, b, quotient, remainder);
  if (!remainder.isZero() && a.isNegative() == b.isNegative())
    ++quotient;
  return quotient;
}
static APInt ceilDivUnsigned(const APInt &a, const APInt &b) {
  return a.isZero() ? a : (a - 1).udiv(b) + 1;
}
static APInt power(APInt base, APInt exponent) {
  APInt result(base.getBitWidth(), 1, false, true);
  if (exponent.isNegative()) { // 1 / base^-exponent, rounded towards zero
    if (base.isOne())
      return base;
    if (base.isAllOnes())
      return exponent[0] ? base : result;
    return APInt::getZero(base.getBitWidth());
  }
  for (; !exponent.isZero(); exponent.lshrInPlace(1), base *= base)
    if (exponent[0])
      result *= base;
  return result;
}

using IntegerBinary = APInt (*)(const APInt &, const APInt &);

static const llvm::StringMap<IntegerBinary> &integerBinaries() {
  using A = const APInt &;
  static const llvm::StringMap<IntegerBinary> map = {
      {"arith.addi", [](A a, A b) { return a + b; }},
      {"arith.subi", [](A a, A b) { return a - b; }},
      {"arith.muli", [](A a, A b) { return a * b; }},
      {"arith.andi", [](A a, A b) { return a & b; }},
      {"arith.ori", [](A a, A b) { return a | b; }},
      {"arith.xori", [](A a, A b) { return a ^ b; }},
      {"arith.maxsi", [](A a, A b) { return a.sgt(b) ? a : b; }},
      {"arith.minsi", [](A a, A b) { return a.slt(b) ? a : b; }},
      {"arith.maxui", [](A a, A b) { return a.ugt(b) ? a : b; }},
      {"arith.minui", [](A a, A b) { return a.ult(b) ? a : b; }},
      {"math.ipowi", [](A a, A b) { return power(a, b); }},
  };
  return map;
}

static const llvm::StringMap<IntegerBinary> &shifts() {
  using A = const APInt &;
  static const llvm::StringMap<IntegerBinary> map = {
      {"arith.shli", [](A a, A b) { return a.shl(b); }},
      {"arith.shrsi", [](A a, A b) { return a.ashr(b); }},
      {"arith.shrui", [](A a, A b) { return a.lshr(b); }},
  };
  return map;
}

static const llvm::StringMap<IntegerBinary> &divisions() {
  using A = const APInt &;
  static const llvm::StringMap<IntegerBinary> map = {
      {"arith.divsi", [](A a, A b) { return a.sdiv(b); }},
      {"arith.remsi", [](A a, A b) { return a.srem(b); }},
      {"arith.floordivsi", floorDiv},
      {"arith.ceildivsi", ceilDiv},
      {"arith.divui", [](A a, A b) { return a.udiv(b); }},
      {"arith.remui", [](A a, A b) { return a.urem(b); }},
      {"arith.ceildivui", ceilDivUnsigned},
  };
  return map;
}

/// Operations of two results: a sum and its carry, both halves of a product.
static ElementFunction extendedFunction(StringRef name, Format format) {
  if (name == "arith.addui_extended")
    return [=](const uint64_t *in, uint64_t *out) {
      bool carry;
      out[0] = APInt(format.width, in[0])
                   .uadd_ov(APInt(format.width, in[1]), carry)
                   .getZExtValue();
      out[1] = carry;
      return nullptr;
    };
  if (name == "arith.mulsi_extended" || name == "arith.mului_extended")
    return [format, isSigned = name == "arith.mulsi_extended"](
               const uint64_t *in, uint64_t *out) {
      unsigned twice = 2 * format.width;
      APInt a(format.width, in[0]), b(format.width, in[1]);
      APInt product = isSigned ? a.sext(twice) * b.sext(twice)
                               : a.zext(twice) * b.zext(twice);
      out[0] = product.trunc(format.width).getZExtValue();
      out[1] = product.lshr(format.width).trunc(format.width).getZExtValue();
      return nullptr;
    };
  return {};
}

ElementFunction integerFunction(Operation *op, Format format) {
  StringRef name = op->getName().getStringRef();
  unsigned width = format.width;
  if (IntegerBinary function = integerBinaries().lookup(name))
    return [=](const uint64_t *in, uint64_t *out) {
      *out = function(APInt(width, in[0]), APInt(width, in[1])).getZExtValue();
      return nullptr;
    };
  if (IntegerBinary function = shifts().lookup(name))
    return [=](const uint64_t *in, uint64_t *out) -> const char * {
      if (in[1] >= width)
        return "shift by the width or more";
      *out = function(APInt(width, in[0]), APInt(width, in[1])).getZExtValue();
      return nullptr;
    };
  if (IntegerBinary function = divisions().lookup(name))
    return [=, isSigned = name.ends_with("si")](const uint64_t *in,
                                                uint64_t *out) -> const char * {
      APInt a(width, in[0]), b(width, in[1]);
      if (b.isZero())
        return "division by zero";
      if (isSigned && a.isMinSignedValue() && b.isAllOnes())
        return "overflow of a division";
      *out = function(a, b).getZExtValue();
      return nullptr;
    };
  if (name == "math.absi")
    return [=](const uint64_t *in, uint64_t *out) {
      *out = APInt(width, in[0]).abs().getZExtValue();
      return nullptr;
    };
  if (name == "math.ctlz" || name == "math.cttz" || name == "math.ctpop")
    return [width, name](const uint64_t *in, uint64_t *out) {
      APInt value(width, in[0]);
      *out = name == "math.ctpop"  ? value.popcount()
             : name == "math.ctlz" ? value.countl_zero()
                                   : value.countr_zero();
      return nullptr;
    };
  return extendedFunction(name, format);
}

} // namespace nova::tile
