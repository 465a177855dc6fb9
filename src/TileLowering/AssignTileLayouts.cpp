//===- AssignTileLayouts.cpp - A layout for every tile ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Layouts.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>

namespace nova {
#define GEN_PASS_DEF_ASSIGNTILELAYOUTS
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;
using namespace nova::tile;

/// Below this share of used sector bytes an access gets a layout of its own.
static constexpr double kPoorEfficiency = 0.5;
/// A tile that is read once by so few bytes need not be read well.
static constexpr int64_t kFewBytes = 2048;

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }
static RankedTensorType tileType(Value value) { return cast<RankedTensorType>(value.getType()); }
static std::vector<int64_t> shapeOf(Value value) {
  ArrayRef<int64_t> shape = tileType(value).getShape();
  return {shape.begin(), shape.end()};
}

static bool isTranspose(BroadcastOp op) {
  return op.getType().getRank() == tileType(op.getOperand()).getRank();
}

/// Costs nothing to compute again in another layout.
static bool isCheap(Operation *op) {
  if (!op || op->getNumResults() != 1 || !isTile(op->getResult(0)))
    return false;
  if (isa<arith::ConstantOp, SplatOp, RangeOp>(op))
    return true;
  // A broadcast renames registers. What two groups would share of it would make them
  // one, with one layout.
  auto broadcast = dyn_cast<BroadcastOp>(op);
  return broadcast &&
         (!isTranspose(broadcast) || isCheap(broadcast.getOperand().getDefiningOp()));
}

/// Gives each use of a cheap value a copy of its own.
static void separateCheapValues(func::FuncOp function) {
  SmallVector<Operation *> cheap;
  function.walk([&](Operation *op) {
    if (isCheap(op))
      cheap.push_back(op);
  });
  // Users first, so that a broadcast is repeated before what it broadcasts.
  for (Operation *op : llvm::reverse(cheap)) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    if (uses.size() < 2)
      continue;
    for (OpOperand *use : llvm::drop_begin(uses)) {
      OpBuilder builder(op);
      use->set(builder.clone(*op)->getResult(0));
    }
  }
}

/// What a broadcast's operand must look like, given its result.
static LinearLayout broadcastOperand(BroadcastOp op, const LinearLayout &result) {
  ArrayRef<int64_t> dims = op.getDims();
  LinearLayout layout = result;
  for (unsigned d = result.rank(); d-- > 0;)
    if (!llvm::is_contained(dims, (int64_t)d))
      layout = layout.slice(d);
  // The dimensions left, in the result's order; operand dimension k is dims[k].
  SmallVector<int64_t> left(dims);
  llvm::sort(left);
  std::vector<unsigned> order;
  for (int64_t dim : dims)
    order.push_back(llvm::find(left, dim) - left.begin());
  return layout.transposed(order);
}

/// The result of a transpose, given its operand.
static LinearLayout transposeResult(BroadcastOp op, const LinearLayout &operand) {
  std::vector<unsigned> order(op.getDims().size());
  for (auto [k, dim] : llvm::enumerate(op.getDims()))
    order[dim] = k;
  return operand.transposed(order);
}

namespace {
class Assignment {
public:
  Assignment(func::FuncOp function, int64_t warps) : function(function), warps(warps) {}

  void run() {
    separateCheapValues(function);
    buildGroups();
    seedProducts();
    spread();
    seedAccesses();
    apply();
  }

private:
  struct Group {
    SmallVector<Value> values;
    std::optional<LinearLayout> layout;
    SmallVector<Operation *> accesses;
    int64_t bytes = 0; ///< Moved by its accesses.
  };

  void join(ValueRange values) {
    Value first;
    for (Value value : values) {
      if (!isTile(value))
        continue;
      classes.insert(value.getAsOpaquePointer());
      if (first)
        classes.unionSets(first.getAsOpaquePointer(), value.getAsOpaquePointer());
      else
        first = value;
    }
  }

  void buildGroups();
  void seedProducts();
  bool seedWarpgroups(Group &group, bool rowsTogether);
  void seedAccesses();
  void spread();
  void apply();
  void applyTo(Operation *op);

  Group &groupOf(Value value) { return groups[classes.getLeaderValue(value.getAsOpaquePointer())]; }
  const LinearLayout &layoutOf(Value value) { return *groupOf(value).layout; }
  RankedTensorType typed(Value value, const LinearLayout &layout) {
    RankedTensorType type = tileType(value);
    return RankedTensorType::get(type.getShape(), type.getElementType(),
                                 LayoutAttr::get(function.getContext(), layout));
  }
  /// `use` reads its value in `layout`.
  void convertOperand(OpOperand &use, const LinearLayout &layout) {
    RankedTensorType type = typed(use.get(), layout);
    if (use.get().getType() == type)
      return;
    OpBuilder builder(use.getOwner());
    use.set(ConvertOp::create(builder, use.getOwner()->getLoc(), type, use.get()));
  }
  /// `result` has been made in `layout`; its users want the group's.
  void convertResult(OpResult result, const LinearLayout &layout) {
    RankedTensorType wanted = typed(result, layoutOf(result));
    result.setType(typed(result, layout));
    if (result.getType() == wanted)
      return;
    OpBuilder builder(function.getContext());
    builder.setInsertionPointAfter(result.getOwner());
    auto convert = ConvertOp::create(builder, result.getLoc(), wanted, result);
    result.replaceAllUsesExcept(convert, convert);
  }
  /// The layout in which an access is made: the group's unless that is slow.
  LinearLayout layoutForAccess(Operation *op, const LinearLayout &group) {
    Access access = *accessOf(op);
    double efficiency = sectorEfficiency(access, group);
    if (efficiency > kPoorEfficiency)
      return group;
    // Behind products, a vector that many threads read the same of comes from the cache at
    // any rate, and without a conversion through shared memory, which loads could not pass.
    if (isa<LoadOp>(op) && !products.empty() && op->getBlock() == &function.getBody().front() && (group.freeLaneBits() || group.freeWarpBits()) &&
        group.elements() * access.elementBytes() <= kFewBytes)
      return group;
    // Beside sums that fill the registers: piece by piece.
    std::optional<LinearLayout> near;
    if (!products.empty())
      near = accessLayoutNear(access, group);
    if (near && sectorEfficiency(access, *near) > std::max(efficiency, kPoorEfficiency))
      return *near;
    LinearLayout own = accessLayout(access, warps);
    return sectorEfficiency(access, own) > efficiency ? own : group;
  }

  func::FuncOp function;
  int64_t warps;
  llvm::EquivalenceClasses<void *> classes;
  llvm::MapVector<void *, Group> groups;
  SmallVector<BroadcastOp> broadcasts;
  SmallVector<ReduceOp> reductions;
  SmallVector<DotOp> products;
};
} // namespace

void Assignment::buildGroups() {
  SmallVector<Value> all;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          if (isTile(argument))
            all.push_back(argument);
    for (Value result : op->getResults())
      if (isTile(result))
        all.push_back(result);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [init, argument, yielded, result] :
           llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(),
                     loop.getBody()->getTerminator()->getOperands(), loop.getResults()))
        join({init, argument, yielded, result});
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
        if (!region->empty())
          for (auto [yielded, result] :
               llvm::zip(region->front().getTerminator()->getOperands(), branch.getResults()))
            join({yielded, result});
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      broadcasts.push_back(broadcast);
    } else if (auto reduction = dyn_cast<ReduceOp>(op)) {
      reductions.push_back(reduction);
      join(reduction.getOperands());
      join(reduction.getResults());
    } else if (auto product = dyn_cast<DotOp>(op)) {
      products.push_back(product);
      join({product.getAccumulator(), product.getResult()});
    } else if (isa<GatherOp, ScanOp>(op) ||
               isa<arith::ArithDialect, math::MathDialect>(op->getDialect())) {
      SmallVector<Value> values(op->getOperands());
      llvm::append_range(values, op->getResults());
      join(values);
    }
  });
  for (Value value : all) {
    classes.insert(value.getAsOpaquePointer());
    groupOf(value).values.push_back(value);
  }
  function.walk([&](Operation *op) {
    Value moved = isa<LoadOp>(op)    ? op->getResult(0)
                  : isa<StoreOp>(op) ? op->getOperand(0)
                                     : Value();
    if (!moved)
      return;
    Group &group = groupOf(moved);
    group.accesses.push_back(op);
    group.bytes += tileType(moved).getNumElements() * accessOf(op)->elementBytes();
  });
}

void Assignment::seedProducts() {
  // Products that share an accumulator use one instruction: if one cannot use
  // MMA, none does.
  llvm::MapVector<Group *, DotKind> kinds;
  for (DotOp product : products) {
    DotKind kind = dotKind(product);
    auto [entry, isNew] = kinds.insert({&groupOf(product), kind});
    if (!isNew && entry->second != kind && (kind == DotKind::Fma || entry->second == DotKind::Fma))
      entry->second = DotKind::Fma;
  }
  for (auto &[group, kind] : kinds) {
    bool rowsTogether = false;
    for (Value value : group->values)
      for (Operation *user : value.getUsers())
        if (auto reduction = dyn_cast<ReduceOp>(user))
          rowsTogether |= reduction.getDim() == 1;
    RankedTensorType type = tileType(group->values.front());
    if (seedWarpgroups(*group, rowsTogether))
      continue;
    group->layout =
        accumulatorLayout(kind, type.getDimSize(0), type.getDimSize(1), warps, rowsTogether);
  }
  for (DotOp product : products)
    if (!product.getMultiplier() && kinds.lookup(&groupOf(product)) == DotKind::Fma)
      product.setMultiplier(Multiplier::fma);
}

bool Assignment::seedWarpgroups(Group &group, bool rowsTogether) {
  if (!function->hasAttr(tile::attr::asynchronous))
    return false;
  SmallVector<DotOp> members;
  for (DotOp product : products)
    if (&groupOf(product) == &group)
      members.push_back(product);
  bool columnsTogether = false;
  for (Value value : group.values)
    for (Operation *user : value.getUsers())
      if (auto reduction = dyn_cast<ReduceOp>(user))
        columnsTogether |= reduction.getDim() == 0;
  std::optional<WarpgroupChoice> choice =
      chooseWarpgroups(members, warps, rowsTogether, columnsTogether);
  if (!choice)
    return false;
  RankedTensorType type = tileType(group.values.front());
  int64_t rows = type.getDimSize(choice->flipped), columns = type.getDimSize(!choice->flipped);
  LinearLayout layout = warpgroupAccumulator(rows, columns, warps, *choice);
  group.layout = choice->flipped ? layout.transposed({1, 0}) : layout;
  for (DotOp product : members)
    product.setMultiplier(choice->flipped ? Multiplier::flipped_warpgroup : Multiplier::warpgroup);
  return true;
}

void Assignment::spread() {
  bool changed = true;
  auto give = [&](Value value, LinearLayout layout) {
    Group &group = groupOf(value);
    if (group.layout)
      return;
    group.layout = std::move(layout);
    changed = true;
  };
  while (std::exchange(changed, false)) {
    for (BroadcastOp broadcast : broadcasts) {
      if (groupOf(broadcast).layout)
        give(broadcast.getOperand(), broadcastOperand(broadcast, layoutOf(broadcast)));
      else if (isTranspose(broadcast) && groupOf(broadcast.getOperand()).layout)
        give(broadcast, transposeResult(broadcast, layoutOf(broadcast.getOperand())));
    }
    for (ReduceOp reduction : reductions)
      if (groupOf(reduction.getOperands()[0]).layout)
        give(reduction.getResult(0), layoutOf(reduction.getOperands()[0]).slice(reduction.getDim()));
  }
}

void Assignment::seedAccesses() {
  auto next = [&]() -> Group * {
    Group *best = nullptr;
    for (auto &[leader, group] : groups)
      if (!group.layout && (!best || group.bytes > best->bytes))
        best = &group;
    return best;
  };
  while (Group *group = next()) {
    Operation *widest = nullptr;
    for (Operation *op : group->accesses)
      if (!widest || accessOf(op)->elementBytes() > accessOf(widest)->elementBytes())
        widest = op;
    if (widest) {
      group->layout = accessLayout(*accessOf(widest), warps);
    } else {
      std::vector<int64_t> shape = shapeOf(group->values.front());
      std::vector<unsigned> order;
      for (unsigned d = shape.size(); d-- > 0;)
        order.push_back(d);
      group->layout = LinearLayout::blocked(shape, order, 1, warps);
    }
    spread();
  }
}

void Assignment::applyTo(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
      constant.setValueAttr(
          DenseElementsAttr::get(cast<ShapedType>(constant.getType()), dense.getSplatValue<Attribute>()));
  } else if (auto load = dyn_cast<LoadOp>(op)) {
    convertResult(load->getResult(0), layoutForAccess(op, layoutOf(load)));
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    LinearLayout has = cast<LayoutAttr>(tileType(store.getValue()).getEncoding()).layout();
    convertOperand(store.getValueMutable(), layoutForAccess(op, has));
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    convertOperand(broadcast.getOperandMutable(), broadcastOperand(broadcast, layoutOf(broadcast)));
  } else if (auto reduction = dyn_cast<ReduceOp>(op)) {
    // By its type: what stands there may be a conversion that came in between.
    auto has = cast<LayoutAttr>(tileType(reduction.getOperands()[0]).getEncoding());
    LinearLayout sliced = has.layout().slice(reduction.getDim());
    for (OpResult result : reduction->getResults())
      convertResult(result, sliced);
  } else if (auto product = dyn_cast<DotOp>(op)) {
    DotKind kind = dotKind(product);
    int64_t depth = tileType(product.getLhs()).getDimSize(1);
    const LinearLayout &accumulator = layoutOf(product);
    if (kind == DotKind::Wgmma) {
      for (unsigned operand : {0u, 1u})
        convertOperand(product->getOpOperand(operand),
                       warpgroupOperand(product, accumulator, operand, warps));
      return;
    }
    convertOperand(product.getLhsMutable(), operandLayout(kind, accumulator, 0, depth));
    convertOperand(product.getRhsMutable(), operandLayout(kind, accumulator, 1, depth));
  }
}

void Assignment::apply() {
  for (auto &[leader, group] : groups)
    for (Value value : group.values)
      value.setType(typed(value, *group.layout));
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    applyTo(op);
}

namespace {
struct AssignTileLayouts : ::nova::impl::AssignTileLayoutsBase<AssignTileLayouts> {
  void runOnOperation() override {
    auto warps = getOperation()->getAttrOfType<IntegerAttr>(tile::attr::warps);
    if (warps)
      Assignment(getOperation(), warps.getInt()).run();
  }
};
} // namespace
