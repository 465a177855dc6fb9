//===- FoldTanh.cpp - Sums of one and a hyperbolic tangent ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With e = exp(-2x) and s = 1 / (1 + e)
//
//   1 + tanh(x) = 2 s,   1 - tanh(x)^2 = 4 s (1 - s)
//
// e is one instruction after a multiplication, ex2.approx (PTX ISA 8.0, 9.7.3.20: 2 ulp),
// and s one after an addition, rcp.approx (9.7.3.12: 1 ulp); tanh itself, accurate near
// zero too, is a rational function of some twenty. Errors: the rounded product moves e by
// a factor of 1 +- |x| 2^-22, which s sees times e / (1 + e); so 2 s is wrong by less than
// 2^-22 for any x, and by few ulp of itself where it is small, for which 1 + tanh(x) has
// no bits left. Where e overflows, s is 0, and so are both.
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
#define GEN_PASS_DEF_FOLDTANH
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// One in every element of a tile, or a scalar one.
static bool isOne(Value value) { return matchPattern(throughSplat(value), m_OneFloat()); }

/// What is left of `op`, a sum of one and something, or null.
static Value besideOne(arith::AddFOp op) {
  if (isOne(op.getLhs()))
    return op.getRhs();
  return isOne(op.getRhs()) ? op.getLhs() : Value();
}

namespace {
/// All uses of a tangent, if each is one of these.
struct Uses {
  SmallVector<arith::AddFOp> sums;        ///< 1 + t
  SmallVector<arith::SubFOp> differences; ///< 1 - t t
};
} // namespace

static std::optional<Uses> usesOf(math::TanhOp tangent) {
  Uses uses;
  for (Operation *user : tangent->getUsers()) {
    if (auto sum = dyn_cast<arith::AddFOp>(user); sum && besideOne(sum) == tangent.getResult()) {
      uses.sums.push_back(sum);
      continue;
    }
    auto square = dyn_cast<arith::MulFOp>(user);
    if (!square || square.getLhs() != square.getRhs())
      return std::nullopt;
    for (Operation *next : square->getUsers()) {
      auto difference = dyn_cast<arith::SubFOp>(next);
      if (!difference || !isOne(difference.getLhs()) || difference.getRhs() != square.getResult())
        return std::nullopt;
      if (!llvm::is_contained(uses.differences, difference))
        uses.differences.push_back(difference);
    }
  }
  return uses;
}

static void fold(math::TanhOp tangent) {
  std::optional<Uses> uses = usesOf(tangent);
  Type type = tangent.getType();
  if (!uses || !getElementTypeOrSelf(type).isF32())
    return;
  OpBuilder builder(tangent);
  Location loc = tangent.getLoc();
  auto constant = [&](double number) -> Value {
    Value scalar = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(number));
    return isa<RankedTensorType>(type) ? SplatOp::create(builder, loc, type, scalar).getResult() : scalar;
  };
  Value one = constant(1);
  Value exponent = arith::MulFOp::create(builder, loc, tangent.getOperand(), constant(-2 * std::numbers::log2e));
  Value e = math::Exp2Op::create(builder, loc, exponent, arith::FastMathFlags::afn);
  Value sum = arith::AddFOp::create(builder, loc, one, e);
  // Of one at least: its reciprocal is never a denormal's.
  Value s = arith::DivFOp::create(builder, loc, one, sum, arith::FastMathFlags::arcp);
  if (!uses->sums.empty()) {
    Value twice = arith::AddFOp::create(builder, loc, s, s);
    for (arith::AddFOp op : uses->sums)
      op.replaceAllUsesWith(twice);
  }
  if (!uses->differences.empty()) {
    Value rest = arith::SubFOp::create(builder, loc, one, s);
    Value product = arith::MulFOp::create(builder, loc, s, rest);
    Value difference = arith::MulFOp::create(builder, loc, product, constant(4));
    for (arith::SubFOp op : uses->differences)
      op.replaceAllUsesWith(difference);
  }
  // What used it has no use any more.
  for (arith::AddFOp op : uses->sums)
    op.erase();
  for (arith::SubFOp op : uses->differences)
    op.erase();
  llvm::SetVector<Operation *> squares(tangent->user_begin(), tangent->user_end());
  for (Operation *square : squares)
    square->erase();
  tangent.erase();
}

namespace {
struct FoldTanh : ::nova::impl::FoldTanhBase<FoldTanh> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(tile::attr::warps))
      return;
    SmallVector<math::TanhOp> found;
    getOperation().walk([&](math::TanhOp op) { found.push_back(op); });
    for (math::TanhOp op : found)
      fold(op);
  }
};
} // namespace
