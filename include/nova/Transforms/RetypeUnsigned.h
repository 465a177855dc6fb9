//===- RetypeUnsigned.h - What nova-retype-unsigned leaves -----*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_RETYPEUNSIGNED_H
#define NOVA_TRANSFORMS_RETYPEUNSIGNED_H

#include "llvm/ADT/StringRef.h"

namespace nova::attr {
/// Unit, on arguments and results of the step from the stage `fused` on: the
/// integers of the type are unsigned ones.
inline constexpr llvm::StringLiteral isUnsigned = "nova.unsigned";
} // namespace nova::attr

#endif // NOVA_TRANSFORMS_RETYPEUNSIGNED_H
