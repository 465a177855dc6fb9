//===- NovaInterpreter.h - Kernels of nova operations, the obvious way
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference for what the passes do to kernels: op by op on whole tensors,
// in double precision, from the definitions in nova/IR/NovaOps.td. Results of
// 16-bit operations are rounded to their type.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_TRANSFORMS_NOVAINTERPRETER_H
#define NOVA_TESTS_TRANSFORMS_NOVAINTERPRETER_H

#include "../HostCodegen/Interpreter.h"

namespace nova::test {

/// The results of `kernel` on `arguments`. Aborts on an op it does not know.
std::vector<Tensor> interpretNova(mlir::func::FuncOp kernel,
                                  const std::vector<Tensor> &arguments);

/// `value` in `type`'s precision.
double roundTo(double value, mlir::Type type);

} // namespace nova::test

#endif // NOVA_TESTS_TRANSFORMS_NOVAINTERPRETER_H
