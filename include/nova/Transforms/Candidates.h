//===- Candidates.h - The schedules that a kernel may take -----*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that is configured for a GPU has the attribute `nova.candidates`, an
// array of dictionaries, best first. Each holds attributes of the kernel under
// their own names (nova.tile, nova.local_tile, nova.warps, nova.stages,
// nova.family, nova.predicted_ns, nova.reason): to take a candidate is to set
// them. `nova-configure-kernels` has taken the first.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_CANDIDATES_H
#define NOVA_TRANSFORMS_CANDIDATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <string>

namespace nova {

/// Empty for a kernel that has none: it stays as it is.
llvm::SmallVector<mlir::DictionaryAttr> candidatesOf(mlir::func::FuncOp kernel);

void takeCandidate(mlir::func::FuncOp kernel, mlir::DictionaryAttr candidate);

/// They differ in the depth of rings only.
bool sameShape(mlir::DictionaryAttr a, mlir::DictionaryAttr b);

/// "tile [64, 64], inside [32], 4 warps, 3 stages".
std::string describeCandidate(mlir::DictionaryAttr candidate);

} // namespace nova

#endif // NOVA_TRANSFORMS_CANDIDATES_H
