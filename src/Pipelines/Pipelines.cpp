//===- Pipelines.cpp - The whole order of passes, on one page -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Pipelines/Pipelines.h"

#include "nova/GpuCodegen/PtxEmitter.h"
#include "nova/Target/Target.h"
#include "nova/Transforms/Passes.h"
#include "nova/Transforms/SortUpdates.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <array>

using namespace mlir;
using namespace nova;

static constexpr std::array kStages = {
    StageInfo{Stage::Graph, "graph",
              "the step as imported, in nova operations"},
    StageInfo{Stage::Simplified, "simplified",
              "constants evaluated, composites recognised"},
    StageInfo{Stage::Fused, "fused",
              "one function per kernel, launches between them"},
    StageInfo{Stage::Configured, "configured", "a schedule on every kernel"},
    StageInfo{Stage::Plan, "plan", "launch list, dependences, arena offsets"},
    StageInfo{Stage::Tiled, "tiled", "loops over tiles with layouts (GPU)"},
    StageInfo{Stage::Pipelined, "pipelined",
              "async copies in flight, warps specialised (GPU)"},
    StageInfo{Stage::Nvvm, "nvvm", "per-thread code (GPU)"},
    StageInfo{Stage::Ptx, "ptx", "PTX text (GPU)"},
    StageInfo{Stage::Cubin, "cubin", "machine code (GPU)"},
};

std::span<const StageInfo> nova::stages() { return kStages; }

std::string_view nova::stageName(Stage stage) {
  return kStages[static_cast<size_t>(stage)].name;
}

std::optional<Stage> nova::stageFromName(std::string_view name) {
  for (const StageInfo &info : kStages)
    if (info.name == name)
      return info.stage;
  return std::nullopt;
}

static void cleanUp(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

static void buildSimplified(OpPassManager &manager, const PipelineOptions &options) {
  // Must run before anything evaluates or matches: producers leave chains of
  // detach, view and equal subexpressions, which no pattern should have to see.
  cleanUp(manager);
  // Must run before raising: a mask that is proven causal leaves its attention,
  // and labels or positions become constants that losses are recognised by.
  manager.addNestedPass<func::FuncOp>(createEvaluateConstants());
  if (!options.noRaising)
    manager.addNestedPass<func::FuncOp>(createRaiseComposites());
  cleanUp(manager);
}

static void buildFused(OpPassManager &manager, const PipelineOptions &options) {
  // Must run after raising, which recognises composites whole: what is split
  // here is what no later pass needs to see whole.
  manager.addNestedPass<func::FuncOp>(createDecomposeComposites());
  // Must run after the last pass that computes with constants by their type, and
  // before kernels form: arithmetic there has no signs.
  manager.addNestedPass<func::FuncOp>(createRetypeUnsigned());
  cleanUp(manager);
  // Must run after the last pattern that adds or moves a view, and before
  // kernels form: their arguments are strided views.
  manager.addNestedPass<func::FuncOp>(createAssignLayouts());
  cleanUp(manager);
  // Must run directly before kernels form: CSE would undo what it repeats.
  if (!options.noFusion)
    manager.addNestedPass<func::FuncOp>(createRematerializeValues());
  FormKernelsOptions form;
  form.noFusion = options.noFusion;
  manager.addPass(createFormKernels(form));
  manager.addNestedPass<func::FuncOp>(createLowerKernelsToLinalg());
  // Must run after lowering: a name is the digest of the body as it stays, and
  // kernels that only now are equal become one.
  manager.addPass(createNameKernels());
}

void nova::buildStage(OpPassManager &manager, const PipelineOptions &options,
                      Stage stage) {
  switch (stage) {
  case Stage::Simplified:
    return buildSimplified(manager, options);
  case Stage::Fused:
    return buildFused(manager, options);
  case Stage::Configured: {
    // Must run before tiles are chosen: what is split or grouped are kernels with
    // tiles of their own. New kernels and changed ones are named by what they are now.
    if (const target::Device *device = target::findTarget(options.device);
        device && device->kind == target::DeviceKind::Gpu) {
      manager.addNestedPass<func::FuncOp>(createBindResults());
      SplitReductionsOptions split;
      split.device = device->name;
      split.precision = options.precision;
      manager.addPass(createSplitReductions(split));
      manager.addPass(createSortUpdates());
      // Must run after reductions are split: the second halves are small and alike.
      if (!options.noFusion) {
        GroupKernelsOptions group;
        group.device = device->name;
        if (const PtxTarget *ptx = findPtxTarget(device->arch))
          group.parameterBytes = parameterBytesOfPtx(ptx->ptxVersion);
        manager.addPass(createGroupKernels(group));
      }
      manager.addPass(createNameKernels());
    }
    ConfigureKernelsOptions configure;
    configure.device = options.device;
    configure.precision = options.precision;
    return manager.addPass(createConfigureKernels(configure));
  }
  case Stage::Plan:
    // Must run after configuration: merge kernels and scratch arguments that a
    // schedule asks for are launches and buffers too.
    return manager.addPass(createPlanMemory());
  case Stage::Graph:
  case Stage::Tiled:
  case Stage::Pipelined:
  case Stage::Nvvm:
  case Stage::Ptx:
  case Stage::Cubin:
    return;
  }
}

void nova::buildPipeline(OpPassManager &manager, const PipelineOptions &options,
                         Stage stopAfter) {
  for (const StageInfo &info : kStages)
    if (info.stage <= stopAfter)
      buildStage(manager, options, info.stage);
}
