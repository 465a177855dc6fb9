//===- SortUpdates.cpp - Updates sorted by their rows -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/SortUpdates.h"

#include "nova/IR/NovaKernelOps.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace nova {
#define GEN_PASS_DEF_SORTUPDATES
#include "nova/Transforms/SortUpdates.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

/// Longest run that is sorted by counting, which takes the square of it.
static constexpr int64_t kRun = 1024;
/// Bits of an entry below the row.
static constexpr int64_t kPositionBits = 32;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// Arithmetic of bodies, on scalars of one type.
struct Scalars {
  ImplicitLocOpBuilder b;

  Value number(int64_t value, Type type) {
    return arith::ConstantOp::create(b, type, b.getIntegerAttr(type, value)).getResult();
  }
  Value index(int64_t value) { return number(value, b.getIndexType()); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value add(Value x, int64_t y) { return add(x, number(y, x.getType())); }
  Value subtract(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value least(Value x, Value y) { return arith::MinSIOp::create(b, x, y); }
  Value most(Value x, Value y) { return arith::MaxSIOp::create(b, x, y); }
  Value isLess(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y); }
  Value isAtMost(Value x, Value y) { return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, x, y); }
  Value select(Value which, Value x, Value y) { return arith::SelectOp::create(b, which, x, y); }
  Value element(Value tensor, ValueRange at) { return tensor::ExtractOp::create(b, tensor, at); }
  /// The entry at `at`, or what stands nearest where that is outside.
  Value near(Value entries, Value at) {
    int64_t last = typeOf(entries).getDimSize(0) - 1;
    return element(entries, least(most(at, index(0)), index(last)));
  }
};

/// A kernel that is launched before: one generic, whose result is its own.
class Sorter {
public:
  Sorter(func::FuncOp kernel, IndexPutOp put) : kernel(kernel), put(put) {
    for (int64_t extent : typeOf(put.getIndices()[0]).getShape())
      count *= extent;
    for (int64_t extent : typeOf(put.getResult()).getShape().take_front(put.getIndices().size()))
      rows *= extent;
    padded = llvm::PowerOf2Ceil(count);
    run = std::min(padded, kRun);
  }

  bool isWorthIt(int64_t fewest) const {
    return count >= std::max<int64_t>(fewest, 2) && count < INT32_MAX && rows > 0 && rows < INT32_MAX;
  }
  void rewrite(ArrayRef<LaunchOp> launches);

private:
  using Body = llvm::function_ref<Value(Scalars &, ValueRange)>;
  /// A function with one generic: parallel loops over `shape`, then one reduction over
  /// `depth` (0: none) that begins with 0; every argument is read through its map, or
  /// by the body alone (a null map).
  func::FuncOp make(StringRef what, ArrayRef<RankedTensorType> arguments, ArrayRef<AffineMap> maps,
                    ArrayRef<int64_t> shape, Type element, int64_t depth, Body body);
  func::FuncOp makeEntries();
  func::FuncOp makeRanks();
  func::FuncOp makeRuns();
  func::FuncOp makeMerge(int64_t length);
  func::FuncOp makeBounds();
  void replacePut();
  SmallVector<int64_t> runShape() const {
    return padded > run ? SmallVector<int64_t>{padded / run, run} : SmallVector<int64_t>{run};
  }
  RankedTensorType entries() { return RankedTensorType::get({padded}, IntegerType::get(kernel.getContext(), 64)); }

  func::FuncOp kernel;
  IndexPutOp put;
  int64_t count = 1, rows = 1, padded = 1, run = 1;
};
} // namespace

func::FuncOp Sorter::make(StringRef what, ArrayRef<RankedTensorType> arguments, ArrayRef<AffineMap> maps,
                          ArrayRef<int64_t> shape, Type element, int64_t depth, Body body) {
  ImplicitLocOpBuilder b(put.getLoc(), kernel);
  auto type = RankedTensorType::get(shape, element);
  SmallVector<Type> inputs(arguments.begin(), arguments.end());
  auto function = func::FuncOp::create(b, (kernel.getSymName() + "." + what).str(), b.getFunctionType(inputs, Type(type)));
  function.setPrivate();
  function->setAttr(attr::kernel, b.getUnitAttr());
  function->setAttr(attr::space, b.getDenseI64ArrayAttr(shape));
  if (auto role = kernel->getAttrOfType<StringAttr>(attr::role))
    function->setAttr(attr::role, b.getStringAttr(role.getValue() + "_" + what));
  SmallVector<int64_t> identity(shape.size());
  std::iota(identity.begin(), identity.end(), 0);
  function.setResultAttr(0, attr::map, b.getDenseI64ArrayAttr(identity));

  b.setInsertionPointToStart(function.addEntryBlock());
  Value out = tensor::EmptyOp::create(b, shape, element);
  SmallVector<utils::IteratorType> kinds(shape.size(), utils::IteratorType::parallel);
  if (depth) {
    Value zero = arith::ConstantOp::create(b, element, b.getIntegerAttr(element, 0));
    out = linalg::FillOp::create(b, zero, out).getResult(0);
    kinds.push_back(utils::IteratorType::reduction);
  }
  SmallVector<Value> ins;
  SmallVector<AffineMap> all;
  for (auto [argument, map] : llvm::zip_equal(function.getArguments(), maps)) {
    if (!map)
      continue;
    ins.push_back(argument);
    all.push_back(map);
  }
  all.push_back(AffineMap::getMultiDimIdentityMap(kinds.size(), b.getContext()).getMajorSubMap(shape.size()));
  auto generic = linalg::GenericOp::create(
      b, TypeRange(type), ins, ValueRange(out), all, kinds, [&](OpBuilder &inner, Location loc, ValueRange values) {
        Scalars s{ImplicitLocOpBuilder(loc, inner)};
        SmallVector<Value> known(values.drop_back());
        if (known.empty())
          known.append(function.args_begin(), function.args_end());
        Value result = body(s, known);
        if (depth)
          result = s.add(values.back(), result);
        linalg::YieldOp::create(s.b, result);
      });
  func::ReturnOp::create(b, generic.getResults());
  return function;
}

/// Of position j: its row, 32 bits, then j. Positions that there are not, and those
/// outside the table, have the row behind the last.
func::FuncOp Sorter::makeEntries() {
  SmallVector<RankedTensorType> types;
  for (Value indices : put.getIndices())
    types.push_back(typeOf(indices));
  ArrayRef<int64_t> positions = types[0].getShape(), table = typeOf(put.getResult()).getShape();
  Type i64 = entries().getElementType();
  func::FuncOp function = make("entries", types, SmallVector<AffineMap>(types.size()), padded, i64, 0,
                               [&](Scalars &s, ValueRange lists) {
    Value j = linalg::IndexOp::create(s.b, 0);
    Value rest = s.least(j, s.index(count - 1));
    SmallVector<Value> at(positions.size());
    for (size_t d = positions.size(); d-- > 0;) {
      Value extent = s.index(positions[d]);
      at[d] = d ? arith::RemUIOp::create(s.b, rest, extent).getResult() : rest;
      if (d)
        rest = arith::DivUIOp::create(s.b, rest, extent);
    }
    Value row = s.number(0, i64);
    Value inside = s.isLess(j, s.index(count));
    for (auto [list, extent] : llvm::zip(lists, table)) {
      Value place = s.element(list, at);
      if (place.getType() != i64)
        place = arith::ExtSIOp::create(s.b, i64, place);
      Value isNegative = s.isLess(place, s.number(0, i64));
      place = s.select(isNegative, s.add(place, extent), place);
      // One unsigned comparison tests both ends.
      inside = s.both(inside, arith::CmpIOp::create(s.b, arith::CmpIPredicate::ult, place, s.number(extent, i64)));
      row = s.add(arith::MulIOp::create(s.b, row, s.number(extent, i64)), place);
    }
    row = s.select(inside, row, s.number(rows, i64));
    Value high = arith::ShLIOp::create(s.b, row, s.number(kPositionBits, i64));
    return s.add(high, arith::IndexCastOp::create(s.b, i64, j));
  });
  for (auto [i, indices] : llvm::enumerate(put.getIndices()))
    if (Attribute strides = kernel.getArgAttr(cast<BlockArgument>(indices).getArgNumber(), attr::strides))
      function.setArgAttr(i, attr::strides, strides);
  return function;
}

/// How many entries of its run are less than each.
func::FuncOp Sorter::makeRanks() {
  SmallVector<int64_t> shape = runShape();
  unsigned outer = shape.size() - 1, loops = shape.size() + 1;
  MLIRContext *context = kernel.getContext();
  AffineMap mine = AffineMap::getMultiDimIdentityMap(loops, context).dropResult(loops - 1);
  AffineMap other = AffineMap::getMultiDimIdentityMap(loops, context).dropResult(outer);
  auto type = RankedTensorType::get(shape, entries().getElementType());
  Type i32 = IntegerType::get(context, 32);
  return make("ranks", {type, type}, {mine, other}, shape, i32, run, [&](Scalars &s, ValueRange values) -> Value {
    return arith::ExtUIOp::create(s.b, i32, s.isLess(values[1], values[0]));
  });
}

/// Each run in the order of its ranks: a place takes the one entry that has its rank.
func::FuncOp Sorter::makeRuns() {
  SmallVector<int64_t> shape = runShape();
  unsigned outer = shape.size() - 1, loops = shape.size() + 1;
  MLIRContext *context = kernel.getContext();
  AffineMap other = AffineMap::getMultiDimIdentityMap(loops, context).dropResult(outer);
  Type i64 = entries().getElementType(), i32 = IntegerType::get(context, 32);
  return make("runs", {RankedTensorType::get(shape, i64), RankedTensorType::get(shape, i32)}, {other, other}, shape,
              i64, run, [&](Scalars &s, ValueRange values) {
    Value place = arith::IndexCastOp::create(s.b, i32, linalg::IndexOp::create(s.b, outer));
    Value isHere = arith::CmpIOp::create(s.b, arith::CmpIPredicate::eq, values[1], place);
    return s.select(isHere, values[0], s.number(0, i64));
  });
}

/// Pairs of sorted runs of `length`, each pair made one. Of the k entries before place k,
/// those of the left run are found by bisection: the i-th is one of them if it is less
/// than the one on the right that would else be.
func::FuncOp Sorter::makeMerge(int64_t length) {
  return make("merge", {entries()}, {AffineMap()}, padded, entries().getElementType(), 0,
              [&](Scalars &s, ValueRange lists) {
    Value list = lists[0], k = linalg::IndexOp::create(s.b, 0);
    Value inner = s.both(k, s.index(2 * length - 1));
    Value left = s.subtract(k, inner), right = s.add(left, length);
    Value most = s.least(inner, s.index(length));
    // All but as many as the right run has, in any case.
    Value taken = s.most(s.subtract(inner, s.index(length)), s.index(0));
    for (int64_t step = length; step > 0; step /= 2) {
      Value next = s.add(taken, step);
      Value mine = s.near(list, s.add(s.add(left, next), -1));
      Value other = s.near(list, s.add(right, s.subtract(inner, next)));
      Value isTaken = s.both(s.isAtMost(next, most), s.isLess(mine, other));
      taken = s.select(isTaken, next, taken);
    }
    Value fromRight = s.subtract(inner, taken);
    Value mine = s.near(list, s.add(left, taken)), other = s.near(list, s.add(right, fromRight));
    Value length_ = s.index(length);
    Value rightIsEmpty = s.isAtMost(length_, fromRight);
    Value isMine = arith::OrIOp::create(s.b, rightIsEmpty, s.isLess(mine, other));
    isMine = s.both(isMine, s.isLess(taken, length_));
    return s.select(isMine, mine, other);
  });
}

/// How many entries have a row less than r.
func::FuncOp Sorter::makeBounds() {
  Type i64 = entries().getElementType(), i32 = IntegerType::get(kernel.getContext(), 32);
  return make("bounds", {entries()}, {AffineMap()}, rows + 1, i32, 0, [&](Scalars &s, ValueRange lists) -> Value {
    Value r = arith::IndexCastOp::create(s.b, i64, linalg::IndexOp::create(s.b, 0));
    Value end = arith::ShLIOp::create(s.b, r, s.number(kPositionBits, i64));
    Value before = s.index(0);
    for (int64_t step = padded; step > 0; step /= 2) {
      Value next = s.add(before, step);
      Value isBefore = s.isLess(s.near(lists[0], s.add(next, -1)), end);
      isBefore = s.both(isBefore, s.isAtMost(next, s.index(padded)));
      before = s.select(isBefore, next, before);
    }
    return arith::IndexCastOp::create(s.b, i32, before);
  });
}

/// The kernel takes the order and the bounds as its last arguments.
void Sorter::replacePut() {
  Builder builder(kernel.getContext());
  auto bounds = RankedTensorType::get({rows + 1}, builder.getI32Type());
  for (Type type : {Type(entries()), Type(bounds)})
    (void)kernel.insertArgument(kernel.getNumArguments(), type, DictionaryAttr(), put.getLoc());
  unsigned first = kernel.getNumArguments() - 2;
  OpBuilder at(put);
  auto sum = SegmentSumOp::create(at, put.getLoc(), put.getResult().getType(), put.getInit(), put.getUpdates(),
                                  kernel.getArgument(first), kernel.getArgument(first + 1), put.getIndices().size());
  put.getResult().replaceAllUsesWith(sum.getResult());
}

void Sorter::rewrite(ArrayRef<LaunchOp> launches) {
  SmallVector<unsigned> lists;
  for (Value indices : put.getIndices())
    lists.push_back(cast<BlockArgument>(indices).getArgNumber());
  func::FuncOp number = makeEntries(), ranks = makeRanks(), runs = makeRuns(), bounds = makeBounds();
  SmallVector<func::FuncOp> merges;
  for (int64_t length = run; length < padded; length *= 2) {
    merges.push_back(makeMerge(length));
    merges.back().setName((kernel.getSymName() + ".merge" + Twine(length)).str());
  }
  unsigned old = kernel.getNumArguments();
  replacePut();
  put.erase();
  llvm::BitVector unused(kernel.getNumArguments());
  for (unsigned i = 0; i < old; ++i)
    unused[i] = kernel.getArgument(i).use_empty();
  for (LaunchOp launch : launches) {
    OpBuilder b(launch);
    auto whole = [&](ArrayRef<int64_t> shape) -> Attribute {
      return ViewAttr::get(b.getContext(), 0, contiguousStrides(shape));
    };
    auto start = [&](func::FuncOp function, ArrayRef<Value> operands, ArrayRef<Attribute> views) -> Value {
      return LaunchOp::create(b, launch.getLoc(), function.getResultTypes(), function.getSymName(), operands,
                              b.getArrayAttr(views), launch.getNodes())
          .getResult(0);
    };
    SmallVector<Value> operands;
    SmallVector<Attribute> views;
    for (unsigned i : lists) {
      operands.push_back(launch.getInputs()[i]);
      views.push_back(launch.getViews()[i]);
    }
    Attribute flat = whole(padded), inRuns = whole(runShape());
    Value order = start(number, operands, views);
    Value rank = start(ranks, {order, order}, {inRuns, inRuns});
    order = start(runs, {order, rank}, {inRuns, inRuns});
    for (func::FuncOp merge : merges)
      order = start(merge, order, flat);
    Value begins = start(bounds, order, flat);

    operands.clear();
    views.clear();
    for (unsigned i = 0; i < old; ++i) {
      if (unused[i])
        continue;
      operands.push_back(launch.getInputs()[i]);
      views.push_back(launch.getViews()[i]);
    }
    operands.append({order, begins});
    views.append({flat, whole(rows + 1)});
    auto last = LaunchOp::create(b, launch.getLoc(), launch.getResultTypes(), launch.getKernel(), operands,
                                 b.getArrayAttr(views), launch.getNodes());
    launch.replaceAllUsesWith(last);
    launch.erase();
  }
  (void)kernel.eraseArguments(unused);
}

namespace {
struct SortUpdates : ::nova::impl::SortUpdatesBase<SortUpdates> {
  using SortUpdatesBase::SortUpdatesBase;

  void runOnOperation() override {
    SmallVector<std::pair<func::FuncOp, IndexPutOp>> found;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!isKernel(kernel) || kernel.isExternal())
        continue;
      auto puts = kernel.getBody().front().getOps<IndexPutOp>();
      if (!llvm::hasSingleElement(puts) || !(*puts.begin()).getAccumulate())
        continue;
      IndexPutOp put = *puts.begin();
      // Positions that an argument does not hold are computed: few, so far.
      bool fromMemory = llvm::all_of(put.getIndices(), llvm::IsaPred<BlockArgument>);
      if (fromMemory && Sorter(kernel, put).isWorthIt(fewest))
        found.push_back({kernel, put});
    }
    for (auto [kernel, put] : found) {
      SmallVector<LaunchOp> launches;
      getOperation().walk([&, name = kernel.getSymName()](LaunchOp launch) {
        if (launch.getKernel() == name)
          launches.push_back(launch);
      });
      Sorter(kernel, put).rewrite(launches);
      ++numSorted;
    }
  }
};
} // namespace
