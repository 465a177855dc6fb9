//===- Passes.h - Host code generation passes -------------------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_HOSTCODEGEN_PASSES_H
#define NOVA_HOSTCODEGEN_PASSES_H

#include "mlir/Pass/Pass.h"

namespace nova {

#define GEN_PASS_DECL
#include "nova/HostCodegen/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nova/HostCodegen/Passes.h.inc"

} // namespace nova

#endif // NOVA_HOSTCODEGEN_PASSES_H
