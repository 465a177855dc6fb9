//===- FoldExponents.cpp - Exponentials that products take ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What enters a product of tensor cores is rounded to 11 bits of mantissa or fewer. An
// exponential that does, or that scales the sums of such a product, is worth one
// instruction, ex2.approx (PTX ISA 8.0, 9.7.3.20: 2 ulp), and not the eighteen of the
// expansion that serves everybody. With L = log2(e):
//
//   exp(c x - m)  ->  exp2(fma(x, c L, -(m L)))
//
// of which the factor and m L, one for each row, are computed once. Both products with
// L round, which moves the exponent by at most |m| L 2^-24 + |c x - m| L 2^-23, the
// first alike for all of a row; c x - m itself has been rounded by |c x| 2^-24 before.
//
//   max(c x) -> c max(x), c > 0
//
// is exact: rounding is monotonic. Both see through a mask of minus infinity.
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <numbers>

namespace nova {
#define GEN_PASS_DEF_FOLDEXPONENTS
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// The value of every element of a tile, or of a scalar.
static std::optional<APFloat> constantOf(Value value) {
  APFloat number(0.0);
  if (!matchPattern(throughSplat(value), m_ConstantFloat(&number)))
    return std::nullopt;
  return number;
}

static bool isFloat32(Value value) { return getElementTypeOrSelf(value).isF32(); }

/// Its factors are rounded to 11 bits of mantissa at most.
static bool rounds(DotOp dot) {
  Type element = getElementTypeOrSelf(dot.getLhs());
  return element.isBF16() || element.isF16() || (element.isF32() && dot.getPrecision() != Precision::f32);
}

/// Does `value` reach a product that rounds, as a factor, or its sums as one of theirs?
static bool reachesProduct(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i].getUsers()) {
      if (auto dot = dyn_cast<DotOp>(user); dot && rounds(dot))
        return true;
      if (isa<arith::MulFOp, arith::SubFOp, arith::SelectOp, arith::TruncFOp, BroadcastOp>(user))
        reached.insert(user->getResult(0));
    }
  return false;
}

namespace {
/// base * factor, the factor positive.
struct Scaled {
  Value base;
  double factor = 1;
};

class Folding {
public:
  explicit Folding(func::FuncOp program) : program(program), builder(program.getContext()) {}
  void run();

private:
  Scaled peel(Value value);
  void fold(ReduceOp maximum);
  void fold(math::ExpOp exponential);
  Value constantTile(Type like, double number);
  Value times(Value value, double factor);

  func::FuncOp program;
  OpBuilder builder;
  DenseMap<Value, Scaled> peeled;
};
} // namespace

Value Folding::constantTile(Type like, double number) {
  Value scalar = arith::ConstantOp::create(builder, program.getLoc(), builder.getF32FloatAttr(number));
  return isa<RankedTensorType>(like) ? SplatOp::create(builder, program.getLoc(), like, scalar).getResult()
                                     : scalar;
}

/// `value` times a constant, before it is broadcast.
Value Folding::times(Value value, double factor) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>()) {
    Value inner = times(broadcast.getOperand(), factor);
    return BroadcastOp::create(builder, broadcast.getLoc(), broadcast.getType(), inner, broadcast.getDims());
  }
  if (auto splat = value.getDefiningOp<SplatOp>())
    return SplatOp::create(builder, splat.getLoc(), splat.getType(), times(splat.getValue(), factor));
  return arith::MulFOp::create(builder, value.getLoc(), value, constantTile(value.getType(), factor));
}

Scaled Folding::peel(Value value) {
  if (auto known = peeled.find(value); known != peeled.end())
    return known->second;
  Scaled found{value, 1};
  if (auto product = value.getDefiningOp<arith::MulFOp>()) {
    for (auto [base, factor] : {std::pair(product.getLhs(), product.getRhs()),
                                std::pair(product.getRhs(), product.getLhs())})
      if (auto number = constantOf(factor); number && number->isFiniteNonZero() && !number->isNegative()) {
        found = {base, number->convertToFloat()};
        break;
      }
  } else if (auto select = value.getDefiningOp<arith::SelectOp>()) {
    auto masked = constantOf(select.getTrueValue());
    Scaled visible = masked && masked->isInfinity() && masked->isNegative() ? peel(select.getFalseValue())
                                                                            : Scaled{value, 1};
    if (visible.factor != 1) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(select);
      found = {arith::SelectOp::create(builder, select.getLoc(), select.getCondition(), select.getTrueValue(),
                                       visible.base),
               visible.factor};
    }
  }
  return peeled[value] = found;
}

void Folding::fold(ReduceOp maximum) {
  if (maximum.getOperands().size() != 1 || !isFloat32(maximum.getOperands()[0]))
    return;
  Block &body = maximum.getCombiner().front();
  Operation *combiner = &body.front();
  if (!isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner) || combiner->getNextNode() != body.getTerminator() ||
      llvm::any_of(combiner->getOperands(), [](Value value) { return !isa<BlockArgument>(value); }))
    return;
  Scaled operand = peel(maximum.getOperands()[0]);
  if (operand.factor == 1)
    return;
  builder.setInsertionPointAfter(maximum);
  maximum->setOperand(0, operand.base);
  Value result = maximum.getResult(0);
  auto scaled = arith::MulFOp::create(builder, maximum.getLoc(), result,
                                      constantTile(result.getType(), operand.factor));
  SmallPtrSet<Operation *, 1> except{scaled};
  result.replaceAllUsesExcept(scaled, except);
}

void Folding::fold(math::ExpOp exponential) {
  Value argument = exponential.getOperand();
  if (!isFloat32(argument) || !reachesProduct(exponential))
    return;
  Location loc = exponential.getLoc();
  builder.setInsertionPoint(exponential);
  Value exponent;
  if (auto difference = argument.getDefiningOp<arith::SubFOp>()) {
    Scaled left = peel(difference.getLhs());
    Value factor = constantTile(argument.getType(), left.factor * std::numbers::log2e);
    exponent = math::FmaOp::create(builder, loc, left.base, factor, times(difference.getRhs(), -std::numbers::log2e));
  } else {
    Scaled whole = peel(argument);
    exponent = times(whole.base, whole.factor * std::numbers::log2e);
  }
  auto result = math::Exp2Op::create(builder, loc, exponent, arith::FastMathFlags::afn);
  exponential.replaceAllUsesWith(result.getResult());
  exponential.erase();
}

void Folding::run() {
  SmallVector<Operation *> found;
  program.walk([&](Operation *op) {
    if (isa<ReduceOp, math::ExpOp>(op))
      found.push_back(op);
  });
  // Only where exponentials are folded, maxima are: what is left of a product by a
  // constant would be computed twice.
  if (llvm::none_of(found, [](Operation *op) {
        return isa<math::ExpOp>(op) && isFloat32(op->getResult(0)) && reachesProduct(op->getResult(0));
      }))
    return;
  for (Operation *op : found)
    if (auto maximum = dyn_cast<ReduceOp>(op))
      fold(maximum);
  for (Operation *op : found)
    if (auto exponential = dyn_cast<math::ExpOp>(op))
      fold(exponential);
}

namespace {
struct FoldExponents : ::nova::impl::FoldExponentsBase<FoldExponents> {
  void runOnOperation() override {
    if (getOperation()->hasAttr(tile::attr::warps))
      Folding(getOperation()).run();
  }
};
} // namespace
