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

/// The row of that name, which is a device's and no architecture's.
static const target::Device *findGpu(StringRef name) {
  for (const target::Device &device : target::devices())
    if (device.kind == target::DeviceKind::Gpu && StringRef(device.name) == name)
      return &device;
  return nullptr;
}

/// Replaces the tile by one of which nova-lower-kernels-to-tiles makes a program.
/// Tiles are those of the kernel with its axes collapsed, which that pass does to
/// it: here the kernel keeps its type, which its launches know.
static LogicalResult configureForTiles(func::FuncOp kernel, const target::Device &gpu) {
  if (failed(tiling::Axes::analyse(kernel)))
    return failure();
  OwningOpRef<func::FuncOp> collapsed = kernel.clone();
  auto dims = tiling::collapseAxes(*collapsed);
  auto axes = tiling::Axes::analyse(*collapsed);
  if (failed(axes))
    return failure();
  Builder builder(kernel.getContext());
  if (dims) {
    kernel->setAttr(tiling::kCollapsedAttr, builder.getUnitAttr());
    kernel->setAttr(attr::space, (*collapsed)->getAttr(attr::space));
    for (auto [r, parts] : llvm::enumerate(*dims)) {
      auto map = collapsed->getResultAttrOfType<DenseI64ArrayAttr>(r, attr::map);
      SmallVector<int64_t> whole;
      for (unsigned dim : parts)
        whole.push_back(map[dim]);
      kernel.setResultAttr(r, attr::map, builder.getDenseI64ArrayAttr(whole));
    }
  }
  config::TileProblem problem = describeTiles(*collapsed, *axes);
  problem.multiprocessors = gpu.smCount;
  config::TileSchedule schedule = config::configureTiles(problem);
  SmallVector<int64_t> space(kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).size(), 1), local;
  for (auto [id, tile] : llvm::enumerate(schedule.tile))
    if (!(*axes)[id].local())
      space[(*axes)[id].space] = tile;
  for (tiling::AxisId id : axes->localAxes())
    local.push_back(schedule.tile[id]);
  kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr(space));
  kernel->setAttr(attr::localTile, builder.getDenseI64ArrayAttr(local));
  kernel->setAttr(attr::warps, builder.getI64IntegerAttr(schedule.warps));
  kernel->setAttr(attr::reason, builder.getStringAttr(schedule.reason));
  return success();
}

namespace {
struct ConfigureKernels : ::nova::impl::ConfigureKernelsBase<ConfigureKernels> {
  using ConfigureKernelsBase::ConfigureKernelsBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    config::HostDevice host;
    const target::Device *gpu = findGpu(device);
    if (device != host.name && !gpu) {
      std::string known = host.name;
      for (const target::Device &row : target::devices())
        if (row.kind == target::DeviceKind::Gpu)
          known.append(" ").append(row.name);
      getOperation().emitError("no device '") << device << "' to configure kernels for; known: " << known;
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!isKernel(kernel) || kernel.isExternal())
        continue;
      config::KernelDesc desc = describeKernel(kernel);
      config::Schedule schedule = gpu ? config::configureGpu(desc, *gpu) : config::configureHost(desc, host);
      kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr(schedule.tile));
      kernel->setAttr(attr::predictedNs, builder.getI64IntegerAttr((int64_t)(schedule.seconds * 1e9)));
      kernel->setAttr(attr::reason, builder.getStringAttr(schedule.reason));
      if (gpu && failed(configureForTiles(kernel, *gpu)))
        return signalPassFailure();
    }
  }
};
} // namespace
