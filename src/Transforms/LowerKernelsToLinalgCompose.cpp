//===- LowerKernelsToLinalgCompose.cpp - The rewrites of fusion
//------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LowerKernelsToLinalgFusion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace nova::lowering {
namespace {

/// A generic in the making.
class Draft {
public:
  Draft(Location loc, unsigned loops) : loc(loc), loops(loops) {
    region.emplaceBlock();
  }

  /// The element that `read` reads.
  Value element(const Read &read);
  /// The element of another result, from `init`.
  Value result(const Read &init);
  /// Copies the body of `op`. Iteration point d here is at map(d) there.
  /// `elements` are the block arguments. Returns what it yields.
  Values inlineBody(linalg::GenericOp op, AffineMap map, ValueRange elements);
  /// `read` where iteration point d here is at map(d) there.
  static Read shifted(OpOperand &operand, AffineMap map) {
    auto owner = cast<linalg::GenericOp>(operand.getOwner());
    return {operand.get(), owner.getMatchingIndexingMap(&operand).compose(map)};
  }

  /// Null if a loop's extent cannot be told from the operands.
  linalg::GenericOp finish(OpBuilder &b, ValueRange yielded,
                           ArrayRef<utils::IteratorType> iterators);

private:
  void dropUnused();
  bool coversLoops(std::optional<unsigned> without = std::nullopt) const;
  Block &body() { return region.front(); }
  OpBuilder atEnd() {
    OpBuilder b(loc.getContext());
    b.setInsertionPointToEnd(&body());
    return b;
  }

  Location loc;
  unsigned loops;
  Region region;
  SmallVector<Read> ins, outs;
};

Value Draft::element(const Read &read) {
  for (auto [i, in] : llvm::enumerate(ins))
    if (in.value == read.value && in.map == read.map)
      return body().getArgument(i);
  Type type = cast<RankedTensorType>(read.value.getType()).getElementType();
  ins.push_back(read);
  return body().insertArgument(ins.size() - 1, type, loc);
}

Value Draft::result(const Read &init) {
  outs.push_back(init);
  return body().addArgument(
      cast<RankedTensorType>(init.value.getType()).getElementType(), loc);
}

Values Draft::inlineBody(linalg::GenericOp op, AffineMap map,
                         ValueRange elements) {
  OpBuilder b = atEnd();
  IRMapping mapping;
  mapping.map(op.getBody()->getArguments(), elements);
  for (Operation &inner : op.getBody()->without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (!index) {
      b.clone(inner, mapping);
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(map.getResult(index.getDim()));
    Value position =
        dim ? linalg::IndexOp::create(b, index.getLoc(), dim.getPosition())
                  .getResult()
            : arith::ConstantIndexOp::create(
                  b, index.getLoc(),
                  cast<AffineConstantExpr>(map.getResult(index.getDim()))
                      .getValue())
                  .getResult();
    mapping.map(index.getResult(), position);
  }
  return llvm::map_to_vector(
      op.getBody()->getTerminator()->getOperands(),
      [&](Value v) { return mapping.lookupOrDefault(v); });
}

bool Draft::coversLoops(std::optional<unsigned> without) const {
  auto told = [&](unsigned d) {
    for (auto [i, in] : llvm::enumerate(ins))
      if (i != without && in.map.isFunctionOfDim(d))
        return true;
    return llvm::any_of(
        outs, [&](const Read &out) { return out.map.isFunctionOfDim(d); });
  };
  return llvm::all_of(llvm::seq(loops), told);
}

void Draft::dropUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body())))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned i = ins.size(); i-- > 0;) {
    if (!body().getArgument(i).use_empty() || !coversLoops(i))
      continue;
    body().eraseArgument(i);
    ins.erase(ins.begin() + i);
  }
}

linalg::GenericOp Draft::finish(OpBuilder &b, ValueRange yielded,
                                ArrayRef<utils::IteratorType> iterators) {
  if (!coversLoops())
    return {};
  OpBuilder inner = atEnd();
  linalg::YieldOp::create(inner, loc, yielded);
  dropUnused();
  Values inputs, inits;
  SmallVector<AffineMap> maps;
  for (const Read &in : ins) {
    inputs.push_back(in.value);
    maps.push_back(in.map);
  }
  for (const Read &out : outs) {
    inits.push_back(out.value);
    maps.push_back(out.map);
  }
  auto op = linalg::GenericOp::create(b, loc, ValueRange(inits).getTypes(),
                                      inputs, inits, maps, iterators);
  op.getRegion().takeBody(region);
  return op;
}

AffineMap identity(linalg::GenericOp op) {
  return AffineMap::getMultiDimIdentityMap(op.getNumLoops(), op.getContext());
}

/// The elements of the operands of `op`, results included, in a draft over the
/// same iterations.
Values ownElements(Draft &draft, linalg::GenericOp op) {
  Values elements;
  for (OpOperand *operand : op.getDpsInputOperands())
    elements.push_back(draft.element(Draft::shifted(*operand, identity(op))));
  for (OpOperand &operand : op.getDpsInitsMutable())
    elements.push_back(draft.result(Draft::shifted(operand, identity(op))));
  return elements;
}

} // namespace

linalg::GenericOp compose(OpBuilder &b, linalg::GenericOp consumer,
                          linalg::GenericOp producer) {
  Draft draft(consumer.getLoc(), consumer.getNumLoops());
  // One copy of the producer's body for each map through which it is read.
  llvm::SmallMapVector<AffineMap, Values, 2> computed;
  Values elements;
  for (OpOperand *operand : consumer.getDpsInputOperands()) {
    AffineMap map = consumer.getMatchingIndexingMap(operand);
    if (operand->get().getDefiningOp() != producer) {
      elements.push_back(draft.element({operand->get(), map}));
      continue;
    }
    auto [it, isNew] = computed.insert({map, {}});
    if (isNew) {
      Values inner;
      for (OpOperand *read : producer.getDpsInputOperands())
        inner.push_back(draft.element(Draft::shifted(*read, map)));
      // The producer does not read what its results start from.
      inner.resize(producer.getBody()->getNumArguments());
      it->second = draft.inlineBody(producer, map, inner);
    }
    elements.push_back(
        it->second[cast<OpResult>(operand->get()).getResultNumber()]);
  }
  for (OpOperand &operand : consumer.getDpsInitsMutable())
    elements.push_back(
        draft.result(Draft::shifted(operand, identity(consumer))));
  Values yielded = draft.inlineBody(consumer, identity(consumer), elements);
  return draft.finish(b, yielded, consumer.getIteratorTypesArray());
}

linalg::GenericOp merge(OpBuilder &b, linalg::GenericOp first,
                        linalg::GenericOp second) {
  Draft draft(b.getFusedLoc({first.getLoc(), second.getLoc()}),
              first.getNumLoops());
  Values yielded =
      draft.inlineBody(first, identity(first), ownElements(draft, first));
  Values elements;
  for (OpOperand *operand : second.getDpsInputOperands()) {
    if (operand->get().getDefiningOp() == first)
      elements.push_back(
          yielded[cast<OpResult>(operand->get()).getResultNumber()]);
    else
      elements.push_back(
          draft.element(Draft::shifted(*operand, identity(second))));
  }
  for (OpOperand &operand : second.getDpsInitsMutable())
    elements.push_back(draft.result(Draft::shifted(operand, identity(second))));
  llvm::append_range(yielded,
                     draft.inlineBody(second, identity(second), elements));
  return draft.finish(b, yielded, first.getIteratorTypesArray());
}

linalg::GenericOp withoutDeadResults(OpBuilder &b, linalg::GenericOp op) {
  if (llvm::none_of(op.getResults(), [](Value v) { return v.use_empty(); }))
    return {};
  Draft draft(op.getLoc(), op.getNumLoops());
  Values elements;
  for (OpOperand *operand : op.getDpsInputOperands())
    elements.push_back(draft.element(Draft::shifted(*operand, identity(op))));
  for (auto [operand, result] :
       llvm::zip_equal(op.getDpsInitsMutable(), op.getResults())) {
    bool reads = !op.getMatchingBlockArgument(&operand).use_empty();
    if (result.use_empty() && reads)
      return {};
    elements.push_back(result.use_empty() ? Value()
                                          : draft.result(Draft::shifted(
                                                operand, identity(op))));
  }
  Values all = draft.inlineBody(op, identity(op), elements), yielded;
  for (auto [value, result] : llvm::zip_equal(all, op.getResults()))
    if (!result.use_empty())
      yielded.push_back(value);
  return draft.finish(b, yielded, op.getIteratorTypesArray());
}

bool isCopy(linalg::GenericOp op) {
  return op.getNumResults() == 1 && op.getNumDpsInputs() == 1 &&
         op.getBody()->getTerminator()->getOperand(0) ==
             op.getBody()->getArgument(0);
}

linalg::GenericOp rearrange(OpBuilder &b, linalg::GenericOp producer,
                            linalg::GenericOp copy) {
  if (producer.getNumResults() != 1)
    return {};
  auto fill = producer.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!fill)
    return {};
  AffineMap written =
      producer.getMatchingIndexingMap(producer.getDpsInitOperand(0));
  AffineMap read = copy.getMatchingIndexingMap(copy.getDpsInputOperand(0));
  auto type = cast<RankedTensorType>(copy.getResult(0).getType());
  SmallVector<AffineExpr> results(type.getRank(), b.getAffineConstantExpr(0));
  llvm::SmallBitVector known(type.getRank());
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(producer.getResult(0).getType()).getShape();
  for (auto [expr, source, size] :
       llvm::zip_equal(read.getResults(), written.getResults(), shape)) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim && size != 1)
      return {};
    if (!dim)
      continue;
    results[dim.getPosition()] = source;
    known.set(dim.getPosition());
  }
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (!known.test(d) && type.getDimSize(d) != 1)
      return {};
  Location loc = producer.getLoc();
  Value start =
      tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
  start = linalg::FillOp::create(b, loc, fill.getInputs(), start).getResult(0);
  SmallVector<AffineMap> maps = producer.getIndexingMapsArray();
  maps.back() =
      AffineMap::get(written.getNumDims(), 0, results, b.getContext());
  auto op =
      linalg::GenericOp::create(b, loc, type, producer.getDpsInputs(), start,
                                maps, producer.getIteratorTypesArray());
  IRMapping mapping;
  producer.getRegion().cloneInto(&op.getRegion(), mapping);
  return op;
}

SmallVector<tensor::ExtractOp> composeExtract(RewriterBase &rewriter,
                                              tensor::ExtractOp extract,
                                              linalg::GenericOp producer) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(extract);
  Location loc = extract.getLoc();
  Values where(extract.getIndices());
  IRMapping mapping;
  SmallVector<tensor::ExtractOp> reads;
  for (OpOperand *input : producer.getDpsInputOperands()) {
    Values at;
    for (AffineExpr place : producer.getMatchingIndexingMap(input).getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(place);
      at.push_back(dim ? where[dim.getPosition()]
                       : arith::ConstantIndexOp::create(
                             rewriter, loc,
                             cast<AffineConstantExpr>(place).getValue())
                             .getResult());
    }
    reads.push_back(
        tensor::ExtractOp::create(rewriter, loc, input->get(), at));
    mapping.map(producer.getMatchingBlockArgument(input),
                reads.back().getResult());
  }
  for (Operation &inner : producer.getBody()->without_terminator())
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      mapping.map(index.getResult(), where[index.getDim()]);
    else if (auto read = dyn_cast<tensor::ExtractOp>(
                 rewriter.clone(inner, mapping)))
      reads.push_back(read);
  unsigned number =
      cast<OpResult>(extract.getTensor()).getResultNumber();
  Value element =
      producer.getBody()->getTerminator()->getOperand(number);
  rewriter.replaceOp(extract, mapping.lookupOrDefault(element));
  return reads;
}

} // namespace nova::lowering
