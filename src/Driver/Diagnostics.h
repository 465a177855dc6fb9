//===- Diagnostics.h - MLIR diagnostics, collected for people -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_DIAGNOSTICS_H
#define NOVA_LIB_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <mutex>
#include <string>
#include <vector>

namespace nova::driver {

/// "node 'addmm_3'", "step.mlir:4:9", or the empty string.
std::string describeLocation(mlir::Location location);

/// Collects what is emitted in a context while it lives.
class Diagnostics {
public:
  struct Entry {
    std::string where; ///< describeLocation().
    std::string message;
    std::vector<std::string> notes;
    /// "node 'x': message".
    std::string text() const;
  };

  explicit Diagnostics(mlir::MLIRContext *context);

  const std::vector<Entry> &errors() const { return errorList; }

  /// From now on keeps the remarks of passes too.
  void keepRemarks(mlir::MLIRContext &context);
  /// "PASS: node 'x': message", in the order of the passes; those of one pass
  /// sorted, as passes run on several functions at once.
  std::vector<std::string> remarks() const;

  /// Prints all errors, "error: ..." each, notes below.
  void printErrors() const;

private:
  void add(mlir::Diagnostic &diagnostic);

  struct Remark {
    std::string pass, text;
  };
  class RemarkCollector;

  std::vector<Entry> errorList;
  mutable std::mutex remarkMutex;
  std::vector<Remark> remarkList;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_DIAGNOSTICS_H
