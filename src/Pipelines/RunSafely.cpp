//===- RunSafely.cpp - A back end that crashes ends one kernel only -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RunSafely.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <mutex>

/// Where this thread's fatal error goes while a body runs.
static thread_local std::string *fatalText = nullptr;

static void onFatalError(void *, const char *reason, bool) {
  if (!fatalText) {
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return; // LLVM ends the process.
  }
  *fatalText = reason;
  std::abort(); // Comes back below, on this thread.
}

bool nova::runSafely(llvm::function_ref<void()> body, std::string &why) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(onFatalError);
  });
  why.clear();
  fatalText = &why;
  llvm::CrashRecoveryContext recovery;
  bool good = recovery.RunSafely(body);
  fatalText = nullptr;
  return good;
}
