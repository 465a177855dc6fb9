//===- ConfigureKernels.cpp - Choose each kernel's tile --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelAnalysis.h"

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
    }
  }
};
} // namespace
