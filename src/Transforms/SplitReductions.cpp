//===- SplitReductions.cpp - Long reductions in two stages ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelAnalysis.h"

#include "nova/Config/Tiles.h"
#include "nova/Transforms/Passes.h"

#include "mlir/IR/AffineExprVisitor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace nova {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

namespace {
/// A reduction of a kernel's body, and the loop of it that is split.
struct Split {
  linalg::GenericOp op;
  unsigned loop = 0;
  int64_t parts = 1;
  SmallVector<int64_t> outer; ///< Extents of its parallel loops.

  int64_t extent() const {
    return const_cast<Split *>(this)->op.getStaticLoopRanges()[loop];
  }
};

/// An argument of the kernel of parts: one of the kernel, a dimension of which is
/// seen as parts times the rest (-1: as it is).
using PartArgument = std::pair<unsigned, int64_t>;
} // namespace

/// Operations whose order does not matter, each on an accumulator and a value.
static bool isAssociative(Operation *op) {
  return isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::AddIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(op);
}

/// Does it change nothing that every part begins with `start`, and not only one?
static bool isRepeatable(Operation *combiner, Value start) {
  if (isa<arith::AddFOp>(combiner))
    return matchPattern(start, m_AnyZeroFloat());
  if (isa<arith::MulFOp>(combiner))
    return matchPattern(start, m_OneFloat());
  if (isa<arith::AddIOp, arith::XOrIOp>(combiner))
    return matchPattern(start, m_Zero());
  if (isa<arith::MulIOp>(combiner))
    return matchPattern(start, m_One());
  return matchPattern(start, m_Constant()); // idempotent
}

/// The operation that combines result `i` of a reduction with its accumulator.
static Operation *combinerOf(linalg::GenericOp op, unsigned i) {
  Block &body = op.getRegion().front();
  Value accumulator = body.getArgument(op.getNumDpsInputs() + i);
  Operation *combiner = body.getTerminator()->getOperand(i).getDefiningOp();
  // Its value is the result's only: a body that looks at one accumulator to make
  // another combines values that parts do not have.
  if (!combiner || !isAssociative(combiner) || !combiner->hasOneUse() ||
      !accumulator.hasOneUse() || *accumulator.user_begin() != combiner)
    return nullptr;
  return combiner;
}

/// Position of loop `loop` among the results of `map`: -1 if it is not there.
static int64_t positionOf(AffineMap map, unsigned loop) {
  for (auto [k, expr] : llvm::enumerate(map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && dim.getPosition() == loop)
      return k;
  return -1;
}

/// Does any result of the map use the loop in another way than by itself?
static bool usesOtherwise(AffineMap map, unsigned loop) {
  return llvm::any_of(map.getResults(), [&](AffineExpr expr) {
    return !isa<AffineDimExpr>(expr) && expr.isFunctionOfDim(loop);
  });
}

/// Do the neighbours in memory of an argument that `op` reads lie along a loop that is
/// reduced?
static bool isReducedInside(linalg::GenericOp op, OpOperand *operand) {
  auto argument = dyn_cast<BlockArgument>(operand->get());
  if (!argument)
    return true;
  auto kernel = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  AffineMap map = op.getMatchingIndexingMap(operand);
  auto kinds = op.getIteratorTypesArray();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(argument.getType()).getShape();
  for (auto [k, stride] : llvm::enumerate(argumentStrides(kernel, argument.getArgNumber())))
    if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(k)); dim && stride == 1 && shape[k] > 1)
      return kinds[dim.getPosition()] == utils::IteratorType::reduction;
  return true;
}

/// Rows and columns are parallel loops that only one of two inputs has.
static void describeProduct(linalg::GenericOp op, StringRef precision, config::ReductionDesc &desc) {
  if (op.getNumDpsInputs() != 2)
    return;
  int64_t rows = 1, columns = 1;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    bool left = positionOf(op.getMatchingIndexingMap(op.getDpsInputOperand(0)), loop) >= 0;
    bool right = positionOf(op.getMatchingIndexingMap(op.getDpsInputOperand(1)), loop) >= 0;
    if (kind == utils::IteratorType::reduction && !(left && right))
      return;
    if (kind == utils::IteratorType::parallel)
      (left && right ? desc.batch : left ? rows : columns) *= ranges[loop];
  }
  desc.rows = rows, desc.columns = columns;
  desc.leftDepthInner = isReducedInside(op, op.getDpsInputOperand(0));
  desc.rightDepthInner = isReducedInside(op, op.getDpsInputOperand(1));
  Type element = getElementTypeOrSelf(op.getDpsInputs()[0]);
  desc.elementBytes = elementBytes(element);
  if (element.isBF16() || element.isF16() || precision == "bf16")
    desc.unit = config::ProductUnit::Half;
  else if (element.isF32() && precision == "tf32")
    desc.unit = config::ProductUnit::Tf32;
}

/// How `op` can be split, if it reads arguments only and is worth it.
static std::optional<Split> splitOf(linalg::GenericOp op, const target::Device &device, StringRef precision) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInputs() == 0)
    return std::nullopt;
  for (Value input : op.getDpsInputs())
    if (!isa<BlockArgument>(input))
      return std::nullopt;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    Operation *combiner = combinerOf(op, i);
    auto fill = op.getDpsInits()[i].getDefiningOp<linalg::FillOp>();
    if (!combiner || !fill || !isRepeatable(combiner, fill.getInputs()[0]))
      return std::nullopt;
  }
  // Bodies that look at a place know nothing of parts.
  bool places = false;
  op.getRegion().walk([&](Operation *inner) {
    places |= isa<linalg::IndexOp>(inner) || inner->getDialect()->getNamespace() == "tensor";
  });
  if (places)
    return std::nullopt;

  Split split{op, 0, 1, {}};
  config::ReductionDesc desc;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind == utils::IteratorType::parallel) {
      split.outer.push_back(ranges[loop]);
      desc.outputs *= ranges[loop];
    } else {
      desc.depth *= ranges[loop];
    }
  }
  describeProduct(op, precision, desc);
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind != utils::IteratorType::reduction)
      continue;
    bool plain = llvm::none_of(op.getIndexingMapsArray(), [&](AffineMap map) {
      return usesOtherwise(map, loop);
    });
    if (!plain)
      continue;
    int64_t parts = config::reductionParts(desc, ranges[loop], device);
    if (parts > split.parts)
      split.loop = loop, split.parts = parts;
  }
  if (split.parts < 2)
    return std::nullopt;
  return split;
}

namespace {
/// Splits the reductions of one kernel that can share a kernel of parts: those
/// with equal parts and equal parallel loops.
class Splitter {
public:
  Splitter(func::FuncOp kernel, ArrayRef<Split> splits, StringRef name)
      : kernel(kernel), splits(splits), builder(kernel), name(name) {}

  void run(ArrayRef<LaunchOp> launches) {
    makeParts();
    mergeInKernel();
    rewrite(launches);
  }

private:
  void makeParts();
  void mergeInKernel();
  void rewrite(ArrayRef<LaunchOp> launches);

  func::FuncOp kernel;
  ArrayRef<Split> splits;
  OpBuilder builder;
  std::string name;
  llvm::SetVector<PartArgument> arguments;
  func::FuncOp parts;
};
} // namespace

/// `values` with entry `dim` replaced by two.
static SmallVector<int64_t> splitEntry(ArrayRef<int64_t> values, int64_t dim, int64_t first,
                                       int64_t second) {
  SmallVector<int64_t> result(values);
  if (dim < 0)
    return result;
  result[dim] = first;
  result.insert(result.begin() + dim + 1, second);
  return result;
}

void Splitter::makeParts() {
  MLIRContext *context = builder.getContext();
  int64_t count = splits.front().parts;
  for (const Split &split : splits)
    for (OpOperand *input : linalg::GenericOp(split.op).getDpsInputOperands())
      arguments.insert({cast<BlockArgument>(input->get()).getArgNumber(),
                        positionOf(linalg::GenericOp(split.op).getMatchingIndexingMap(input),
                                   split.loop)});

  // The signature: split arguments, and for each reduced value its parts.
  SmallVector<Type> inputs, outputs;
  SmallVector<SmallVector<int64_t>> strides;
  for (auto [index, dim] : arguments) {
    auto type = cast<RankedTensorType>(kernel.getArgumentTypes()[index]);
    int64_t extent = dim < 0 ? 0 : type.getDimSize(dim);
    inputs.push_back(RankedTensorType::get(
        splitEntry(type.getShape(), dim, count, extent / count), type.getElementType()));
    SmallVector<int64_t> own = argumentStrides(kernel, index);
    int64_t stride = dim < 0 ? 0 : own[dim];
    strides.push_back(splitEntry(own, dim, stride * (extent / count), stride));
  }
  SmallVector<int64_t> space{count};
  space.append(splits.front().outer.begin(), splits.front().outer.end());
  for (const Split &split : splits)
    for (Type type : split.op->getResultTypes())
      outputs.push_back(
          RankedTensorType::get(space, cast<RankedTensorType>(type).getElementType()));
  parts = func::FuncOp::create(builder, kernel.getLoc(), name,
                               builder.getFunctionType(inputs, outputs));
  parts.setPrivate();
  parts->setAttr(attr::kernel, builder.getUnitAttr());
  parts->setAttr(attr::space, builder.getDenseI64ArrayAttr(space));
  if (auto role = kernel->getAttrOfType<StringAttr>(attr::role))
    parts->setAttr(attr::role, builder.getStringAttr(role.getValue() + "_parts"));
  for (auto [i, own] : llvm::enumerate(strides))
    if (ArrayRef<int64_t>(own) !=
        ArrayRef<int64_t>(contiguousStrides(cast<RankedTensorType>(inputs[i]).getShape())))
      parts.setArgAttr(i, attr::strides, builder.getDenseI64ArrayAttr(own));
  SmallVector<int64_t> identity;
  for (size_t d = 0; d < space.size(); ++d)
    identity.push_back(d);
  for (unsigned i = 0; i < outputs.size(); ++i)
    parts.setResultAttr(i, attr::map, builder.getDenseI64ArrayAttr(identity));

  // The body: each reduction, with the parts as a first, parallel loop.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(parts.addEntryBlock());
  SmallVector<Value> results;
  for (const Split &split : splits) {
    linalg::GenericOp op = split.op;
    SmallVector<AffineMap> maps;
    SmallVector<Value> ins, outs;
    unsigned loops = op.getNumLoops() + 1;
    auto shifted = [&](AffineMap map, int64_t splitAt) {
      SmallVector<AffineExpr> exprs;
      for (auto [k, expr] : llvm::enumerate(map.getResults())) {
        if ((int64_t)k == splitAt)
          exprs.push_back(builder.getAffineDimExpr(0));
        exprs.push_back(expr.shiftDims(map.getNumDims(), 1));
      }
      return AffineMap::get(loops, 0, exprs, context);
    };
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(input);
      int64_t at = positionOf(map, split.loop);
      unsigned index = cast<BlockArgument>(input->get()).getArgNumber();
      ins.push_back(parts.getArgument(llvm::find(arguments, PartArgument{index, at}) -
                                      arguments.begin()));
      maps.push_back(shifted(map, at));
    }
    SmallVector<AffineExpr> outExprs{builder.getAffineDimExpr(0)};
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel)
        outExprs.push_back(builder.getAffineDimExpr(loop + 1));
    for (Value init : op.getDpsInits()) {
      auto fill = init.getDefiningOp<linalg::FillOp>();
      Type element = cast<RankedTensorType>(init.getType()).getElementType();
      IRMapping outside;
      Value identityValue = builder.clone(*fill.getInputs()[0].getDefiningOp(), outside)
                                ->getResult(0);
      Value empty = tensor::EmptyOp::create(builder, op.getLoc(), space, element);
      outs.push_back(
          linalg::FillOp::create(builder, op.getLoc(), identityValue, empty).getResult(0));
      maps.push_back(AffineMap::get(loops, 0, outExprs, context));
    }
    SmallVector<utils::IteratorType> kinds{utils::IteratorType::parallel};
    llvm::append_range(kinds, op.getIteratorTypesArray());
    auto copy = linalg::GenericOp::create(builder, op.getLoc(), ValueRange(outs).getTypes(), ins,
                                          outs, maps, kinds);
    IRMapping map;
    // Constants that the body takes from the kernel.
    op.getRegion().walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!op.getRegion().isAncestor(operand.getParentRegion()) && !map.contains(operand))
          map.map(operand, builder.clone(*operand.getDefiningOp())->getResult(0));
    });
    copy->moveAfter(&parts.getBody().front().back());
    op.getRegion().cloneInto(&copy.getRegion(), map);
    builder.setInsertionPointToEnd(&parts.getBody().front());
    llvm::append_range(results, copy.getResults());
  }
  func::ReturnOp::create(builder, kernel.getLoc(), results);
}

void Splitter::mergeInKernel() {
  // Each reduction reads its parts instead, from a new argument.
  OpBuilder::InsertionGuard guard(builder);
  MLIRContext *context = builder.getContext();
  unsigned result = 0;
  for (const Split &split : splits) {
    linalg::GenericOp op = split.op;
    builder.setInsertionPoint(op);
    // Loops: the parallel ones, then the parts.
    llvm::SmallDenseMap<unsigned, unsigned> position;
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::parallel)
        position.insert({loop, position.size()});
    unsigned loops = position.size() + 1;
    SmallVector<AffineExpr> read{builder.getAffineDimExpr(loops - 1)};
    for (unsigned i = 0; i + 1 < loops; ++i)
      read.push_back(builder.getAffineDimExpr(i));
    SmallVector<AffineMap> maps;
    SmallVector<Value> ins;
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      (void)kernel.insertArgument(kernel.getNumArguments(), parts.getResultTypes()[result++],
                                  DictionaryAttr(), op.getLoc());
      ins.push_back(kernel.getArguments().back());
      maps.push_back(AffineMap::get(loops, 0, read, context));
    }
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(i));
      SmallVector<AffineExpr> exprs;
      for (AffineExpr expr : map.getResults()) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        exprs.push_back(dim ? builder.getAffineDimExpr(position.at(dim.getPosition())) : expr);
      }
      maps.push_back(AffineMap::get(loops, 0, exprs, context));
    }
    SmallVector<utils::IteratorType> kinds(loops - 1, utils::IteratorType::parallel);
    kinds.push_back(utils::IteratorType::reduction);
    auto merge = linalg::GenericOp::create(
        builder, op.getLoc(), op.getResultTypes(), ins, op.getDpsInits(), maps, kinds,
        [&](OpBuilder &inner, Location loc, ValueRange values) {
          SmallVector<Value> yields;
          unsigned count = op.getNumResults();
          for (unsigned i = 0; i < count; ++i) {
            Operation *combiner = combinerOf(op, i);
            Value accumulator = op.getRegion().front().getArgument(op.getNumDpsInputs() + i);
            IRMapping map;
            for (Value operand : combiner->getOperands())
              map.map(operand, operand == accumulator ? values[count + i] : values[i]);
            yields.push_back(inner.clone(*combiner, map)->getResult(0));
          }
          linalg::YieldOp::create(inner, loc, yields);
        });
    op->replaceAllUsesWith(merge);
    op->erase();
  }
}

void Splitter::rewrite(ArrayRef<LaunchOp> launches) {
  unsigned old = kernel.getNumArguments() - parts.getNumResults();
  llvm::BitVector unused(kernel.getNumArguments());
  for (unsigned i = 0; i < old; ++i)
    unused[i] = kernel.getArgument(i).use_empty();
  for (LaunchOp launch : launches) {
    OpBuilder at(launch);
    SmallVector<Value> operands;
    SmallVector<Attribute> views;
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      auto [index, dim] = argument;
      auto view = cast<ViewAttr>(launch.getViews()[index]);
      int64_t rest = dim < 0 ? 0
                             : cast<RankedTensorType>(parts.getArgumentTypes()[i])
                                   .getDimSize(dim + 1);
      int64_t stride = dim < 0 ? 0 : view.getStrides()[dim];
      operands.push_back(launch.getInputs()[index]);
      views.push_back(ViewAttr::get(at.getContext(), view.getOffset(),
                                    splitEntry(view.getStrides(), dim, stride * rest, stride)));
    }
    auto first = LaunchOp::create(at, launch.getLoc(), parts.getResultTypes(), parts.getSymName(),
                                  operands, at.getArrayAttr(views), launch.getNodes());
    operands.clear();
    views.clear();
    for (unsigned i = 0; i < old; ++i) {
      if (unused[i])
        continue;
      operands.push_back(launch.getInputs()[i]);
      views.push_back(launch.getViews()[i]);
    }
    for (Value part : first.getResults()) {
      operands.push_back(part);
      views.push_back(ViewAttr::get(
          at.getContext(), 0,
          contiguousStrides(cast<RankedTensorType>(part.getType()).getShape())));
    }
    auto second = LaunchOp::create(at, launch.getLoc(), launch.getResultTypes(),
                                   launch.getKernel(), operands, at.getArrayAttr(views),
                                   launch.getNodes());
    launch.replaceAllUsesWith(second);
    launch.erase();
  }
  (void)kernel.eraseArguments(unused);
}

namespace {
struct SplitReductions : ::nova::impl::SplitReductionsBase<SplitReductions> {
  using SplitReductionsBase::SplitReductionsBase;

  void runOnOperation() override {
    const target::Device *gpu = target::findGpu(device);
    if (!gpu) {
      getOperation().emitError("no GPU '") << device << "' to split reductions for; known: " << target::gpuNames();
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> kernels;
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (isKernel(kernel) && !kernel.isExternal())
        kernels.push_back(kernel);
    for (func::FuncOp kernel : kernels) {
      // Reductions with equal parts and loops share a kernel.
      llvm::MapVector<std::pair<int64_t, ArrayAttr>, SmallVector<Split>> groups;
      Builder builder(&getContext());
      for (auto op : kernel.getBody().front().getOps<linalg::GenericOp>())
        if (std::optional<Split> split = splitOf(op, *gpu, precision))
          groups[{split->parts, builder.getI64ArrayAttr(split->outer)}].push_back(*split);
      unsigned number = 0;
      for (auto &[key, splits] : groups) {
        std::string name = (kernel.getSymName() + ".parts" + Twine(number++)).str();
        SmallVector<LaunchOp> current;
        getOperation().walk([&](LaunchOp launch) {
          if (launch.getKernel() == kernel.getSymName())
            current.push_back(launch);
        });
        Splitter(kernel, splits, name).run(current);
        numSplit += splits.size();
      }
    }
  }
};
} // namespace
