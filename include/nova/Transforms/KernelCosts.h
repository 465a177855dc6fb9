//===- KernelCosts.h - Work and traffic of a kernel ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_KERNELCOSTS_H
#define NOVA_TRANSFORMS_KERNELCOSTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace nova {

/// Arithmetic operations of one launch of a kernel lowered to linalg.
int64_t kernelFlops(mlir::func::FuncOp kernel);

/// Bytes of its arguments and results, each element once.
int64_t kernelBytes(mlir::func::FuncOp kernel);

} // namespace nova

#endif // NOVA_TRANSFORMS_KERNELCOSTS_H
