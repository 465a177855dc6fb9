//===- LowerKernelsToLinalgFusion.cpp - Composing elementwise generics
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's fuseElementwiseOps composes one producer into one consumer. Here a
// value often has several readers, or is returned as well, and a reduction
// stands between them; so the rules are our own, over two rewrites: compose (a
// consumer computes what it used to read) and merge (two generics over one
// shape become one with the results of both). From the first that applies:
//
//   1. the only reader composes its producer (readers of single elements always do);
//   2. a reader over the same shape merges with its producer, unless something
//      else lies between them;
//   3. generics over one shape that read the same merge; so do reductions;
//   4. every reader composes a producer that is cheaper to compute than to
//      store and load again.
//
// A product or reduction whose only reader stores it rearranged writes it so.
// A generic never computes per element what its producer computed once per row.
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalgFusion.h"

#include "KernelAnalysis.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace nova::lowering {

/// Arithmetic operations that cost less to repeat than a store and a load.
static constexpr int64_t kCheap = 4;
/// The cost of what is never worth repeating.
static constexpr int64_t kDear = 100;

static int64_t costOf(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<linalg::IndexOp, arith::ExtFOp, arith::TruncFOp, arith::IndexCastOp>(
          op))
    return 0;
  if (isa<math::AbsFOp, math::FloorOp, math::TruncOp, math::AbsIOp>(op))
    return 1;
  if (isa<math::MathDialect>(op->getDialect()) ||
      isa<tensor::ExtractOp, arith::DivFOp, arith::DivSIOp>(op))
    return kDear;
  return 1;
}

/// Cost of one element of result `number`.
static int64_t costOf(linalg::GenericOp op, unsigned number) {
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> pending{op.getBody()->getTerminator()->getOperand(number)};
  int64_t cost = 0;
  while (!pending.empty()) {
    Operation *def = pending.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != op.getBody() || !slice.insert(def))
      continue;
    cost += costOf(def);
    llvm::append_range(pending, def->getOperands());
  }
  return cost;
}

static int64_t iterations(linalg::GenericOp op) {
  int64_t count = 1;
  for (int64_t extent : op.getStaticLoopRanges())
    count *= extent;
  return count;
}

static bool sharesRead(linalg::GenericOp a, linalg::GenericOp b) {
  for (OpOperand *x : a.getDpsInputOperands())
    for (OpOperand *y : b.getDpsInputOperands())
      if (x->get() == y->get() &&
          a.getMatchingIndexingMap(x) == b.getMatchingIndexingMap(y))
        return true;
  return false;
}

namespace {

class Fuser {
public:
  Fuser(func::FuncOp kernel, Contractions &contractions)
      : block(kernel.getBody().front()), contractions(contractions),
        rewriter(kernel.getContext()) {}

  void run();

private:
  bool isContraction(linalg::GenericOp op) const {
    return contractions.contains(op);
  }
  /// All parallel, over the shape of its results, from nothing.
  bool isElementwise(Operation *op) const;
  bool isReduction(Operation *op) const;
  /// Operations of the body that read results of `op`.
  llvm::SetVector<Operation *> readers(Operation *op) const;
  /// Is there a way from `from` to `to` with something between them?
  bool pathBetween(Operation *from, Operation *to) const;
  bool readsInPlace(linalg::GenericOp consumer,
                    linalg::GenericOp producer) const;
  /// Could every reader of `value` compute it, so that nobody stores it?
  bool everyReaderCanCompose(OpResult value) const;

  bool composeOnce(bool repeatCheap);
  bool composeInto(linalg::GenericOp consumer, bool repeatCheap);
  bool mergeSiblings();
  bool rearrangeResult();
  /// Do the loops of both run along the same dimensions of the kernel's space?
  /// Equal extents do not say so: a value stored transposed may be square.
  bool runAlike(linalg::GenericOp a, linalg::GenericOp b) const;
  void composeExtracts();
  void replace(linalg::GenericOp op, ValueRange values);
  void eraseDead();
  template <typename Fn> bool anyGeneric(Fn fn);

  Block &block;
  Contractions &contractions;
  IRRewriter rewriter;
};

bool Fuser::isElementwise(Operation *op) const {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumLoops() != generic.getNumParallelLoops())
    return false;
  return llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
    return generic.getMatchingIndexingMap(&init).isIdentity() &&
           generic.getMatchingBlockArgument(&init).use_empty();
  });
}

bool Fuser::isReduction(Operation *op) const {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && generic.getNumReductionLoops() != 0 &&
         !isContraction(generic);
}

llvm::SetVector<Operation *> Fuser::readers(Operation *op) const {
  llvm::SetVector<Operation *> out;
  for (Operation *user : op->getUsers())
    out.insert(block.findAncestorOpInBlock(*user));
  return out;
}

bool Fuser::pathBetween(Operation *from, Operation *to) const {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Operation *> pending;
  for (Operation *reader : readers(from))
    if (reader != to)
      pending.push_back(reader);
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (op == to)
      return true;
    if (seen.insert(op).second)
      llvm::append_range(pending, readers(op));
  }
  return false;
}

bool Fuser::readsInPlace(linalg::GenericOp consumer,
                         linalg::GenericOp producer) const {
  return llvm::all_of(consumer->getOpOperands(), [&](OpOperand &operand) {
    return operand.get().getDefiningOp() != producer ||
           consumer.getMatchingIndexingMap(&operand).isIdentity();
  });
}

bool Fuser::everyReaderCanCompose(OpResult value) const {
  auto producer = cast<linalg::GenericOp>(value.getOwner());
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *reader = use.getOwner();
    if (!isElementwise(reader) && !isReduction(reader))
      return false;
    auto generic = cast<linalg::GenericOp>(reader);
    return generic.isDpsInput(&use) &&
           iterations(generic) == iterations(producer);
  });
}

void Fuser::replace(linalg::GenericOp op, ValueRange values) {
  rewriter.replaceOp(op, values);
}

bool Fuser::composeInto(linalg::GenericOp consumer, bool repeatCheap) {
  if (!isElementwise(consumer) && !isReduction(consumer))
    return false;
  for (OpOperand *operand : consumer.getDpsInputOperands()) {
    auto value = dyn_cast<OpResult>(operand->get());
    if (!value || !isElementwise(value.getOwner()))
      continue;
    auto producer = cast<linalg::GenericOp>(value.getOwner());
    int64_t cost = costOf(producer, value.getResultNumber());
    bool sameCount = iterations(producer) == iterations(consumer);
    // A conversion, or a function of the position alone, is as good as a read.
    bool isFree =
        cost == 0 || (producer.getNumDpsInputs() == 0 && cost <= kCheap);
    bool onlyReader = readers(producer).size() == 1;
    bool composes = repeatCheap ? sameCount && cost <= kCheap &&
                                      everyReaderCanCompose(value)
                                : isFree || (sameCount && onlyReader);
    rewriter.setInsertionPoint(consumer);
    if (composes) {
      if (auto fused = compose(rewriter, consumer, producer)) {
        replace(consumer, fused.getResults());
        return true;
      }
    }
    if (!repeatCheap && isElementwise(consumer) &&
        readsInPlace(consumer, producer) &&
        producer.getStaticLoopRanges() == consumer.getStaticLoopRanges() &&
        !pathBetween(producer, consumer)) {
      auto merged = merge(rewriter, producer, consumer);
      unsigned first = producer.getNumResults();
      ValueRange results = merged.getResults();
      replace(consumer, results.drop_front(first));
      replace(producer, results.take_front(first));
      return true;
    }
  }
  return false;
}

template <typename Fn> bool Fuser::anyGeneric(Fn fn) {
  for (Operation &op : block)
    if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && fn(generic))
      return true;
  return false;
}

bool Fuser::composeOnce(bool repeatCheap) {
  return anyGeneric(
      [&](linalg::GenericOp op) { return composeInto(op, repeatCheap); });
}

bool Fuser::runAlike(linalg::GenericOp a, linalg::GenericOp b) const {
  KernelBindings bindings = bindKernel(cast<func::FuncOp>(block.getParentOp()));
  return loopBinding(a, bindings) == loopBinding(b, bindings);
}

bool Fuser::mergeSiblings() {
  SmallVector<linalg::GenericOp> ops;
  for (auto op : block.getOps<linalg::GenericOp>())
    if (isElementwise(op) || isReduction(op))
      ops.push_back(op);
  for (auto [i, first] : llvm::enumerate(ops)) {
    for (linalg::GenericOp second : ArrayRef(ops).drop_front(i + 1)) {
      if (first.getIteratorTypesArray() != second.getIteratorTypesArray() ||
          first.getStaticLoopRanges() != second.getStaticLoopRanges() ||
          !sharesRead(first, second) || readers(first).contains(second) ||
          pathBetween(first, second) || !runAlike(first, second))
        continue;
      rewriter.setInsertionPoint(second);
      auto merged = merge(rewriter, first, second);
      unsigned count = first.getNumResults();
      ValueRange results = merged.getResults();
      replace(second, results.drop_front(count));
      replace(first, results.take_front(count));
      return true;
    }
  }
  return false;
}

bool Fuser::rearrangeResult() {
  return anyGeneric([&](linalg::GenericOp copy) {
    if (!isElementwise(copy) || !isCopy(copy))
      return false;
    auto producer =
        copy.getDpsInputOperand(0)->get().getDefiningOp<linalg::GenericOp>();
    if (!producer || !producer->hasOneUse() || isElementwise(producer))
      return false;
    rewriter.setInsertionPoint(producer);
    auto rearranged = rearrange(rewriter, producer, copy);
    if (!rearranged)
      return false;
    if (isContraction(producer))
      contractions.insert(rearranged);
    replace(copy, rearranged.getResults());
    return true;
  });
}

void Fuser::eraseDead() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isOpTriviallyDead(&op))
      continue;
    contractions.erase(&op); // Another operation may get its address.
    rewriter.eraseOp(&op);
  }
  // Results nobody reads.
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isElementwise(&op) && !isReduction(&op))
      continue;
    rewriter.setInsertionPoint(&op);
    auto generic = cast<linalg::GenericOp>(op);
    if (auto smaller = withoutDeadResults(rewriter, generic)) {
      unsigned next = 0;
      for (OpResult result : op.getResults())
        if (!result.use_empty())
          rewriter.replaceAllUsesWith(result, smaller.getResult(next++));
      rewriter.eraseOp(generic);
    }
  }
  sortTopologically(&block);
}

/// Elements that are read one by one, of what nobody stores.
void Fuser::composeExtracts() {
  SmallVector<tensor::ExtractOp> pending;
  block.walk([&](tensor::ExtractOp extract) { pending.push_back(extract); });
  while (!pending.empty()) {
    tensor::ExtractOp extract = pending.pop_back_val();
    auto producer = extract.getTensor().getDefiningOp<linalg::GenericOp>();
    if (!isElementwise(producer))
      continue;
    llvm::append_range(pending, composeExtract(rewriter, extract, producer));
  }
}

void Fuser::run() {
  composeExtracts();
  auto step = [&] {
    return composeOnce(false) || rearrangeResult() || mergeSiblings() ||
           composeOnce(true);
  };
  do
    eraseDead();
  while (step());
  DominanceInfo dominance;
  eliminateCommonSubExpressions(rewriter, dominance, block.getParentOp());
  eraseDead();
}

} // namespace

void fuseGenerics(func::FuncOp kernel, Contractions &contractions) {
  Fuser(kernel, contractions).run();
}

} // namespace nova::lowering
