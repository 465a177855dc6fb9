//===- KernelHarness.h - Kernel text, compiled, run and compared ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_HOSTCODEGEN_KERNELHARNESS_H
#define NOVA_TESTS_HOSTCODEGEN_KERNELHARNESS_H

#include "Interpreter.h"

#include "nova/HostCodegen/HostCodegen.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <memory>
#include <random>
#include <string>

namespace nova::test {

using KernelFunction = void (*)(void *const *, int64_t, int64_t);

/// A context with every dialect of kernels, shared by the tests.
mlir::MLIRContext &context();

/// Parses `text`; the test fails if it does not parse.
mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);

/// The first kernel function of a module.
mlir::func::FuncOp kernelOf(mlir::ModuleOp module);

/// `text` with every $NAME replaced.
std::string fill(std::string text,
                 const std::map<std::string, std::string> &values);

/// A shared object in memory, opened with dlopen.
class LoadedObject {
public:
  explicit LoadedObject(const std::string &bytes);
  ~LoadedObject();
  KernelFunction get(const std::string &symbol);

private:
  void *handle = nullptr;
};

struct CheckOptions {
  /// Random integers of argument i lie in [first, second].
  std::map<unsigned, std::pair<int64_t, int64_t>> range;
  /// Largest error relative to the largest result, beside as many ulp.
  double tolerance = 2e-6;
  unsigned seed = 1;
  /// Random floats are scaled by this.
  double scale = 1;
};

/// Compiles the kernel in `text`, runs it on random inputs with several cuts
/// of the grid (and in place where it may be), and compares with the
/// interpreter. Results must be the same bits for every cut, memory beside
/// them must stay untouched.
void checkKernel(const std::string &text, const CheckOptions &options = {});

/// The error of compiling the kernel in `text`.
std::string compileError(const std::string &text);

} // namespace nova::test

#endif // NOVA_TESTS_HOSTCODEGEN_KERNELHARNESS_H
