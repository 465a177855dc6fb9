//===- NovaKernelOps.h - Operations that only kernels have -----*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_IR_NOVAKERNELOPS_H
#define NOVA_IR_NOVAKERNELOPS_H

#include "nova/IR/Nova.h"

#define GET_OP_CLASSES
#include "nova/IR/NovaKernelOps.h.inc"

#endif // NOVA_IR_NOVAKERNELOPS_H
