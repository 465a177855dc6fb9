//===- LowerKernelsToTiles.cpp - Kernels on tensors to tile programs -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

#include "nova/IR/Nova.h"
#include "nova/Tiling/Passes.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

namespace nova {
#define GEN_PASS_DEF_LOWERKERNELSTOTILES
#include "nova/Tiling/Passes.h.inc"
} // namespace nova

/// What a block of this many warps computes is chosen with the tiles.
static constexpr int64_t kDefaultWarps = 4;

/// The function on memory, empty but for its entry block.
static func::FuncOp makeProgram(OpBuilder &builder, func::FuncOp kernel) {
  SmallVector<Type> inputs;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    MemRefLayoutAttrInterface layout;
    if (auto strides = kernel.getArgAttrOfType<DenseI64ArrayAttr>(i, attr::strides))
      layout = StridedLayoutAttr::get(builder.getContext(), 0, strides.asArrayRef());
    inputs.push_back(MemRefType::get(tensor.getShape(), tensor.getElementType(), layout));
  }
  for (Type type : kernel.getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    inputs.push_back(MemRefType::get(tensor.getShape(), tensor.getElementType()));
  }
  auto program = func::FuncOp::create(builder, kernel.getLoc(), kernel.getSymName(),
                                      builder.getFunctionType(inputs, {}));
  program.setVisibility(kernel.getVisibility());
  StringRef consumed[] = {attr::tile, attr::localTile, attr::space, attr::warps, attr::stages, attr::candidates,
                          attr::dropped, attr::group};
  for (NamedAttribute attribute : kernel->getDiscardableAttrs())
    if (!llvm::is_contained(consumed, attribute.getName().getValue()))
      program->setAttr(attribute.getName(), attribute.getValue());
  program.addEntryBlock();
  if (auto pairs = kernel->getAttrOfType<ArrayAttr>(attr::inplace))
    for (auto pair : pairs.getAsRange<DenseI64ArrayAttr>())
      program.setArgAttr(pair[0], tile::attr::overwritten, builder.getUnitAttr());
  return program;
}

static LogicalResult lowerKernel(func::FuncOp kernel, tile::Precision precision) {
  if (kernel->removeAttr(kCollapsedAttr))
    collapseAxes(kernel);
  // The program of a group is that of its largest member, with other memory.
  OwningOpRef<func::FuncOp> largest;
  func::FuncOp one = kernel;
  std::optional<Members> members;
  if (auto group = groupOf(kernel)) {
    largest = memberOf(kernel, largestMember(kernel));
    one = *largest;
    members = Members{*group, {}};
  }
  auto axes = Axes::analyse(one);
  if (failed(axes) || failed(axes->readTiles(one)))
    return failure();
  if (members) {
    int64_t points = 0;
    for (int64_t size : memberGridSizes(kernel)) {
      members->starts.push_back(points);
      points += size;
    }
    for (AxisId id = 0; id < (AxisId)axes->size(); ++id)
      if (Axis &axis = (*axes)[id]; axis.space == 0)
        for (ArrayRef<int64_t> space : memberSpaces(kernel))
          axis.uneven |= space.front() % axis.tile != 0;
  }
  OpBuilder builder(kernel);
  func::FuncOp program = makeProgram(builder, kernel);
  program->setAttr(tile::attr::grid, builder.getI64IntegerAttr(gridSize(kernel)));
  auto warps = kernel->getAttrOfType<IntegerAttr>(attr::warps);
  program->setAttr(tile::attr::warps, builder.getI64IntegerAttr(warps ? warps.getInt() : kDefaultWarps));
  if (auto stages = kernel->getAttrOfType<IntegerAttr>(attr::stages))
    program->setAttr(tile::attr::stages, builder.getI64IntegerAttr(stages.getInt()));
  if (failed(Emitter(one, *axes, program, precision, std::move(members)).run())) {
    program.erase();
    return failure();
  }
  kernel.erase();
  // Masks, splats and broadcasts are emitted wherever they are needed.
  IRRewriter rewriter(builder.getContext());
  DominanceInfo dominance(program);
  eliminateCommonSubExpressions(rewriter, dominance, program);
  return success();
}

namespace {
struct LowerKernelsToTiles : ::nova::impl::LowerKernelsToTilesBase<LowerKernelsToTiles> {
  using LowerKernelsToTilesBase::LowerKernelsToTilesBase;

  void runOnOperation() override {
    auto precisionKind = tile::symbolizePrecision(precision);
    if (!precisionKind) {
      getOperation().emitError("precision '") << precision << "', expected f32, tf32 or bf16";
      return signalPassFailure();
    }
    bool ok = true;
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (kernel->hasAttr(attr::kernel) && !kernel.isExternal() && !kernel->hasAttr(tile::attr::grid))
        ok &= succeeded(lowerKernel(kernel, *precisionKind));
    if (!ok)
      signalPassFailure();
  }
};
} // namespace
