//===- DescribeTiles.cpp - What the GPU's configurator is told -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DescribeTiles.h"

#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/ReductionBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

static config::AxisSet axisSet(ArrayRef<AxisId> list) {
  config::AxisSet set;
  for (AxisId axis : list)
    if (axis != kNoAxis && !llvm::is_contained(set, (unsigned)axis))
      set.push_back(axis);
  return set;
}

static config::AxisSet loopAxes(linalg::GenericOp op, const Axes &axes, bool reducedOnly = false) {
  AxisList list;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (!reducedOnly || kind == utils::IteratorType::reduction)
      list.push_back(axes.ofLoop(op, loop));
  return axisSet(list);
}

/// Is this factor of a product an argument's element as it stands, that the
/// product alone reads?
static bool isOnlyInMemory(Value factor) {
  while (Operation *cast = factor.getDefiningOp()) {
    if (!isa<arith::ExtFOp>(cast))
      return false;
    factor = cast->getOperand(0);
  }
  auto element = dyn_cast<BlockArgument>(factor);
  auto op = element ? dyn_cast<linalg::GenericOp>(element.getOwner()->getParentOp()) : linalg::GenericOp();
  if (!op)
    return false;
  auto argument = dyn_cast<BlockArgument>(op.getMatchingOpOperand(element)->get());
  return argument && argument.hasOneUse();
}

/// The argument that a factor of a product is an element of as it stands, and whether
/// the argument's neighbours in memory lie along one of the axes `depth`.
static std::pair<int64_t, bool> tensorOf(Value factor, const Axes &axes, const config::AxisSet &depth) {
  auto element = dyn_cast<BlockArgument>(factor);
  auto op = element ? dyn_cast<linalg::GenericOp>(element.getOwner()->getParentOp()) : linalg::GenericOp();
  OpOperand *operand = op ? op.getMatchingOpOperand(element) : nullptr;
  auto argument = operand ? dyn_cast<BlockArgument>(operand->get()) : BlockArgument();
  if (!argument)
    return {-1, true};
  auto kernel = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  AxisList dims = axes.ofOperand(*operand);
  bool inner = false;
  for (auto [dim, stride] : llvm::zip(dims, argumentStrides(kernel, argument.getArgNumber())))
    inner |= stride == 1 && dim != kNoAxis && llvm::is_contained(depth, (unsigned)dim);
  return {argument.getArgNumber(), inner};
}

static std::optional<config::ContractionDesc> contraction(linalg::GenericOp op, const Axes &axes,
                                                          StringRef precision) {
  auto parts = accumulations(op);
  if (failed(parts) || parts->size() != 1)
    return std::nullopt;
  auto product = factors((*parts)[0]);
  if (!product)
    return std::nullopt;
  auto [left, right] = *product;
  AxisList a = axesOf(left, op, axes), b = axesOf(right, op, axes);
  AxisList out = axes.ofValue(op->getResult(0));
  auto ofOneSide = [&](const AxisList &list, const AxisList &other) {
    AxisList found;
    for (AxisId axis : list)
      if (!llvm::is_contained(other, axis))
        found.push_back(axis);
    return axisSet(found);
  };
  config::ContractionDesc desc;
  desc.m = ofOneSide(a, b), desc.n = ofOneSide(b, a);
  for (AxisId axis : a)
    if (llvm::is_contained(b, axis))
      (llvm::is_contained(out, axis) ? desc.batch : desc.k).push_back(axis);
  if (desc.m.empty() || desc.n.empty() || desc.k.empty())
    return std::nullopt;
  desc.leftInMemory = isOnlyInMemory(left), desc.rightInMemory = isOnlyInMemory(right);
  std::tie(desc.leftTensor, desc.leftDepthInner) = tensorOf(left, axes, desc.k);
  std::tie(desc.rightTensor, desc.rightDepthInner) = tensorOf(right, axes, desc.k);
  // Rows are what the result has first.
  auto place = [&](const config::AxisSet &set) { return llvm::find(out, (AxisId)set.back()) - out.begin(); };
  if (place(desc.n) < place(desc.m)) {
    std::swap(desc.m, desc.n);
    std::swap(desc.leftInMemory, desc.rightInMemory);
    std::swap(desc.leftTensor, desc.rightTensor);
    std::swap(desc.leftDepthInner, desc.rightDepthInner);
  }
  Type element = left.getType();
  desc.elementBytes = elementBytes(element);
  if (element.isBF16() || element.isF16() || (element.isF32() && precision == "bf16"))
    desc.unit = config::ProductUnit::Half;
  else if (element.isF32() && precision == "tf32")
    desc.unit = config::ProductUnit::Tf32;
  return desc;
}

//===----------------------------------------------------------------------===//
// Registers, arithmetic, memory
//===----------------------------------------------------------------------===//

/// Slots of the lanes that an operation takes, about: functions are expanded
/// (src/Math). Not the exponential that a product rounds (nova-fold-exponents): its
/// unit has an eighth of the lanes (CUDA C++ Programming Guide, "Throughput of Native
/// Arithmetic Instructions").
static int64_t instructions(Operation &op, bool isRounded) {
  if (isa<arith::ConstantOp, linalg::IndexOp, linalg::YieldOp>(op))
    return 0;
  if (isa<math::SqrtOp, math::AbsFOp, math::FmaOp>(op))
    return 1;
  if (isRounded && isa<math::ExpOp>(op) && op.getResult(0).getType().isF32())
    return 8;
  if (op.getDialect()->getNamespace() == "math")
    return 16;
  return isa<arith::DivFOp, arith::RemFOp>(op) ? 8 : 1;
}

namespace {
/// Numbers the operations of a body that compute, and collects who lives when.
class Lives {
public:
  Lives(func::FuncOp kernel, const Axes &axes, config::TileProblem &problem)
      : kernel(kernel), axes(axes), problem(problem) {}

  void run() {
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (!isa<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp>(op))
        numbers.insert({&op, numbers.size()});
    for (auto [op, number] : numbers)
      for (Value result : op->getResults())
        if (isa<RankedTensorType>(result.getType()))
          addResult(op, result);
    for (BlockArgument argument : kernel.getArguments())
      addArgument(argument);
    for (Value result : kernel.getBody().front().getTerminator()->getOperands())
      problem.memory.push_back({axisSet(axes.ofValue(result)), elementBytes(getElementTypeOrSelf(result)),
                                bytesOf(result), true});
  }

private:
  static int64_t bytesOf(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getNumElements() * elementBytes(type.getElementType());
  }

  int64_t lastUse(Value value, int64_t from) const {
    for (Operation *user : value.getUsers())
      if (auto it = numbers.find(user); it != numbers.end())
        from = std::max(from, it->second);
    return from;
  }

  void addResult(Operation *op, Value result) {
    config::ValueDesc value;
    value.axes = axisSet(axes.ofValue(result));
    value.elementBytes = elementBytes(getElementTypeOrSelf(result));
    value.first = numbers.lookup(op);
    value.last = lastUse(result, value.first);
    if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && generic.getNumReductionLoops()) {
      value.reduced = loopAxes(generic, axes, /*reducedOnly=*/true);
      value.isProduct = llvm::is_contained(products, op);
      value.whole = true;
    } else {
      value.whole = !generic;
    }
    problem.values.push_back(std::move(value));
  }

  /// Axes of what a row's sum reads; each update is read once, by one of the rows.
  config::AxisSet segmentAxes(SegmentSumOp sum, OpOperand &use) const {
    AxisList dims = axes.ofValue(sum.getResult()), along;
    if (&use == &sum.getInitMutable())
      return axisSet(dims);
    if (&use != &sum.getUpdatesMutable())
      return {};
    for (unsigned k = 0; k < positionRank(sum); ++k)
      along.push_back(axes.ofLoop(sum, k));
    along.append(dims.begin() + sum.getRows(), dims.end());
    return axisSet(along);
  }

  /// What products alone read comes through rings; all else is loaded where it is
  /// first needed. Readers along other axes read something else.
  void addArgument(BlockArgument argument) {
    struct Reading {
      config::AxisSet along;
      int64_t first, last, most;
    };
    SmallVector<Reading> readings;
    int64_t width = elementBytes(getElementTypeOrSelf(argument));
    for (OpOperand &use : argument.getUses()) {
      Operation *user = kernel.getBody().front().findAncestorOpInBlock(*use.getOwner());
      auto generic = dyn_cast<linalg::GenericOp>(user);
      config::AxisSet along;
      if (generic && user == use.getOwner())
        along = axisSet(axes.ofOperand(use));
      else if (generic) // data says which elements: one for each point
        along = loopAxes(generic, axes);
      else if (auto sum = dyn_cast<SegmentSumOp>(user))
        along = segmentAxes(sum, use);
      int64_t points = 1;
      for (unsigned axis : along)
        points *= axes[axis].extent;
      int64_t number = numbers.lookup(user);
      auto same = llvm::find_if(readings, [&](const Reading &other) { return other.along == along; });
      if (same == readings.end())
        readings.push_back({along, number, number, std::min(points * width, bytesOf(argument))});
      else
        same->first = std::min(same->first, number), same->last = std::max(same->last, number);
    }
    bool operand = llvm::all_of(argument.getUsers(), [&](Operation *user) { return llvm::is_contained(products, user); });
    bool ring = operand && argument.hasOneUse();
    for (const Reading &reading : readings) {
      problem.memory.push_back({reading.along, width, reading.most, false});
      if (!ring)
        problem.values.push_back({reading.along, width, reading.first, reading.last, {}, false, false, operand});
    }
  }

  func::FuncOp kernel;
  const Axes &axes;
  config::TileProblem &problem;
  llvm::MapVector<Operation *, int64_t> numbers;

public:
  SmallVector<Operation *> products;
};
} // namespace

/// Bytes of memory in which each axis has each rank among the strides.
static std::vector<unsigned> innermost(func::FuncOp kernel, const Axes &axes) {
  std::vector<double> weight(axes.size(), 0);
  auto account = [&](AxisList dims, ArrayRef<int64_t> strides, int64_t elements) {
    // An axis next to memory gets the most, the next outwards half of it.
    SmallVector<unsigned> order;
    for (unsigned d = 0; d < dims.size(); ++d)
      if (dims[d] != kNoAxis && strides[d] != 0)
        order.push_back(d);
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return strides[a] < strides[b]; });
    double share = double(elements);
    for (unsigned d : order) {
      weight[dims[d]] += share;
      share /= 2;
    }
  };
  auto elementsOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); };
  kernel.walk([&](linalg::GenericOp op) {
    for (OpOperand *operand : op.getDpsInputOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand->get()))
        account(axes.ofOperand(*operand), argumentStrides(kernel, argument.getArgNumber()), elementsOf(argument));
  });
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    account(axes.ofValue(result), contiguousStrides(cast<RankedTensorType>(result.getType()).getShape()),
            elementsOf(result));
  std::vector<unsigned> order;
  for (unsigned i = 0; i < axes.size(); ++i)
    order.push_back(i);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return weight[a] > weight[b]; });
  return order;
}

config::TileProblem nova::describeTiles(func::FuncOp kernel, const Axes &axes, StringRef precision) {
  config::TileProblem problem;
  // What has no tile of its own is shown as having nothing to divide.
  for (AxisId id = 0; id < (AxisId)axes.size(); ++id) {
    bool single = axes[id].single && !axes[id].local();
    bool free = (!axes[id].single || single) && axes[id].partOf == kNoAxis;
    problem.axes.push_back(
        {free ? axes[id].extent : 1, axes[id].local(), axes[id].reduced, axes[id].scanned, false, single, {}});
  }
  kernel.walk([&](IndexPutOp op) {
    AxisList dims = axes.ofValue(op.getResult());
    for (AxisId axis : ArrayRef<AxisId>(dims).take_front(op.getIndices().size()))
      if (axis != kNoAxis)
        problem.axes[axis].selected = true;
  });
  Lives lives(kernel, axes, problem);
  llvm::SetVector<Operation *> rounded; // what products of tensor cores are made of
  kernel.walk([&](linalg::GenericOp op) {
    if (auto desc = contraction(op, axes, precision)) {
      problem.contractions.push_back(*desc);
      lives.products.push_back(op);
      if (desc->unit != config::ProductUnit::Fma)
        rounded.insert(op);
    }
  });
  for (size_t i = 0; i < rounded.size(); ++i)
    for (Value operand : rounded[i]->getOperands())
      if (auto producer = operand.getDefiningOp<linalg::GenericOp>();
          producer && !llvm::is_contained(lives.products, producer) && !producer.getNumReductionLoops())
        rounded.insert(producer);
  kernel.walk([&](linalg::GenericOp op) {
    if (llvm::is_contained(lives.products, op))
      return;
    config::WorkDesc work{loopAxes(op, axes), 0};
    for (Operation &inner : op.getBody()->getOperations())
      work.operations += instructions(inner, rounded.contains(op));
    problem.work.push_back(std::move(work));
  });
  lives.run();
  problem.innermost = innermost(kernel, axes);
  return problem;
}

void nova::describeMembers(config::TileProblem &problem, unsigned axis, ArrayRef<int64_t> extents) {
  config::AxisDesc &along = problem.axes[axis];
  along.members.assign(extents.begin(), extents.end());
  int64_t total = std::accumulate(extents.begin(), extents.end(), int64_t{0});
  for (config::MemoryDesc &memory : problem.memory)
    if (llvm::is_contained(memory.axes, axis))
      memory.bytes = memory.bytes / along.extent * total;
}
