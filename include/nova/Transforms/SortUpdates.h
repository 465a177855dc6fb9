//===- SortUpdates.h - Updates sorted by their rows ------------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_SORTUPDATES_H
#define NOVA_TRANSFORMS_SORTUPDATES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace nova {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "nova/Transforms/SortUpdates.h.inc"
} // namespace nova

#endif // NOVA_TRANSFORMS_SORTUPDATES_H
