//===- KernelStore.h - Kernels that were compiled before -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_PIPELINES_KERNELSTORE_H
#define NOVA_PIPELINES_KERNELSTORE_H

#include "nova/Support/Hash.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>
#include <vector>

namespace nova {

/// Where the back ends look before they compile a kernel, and leave what they made.
/// The back end says in the key what the kernel is and for what device; who
/// implements this adds what it was made with (compiler, assembler). Called from
/// several threads.
class KernelStore {
public:
  virtual ~KernelStore() = default;
  /// What was put under the key; nothing if there is none.
  virtual std::optional<std::vector<std::string>> find(KeyBuilder key) = 0;
  virtual void put(KeyBuilder key, const std::vector<std::string> &parts) = 0;
};

/// The sections "kernel", the kernel as text without locations, and "code".
KeyBuilder kernelKey(mlir::func::FuncOp kernel, const char *code);

} // namespace nova

#endif // NOVA_PIPELINES_KERNELSTORE_H
