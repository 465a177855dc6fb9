//===- CollectDiagnostics.h - What passes of one thread say, as text ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_IR_COLLECTDIAGNOSTICS_H
#define NOVA_IR_COLLECTDIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <thread>

namespace nova {

/// While it lives, collects the diagnostics that are emitted in this thread;
/// those of other threads pass on to their own handlers. Kernels are compiled
/// in threads that share a context: each has a collector of its own.
class CollectDiagnostics {
public:
  explicit CollectDiagnostics(mlir::MLIRContext *context)
      : handler(context, [this, self = std::this_thread::get_id()](
                             mlir::Diagnostic &diagnostic) {
          if (std::this_thread::get_id() != self)
            return mlir::failure();
          add(diagnostic);
          return mlir::success();
        }) {}

  /// One diagnostic per line, its notes below it; empty when none was emitted.
  std::string take() { return std::move(text); }

private:
  void add(mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(text);
    if (!text.empty())
      os << "\n";
    if (!mlir::isa<mlir::UnknownLoc>(diagnostic.getLocation()))
      os << diagnostic.getLocation() << ": ";
    os << diagnostic;
    for (mlir::Diagnostic &note : diagnostic.getNotes()) {
      std::string words = note.str();
      // The whole kernel, which nobody reads in an error.
      if (!llvm::StringRef(words).starts_with("see current operation"))
        os << "\n  note: " << note.getLocation() << ": " << words;
    }
  }

  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace nova

#endif // NOVA_IR_COLLECTDIAGNOSTICS_H
