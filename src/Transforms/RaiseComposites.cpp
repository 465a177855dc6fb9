//===- RaiseComposites.cpp - Composites from what producers leave
//----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Raise.h"

#include "nova/IR/Nova.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace nova {
#define GEN_PASS_DEF_RAISECOMPOSITES
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;

namespace {
struct RaiseComposites : nova::impl::RaiseCompositesBase<RaiseComposites> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    nova::populateRaiseLossPatterns(set);
    nova::populateRaiseShapePatterns(set);
    patterns = std::move(set);
    return success();
  }
  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    // Every pattern removes something or moves towards higher ranks, of which
    // there are finitely many: no limit on rounds, and so no failure.
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    (void)applyPatternsGreedily(getOperation(), patterns, config);
  }
  FrozenRewritePatternSet patterns;
};
} // namespace
