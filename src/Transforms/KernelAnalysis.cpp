//===- KernelAnalysis.cpp - What a lowered kernel reads, writes and costs --===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelAnalysis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace nova;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static func::ReturnOp returnOf(func::FuncOp kernel) {
  return cast<func::ReturnOp>(kernel.getBody().front().getTerminator());
}

SmallVector<int64_t> nova::loopBinding(linalg::GenericOp op, const KernelBindings &bindings) {
  SmallVector<int64_t> loops(op.getNumLoops(), -1);
  for (auto [result, init] : llvm::zip_equal(op.getResults(), op.getDpsInitsMutable())) {
    auto it = bindings.find(result);
    if (it == bindings.end())
      continue;
    for (auto [expr, space] : llvm::zip_equal(op.getMatchingIndexingMap(&init).getResults(), it->second))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && space >= 0)
        loops[dim.getPosition()] = space;
  }
  return loops;
}

KernelBindings nova::bindKernel(func::FuncOp kernel) {
  KernelBindings bindings;
  for (auto [index, value] : llvm::enumerate(returnOf(kernel).getOperands())) {
    auto map = kernel.getResultAttrOfType<DenseI64ArrayAttr>(index, attr::map);
    if (!map)
      continue;
    bindings.try_emplace(value, map.asArrayRef().begin(), map.asArrayRef().end());
  }
  for (Operation &op : llvm::reverse(kernel.getBody().front())) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic) {
      // Concatenations, scans and scatters: operands lie as the result does,
      // where they have its rank.
      auto it = op.getNumResults() ? bindings.find(op.getResult(0)) : bindings.end();
      if (it == bindings.end())
        continue;
      SmallVector<int64_t> binding = it->second;
      for (Value operand : op.getOperands())
        if (isa<RankedTensorType>(operand.getType()) && typeOf(operand).getRank() == (int64_t)binding.size())
          bindings.try_emplace(operand, binding);
      continue;
    }
    SmallVector<int64_t> loops = loopBinding(generic, bindings);
    for (OpOperand &operand : generic->getOpOperands()) {
      SmallVector<int64_t> binding;
      for (AffineExpr expr : generic.getMatchingIndexingMap(&operand).getResults()) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        binding.push_back(dim ? loops[dim.getPosition()] : -1);
      }
      bindings.try_emplace(operand.get(), binding);
    }
    for (auto [result, init] : llvm::zip_equal(generic.getResults(), generic.getDpsInits()))
      bindings.try_emplace(result, bindings.lookup(init));
  }
  return bindings;
}

int64_t nova::kernelFlops(func::FuncOp kernel) {
  int64_t total = 0;
  kernel.walk([&](linalg::GenericOp op) {
    int64_t volume = 1, operations = 0;
    for (int64_t extent : op.getStaticLoopRanges())
      volume *= extent;
    for (Operation &inner : op.getBody()->without_terminator())
      operations += !isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, linalg::IndexOp, tensor::ExtractOp>(inner);
    total += volume * operations;
  });
  return total;
}

int64_t nova::kernelBytes(func::FuncOp kernel) {
  int64_t total = 0;
  for (auto [index, argument] : llvm::enumerate(kernel.getArguments())) {
    int64_t elements = 1;
    for (auto [size, stride] : llvm::zip_equal(typeOf(argument).getShape(), argumentStrides(kernel, index)))
      elements *= stride == 0 && size > 1 ? 1 : size;
    total += elements * elementBytes(typeOf(argument).getElementType());
  }
  for (Type type : kernel.getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    total += tensor.getNumElements() * elementBytes(tensor.getElementType());
  }
  return total;
}

config::KernelDesc nova::describeKernel(func::FuncOp kernel) {
  config::KernelDesc desc;
  ArrayRef<int64_t> space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  desc.space.assign(space.begin(), space.end());
  desc.flops = kernelFlops(kernel);
  desc.bytes = kernelBytes(kernel);
  KernelBindings bindings = bindKernel(kernel);
  auto returned = returnOf(kernel).getOperands();

  for (Operation &op : kernel.getBody().front()) {
    if (op.hasTrait<OpTrait::IsTerminator>() || isa<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp>(op))
      continue;
    for (Value value : op.getResults()) {
      auto it = bindings.find(value);
      if (it == bindings.end())
        continue;
      config::ScratchValue scratch{elementBytes(typeOf(value).getElementType()), {}};
      int64_t local = 1;
      for (auto [size, dim] : llvm::zip_equal(typeOf(value).getShape(), it->second))
        if (dim < 0)
          local *= size;
        else
          scratch.dims.push_back(dim);
      desc.localElements = std::max(desc.localElements, local);
      scratch.bytes *= local;
      if (!llvm::is_contained(returned, value))
        desc.scratch.push_back(scratch);
    }
  }
  if (desc.localElements > 1)
    desc.kind = config::KernelClass::Rows;

  // A product whose rows and columns are the last two space dimensions.
  kernel.walk([&](linalg::GenericOp op) {
    if (!linalg::isaContractionOpInterface(op) || space.size() < 2)
      return;
    SmallVector<int64_t> loops = loopBinding(op, bindings);
    bool rows = llvm::is_contained(loops, (int64_t)space.size() - 2);
    bool columns = llvm::is_contained(loops, (int64_t)space.size() - 1);
    if (!rows || !columns || desc.localElements > 1)
      return;
    desc.kind = config::KernelClass::Contraction;
    desc.depth = 1;
    for (auto [extent, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction)
        desc.depth *= extent;
  });
  return desc;
}

SmallVector<std::pair<unsigned, unsigned>> nova::inplaceCandidates(func::FuncOp kernel) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  KernelBindings bindings = bindKernel(kernel);
  auto returned = returnOf(kernel).getOperands();
  for (auto [r, result] : llvm::enumerate(returned)) {
    auto writer = result.getDefiningOp<linalg::GenericOp>();
    if (!writer || writer.getNumReductionLoops() != 0)
      continue;
    OpOperand *init = writer.getTiedOpOperand(cast<OpResult>(result));
    AffineMap written = writer.getMatchingIndexingMap(init);
    // Somebody reads the result back inside: it could meet the argument there.
    bool readBack = llvm::any_of(result.getUses(), [](OpOperand &use) {
      return !isa<func::ReturnOp>(use.getOwner());
    });
    if (readBack)
      continue;
    for (BlockArgument argument : kernel.getArguments()) {
      unsigned a = argument.getArgNumber();
      if (argument.getType() != result.getType() ||
          kernel.getArgAttrOfType<DenseI64ArrayAttr>(a, attr::strides))
        continue;
      bool safe = true;
      for (OpOperand &use : argument.getUses()) {
        auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
        if (!reader || !reader.isDpsInput(&use) || reader->getBlock() != writer->getBlock()) {
          safe = false;
          break;
        }
        AffineMap read = reader.getMatchingIndexingMap(&use);
        if (reader == writer) {
          safe &= read == written;
          continue;
        }
        // An earlier reader sees its own tile, and all of the local dimensions.
        SmallVector<int64_t> loops = loopBinding(reader, bindings);
        safe &= reader->isBeforeInBlock(writer);
        for (auto [expr, bound] : llvm::zip_equal(read.getResults(), bindings.lookup(result))) {
          auto dim = dyn_cast<AffineDimExpr>(expr);
          safe &= (dim ? loops[dim.getPosition()] : -1) == bound;
        }
      }
      // A tensor.extract inside a body reads anywhere.
      if (safe)
        pairs.push_back({a, (unsigned)r});
    }
  }
  return pairs;
}
