//===- LowerKernel.cpp - Kernel functions to code of one thread -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/KernelCompiler.h"

using namespace mlir;

namespace nova {

Expected<GpuKernelModule> lowerKernelToNvvm(func::FuncOp kernel,
                                            const target::Device &device,
                                            const GpuLoweringOptions &) {
  return Error{ErrorCode::Missing,
               "kernel '" + kernel.getSymName().str() + "' for " +
                   std::string(device.name) +
                   ": this build has no lowering of kernels to GPU code",
               "compile for --target host"};
}

} // namespace nova
