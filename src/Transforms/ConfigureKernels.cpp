//===- ConfigureKernels.cpp - Choose each kernel's tile --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DescribeTiles.h"
#include "KernelAnalysis.h"

#include "nova/Target/Target.h"
#include "nova/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

namespace nova {
#define GEN_PASS_DEF_CONFIGUREKERNELS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

/// Writes nova.tile, nova.local_tile and the reason.
static LogicalResult configureForTiles(func::FuncOp kernel) {
  auto axes = tiling::Axes::analyse(kernel);
  if (failed(axes))
    return failure();
  Builder builder(kernel.getContext());
  config::TileSchedule schedule = config::configureTiles(describeTiles(kernel, *axes));
  SmallVector<int64_t> space(kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).size(), 1), local;
  for (auto [id, tile] : llvm::enumerate(schedule.tile)) {
    if ((*axes)[id].local())
      local.push_back(tile);
    else
      space[(*axes)[id].space] = tile;
  }
  kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr(space));
  kernel->setAttr(attr::localTile, builder.getDenseI64ArrayAttr(local));
  kernel->setAttr(attr::reason, builder.getStringAttr(schedule.reason));
  return success();
}

namespace {
struct ConfigureKernels : ::nova::impl::ConfigureKernelsBase<ConfigureKernels> {
  using ConfigureKernelsBase::ConfigureKernelsBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    config::HostDevice host;
    const target::Device *gpu = target::findTarget(device);
    if (gpu && gpu->kind == target::DeviceKind::Gpu) {
      for (auto kernel : getOperation().getOps<func::FuncOp>())
        if (isKernel(kernel) && !kernel.isExternal() && failed(configureForTiles(kernel)))
          return signalPassFailure();
      return;
    }
    if (device != host.name) {
      getOperation().emitError("no device '") << device << "' to configure kernels for; known: " << host.name;
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!isKernel(kernel) || kernel.isExternal())
        continue;
      config::Schedule schedule = config::configureHost(describeKernel(kernel), host);
      kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr(schedule.tile));
      kernel->setAttr(attr::predictedNs, builder.getI64IntegerAttr((int64_t)(schedule.seconds * 1e9)));
      kernel->setAttr(attr::reason, builder.getStringAttr(schedule.reason));
    }
  }
};
} // namespace
