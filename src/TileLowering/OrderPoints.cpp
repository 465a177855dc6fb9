//===- OrderPoints.cpp - Long grid points before short ones -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks are started in the order of their numbers. Where loops are as long as the point
// says, a long point that is started last keeps the device waiting. The trip counts of
// all points are computed here; if they repeat every n points and rise or fall within
// those, then the points come in the order of their length, the longest first:
//
//   point = block mod (grid / n) * n + place,   place = block / (grid / n) or what is left
//
//===----------------------------------------------------------------------===//
#include "nova/Tile/Tile.h"
#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <optional>

namespace nova {
#define GEN_PASS_DEF_ORDERPOINTS
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Points beyond which nobody looks at each of them.
static constexpr int64_t kMostPoints = 1 << 20;

/// A scalar of the grid point `point`; nothing if it is not known from that alone.
static std::optional<int64_t> valueAt(Value value, int64_t point) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<PointOp>(op))
    return point;
  if (op->getNumOperands() != 2 || !isa<arith::ArithDialect>(op->getDialect()))
    return std::nullopt;
  auto a = valueAt(op->getOperand(0), point), b = valueAt(op->getOperand(1), point);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *a + *b;
  if (isa<arith::SubIOp>(op))
    return *a - *b;
  if (isa<arith::MulIOp>(op))
    return *a * *b;
  if (isa<arith::MinSIOp>(op))
    return std::min(*a, *b);
  if (isa<arith::MaxSIOp>(op))
    return std::max(*a, *b);
  if (*a < 0 || *b <= 0)
    return std::nullopt;
  if (isa<arith::DivUIOp>(op))
    return *a / *b;
  if (isa<arith::RemUIOp>(op))
    return *a % *b;
  if (isa<arith::MinUIOp>(op))
    return std::min(*a, *b);
  return std::nullopt;
}

/// Steps of the program's loops at each point, but for those that are as many at all;
/// empty if they are not known, or there are no others.
static std::vector<int64_t> lengths(func::FuncOp program, int64_t points) {
  SmallVector<scf::ForOp> loops;
  for (auto loop : program.getBody().front().getOps<scf::ForOp>())
    if (!llvm::all_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                      [](Value bound) { return matchPattern(bound, m_Constant()); }))
      loops.push_back(loop);
  if (loops.empty())
    return {};
  std::vector<int64_t> steps(points, 0);
  for (scf::ForOp loop : loops)
    for (int64_t point = 0; point < points; ++point) {
      auto from = valueAt(loop.getLowerBound(), point), to = valueAt(loop.getUpperBound(), point),
           step = valueAt(loop.getStep(), point);
      if (!from || !to || !step || *step <= 0)
        return {};
      steps[point] += std::max<int64_t>(0, (*to - *from + *step - 1) / *step);
    }
  return steps;
}

/// After how many points lengths repeat.
static int64_t periodOf(ArrayRef<int64_t> steps) {
  int64_t count = steps.size();
  for (int64_t n = 1; n < count; ++n) {
    if (count % n)
      continue;
    bool repeats = true;
    for (int64_t point = n; repeats && point < count; ++point)
      repeats = steps[point] == steps[point - n];
    if (repeats)
      return n;
  }
  return count;
}

namespace {
struct OrderPoints : ::nova::impl::OrderPointsBase<OrderPoints> {
  void runOnOperation() override {
    func::FuncOp program = getOperation();
    auto points = program->getAttrOfType<IntegerAttr>(tile::attr::grid);
    if (!points || !program->hasAttr(tile::attr::warps) || points.getInt() < 2 || points.getInt() > kMostPoints)
      return;
    std::vector<int64_t> steps = lengths(program, points.getInt());
    if (steps.empty())
      return;
    int64_t n = periodOf(steps);
    ArrayRef<int64_t> once = ArrayRef<int64_t>(steps).take_front(n);
    bool rises = llvm::is_sorted(once);
    if (n == 1 || (!rises && !std::is_sorted(once.rbegin(), once.rend())))
      return;
    SmallVector<PointOp> found;
    program.walk([&](PointOp point) { found.push_back(point); });
    for (PointOp point : found) {
      OpBuilder builder(point->getContext());
      builder.setInsertionPointAfter(point);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : point.getResult().getUses())
        uses.push_back(&use);
      Location loc = point.getLoc();
      auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
      int64_t repeats = points.getInt() / n;
      Value block = point.getResult(), place = block;
      Value repeat = repeats > 1 ? arith::RemUIOp::create(builder, loc, block, index(repeats)).getResult() : index(0);
      if (repeats > 1)
        place = arith::DivUIOp::create(builder, loc, block, index(repeats));
      if (rises)
        place = arith::SubIOp::create(builder, loc, index(n - 1), place);
      Value first = arith::MulIOp::create(builder, loc, repeat, index(n));
      Value ordered = arith::AddIOp::create(builder, loc, first, place);
      for (OpOperand *use : uses)
        use->set(ordered);
    }
  }
};
} // namespace
