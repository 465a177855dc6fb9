//===- RematerializeValues.cpp - Recompute what is cheaper than to store ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelClusters.h"

#include "nova/IR/StridedView.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace nova {
#define GEN_PASS_DEF_REMATERIALIZEVALUES
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

/// Rough cost of recomputing one element, in simple instructions (expansions of
/// nova/Math/ExpandMath.h counted); 0 for what is never recomputed.
static int64_t recomputeCost(Operation *op) {
  if (isa<NegOp, AbsOp, ReluOp, NotOp, AddOp, SubOp, MulOp, MaximumOp, MinimumOp, AndOp, OrOp, XorOp, CompareOp,
          SelectOp, CastOp>(op))
    return 1;
  if (isa<TanhBackwardOp, SigmoidBackwardOp, ThresholdBackwardOp>(op))
    return 3;
  if (isa<DivOp, SqrtOp, RsqrtOp, ReciprocalOp>(op))
    return 8;
  if (isa<ExpOp, SigmoidOp, LogOp>(op))
    return 16;
  if (isa<TanhOp, ErfOp>(op))
    return 32;
  return 0;
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * elementBytes(type.getElementType());
}

namespace {

/// Instructions a device runs in the time one byte takes from memory: the
/// smaller of a CPU's (768 Gflop/s at 100 GB/s) and an H200's (60 Tflop/s at
/// 4.2 TB/s) balance.
constexpr int64_t kInstructionsPerByte = 8;
/// Recomputing saves launches and dependences besides bytes: that is worth this
/// many bytes of extra traffic (about what a GPU moves in 20 ns).
constexpr int64_t kSlackBytes = 64 << 10;
/// Operations one recomputation may repeat.
constexpr size_t kMaxOps = 12;

class Round {
public:
  Round(func::FuncOp step, llvm::DenseSet<Operation *> &keep)
      : step(step), clusters(step, /*fuse=*/true), keep(keep) {}
  unsigned run();
  /// Takes back what did not become part of its reader's kernel after all.
  unsigned undoStored();

private:
  struct Use {
    Operation *reader;
    unsigned operand;
  };
  /// How a stored value is made again, and from what.
  struct Recipe {
    Value value;
    llvm::SetVector<Operation *> ops;
    llvm::SetVector<Value> leaves;
  };
  bool isInMemory(Value value) const {
    return !removed.contains(value) &&
           (outside.contains(value) || returned.contains(value) || added.contains(value) || value == trial);
  }
  bool mayDrop(Value value);
  bool expand(Value value, Recipe &recipe);
  int64_t gain(ArrayRef<Recipe> recipes);
  void accept(ArrayRef<Recipe> recipes);
  void recompute(Value value, ArrayRef<Operation *> ops);

  func::FuncOp step;
  KernelClusters clusters;
  llvm::DenseSet<Operation *> &keep;                ///< Not to be tried again.
  SmallVector<std::pair<Value, Value>> repeated;    ///< Copy and original.
  llvm::MapVector<Value, SmallVector<Use>> outside; ///< Stored values: readers in other kernels.
  llvm::DenseSet<Value> returned, removed, pinned;
  llvm::DenseSet<Value> added; ///< Stored from now on, for recomputation.
  Value trial;                 ///< The same, on probation.
  llvm::DenseMap<unsigned, llvm::DenseSet<Value>> reads; ///< Bases each kernel reads from memory.
  unsigned count = 0;
};

/// Whether nobody needs `value` in memory but readers that could make it.
bool Round::mayDrop(Value value) {
  return !keep.contains(value.getDefiningOp()) && !returned.contains(value) && !pinned.contains(value) && !removed.contains(value) &&
         llvm::all_of(outside[value], [&](const Use &use) {
           return clusters.readsInPlace(use.reader, use.operand) &&
                  KernelClusters::throughInnerViews(use.reader->getOperand(use.operand)) == value;
         });
}

/// Collects what computes `value` (producers first) out of what is in memory.
bool Round::expand(Value value, Recipe &recipe) {
  Operation *op = value.getDefiningOp();
  if (recomputeCost(op) == 0 || recipe.ops.size() >= kMaxOps)
    return false;
  for (Value operand : op->getOperands()) {
    Value base = resolveView(operand).base;
    Operation *producer = base.getDefiningOp();
    if (!producer || isInMemory(base)) {
      recipe.leaves.insert(base);
      continue;
    }
    if (isa<ConstantOp, IotaOp>(producer))
      continue;
    if (KernelClusters::throughInnerViews(operand) != base || removed.contains(base))
      return false;
    if (!recipe.ops.contains(producer) && !expand(base, recipe))
      return false;
  }
  recipe.ops.insert(op);
  return true;
}

/// Bytes saved by not storing the recipes' values (and storing `trial`).
int64_t Round::gain(ArrayRef<Recipe> recipes) {
  int64_t bytes = trial ? -bytesOf(trial) : 0;
  llvm::MapVector<unsigned, llvm::SetVector<Value>> leaves;
  for (const Recipe &recipe : recipes) {
    llvm::SetVector<unsigned> readers;
    for (const Use &use : outside[recipe.value])
      readers.insert(clusters.clusterOf(use.reader));
    int64_t instructions = 0;
    for (Operation *op : recipe.ops)
      instructions += recomputeCost(op) * cast<RankedTensorType>(op->getResult(0).getType()).getNumElements();
    bytes += bytesOf(recipe.value) * int64_t(1 + readers.size()) -
             instructions * int64_t(readers.size()) / kInstructionsPerByte;
    for (unsigned reader : readers)
      leaves[reader].insert(recipe.leaves.begin(), recipe.leaves.end());
  }
  for (auto &[reader, values] : leaves)
    for (Value leaf : values)
      if (!reads[reader].contains(leaf) && clusters.clusterOf(leaf.getDefiningOp()) != (int)reader)
        bytes -= bytesOf(leaf);
  return bytes;
}

void Round::accept(ArrayRef<Recipe> recipes) {
  for (const Recipe &recipe : recipes) {
    recompute(recipe.value, recipe.ops.getArrayRef());
    removed.insert(recipe.value);
    pinned.insert(recipe.leaves.begin(), recipe.leaves.end());
    ++count;
  }
  if (trial)
    added.insert(trial);
}

void Round::recompute(Value value, ArrayRef<Operation *> ops) {
  llvm::MapVector<unsigned, SmallVector<Use>> byReader;
  for (const Use &use : outside[value])
    byReader[clusters.clusterOf(use.reader)].push_back(use);
  for (auto &[reader, uses] : byReader) {
    Operation *first = uses.front().reader;
    for (const Use &use : uses)
      if (use.reader->isBeforeInBlock(first))
        first = use.reader;
    OpBuilder builder(first);
    IRMapping map;
    auto follow = [&](Value operand) {
      // Views between the repeated operations are repeated too.
      SmallVector<Operation *> chain;
      Value source = operand;
      while (isView(source.getDefiningOp()) && !map.contains(source)) {
        chain.push_back(source.getDefiningOp());
        source = chain.back()->getOperand(0);
      }
      if (map.contains(source))
        for (Operation *view : llvm::reverse(chain))
          builder.clone(*view, map);
    };
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        follow(operand);
      builder.clone(*op, map)->setAttr(KernelClusters::recomputeAttr, builder.getUnitAttr());
    }
    repeated.push_back({map.lookup(value), value});
    for (const Use &use : uses) {
      builder.setInsertionPoint(use.reader);
      follow(use.reader->getOperand(use.operand));
      use.reader->setOperand(use.operand, map.lookup(use.reader->getOperand(use.operand)));
    }
  }
}

unsigned Round::undoStored() {
  KernelClusters after(step, /*fuse=*/true);
  unsigned undone = 0;
  for (auto [copy, original] : repeated) {
    int home = after.clusterOf(copy.getDefiningOp());
    bool leaves = false;
    SmallVector<Operation *> readers(copy.getUsers());
    while (!readers.empty()) {
      Operation *reader = readers.pop_back_val();
      if (isView(reader))
        llvm::append_range(readers, reader->getUsers());
      else
        leaves |= after.clusterOf(reader) != home;
    }
    if (!leaves)
      continue;
    copy.replaceAllUsesWith(original);
    keep.insert(original.getDefiningOp());
    ++undone;
  }
  return undone;
}

unsigned Round::run() {
  for (Operation &op : step.getBody().front()) {
    if (isView(&op))
      continue;
    int reader = clusters.clusterOf(&op);
    for (OpOperand &operand : op.getOpOperands()) {
      Value base = resolveView(operand.get()).base;
      if (op.hasTrait<OpTrait::IsTerminator>()) {
        returned.insert(base);
        continue;
      }
      if (reader < 0)
        continue;
      int producer = clusters.clusterOf(base.getDefiningOp());
      if (producer == reader)
        continue;
      reads[reader].insert(base);
      if (producer >= 0)
        outside[base].push_back({&op, operand.getOperandNumber()});
    }
  }
  // Latest first: what a value is computed from is then still undecided.
  SmallVector<Value> candidates;
  for (auto &[value, uses] : outside)
    candidates.push_back(value);
  llvm::sort(candidates, [](Value a, Value b) {
    return b.getDefiningOp()->isBeforeInBlock(a.getDefiningOp());
  });
  for (Value value : candidates) {
    Recipe recipe{value, {}, {}};
    if (mayDrop(value) && expand(value, recipe) && gain(recipe) + kSlackBytes > 0)
      accept(recipe);
  }

  // Values that become dispensable together once something smaller, or common
  // to several, is stored instead: a product's factors from its input, a
  // normalised row from its mean.
  llvm::MapVector<unsigned, SmallVector<Value>> byKernel;
  for (Value value : candidates)
    if (mayDrop(value))
      byKernel[clusters.clusterOf(value.getDefiningOp())].push_back(value);
  for (auto &[kernel, values] : byKernel) {
    SmallVector<Recipe> best;
    Value bestTrial;
    int64_t bestGain = 0;
    for (Operation *op : clusters.cluster(kernel).ops)
      for (Value result : op->getResults()) {
        if (isInMemory(result))
          continue;
        trial = result;
        SmallVector<Recipe> recipes;
        for (Value value : values) {
          Recipe recipe{value, {}, {}};
          if (mayDrop(value) && expand(value, recipe) && recipe.leaves.contains(trial))
            recipes.push_back(std::move(recipe));
        }
        // A recipe's leaves must stay: no value may be made from one that goes.
        llvm::erase_if(recipes, [&](const Recipe &recipe) {
          return llvm::any_of(recipes, [&](const Recipe &other) { return recipe.leaves.contains(other.value); });
        });
        if (int64_t g = recipes.empty() ? 0 : gain(recipes); g > bestGain) {
          bestGain = g;
          best = std::move(recipes);
          bestTrial = trial;
        }
        trial = {};
      }
    if (bestGain > 0) {
      trial = bestTrial;
      accept(best);
      trial = {};
    }
  }
  return count;
}

/// cast(x) to more bits, read only through a reshape that no kernel computes behind ->
/// cast(reshape(x)): then its readers can do it, and x is what is stored.
void widenBehindReshapes(func::FuncOp step) {
  auto isOuter = [](Operation *op) { return isa<ReshapeOp>(op) && !KernelClusters::isInnerView(op); };
  for (CastOp cast : llvm::make_early_inc_range(step.getBody().front().getOps<CastOp>())) {
    Value input = cast.getInput(), wide = cast.getResult();
    if (bytesOf(wide) <= bytesOf(input) || wide.use_empty() || !llvm::all_of(wide.getUsers(), isOuter))
      continue;
    for (Operation *user : llvm::make_early_inc_range(wide.getUsers())) {
      OpBuilder builder(user);
      Type type = user->getResult(0).getType(), element = getElementTypeOrSelf(input);
      Operation *reshape = builder.clone(*user);
      reshape->setOperand(0, input);
      reshape->getResult(0).setType(mlir::cast<RankedTensorType>(type).clone(element));
      auto after = CastOp::create(builder, cast.getLoc(), type, reshape->getResult(0));
      user->replaceAllUsesWith(after);
      user->erase();
    }
    cast.erase();
  }
}

struct RematerializeValues : ::nova::impl::RematerializeValuesBase<RematerializeValues> {
  using RematerializeValuesBase::RematerializeValuesBase;

  void runOnOperation() override {
    func::FuncOp step = getOperation();
    if (step.isExternal() || isKernel(step))
      return;
    widenBehindReshapes(step);
    llvm::DenseSet<Operation *> keep;
    for (int64_t index = 0; index < maxRounds; ++index) {
      Round round(step, keep);
      unsigned count = round.run();
      if (count == 0)
        return;
      numRecomputed += count - std::min(count, round.undoStored());
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(step.getBody().front())))
        if (op.use_empty() && isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
          op.erase();
    }
  }
};

} // namespace
