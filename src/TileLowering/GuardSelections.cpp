//===- GuardSelections.cpp - Masks only where they hide something -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask that compares positions hides nothing of most tiles: the diagonal crosses one
// or two tiles of a row of them, and an edge the last one. Whether it does is said by
// the tile's first and last positions, two scalars. So in loops
//
//   select(compare(range(i), range(j)), constant, x)
//
// becomes a branch around it, which all threads take together.
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace nova {
#define GEN_PASS_DEF_GUARDSELECTIONS
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Elements below which a selection costs less than a branch.
static constexpr int64_t kLeastElements = 1024;

namespace {
/// The least and the greatest of a tile's elements, scalars.
struct Ends {
  Value first, last;
};

class Guard {
public:
  Guard(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  /// Whether all elements of a condition are `wanted`, as a scalar that is true only if they
  /// are; null if that is not known of it.
  Value all(Value condition, bool wanted);
  /// What `all` has looked at, which takes part in the condition only.
  llvm::SetVector<Operation *> chain;

private:
  std::optional<Ends> rangeOf(Value value);
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  OpBuilder &builder;
  Location loc;
};
} // namespace

std::optional<Ends> Guard::rangeOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    std::optional<Ends> range = rangeOf(broadcast.getOperand());
    chain.insert(op);
    return range;
  }
  if (auto splat = dyn_cast_or_null<SplatOp>(op)) {
    chain.insert(op);
    return Ends{splat.getValue(), splat.getValue()};
  }
  auto range = dyn_cast_or_null<RangeOp>(op);
  if (!range)
    return std::nullopt;
  chain.insert(op);
  int64_t extent = range.getType().getNumElements();
  Value more = arith::ConstantIndexOp::create(builder, loc, extent - 1);
  return Ends{range.getStart(), arith::AddIOp::create(builder, loc, range.getStart(), more)};
}

Value Guard::all(Value condition, bool wanted) {
  Operation *op = condition.getDefiningOp();
  if (!op)
    return {};
  // All are true of both sides of an `and`; all are false of both of an `or`.
  if (wanted ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op)) {
    Value a = all(op->getOperand(0), wanted), b = a ? all(op->getOperand(1), wanted) : Value();
    chain.insert(op);
    return b ? arith::AndIOp::create(builder, loc, a, b).getResult() : Value();
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    Value inner = all(broadcast.getOperand(), wanted);
    chain.insert(op);
    return inner;
  }
  auto comparison = dyn_cast<arith::CmpIOp>(op);
  if (!comparison || !getElementTypeOrSelf(comparison.getLhs()).isIndex())
    return {};
  auto a = rangeOf(comparison.getLhs()), b = rangeOf(comparison.getRhs());
  if (!a || !b)
    return {};
  chain.insert(op);
  using P = arith::CmpIPredicate;
  P predicate = wanted ? comparison.getPredicate() : arith::invertPredicate(comparison.getPredicate());
  switch (predicate) {
  case P::slt:
  case P::sle:
  case P::ult:
  case P::ule:
    return compare(predicate, a->last, b->first);
  case P::sgt:
  case P::sge:
  case P::ugt:
  case P::uge:
    return compare(predicate, a->first, b->last);
  default:
    return {};
  }
}

static bool isConstantTile(Value value) { return matchPattern(throughSplat(value), m_Constant()); }

static void guard(arith::SelectOp select) {
  auto type = dyn_cast<RankedTensorType>(select.getType());
  if (!type || type.getNumElements() < kLeastElements || !select->getParentOfType<scf::ForOp>())
    return;
  // The arm that computes nothing new is taken where the whole tile has it.
  bool constantIfTrue = isConstantTile(select.getTrueValue());
  if (constantIfTrue == isConstantTile(select.getFalseValue()))
    return;
  Value kept = constantIfTrue ? select.getFalseValue() : select.getTrueValue();
  OpBuilder builder(select);
  Guard guard(builder, select.getLoc());
  Value whole = guard.all(select.getCondition(), !constantIfTrue);
  if (!whole)
    return;
  auto branch = scf::IfOp::create(builder, select.getLoc(), TypeRange(type), whole, /*withElseRegion=*/true);
  OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
  scf::YieldOp::create(then, select.getLoc(), kept);
  // The condition is computed where it is needed and nowhere else.
  IRMapping map;
  for (Operation *op : guard.chain)
    otherwise.clone(*op, map);
  Operation *masked = otherwise.clone(*select, map);
  scf::YieldOp::create(otherwise, select.getLoc(), masked->getResults());
  select.replaceAllUsesWith(branch.getResult(0));
  select.erase();
}

namespace {
struct GuardSelections : ::nova::impl::GuardSelectionsBase<GuardSelections> {
  void runOnOperation() override {
    func::FuncOp program = getOperation();
    if (!program->hasAttr(tile::attr::warps))
      return;
    SmallVector<arith::SelectOp> selects;
    program.walk([&](arith::SelectOp select) { selects.push_back(select); });
    for (arith::SelectOp select : selects)
      guard(select);
  }
};
} // namespace
