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

namespace {
struct ConfigureKernels : ::nova::impl::ConfigureKernelsBase<ConfigureKernels> {
  using ConfigureKernelsBase::ConfigureKernelsBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    config::HostDevice host;
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
