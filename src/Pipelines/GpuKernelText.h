//===- GpuKernelText.h - A compiled GPU kernel as bytes, and back ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_PIPELINES_GPUKERNELTEXT_H
#define NOVA_LIB_PIPELINES_GPUKERNELTEXT_H

#include "nova/GpuCodegen/KernelCompiler.h"

#include <optional>
#include <string>
#include <vector>

namespace nova {

/// PTX, machine code, and the rest as JSON.
std::vector<std::string> writeGpuKernel(const GpuKernelCode &code);
/// nullopt for what writeGpuKernel() did not write. `candidates`: how many
/// schedules the kernel has.
std::optional<GpuKernelCode> readGpuKernel(std::vector<std::string> parts,
                                           size_t candidates);

} // namespace nova

#endif // NOVA_LIB_PIPELINES_GPUKERNELTEXT_H
