//===- LowerTilesToThreads.cpp - Tile programs to kernels ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace nova {
#define GEN_PASS_DEF_LOWERTILESTOTHREADS
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

namespace {
struct LowerTilesToThreads : ::nova::impl::LowerTilesToThreadsBase<LowerTilesToThreads> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(tile::attr::warps))
        programs.push_back(function);
    for (func::FuncOp program : programs) {
      int64_t warps = program->getAttrOfType<IntegerAttr>(tile::attr::warps).getInt();
      if (failed(tile::ThreadEmitter(program, warps).run()))
        return signalPassFailure();
      program.erase();
    }
  }
};
} // namespace
