//===- Passes.h - From kernels on tensors to tile programs -----*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILING_PASSES_H
#define NOVA_TILING_PASSES_H

#include "mlir/Pass/Pass.h"

namespace nova {

#define GEN_PASS_DECL
#include "nova/Tiling/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nova/Tiling/Passes.h.inc"

} // namespace nova

#endif // NOVA_TILING_PASSES_H
