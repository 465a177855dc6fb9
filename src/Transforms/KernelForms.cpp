//===- KernelForms.cpp - How one operation lies in a kernel ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What each class of operations asks of the kernel it is in: shape, local
// dimensions, and which operands may be other members' values. A new operation
// of the dialect that is not elementwise gets its case here.
//
//===----------------------------------------------------------------------===//
#include "KernelClusters.h"

#include "nova/IR/StridedView.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nova;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}
static SmallVector<int64_t> withoutUnits(ArrayRef<int64_t> shape) {
  return llvm::to_vector(llvm::make_filter_range(shape, [](int64_t d) { return d != 1; }));
}
/// Dimension i runs along S's dimension i; unit dimensions along none.
static Binding identityBinding(ArrayRef<int64_t> shape) {
  Binding binding;
  for (auto [i, size] : llvm::enumerate(shape))
    binding.push_back(size == 1 ? -1 : (int64_t)i);
  return binding;
}

SmallVector<unsigned> Cluster::spaceDims() const {
  SmallVector<unsigned> dims;
  for (unsigned i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && !local.test(i))
      dims.push_back(i);
  return dims;
}

bool Cluster::isRowWise() const {
  SmallVector<unsigned> space = spaceDims();
  if (space.empty())
    return false;
  for (unsigned i = 0; i < space.back(); ++i)
    if (local.test(i) && shape[i] != 1)
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Views inside kernels
//===----------------------------------------------------------------------===//

bool KernelClusters::isDuplicated(Operation *op) {
  if (isa_and_nonnull<IotaOp>(op))
    return true;
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

bool KernelClusters::isInnerView(Operation *op) {
  if (isa_and_nonnull<BroadcastOp>(op))
    return true;
  auto reshape = dyn_cast_or_null<ReshapeOp>(op);
  return reshape && withoutUnits(shapeOf(reshape.getInput())) == withoutUnits(shapeOf(reshape.getResult()));
}

Value KernelClusters::throughInnerViews(Value value) {
  while (isInnerView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

Value nova::sourceOf(Operation *op, Value operand) {
  if (isa<CopyOp>(op))
    if (auto transpose = operand.getDefiningOp<TransposeOp>())
      operand = transpose.getInput();
  return KernelClusters::throughInnerViews(operand);
}

Binding nova::viewBinding(Value view, Value source, ArrayRef<int64_t> binding) {
  if (view == source)
    return Binding(binding);
  Operation *op = view.getDefiningOp();
  Binding inner = viewBinding(op->getOperand(0), source, binding);
  ArrayRef<int64_t> to = shapeOf(view), from = shapeOf(op->getOperand(0));
  Binding result(to.size(), -1);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (auto [i, p] : llvm::enumerate(transpose.getPermutation()))
      result[i] = inner[p];
  } else if (isa<BroadcastOp>(op)) {
    for (size_t i = 0; i < from.size(); ++i)
      result[to.size() - from.size() + i] = inner[i];
  } else {
    size_t next = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 1)
        continue;
      while (to[next] == 1)
        ++next;
      result[next++] = inner[i];
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// One operation by itself
//===----------------------------------------------------------------------===//

KernelClusters::Solo KernelClusters::alone(Operation *op) const {
  Solo solo;
  Cluster &c = solo.cluster;
  ArrayRef<int64_t> result = shapeOf(op->getResult(0));
  solo.operands.resize(op->getNumOperands());
  auto setShape = [&](ArrayRef<int64_t> shape, ArrayRef<int64_t> localDims) {
    c.shape.assign(shape.begin(), shape.end());
    c.local.resize(shape.size());
    for (int64_t d : localDims)
      c.local.set(d);
  };
  auto reduction = [&](ArrayRef<int64_t> dims, bool keep) {
    ArrayRef<int64_t> input = shapeOf(op->getOperand(0));
    setShape(input, dims);
    solo.operands[0] = identityBinding(input);
    Binding binding;
    for (int64_t i = 0; i < (int64_t)input.size(); ++i)
      if (!llvm::is_contained(dims, i))
        binding.push_back(input[i] == 1 ? -1 : i);
      else if (keep)
        binding.push_back(-1);
    solo.results.assign(op->getNumResults(), binding);
    c.role = c.isRowWise() ? "rowwise" : "columnwise";
  };
  /// Every operand from memory; results run along the first result's shape.
  auto fromMemory = [&](Cluster::Kind kind, ArrayRef<int64_t> localDims) {
    setShape(result, localDims);
    c.kind = kind;
    c.role = op->getName().stripDialect().str();
    for (Value value : op->getResults()) {
      Binding binding = identityBinding(shapeOf(value));
      for (size_t i = 0; i < binding.size(); ++i)
        if (i >= result.size() || shapeOf(value)[i] != result[i])
          binding[i] = -1;
      solo.results.push_back(binding);
    }
  };
  auto alongResult = [&](Cluster::Kind kind, StringRef role) {
    fromMemory(kind, {});
    c.role = role.str();
  };

  llvm::TypeSwitch<Operation *>(op)
      .Case<SumOp, MaxOp, MinOp>([&](auto o) { reduction(o.getDims(), o.getKeepdims()); })
      .Case<ArgMaxOp, ArgMinOp>([&](auto o) { reduction({(int64_t)o.getDim()}, o.getKeepdims()); })
      .Case([&](CumsumOp o) {
        reduction({(int64_t)o.getDim()}, true);
        solo.results[0] = identityBinding(result);
      })
      .Case<MatmulOp, LinearOp>([&](auto) { alongResult(Cluster::Kind::Epilogue, "matmul"); })
      .Case<AttentionOp, AttentionBackwardQueryOp, AttentionBackwardKeyValueOp>(
          [&](auto) { fromMemory(Cluster::Kind::Epilogue, {3}); })
      .Case([&](ConcatOp o) { fromMemory(Cluster::Kind::Sealed, {(int64_t)o.getDim()}); })
      .Case([&](ScatterOp o) { fromMemory(Cluster::Kind::Sealed, {(int64_t)o.getDim()}); })
      .Case([&](IndexPutOp o) {
        fromMemory(Cluster::Kind::Sealed,
                   llvm::to_vector(llvm::seq<int64_t>(0, o.getIndices().size())));
      })
      .Case([&](IndexOp) { alongResult(Cluster::Kind::Open, "gather"); })
      .Case([&](PadOp o) {
        // Numbers that the kernel makes itself have no memory to be read from:
        // they are put between the padding, whole.
        if (!isa_and_nonnull<IotaOp>(resolveView(o.getInput()).base.getDefiningOp()))
          return alongResult(Cluster::Kind::Open, "gather");
        SmallVector<int64_t> padded;
        for (int64_t d = 0; d < (int64_t)result.size(); ++d)
          if (o.getLow()[d] != 0 || o.getHigh()[d] != 0)
            padded.push_back(d);
        fromMemory(Cluster::Kind::Sealed, padded);
        c.role = "gather";
      })
      .Case([&](GatherOp) {
        alongResult(Cluster::Kind::Open, "gather");
        solo.operands[1] = identityBinding(result);
      })
      .Default([&](Operation *) {
        alongResult(Cluster::Kind::Open, result.empty() ? "scalar" : "pointwise");
        for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
          ArrayRef<int64_t> shape = shapeOf(operand);
          Binding binding = identityBinding(shape);
          for (int64_t &dim : binding)
            if (dim >= 0)
              dim += result.size() - shape.size();
          solo.operands[i] = binding;
        }
      });
  return solo;
}

//===----------------------------------------------------------------------===//
// What one cluster reads of another
//===----------------------------------------------------------------------===//

bool KernelClusters::isMadeOfMemory(Value value, unsigned writer) const {
  Operation *op = value.getDefiningOp();
  return op && op->hasTrait<nova::Pointwise>() && !isa<CopyOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           Value base = resolveView(operand).base;
           return clusterOf(base.getDefiningOp()) != (int)writer ||
                  (throughInnerViews(operand) == base && isMadeOfMemory(base, writer));
         });
}

bool KernelClusters::readsFromMemory(unsigned reader, unsigned writer) const {
  return llvm::any_of(clusters[reader].ops, [&](Operation *op) {
    Solo solo;
    return llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
      Value base = resolveView(operand.get()).base;
      if (clusterOf(base.getDefiningOp()) != (int)writer)
        return false;
      if (solo.operands.empty())
        solo = alone(op);
      if (solo.operands[operand.getOperandNumber()] && sourceOf(op, operand.get()) == base)
        return false;
      // One element, wherever it is, can be computed where it is needed.
      return !isa<GatherOp>(op) || throughInnerViews(operand.get()) != base || !isMadeOfMemory(base, writer);
    });
  });
}
