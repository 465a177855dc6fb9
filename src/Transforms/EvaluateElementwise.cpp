//===- EvaluateElementwise.cpp - Elementwise operations on constants
//-------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows are widened to int64 or double, computed there and narrowed. For +, -,
// *, / and square root of float and narrower that is the correctly rounded
// result: double has more than twice their bits plus two. Functions that need
// an approximation are not evaluated: what a kernel computes must not depend on
// whether its operand happened to be constant.
//
//===----------------------------------------------------------------------===//
#include "Evaluate.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace mlir;
using namespace nova;

static constexpr int64_t kChunk = 512;

namespace {
/// Up to three widened operands and the widened result.
template <typename T> struct Lanes {
  T operands[3][kChunk];
  T result[kChunk];
};
} // namespace

template <typename T, typename Function>
static bool map1(Lanes<T> &lanes, int64_t count, Function f) {
  for (int64_t i = 0; i < count; ++i)
    lanes.result[i] = f(lanes.operands[0][i]);
  return true;
}
template <typename T, typename Function>
static bool map2(Lanes<T> &lanes, int64_t count, Function f) {
  for (int64_t i = 0; i < count; ++i)
    lanes.result[i] = f(lanes.operands[0][i], lanes.operands[1][i]);
  return true;
}

//===----------------------------------------------------------------------===//
// Integers: two's complement, wrapping where the result is stored
//===----------------------------------------------------------------------===//

static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }
static int64_t truncDiv(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  return b == -1 ? wrap(0 - uint64_t(a)) : a / b;
}
/// The remainder with the sign of the divisor, 0 by 0.
static int64_t floorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static int64_t floorDiv(int64_t a, int64_t b) {
  bool inexact = b != 0 && b != -1 && a % b != 0;
  return truncDiv(a, b) - (inexact && (a < 0) != (b < 0));
}
/// A negative exponent gives the reciprocal, rounded to zero.
static int64_t integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t result = 1, square = base;
  for (uint64_t n = exponent; n; n >>= 1, square *= square)
    if (n & 1)
      result *= square;
  return wrap(result);
}

static bool computeIntegers(Operation *op, Lanes<int64_t> &lanes,
                            int64_t count) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](AddOp) {
        return map2(lanes, count, [](int64_t a, int64_t b) {
          return wrap(uint64_t(a) + uint64_t(b));
        });
      })
      .Case([&](SubOp) {
        return map2(lanes, count, [](int64_t a, int64_t b) {
          return wrap(uint64_t(a) - uint64_t(b));
        });
      })
      .Case([&](MulOp) {
        return map2(lanes, count, [](int64_t a, int64_t b) {
          return wrap(uint64_t(a) * uint64_t(b));
        });
      })
      .Case([&](TruncDivOp) { return map2(lanes, count, truncDiv); })
      .Case([&](FloorDivOp) { return map2(lanes, count, floorDiv); })
      .Case([&](RemainderOp) { return map2(lanes, count, floorMod); })
      .Case([&](PowOp) { return map2(lanes, count, integerPower); })
      .Case([&](MaximumOp) {
        return map2(lanes, count,
                    [](int64_t a, int64_t b) { return std::max(a, b); });
      })
      .Case([&](MinimumOp) {
        return map2(lanes, count,
                    [](int64_t a, int64_t b) { return std::min(a, b); });
      })
      .Case([&](AndOp) { return map2(lanes, count, std::bit_and<int64_t>()); })
      .Case([&](OrOp) { return map2(lanes, count, std::bit_or<int64_t>()); })
      .Case([&](XorOp) { return map2(lanes, count, std::bit_xor<int64_t>()); })
      .Case([&](NegOp) {
        return map1(lanes, count,
                    [](int64_t a) { return wrap(0 - uint64_t(a)); });
      })
      .Case([&](AbsOp) {
        return map1(lanes, count, [](int64_t a) {
          return a < 0 ? wrap(0 - uint64_t(a)) : a;
        });
      })
      .Case([&](ReluOp) {
        return map1(lanes, count,
                    [](int64_t a) { return std::max<int64_t>(a, 0); });
      })
      .Case([&](NotOp not_) {
        bool logical = not_.getType().getElementType().isInteger(1);
        return map1(lanes, count, [=](int64_t a) { return logical ? !a : ~a; });
      })
      .Default([](Operation *) { return false; });
}

/// Arithmetic of i1 is logic: sums saturate at true.
static bool computeBools(Operation *op, Lanes<int64_t> &lanes, int64_t count) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<AddOp, MaximumOp, OrOp>(
          [&](auto) { return map2(lanes, count, std::bit_or<int64_t>()); })
      .Case<MulOp, MinimumOp, AndOp>(
          [&](auto) { return map2(lanes, count, std::bit_and<int64_t>()); })
      .Case<SubOp, XorOp>(
          [&](auto) { return map2(lanes, count, std::bit_xor<int64_t>()); })
      .Case([&](NotOp) {
        return map1(lanes, count, std::logical_not<int64_t>());
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return a > b || (a == b && std::signbit(b)) ? a : b;
}
static double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return a < b || (a == b && std::signbit(a)) ? a : b;
}

static bool computeFloats(Operation *op, Lanes<double> &lanes, int64_t count) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](AddOp) { return map2(lanes, count, std::plus<double>()); })
      .Case([&](SubOp) { return map2(lanes, count, std::minus<double>()); })
      .Case(
          [&](MulOp) { return map2(lanes, count, std::multiplies<double>()); })
      .Case([&](DivOp) { return map2(lanes, count, std::divides<double>()); })
      .Case([&](MaximumOp) { return map2(lanes, count, maximum); })
      .Case([&](MinimumOp) { return map2(lanes, count, minimum); })
      .Case([&](NegOp) { return map1(lanes, count, std::negate<double>()); })
      .Case([&](AbsOp) {
        return map1(lanes, count, [](double a) { return std::fabs(a); });
      })
      .Case([&](SqrtOp) {
        return map1(lanes, count, [](double a) { return std::sqrt(a); });
      })
      .Case([&](ReciprocalOp) {
        return map1(lanes, count, [](double a) { return 1 / a; });
      })
      .Case([&](ReluOp) {
        return map1(lanes, count, [](double a) { return maximum(a, 0); });
      })
      .Default([](Operation *) { return false; });
}

template <typename T>
static void compare(ComparePredicate predicate, const Lanes<T> &lanes,
                    int64_t count, int64_t *result) {
  auto fill = [&](auto holds) {
    for (int64_t i = 0; i < count; ++i)
      result[i] = holds(lanes.operands[0][i], lanes.operands[1][i]);
  };
  switch (predicate) {
  case ComparePredicate::eq:
    return fill(std::equal_to<T>());
  case ComparePredicate::ne:
    return fill(std::not_equal_to<T>());
  case ComparePredicate::lt:
    return fill(std::less<T>());
  case ComparePredicate::le:
    return fill(std::less_equal<T>());
  case ComparePredicate::gt:
    return fill(std::greater<T>());
  case ComparePredicate::ge:
    return fill(std::greater_equal<T>());
  }
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Whether every value has a place in the integer type, towards zero.
static bool toIntegers(const double *from, ElementKind kind, int64_t count,
                       int64_t *to) {
  int bits = static_cast<int>(bytesOf(kind)) * 8;
  double low = kind == ElementKind::U8 ? 0 : -std::ldexp(1.0, bits - 1);
  double high = kind == ElementKind::U8 ? 256 : std::ldexp(1.0, bits - 1);
  for (int64_t i = 0; i < count; ++i) {
    double value = std::trunc(from[i]);
    if (!(value >= low && value < high)) // NaN too
      return false;
    to[i] = static_cast<int64_t>(value);
  }
  return true;
}

/// Integers to floats narrower than double go by way of float, as in a kernel:
/// int64 to double to float would round twice.
static void toFloats(const int64_t *from, ElementKind kind, int64_t count,
                     double *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = kind == ElementKind::F64 ? double(from[i]) : double(float(from[i]));
}

//===----------------------------------------------------------------------===//
// The walk over rows
//===----------------------------------------------------------------------===//

namespace {
/// Computes contiguous runs of a result's core.
class ElementwiseRun {
public:
  ElementwiseRun(Operation *op, ArrayRef<ConstantTensor> operands,
                 ConstantTensor &result)
      : op(op), operands(operands), to(result.kind()) {}

  /// `count` elements (at most a chunk) from the operands' addresses.
  bool operator()(ArrayRef<const char *> from, ArrayRef<int64_t> strides,
                  int64_t count, char *target) {
    ElementKind kind = operands.back().kind();
    load(from, strides, count);
    if (auto compareOp = dyn_cast<CompareOp>(op)) {
      if (isFloat(kind))
        compare(compareOp.getPredicate(), floats, count, integers.result);
      else
        compare(compareOp.getPredicate(), integers, count, integers.result);
      storeIntegers(to, integers.result, count, target);
      return true;
    }
    if (isa<SelectOp>(op)) {
      for (int64_t i = 0; i < count; ++i)
        if (isFloat(kind))
          floats.result[i] = integers.operands[0][i] ? floats.operands[1][i]
                                                     : floats.operands[2][i];
        else
          integers.result[i] = integers.operands[0][i]
                                   ? integers.operands[1][i]
                                   : integers.operands[2][i];
      return store(count, target);
    }
    if (isa<CastOp>(op))
      return convert(kind, count) && store(count, target);
    bool known = isFloat(kind) ? computeFloats(op, floats, count)
                 : kind == ElementKind::Bool
                     ? computeBools(op, integers, count)
                     : computeIntegers(op, integers, count);
    return known && store(count, target);
  }

private:
  void load(ArrayRef<const char *> from, ArrayRef<int64_t> strides,
            int64_t count) {
    for (size_t k = 0; k < operands.size(); ++k)
      if (isFloat(operands[k].kind()))
        loadFloats(operands[k].kind(), from[k], strides[k], count,
                   floats.operands[k]);
      else
        loadIntegers(operands[k].kind(), from[k], strides[k], count,
                     integers.operands[k]);
  }
  bool store(int64_t count, char *target) {
    if (isFloat(to))
      storeFloats(to, floats.result, count, target);
    else
      storeIntegers(to, integers.result, count, target);
    return true;
  }
  bool convert(ElementKind from, int64_t count) {
    if (isFloat(from) && isFloat(to))
      std::copy_n(floats.operands[0], count, floats.result);
    else if (!isFloat(from) && !isFloat(to))
      std::copy_n(integers.operands[0], count, integers.result);
    else if (isFloat(to))
      toFloats(integers.operands[0], to, count, floats.result);
    else if (to == ElementKind::Bool)
      std::transform(floats.operands[0], floats.operands[0] + count,
                     integers.result, [](double value) { return value != 0; });
    else
      return toIntegers(floats.operands[0], to, count, integers.result);
    return true;
  }

  Operation *op;
  ArrayRef<ConstantTensor> operands;
  ElementKind to;
  Lanes<int64_t> integers;
  Lanes<double> floats;
};
} // namespace

/// The operations above, of the types they are evaluated for.
static bool isEvaluated(Operation *op, ArrayRef<ConstantTensor> operands) {
  if (isa<CompareOp, SelectOp, CastOp>(op))
    return true;
  if (isFloat(operands[0].kind()))
    return isa<AddOp, SubOp, MulOp, DivOp, MaximumOp, MinimumOp, NegOp, AbsOp,
               SqrtOp, ReciprocalOp, ReluOp>(op);
  if (isa<AddOp, SubOp, MulOp, MaximumOp, MinimumOp, AndOp, OrOp, XorOp, NotOp>(
          op))
    return true;
  return operands[0].kind() != ElementKind::Bool &&
         isa<TruncDivOp, FloorDivOp, RemainderOp, PowOp, NegOp, AbsOp, ReluOp>(
             op);
}

std::optional<ConstantTensor>
nova::evaluateElementwise(Operation *op, ArrayRef<ConstantTensor> operands,
                          int64_t maxElements) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (isa<CopyOp>(op))
    return operands[0];
  if (!isEvaluated(op, operands))
    return std::nullopt;

  // Only what differs is computed: a dimension along which every operand
  // repeats is repeated in the result.
  SmallVector<StridedView> views;
  for (const ConstantTensor &operand : operands)
    views.push_back(operand.view().broadcast(type.getShape()));
  SmallVector<int64_t> core(type.getShape());
  int64_t count = 1;
  for (size_t dim = 0; dim < core.size(); ++dim) {
    bool repeated = llvm::all_of(
        views, [&](const StridedView &v) { return v.strides[dim] == 0; });
    if (repeated && core[dim] != 0)
      core[dim] = 1;
    count *= core[dim];
  }
  if (count > maxElements)
    return std::nullopt;
  ConstantTensor result =
      makeRepeated(type.getElementType(), type.getShape(), core);

  // Dimensions of one element out of the way, the last is the row.
  SmallVector<int64_t> shape;
  SmallVector<SmallVector<int64_t>> strides(operands.size());
  for (size_t dim = 0; dim < core.size(); ++dim) {
    if (core[dim] == 1)
      continue;
    shape.push_back(core[dim]);
    for (auto [k, view] : llvm::enumerate(views))
      strides[k].push_back(view.strides[dim]);
  }
  int64_t row = shape.empty() ? 1 : shape.pop_back_val();
  SmallVector<int64_t> rowStrides;
  SmallVector<ArrayRef<int64_t>> outer;
  for (SmallVector<int64_t> &s : strides) {
    rowStrides.push_back(s.empty() ? 0 : s.pop_back_val());
    outer.push_back(s);
  }

  auto run = std::make_unique<ElementwiseRun>(op, operands, result);
  char *target = result.data();
  int64_t targetBytes = bytesOf(result.kind());
  bool defined = true;
  SmallVector<const char *> from(operands.size());
  forEachOffset(shape, outer, [&](ArrayRef<int64_t> offsets) {
    for (int64_t start = 0; start < row && defined; start += kChunk) {
      int64_t length = std::min(kChunk, row - start);
      for (size_t k = 0; k < operands.size(); ++k)
        from[k] = operands[k].data() + (offsets[k] + start * rowStrides[k]) *
                                           bytesOf(operands[k].kind());
      defined = (*run)(from, rowStrides, length, target);
      target += length * targetBytes;
    }
  });
  if (!defined)
    return std::nullopt;
  return result;
}
