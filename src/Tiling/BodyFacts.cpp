//===- BodyFacts.cpp - What is known of values of bodies -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BodyFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nova::tiling;

namespace {
/// A value, and the generic in whose body it is.
struct Position {
  Value value;
  linalg::GenericOp op;
  explicit operator bool() const { return (bool)value; }
};
} // namespace

/// The operand that a body's argument reads; null for an accumulator or anything
/// else.
static Value tensorBehind(Position at) {
  auto argument = dyn_cast<BlockArgument>(at.value);
  if (!argument || argument.getOwner() != at.op.getBody())
    return {};
  OpOperand *operand = at.op.getMatchingOpOperand(argument);
  return at.op.isDpsInput(operand) ? operand->get() : Value();
}

/// Where an elementwise generic computes what `at` reads, which has the same axes
/// there; null if `at` reads something else.
static Position behind(Position at) {
  Value tensor = tensorBehind(at);
  auto producer = tensor ? tensor.getDefiningOp<linalg::GenericOp>() : linalg::GenericOp();
  if (!producer || producer.getNumReductionLoops())
    return {};
  Operation *yield = producer.getBody()->getTerminator();
  return {yield->getOperand(cast<OpResult>(tensor).getResultNumber()), producer};
}

static Attribute constantOf(Value value) {
  Attribute attribute;
  return matchPattern(value, m_Constant(&attribute)) ? attribute : Attribute();
}

static bool isMinusInfinity(Attribute attribute) {
  auto number = dyn_cast_or_null<FloatAttr>(attribute);
  return number && number.getValue().isInfinity() && number.getValue().isNegative();
}

static bool isZero(Attribute attribute) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attribute))
    return number.getValue().isZero();
  auto number = dyn_cast_or_null<IntegerAttr>(attribute);
  return number && number.getValue().isZero();
}

//===----------------------------------------------------------------------===//
// Comparisons of positions
//===----------------------------------------------------------------------===//

namespace {
/// axis + offset.
struct Coordinate {
  AxisId axis = kNoAxis;
  int64_t offset = 0;
};
} // namespace

static std::optional<Coordinate> coordinate(Position at, const Axes &axes) {
  if (auto index = at.value.getDefiningOp<linalg::IndexOp>())
    return Coordinate{axes.ofLoop(at.op, index.getDim()), 0};
  if (auto cast = at.value.getDefiningOp<arith::IndexCastOp>())
    return coordinate({cast.getIn(), at.op}, axes);
  if (auto number = dyn_cast_or_null<IntegerAttr>(constantOf(at.value)))
    return Coordinate{kNoAxis, number.getInt()};
  Operation *sum = at.value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(sum)) {
    Position from = behind(at);
    return from ? coordinate(from, axes) : std::nullopt;
  }
  auto a = coordinate({sum->getOperand(0), at.op}, axes), b = coordinate({sum->getOperand(1), at.op}, axes);
  if (!a || !b || b->axis != kNoAxis)
    return std::nullopt;
  return Coordinate{a->axis, a->offset + (isa<arith::AddIOp>(sum) ? b->offset : -b->offset)};
}

using Planes = SmallVector<HalfPlane>;

/// Half planes in each of which the condition is `wanted`.
static Planes whereCondition(Position at, bool wanted, const Axes &axes) {
  Operation *op = at.value.getDefiningOp();
  if (!op) {
    Position from = behind(at);
    return from ? whereCondition(from, wanted, axes) : Planes();
  }
  // Either side of an `or` makes it true, of an `and` false.
  if ((wanted && isa<arith::OrIOp>(op)) || (!wanted && isa<arith::AndIOp>(op))) {
    Planes planes = whereCondition({op->getOperand(0), at.op}, wanted, axes);
    llvm::append_range(planes, whereCondition({op->getOperand(1), at.op}, wanted, axes));
    return planes;
  }
  if (auto flip = dyn_cast<arith::XOrIOp>(op)) {
    auto number = dyn_cast_or_null<IntegerAttr>(constantOf(flip.getRhs()));
    if (number && number.getValue().isAllOnes())
      return whereCondition({flip.getLhs(), at.op}, !wanted, axes);
    return {};
  }
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return {};
  auto lhs = coordinate({compare.getLhs(), at.op}, axes), rhs = coordinate({compare.getRhs(), at.op}, axes);
  if (!lhs || !rhs || lhs->axis == kNoAxis || rhs->axis == kNoAxis || lhs->axis == rhs->axis)
    return {};
  using P = arith::CmpIPredicate;
  P predicate = compare.getPredicate();
  bool isUnsigned = predicate == P::ugt || predicate == P::uge || predicate == P::ult || predicate == P::ule;
  if (isUnsigned && (lhs->offset < 0 || rhs->offset < 0))
    return {};
  // lhs - rhs >= c, or rhs - lhs >= -c.
  int64_t c = rhs->offset - lhs->offset;
  auto atLeast = [&](int64_t bound) { return Planes{{lhs->axis, rhs->axis, bound}}; };
  auto atMost = [&](int64_t bound) { return Planes{{rhs->axis, lhs->axis, -bound}}; };
  switch (predicate) {
  case P::sgt:
  case P::ugt:
    return wanted ? atLeast(c + 1) : atMost(c);
  case P::sge:
  case P::uge:
    return wanted ? atLeast(c) : atMost(c - 1);
  case P::slt:
  case P::ult:
    return wanted ? atMost(c - 1) : atLeast(c);
  case P::sle:
  case P::ule:
    return wanted ? atMost(c) : atLeast(c + 1);
  case P::eq:
  case P::ne: {
    if (wanted == (predicate == P::eq))
      return {};
    Planes planes = atLeast(c + 1);
    llvm::append_range(planes, atMost(c - 1));
    return planes;
  }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Where a value is a constant
//===----------------------------------------------------------------------===//

namespace {
struct Where {
  bool always = false;
  Planes planes;
};
} // namespace

/// Is `value` finite wherever `guarded` is minus infinity, and `guarded` elsewhere?
/// That is: select(guarded == -inf, constant, guarded).
static Position guardedBy(Position at) {
  while (at && !at.value.getDefiningOp())
    at = behind(at);
  auto select = at ? at.value.getDefiningOp<arith::SelectOp>() : arith::SelectOp();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::OEQ || compare.getLhs() != select.getFalseValue() ||
      !isMinusInfinity(constantOf(compare.getRhs())) || !isZero(constantOf(select.getTrueValue())))
    return {};
  return {select.getFalseValue(), at.op};
}

static Where whereIs(Position at, function_ref<bool(Attribute)> wanted, const Axes &axes) {
  if (Attribute constant = constantOf(at.value))
    return {wanted(constant), {}};
  Operation *op = at.value.getDefiningOp();
  if (!op || op->getBlock() != at.op.getBody()) {
    Position from = behind(at);
    return from ? whereIs(from, wanted, axes) : Where();
  }
  auto operand = [&](unsigned i) { return Position{op->getOperand(i), at.op}; };
  bool wantsZero = wanted(Builder(op->getContext()).getZeroAttr(at.value.getType()));
  return llvm::TypeSwitch<Operation *, Where>(op)
      .Case([&](arith::SelectOp) {
        Where yes = whereIs(operand(1), wanted, axes), no = whereIs(operand(2), wanted, axes);
        Where result{yes.always && no.always, {}};
        if (yes.always) {
          result.planes = whereCondition(operand(0), true, axes);
          llvm::append_range(result.planes, no.planes);
        } else if (no.always) {
          result.planes = whereCondition(operand(0), false, axes);
          llvm::append_range(result.planes, yes.planes);
        } else {
          for (const HalfPlane &plane : yes.planes)
            if (llvm::is_contained(no.planes, plane))
              result.planes.push_back(plane);
        }
        return result;
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return whereIs(operand(0), wanted, axes); })
      .Case([&](arith::MulFOp) {
        if (!wantsZero)
          return Where();
        Where result = whereIs(operand(0), isZero, axes), other = whereIs(operand(1), isZero, axes);
        result.always |= other.always;
        llvm::append_range(result.planes, other.planes);
        return result;
      })
      .Case([&](math::ExpOp) { return wantsZero ? whereIs(operand(0), isMinusInfinity, axes) : Where(); })
      .Case([&](arith::SubFOp) {
        // Minus infinity less anything but itself stays.
        bool wantsInfinity = !wantsZero && guardedBy(operand(1));
        return wantsInfinity ? whereIs(operand(0), wanted, axes) : Where();
      })
      .Default([](Operation *) { return Where(); });
}

SmallVector<HalfPlane> nova::tiling::idleRegions(const Accumulation &part, linalg::GenericOp op, const Axes &axes) {
  Position at{part.contribution, op};
  if (isZero(part.identity))
    return whereIs(at, isZero, axes).planes;
  return whereIs(at, [&](Attribute constant) { return constant == part.identity; }, axes).planes;
}

//===----------------------------------------------------------------------===//
// Dependence on a maximum
//===----------------------------------------------------------------------===//

bool nova::tiling::needs(Value value, Value other) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == other)
      return true;
    if (Operation *op = seen[i].getDefiningOp())
      seen.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Does a value of a body depend on a tensor, through other ops or not?
static bool reaches(Position at, Value tensor) {
  llvm::SetVector<Value> seen;
  seen.insert(at.value);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (op && op->getBlock() == at.op.getBody())
      seen.insert(op->operand_begin(), op->operand_end());
    else if (Value read = tensorBehind({seen[i], at.op}); read && needs(read, tensor))
      return true;
  }
  return false;
}

/// Is the value the maximum itself, read as it is?
static bool isRead(Position at, Value tensor) {
  while (at) {
    if (tensorBehind(at) == tensor)
      return true;
    at = behind(at);
  }
  return false;
}

static Dependence dependence(Position at, Value maximum) {
  if (!reaches(at, maximum))
    return Dependence::None;
  Operation *op = at.value.getDefiningOp();
  if (!op) {
    Position from = behind(at);
    return from ? dependence(from, maximum) : Dependence::Other;
  }
  auto operand = [&](unsigned i) { return Position{op->getOperand(i), at.op}; };
  auto linear = [&](unsigned i, std::initializer_list<unsigned> others) {
    for (unsigned other : others)
      if (reaches(operand(other), maximum))
        return Dependence::Other;
    return dependence(operand(i), maximum);
  };
  return llvm::TypeSwitch<Operation *, Dependence>(op)
      .Case([&](math::ExpOp) {
        auto difference = op->getOperand(0).getDefiningOp<arith::SubFOp>();
        if (!difference || reaches({difference.getLhs(), at.op}, maximum))
          return Dependence::Other;
        Position subtracted{difference.getRhs(), at.op};
        if (isRead(subtracted, maximum))
          return Dependence::Scaled;
        Position guarded = guardedBy(subtracted);
        return guarded && isRead(guarded, maximum) ? Dependence::Guarded : Dependence::Other;
      })
      .Case([&](arith::MulFOp) { return reaches(operand(0), maximum) ? linear(0, {1}) : linear(1, {0}); })
      .Case([&](arith::DivFOp) { return linear(0, {1}); })
      .Case<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>([&](auto) { return linear(0, {}); })
      .Case([&](arith::SelectOp) {
        if (isZero(constantOf(op->getOperand(1))))
          return linear(2, {0, 1});
        if (isZero(constantOf(op->getOperand(2))))
          return linear(1, {0, 2});
        return Dependence::Other;
      })
      .Default([](Operation *) { return Dependence::Other; });
}

Dependence nova::tiling::dependence(Value value, linalg::GenericOp op, Value maximum) {
  return ::dependence(Position{value, op}, maximum);
}
