//===- ConfigureKernels.cpp - Choose each kernel's tile --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DescribeTiles.h"
#include "KernelAnalysis.h"

#include "nova/Target/Target.h"
#include "nova/Transforms/Candidates.h"
#include "nova/Transforms/KernelGroups.h"
#include "nova/Transforms/Passes.h"

#include "mlir/IR/Builders.h"

namespace nova {
#define GEN_PASS_DEF_CONFIGUREKERNELS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

/// What the configurator is told of a kernel with collapsed axes, and these; of a
/// group, its largest member's.
static FailureOr<std::pair<config::TileProblem, tiling::Axes>> describe(func::FuncOp kernel, StringRef precision) {
  OwningOpRef<func::FuncOp> largest;
  func::FuncOp one = kernel;
  if (groupOf(kernel)) {
    largest = memberOf(kernel, largestMember(kernel));
    one = *largest;
  }
  auto axes = tiling::Axes::analyse(one);
  if (failed(axes))
    return failure();
  config::TileProblem problem = describeTiles(one, *axes, precision);
  if (!largest)
    return std::pair(std::move(problem), std::move(*axes));
  SmallVector<int64_t> extents;
  for (ArrayRef<int64_t> space : memberSpaces(kernel))
    extents.push_back(space.front());
  for (auto id = 0; id < (tiling::AxisId)axes->size(); ++id)
    if ((*axes)[id].space == 0)
      describeMembers(problem, id, extents);
  return std::pair(std::move(problem), std::move(*axes));
}

/// Tiles of which nova-lower-kernels-to-tiles makes a program.
/// Tiles are those of the kernel with its axes collapsed, which that pass does to
/// it: here the kernel keeps its type, which its launches know.
static LogicalResult configureForTiles(func::FuncOp kernel, const target::Device &gpu, StringRef precision) {
  if (failed(tiling::Axes::analyse(kernel)))
    return failure();
  OwningOpRef<func::FuncOp> collapsed = kernel.clone();
  auto dims = tiling::collapseAxes(*collapsed);
  auto described = describe(*collapsed, precision);
  if (failed(described))
    return failure();
  auto &[problem, axes] = *described;
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
  config::TileChoice choice = config::configureTiles(problem, gpu);
  const size_t rank = memberSpaces(*collapsed).front().size();
  SmallVector<Attribute> candidates, dropped;
  for (const config::TileSchedule &schedule : choice.candidates) {
    SmallVector<int64_t> space(rank, 1), local;
    for (auto [id, tile] : llvm::enumerate(schedule.tile))
      if (!axes[id].local())
        space[axes[id].space] = tile;
    for (tiling::AxisId id : axes.localAxes())
      local.push_back(schedule.tile[id]);
    candidates.push_back(builder.getDictionaryAttr({
        builder.getNamedAttr(attr::tile, builder.getDenseI64ArrayAttr(space)),
        builder.getNamedAttr(attr::localTile, builder.getDenseI64ArrayAttr(local)),
        builder.getNamedAttr(attr::warps, builder.getI64IntegerAttr(schedule.warps)),
        builder.getNamedAttr(attr::stages, builder.getI64IntegerAttr(schedule.stages)),
        builder.getNamedAttr(attr::residentBlocks, builder.getI64IntegerAttr(schedule.residentBlocks)),
        builder.getNamedAttr(attr::persistentBlocks, builder.getI64IntegerAttr(schedule.persistentBlocks)),
        builder.getNamedAttr(attr::teams, builder.getI64IntegerAttr(schedule.teams)),
        builder.getNamedAttr(attr::rasterRows, builder.getI64IntegerAttr(schedule.rasterRows)),
        builder.getNamedAttr(attr::family, builder.getStringAttr(config::familyName(schedule.family))),
        builder.getNamedAttr(attr::predictedNs, builder.getI64IntegerAttr(schedule.predictedNs)),
        builder.getNamedAttr(attr::reason, builder.getStringAttr(schedule.reason)),
    }));
  }
  for (const std::string &why : choice.dropped)
    dropped.push_back(builder.getStringAttr(why));
  kernel->setAttr(attr::candidates, builder.getArrayAttr(candidates));
  kernel->setAttr(attr::dropped, builder.getArrayAttr(dropped));
  takeCandidate(kernel, cast<DictionaryAttr>(candidates.front()));
  return success();
}

namespace {
struct ConfigureKernels : ::nova::impl::ConfigureKernelsBase<ConfigureKernels> {
  using ConfigureKernelsBase::ConfigureKernelsBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    config::HostDevice host;
    const target::Device *gpu = target::findGpu(device);
    if (device != host.name && !gpu) {
      getOperation().emitError("no device '")
          << device << "' to configure kernels for; known: " << host.name << " " << target::gpuNames();
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!isKernel(kernel) || kernel.isExternal())
        continue;
      if (gpu) {
        if (failed(configureForTiles(kernel, *gpu, precision)))
          return signalPassFailure();
        continue;
      }
      config::Schedule schedule = config::configureHost(describeKernel(kernel), host);
      kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr(schedule.tile));
      kernel->setAttr(attr::predictedNs, builder.getI64IntegerAttr((int64_t)(schedule.seconds * 1e9)));
      kernel->setAttr(attr::reason, builder.getStringAttr(schedule.reason));
    }
  }
};
} // namespace
