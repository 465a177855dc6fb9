//===- LowerKernelsToLoops.cpp - Kernel functions to loops over memory
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LoopEmitter.h"

#include "nova/HostCodegen/Passes.h"
#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace nova {
#define GEN_PASS_DEF_LOWERKERNELSTOLOOPS
#include "nova/HostCodegen/Passes.h.inc"

namespace {
using namespace nova::host;

class KernelLowering {
public:
  KernelLowering(const KernelModel &model, int64_t scratchLimit)
      : model(model), scratchLimit(scratchLimit), kernel(this->model.func) {}
  LogicalResult lower();

private:
  func::FuncOp makeBody(OpBuilder &builder);
  LogicalResult emitPoint(LoopEmitter &e, Value point);

  KernelModel model;
  int64_t scratchLimit;
  func::FuncOp kernel;
};

/// The function on flat memory, empty but for its entry block.
func::FuncOp KernelLowering::makeBody(OpBuilder &builder) {
  SmallVector<Type> inputs;
  auto memory = [&](RankedTensorType type, ArrayRef<int64_t> strides) {
    Type element = type.getElementType();
    if (element.isInteger(1))
      element = builder.getI8Type();
    inputs.push_back(
        MemRefType::get({spannedElements(type.getShape(), strides)}, element));
  };
  for (BlockArgument argument : kernel.getArguments())
    memory(cast<RankedTensorType>(argument.getType()),
           model.plan(argument).strides);
  for (auto [type, strides] :
       llvm::zip_equal(kernel.getResultTypes(), model.resultStrides))
    memory(cast<RankedTensorType>(type), strides);
  inputs.append(2, builder.getIndexType());
  auto body = func::FuncOp::create(builder, kernel.getLoc(),
                                   (kernel.getSymName() + ".body").str(),
                                   builder.getFunctionType(inputs, {}));
  body.setPrivate();
  unsigned numArguments = kernel.getNumArguments();
  auto mark = [&](unsigned i, bool aliases) {
    if (!aliases)
      body.setArgAttr(i, "llvm.noalias", builder.getUnitAttr());
    if (i < numArguments && !aliases)
      body.setArgAttr(i, "llvm.readonly", builder.getUnitAttr());
  };
  for (auto [i, aliases] : llvm::enumerate(model.argumentAliases))
    mark(i, aliases);
  for (auto [r, aliases] : llvm::enumerate(model.resultAliases))
    mark(numArguments + r, aliases);
  body.addEntryBlock();
  return body;
}

/// All work of one grid point.
LogicalResult KernelLowering::emitPoint(LoopEmitter &e, Value point) {
  // Row-major: the last space dimension runs fastest.
  size_t rank = model.space.size();
  e.starts.assign(rank, Value());
  e.sizes.assign(rank, OpFoldResult());
  e.tileIndex.assign(rank, Value());
  Value rest = point;
  for (size_t s = rank; s-- > 0;) {
    int64_t tiles = model.tiles(s);
    Value index = e.index(0);
    if (tiles > 1) {
      bool last = true; // Does any dimension before this one have tiles?
      for (size_t before = 0; before < s; ++before)
        last &= model.tiles(before) <= 1;
      index = last
                  ? rest
                  : arith::RemUIOp::create(e, rest, e.index(tiles)).getResult();
      if (!last)
        rest = arith::DivUIOp::create(e, rest, e.index(tiles));
    }
    e.tileIndex[s] = index;
    e.starts[s] = e.mulIndex(index, model.tile[s]);
    if (model.space[s] % model.tile[s] == 0) {
      e.sizes[s] = e.getIndexAttr(model.tile[s]);
    } else {
      Value left =
          arith::SubIOp::create(e, e.index(model.space[s]), e.starts[s]);
      e.sizes[s] = e.minIndex(left, e.index(model.tile[s]));
    }
  }
  for (Operation *op : model.work) {
    e.setLoc(op->getLoc());
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (failed(emitGeneric(e, generic)))
        return failure();
    } else if (isa<tensor::ConcatOp>(op)) {
      emitConcat(e, op);
    } else if (isa<CumsumOp>(op)) {
      emitCumsum(e, op);
    } else if (isa<ScatterOp>(op)) {
      emitScatter(e, op);
    } else {
      emitIndexPut(e, op);
    }
  }
  e.setLoc(kernel.getLoc());
  for (const ResultCopy &copy : model.copies)
    emitResultCopy(e, copy);
  return success();
}

LogicalResult KernelLowering::lower() {
  OpBuilder builder(kernel);
  func::FuncOp body = makeBody(builder);
  Block &entry = body.front();
  builder.setInsertionPointToEnd(&entry);
  func::ReturnOp::create(builder, kernel.getLoc());
  builder.setInsertionPoint(entry.getTerminator());

  LoopEmitter e(model, builder, kernel.getLoc());
  e.entry = &entry;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    e.arguments.push_back(entry.getArgument(i));
  for (unsigned r = 0; r < kernel.getNumResults(); ++r)
    e.results.push_back(entry.getArgument(kernel.getNumArguments() + r));
  for (const ScratchSlot &slot : model.slots)
    e.slots.push_back(
        e.stackBuffer(e.memoryType(slot.elementType), slot.elements));

  Value first = entry.getArgument(entry.getNumArguments() - 2);
  Value last = entry.getArgument(entry.getNumArguments() - 1);
  LogicalResult lowered = success();
  e.loop(first, last, 1, [&](Value point) { lowered = emitPoint(e, point); });
  if (failed(lowered))
    return failure();
  if (e.stackBytes > scratchLimit)
    return kernel.emitError()
           << "kernel '" << kernel.getSymName() << "': values inside it take "
           << e.stackBytes << " bytes of stack per grid point, the limit is "
           << scratchLimit << "; smaller tiles (nova.tile) take less";
  kernel.erase();
  return success();
}

/// Folds what bodies compute from constants. Of the arith dialect only: its
/// folds are exact, while the math dialect's ask the libm of this machine.
void foldArithmetic(func::FuncOp kernel) {
  SmallVector<Operation *> candidates;
  kernel.walk([&](Operation *op) {
    if (isa<arith::ArithDialect>(op->getDialect()) &&
        !op->hasTrait<OpTrait::ConstantLike>())
      candidates.push_back(op);
  });
  OpBuilder builder(kernel.getContext());
  for (Operation *op : candidates) {
    SmallVector<Value> folded;
    builder.setInsertionPoint(op);
    if (failed(builder.tryFold(op, folded)) || folded.empty())
      continue;
    op->replaceAllUsesWith(folded);
    op->erase();
  }
}

struct LowerKernelsToLoops
    : impl::LowerKernelsToLoopsBase<LowerKernelsToLoops> {
  using LowerKernelsToLoopsBase::LowerKernelsToLoopsBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr(attr::kernel))
        kernels.push_back(func);
    for (func::FuncOp kernel : kernels) {
      foldArithmetic(kernel);
      FailureOr<KernelModel> model = modelKernel(kernel);
      if (failed(model) || failed(KernelLowering(*model, scratchLimit).lower()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace nova
