//===- Reproducer.h - What is left of an internal error -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_REPRODUCER_H
#define NOVA_LIB_DRIVER_REPRODUCER_H

#include <string>
#include <string_view>

namespace mlir {
class PassManager;
} // namespace mlir

namespace nova::driver {

/// When a pass of `manager` fails or crashes, writes the module as it was
/// before and the pipeline to a temporary file (for nova-opt --run-reproducer)
/// and puts its path into `path`, which must outlive the run.
void reproduceFailuresOf(mlir::PassManager &manager, std::string &path);

/// Writes `text` to a new temporary file and returns its path, or, where that
/// cannot be done, the reason.
std::string writeReproducer(std::string_view text);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_REPRODUCER_H
