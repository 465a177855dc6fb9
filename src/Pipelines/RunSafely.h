//===- RunSafely.h - A back end that crashes ends one kernel only ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_PIPELINES_RUNSAFELY_H
#define NOVA_LIB_PIPELINES_RUNSAFELY_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace nova {

/// Runs `body`. False if it crashed or gave up with one of LLVM's fatal errors;
/// `why` is then that error's text, or empty.
bool runSafely(llvm::function_ref<void()> body, std::string &why);

} // namespace nova

#endif // NOVA_LIB_PIPELINES_RUNSAFELY_H
