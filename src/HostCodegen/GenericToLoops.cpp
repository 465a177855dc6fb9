//===- GenericToLoops.cpp - linalg.generic as loops of scalars and vectors
//-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three shapes of loop nest, all with the parallel loops outside:
//
//   parallel, vectorised     for p.. { for v by 8*U { acc = init; for r.. acc =
//   body; store } } reduction, vectorised    for p.. { for r.. { for v by 8*U:
//   U vector accumulators };
//                                      combine in a fixed order; store }
//   scalar                   the first with one lane
//
// The dimension v is the one with the least estimated cost (see laneCost).
//
//===----------------------------------------------------------------------===//
#include "GenericBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace nova::host {
namespace {

/// The decided loop nest.
struct LoopPlan {
  /// Outermost first; the vector dimension is in neither.
  SmallVector<unsigned> parallel, reductions;
  /// -1: scalar.
  int64_t vdim = -1;
  /// Vectors of 8 worked on at once.
  int64_t unroll = 1;
};

class GenericLowering {
public:
  GenericLowering(LoopEmitter &e, linalg::GenericOp op)
      : e(e), body(e, op), op(op) {}
  void emit();

private:
  double laneCost(int64_t vdim);
  LoopPlan choose();
  int64_t chooseUnroll(int64_t vdim);
  void emitParallel(unsigned level, const Cursor &at);
  void emitPoint(const Cursor &at, int64_t width, int64_t unroll);
  void emitVectorReduction(const Cursor &at);
  /// Loops over plan.reductions from `level` in, then `inner`.
  SmallVector<Value> reduce(
      unsigned level, const Cursor &at, ValueRange carried,
      llvm::function_ref<SmallVector<Value>(const Cursor &, ValueRange)> inner);
  Value fold(Operation *combiner, Value lhs, Value rhs, int64_t width);
  Value foldLanes(Operation *combiner, Value vector);

  LoopEmitter &e;
  GenericBody body;
  linalg::GenericOp op;
  LoopPlan plan;
};

/// Instructions a body op takes, roughly.
double opCost(Operation &op) {
  if (isa<linalg::IndexOp, linalg::YieldOp>(op) ||
      op.hasTrait<OpTrait::ConstantLike>())
    return 0;
  if (isa<math::MathDialect>(op.getDialect()) &&
      !isa<math::AbsFOp, math::FmaOp>(op))
    return 20;
  if (isa<arith::DivFOp>(op))
    return 5;
  return 1;
}

/// Estimated cost of one element when `vdim` is in lanes (-1: scalar code):
/// a unit-stride access costs one instruction for 8 lanes, an equal one next
/// to nothing, any other one and a half per lane. What happens once per
/// reduction counts that much less.
double GenericLowering::laneCost(int64_t vdim) {
  double perReduction = 1;
  for (auto &dim : body.dims)
    if (dim.reduction)
      perReduction /= std::max<int64_t>(1, dim.maxSize);
  auto forms = body.forms(vdim);
  double scalar = 0, vector = 0;
  auto count = [&](double weight, Lanes::Form form, int64_t stride) {
    scalar += weight;
    if (form == Lanes::Form::Uniform)
      vector += weight * 0.25;
    else
      vector += weight * (stride == 1 ? 1 : 1.5 * kVectorWidth);
  };
  for (auto [i, access] : llvm::enumerate(body.accesses)) {
    if (!access.memref || (i < body.numInputs && body.inputArg(i).use_empty()))
      continue;
    int64_t stride = vdim < 0 ? 0 : access.coef[vdim];
    count(i < body.numInputs ? 1 : perReduction,
          stride == 0 ? Lanes::Form::Uniform : Lanes::Form::Vector, stride);
  }
  for (Operation &inner : op.getBody()->getOperations()) {
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      int64_t step = 0;
      auto strides = e.model.plan(extract.getTensor()).strides;
      for (auto [index, stride] : llvm::zip(extract.getIndices(), strides)) {
        auto form = forms.lookup_or(index, Lanes::Form::Uniform);
        step += form == Lanes::Form::Step     ? stride
                : form == Lanes::Form::Vector ? 2
                                              : 0;
      }
      count(1, step == 0 ? Lanes::Form::Uniform : Lanes::Form::Vector, step);
      continue;
    }
    scalar += opCost(inner);
    vector += opCost(inner);
  }
  if (vdim < 0)
    return scalar;
  int64_t extent = body.dims[vdim].maxSize;
  double total =
      (extent / kVectorWidth) * vector + (extent % kVectorWidth) * scalar;
  if (body.dims[vdim].reduction)
    total += 12.0 * body.numResults; // The final combination.
  return total / extent;
}

LoopPlan GenericLowering::choose() {
  LoopPlan out;
  bool foldable = true;
  for (unsigned r = 0; r < body.numResults; ++r)
    foldable &= body.combiner(r) != nullptr;
  double best = laneCost(-1);
  for (unsigned d = 0; d < body.dims.size(); ++d) {
    const LoopDim &dim = body.dims[d];
    if (dim.maxSize < kVectorWidth || (dim.reduction && !foldable))
      continue;
    double cost = laneCost(d);
    if (cost < best) {
      best = cost;
      out.vdim = d;
    }
  }
  for (unsigned d = 0; d < body.dims.size(); ++d)
    if (static_cast<int64_t>(d) != out.vdim)
      (body.dims[d].reduction ? out.reductions : out.parallel).push_back(d);
  // Far strides outside, near ones inside: results decide parallel loops,
  // inputs the reductions.
  auto far = [&](unsigned from, unsigned to) {
    return [&, from, to](unsigned lhs, unsigned rhs) {
      auto total = [&](unsigned d) {
        int64_t sum = 0;
        for (unsigned i = from; i < to; ++i)
          if (!body.accesses[i].coef.empty())
            sum += body.accesses[i].coef[d];
        return sum;
      };
      return total(lhs) > total(rhs);
    };
  };
  unsigned firstResult = body.numInputs + body.numResults;
  llvm::stable_sort(out.parallel, far(firstResult, body.accesses.size()));
  llvm::stable_sort(out.reductions, far(0, body.numInputs));
  return out;
}

int64_t GenericLowering::chooseUnroll(int64_t vdim) {
  bool reduces = llvm::any_of(body.dims, [](auto &d) { return d.reduction; });
  double cost = 0;
  for (Operation &inner : op.getBody()->getOperations())
    cost += opCost(inner);
  // Registers hold the accumulators; long bodies fill the pipeline alone.
  int64_t most = !reduces     ? 1
                 : cost <= 4  ? 8
                 : cost <= 12 ? 4
                 : cost <= 40 ? 2
                              : 1;
  most = std::max<int64_t>(1, most / body.numResults);
  if (body.dims[vdim].reduction)
    most = std::min<int64_t>(most, 4);
  int64_t vectors = body.dims[vdim].maxSize / kVectorWidth;
  // The fewest passes, then the fewest vectors that make so many.
  int64_t passes = (vectors + most - 1) / most;
  int64_t unroll = std::max<int64_t>(1, vectors / std::max<int64_t>(1, passes));
  return std::min(unroll, most);
}

void GenericLowering::emit() {
  for (const LoopDim &dim : body.dims)
    if (!dim.reduction && dim.maxSize == 0)
      return;
  plan = choose();
  if (plan.vdim >= 0)
    plan.unroll = chooseUnroll(plan.vdim);
  emitParallel(0, body.origin());
}

void GenericLowering::emitParallel(unsigned level, const Cursor &at) {
  if (level < plan.parallel.size()) {
    unsigned d = plan.parallel[level];
    e.loop(e.getIndexAttr(0), body.dims[d].size, 1,
           [&](Value iv) { emitParallel(level + 1, body.enter(at, d, iv)); });
    return;
  }
  if (plan.vdim < 0)
    return emitPoint(at, 1, 1);
  if (body.dims[plan.vdim].reduction)
    return emitVectorReduction(at);
  unsigned v = plan.vdim;
  OpFoldResult size = body.dims[v].size, done = e.getIndexAttr(0);
  for (auto [width, unroll] :
       {std::pair<int64_t, int64_t>{kVectorWidth, plan.unroll},
        {kVectorWidth, 1},
        {1, 1}}) {
    int64_t step = width * unroll;
    OpFoldResult end = step == 1 ? size : e.roundDown(size, step);
    e.loop(done, end, step, [&, width = width, unroll = unroll](Value iv) {
      emitPoint(body.enter(at, v, iv), width, unroll);
    });
    done = end;
  }
}

SmallVector<Value> GenericLowering::reduce(
    unsigned level, const Cursor &at, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(const Cursor &, ValueRange)> inner) {
  if (level == plan.reductions.size())
    return inner(at, carried);
  unsigned d = plan.reductions[level];
  return e.loop(e.getIndexAttr(0), body.dims[d].size, 1, carried,
                [&](Value iv, ValueRange args) {
                  return reduce(level + 1, body.enter(at, d, iv), args, inner);
                });
}

/// Everything at `unroll` x `width` points from `at` along the vector
/// dimension, which is parallel.
void GenericLowering::emitPoint(const Cursor &at, int64_t width,
                                int64_t unroll) {
  const int64_t v = plan.vdim;
  auto shifted = [&](const Cursor &from, int64_t u) {
    return u == 0 ? from : body.shift(from, v, u * width);
  };
  if (plan.reductions.empty()) {
    for (int64_t u = 0; u < unroll; ++u) {
      Cursor here = shifted(at, u);
      SmallVector<Lanes> outs;
      for (unsigned r = 0; r < body.numResults; ++r)
        outs.push_back(body.loadInit(here, r, v, width));
      SmallVector<Lanes> values = body.compute(here, v, width, outs);
      for (unsigned r = 0; r < body.numResults; ++r)
        body.storeResult(here, r, v, width, values[r]);
    }
    return;
  }
  SmallVector<Value> carried;
  for (int64_t u = 0; u < unroll; ++u)
    for (unsigned r = 0; r < body.numResults; ++r)
      carried.push_back(
          e.materialise(body.loadInit(shifted(at, u), r, v, width), width));
  auto form = width > 1 ? Lanes::Form::Vector : Lanes::Form::Uniform;
  carried = reduce(0, at, carried, [&](const Cursor &here, ValueRange args) {
    SmallVector<Value> next;
    for (int64_t u = 0; u < unroll; ++u) {
      SmallVector<Lanes> outs;
      for (unsigned r = 0; r < body.numResults; ++r)
        outs.push_back({form, args[u * body.numResults + r]});
      for (const Lanes &lanes : body.compute(shifted(here, u), v, width, outs))
        next.push_back(e.materialise(lanes, width));
    }
    return next;
  });
  for (int64_t u = 0; u < unroll; ++u)
    for (unsigned r = 0; r < body.numResults; ++r)
      body.storeResult(shifted(at, u), r, v, width,
                       {form, carried[u * body.numResults + r]});
}

Value GenericLowering::fold(Operation *combiner, Value lhs, Value rhs,
                            int64_t width) {
  auto form = width > 1 ? Lanes::Form::Vector : Lanes::Form::Uniform;
  return body.apply(combiner, {Lanes{form, lhs}, Lanes{form, rhs}}, width)[0]
      .value;
}

/// Halves a vector until one element is left: a fixed order.
Value GenericLowering::foldLanes(Operation *combiner, Value vector) {
  for (int64_t width = kVectorWidth / 2; width >= 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t l = 0; l < width; ++l) {
      low.push_back(l);
      high.push_back(width + l);
    }
    if (width == 1) {
      Value a = vector::ExtractOp::create(e, vector, int64_t{0});
      Value b = vector::ExtractOp::create(e, vector, int64_t{1});
      return fold(combiner, a, b, 1);
    }
    Value a = vector::ShuffleOp::create(e, vector, vector, low);
    Value b = vector::ShuffleOp::create(e, vector, vector, high);
    vector = fold(combiner, a, b, width);
  }
  return vector;
}

/// One element of each result, with the vector dimension a reduction.
void GenericLowering::emitVectorReduction(const Cursor &at) {
  const unsigned v = plan.vdim, n = body.numResults;
  const int64_t unroll = plan.unroll;
  OpFoldResult size = body.dims[v].size;
  SmallVector<Operation *> combiners;
  // Carried: per accumulator and result a vector that starts at the identity,
  // then per result a scalar that starts at the init.
  SmallVector<Value> carried;
  for (unsigned r = 0; r < n; ++r)
    combiners.push_back(body.combiner(r));
  for (int64_t u = 0; u < unroll; ++u)
    for (unsigned r = 0; r < n; ++r)
      carried.push_back(e.materialise(
          {Lanes::Form::Uniform, e.scalarConstant(body.identity(combiners[r]))},
          kVectorWidth));
  for (unsigned r = 0; r < n; ++r)
    carried.push_back(body.loadInit(at, r, -1, 1).value);

  carried = reduce(0, at, carried, [&](const Cursor &here, ValueRange args) {
    SmallVector<Value> all(args);
    OpFoldResult done = e.getIndexAttr(0);
    for (int64_t count : {unroll, int64_t{1}, int64_t{0}}) {
      // `count` vectors per iteration; 0: one scalar.
      int64_t step = count == 0 ? 1 : count * kVectorWidth;
      OpFoldResult end = count == 0 ? size : e.roundDown(size, step);
      unsigned first = count == 0 ? unroll * n : 0;
      unsigned length = count == 0 ? n : count * n;
      SmallVector<Value> part = e.loop(
          done, end, step, ArrayRef(all).slice(first, length),
          [&](Value iv, ValueRange acc) {
            Cursor base = body.enter(here, v, iv);
            int64_t width = count == 0 ? 1 : kVectorWidth;
            auto form = count == 0 ? Lanes::Form::Uniform : Lanes::Form::Vector;
            SmallVector<Value> next;
            for (int64_t u = 0; u < std::max<int64_t>(count, 1); ++u) {
              SmallVector<Lanes> outs;
              for (unsigned r = 0; r < n; ++r)
                outs.push_back({form, acc[u * n + r]});
              Cursor point = body.shift(base, v, u * width);
              for (const Lanes &lanes : body.compute(point, v, width, outs))
                next.push_back(e.materialise(lanes, width));
            }
            return next;
          });
      llvm::copy(part, all.begin() + first);
      done = end;
    }
    return all;
  });

  for (unsigned r = 0; r < n; ++r) {
    SmallVector<Value> vectors;
    for (int64_t u = 0; u < unroll; ++u)
      vectors.push_back(carried[u * n + r]);
    while (vectors.size() > 1) {
      SmallVector<Value> half;
      for (size_t i = 0; i + 1 < vectors.size(); i += 2)
        half.push_back(
            fold(combiners[r], vectors[i], vectors[i + 1], kVectorWidth));
      if (vectors.size() % 2)
        half.push_back(vectors.back());
      vectors = half;
    }
    Value sum = foldLanes(combiners[r], vectors[0]);
    sum = fold(combiners[r], carried[unroll * n + r], sum, 1);
    body.storeResult(at, r, -1, 1, {Lanes::Form::Uniform, sum});
  }
}

} // namespace

LogicalResult emitGeneric(LoopEmitter &e, linalg::GenericOp op) {
  if (!emitContraction(e, op))
    GenericLowering(e, op).emit();
  return success();
}

} // namespace nova::host
