//===- Pipeline.cpp - From tile programs to the NVVM dialect ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Math/ExpandMath.h"
#include "nova/TileLowering/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void nova::buildTiled(OpPassManager &manager) {
  // Must run before layouts: what is folded or guarded needs none.
  manager.addNestedPass<func::FuncOp>(createFoldExponents());
  manager.addNestedPass<func::FuncOp>(createGuardSelections());
  manager.addNestedPass<func::FuncOp>(createOrderPoints());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createSinkTiles());
  manager.addNestedPass<func::FuncOp>(createAssignTileLayouts());
  // Copies of constants and ranges that nobody converted are one again.
  manager.addPass(createCSEPass());
}

void nova::buildPipelined(OpPassManager &manager) {
  // Must run after layouts: it is the conversions before products that they remove.
  manager.addNestedPass<func::FuncOp>(createPersistTiles());
  manager.addNestedPass<func::FuncOp>(createSpecializeTiles());
  manager.addNestedPass<func::FuncOp>(createOverlapProducts());
  // What is left to the warps that compute.
  manager.addNestedPass<func::FuncOp>(createPipelineTiles());
  manager.addPass(createCSEPass());
}

void nova::buildThreads(OpPassManager &manager) {
  manager.addPass(createLowerTilesToThreads());
  manager.addPass(createCSEPass());
  // Must run before anything that folds math on constants with the libm here.
  manager.addPass(createExpandMath());
  manager.addPass(createDivideByInstruction());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createConvertNVVMToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void nova::buildTileLowering(OpPassManager &manager) {
  buildTiled(manager);
  buildPipelined(manager);
  buildThreads(manager);
}
