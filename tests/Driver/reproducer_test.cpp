//===- reproducer_test.cpp - What a failing pass leaves behind ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Diagnostics.h"
#include "Driver/Reproducer.h"
#include "nova/Support/File.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <csignal>

#include <unistd.h>

using namespace nova;
using namespace mlir;

namespace {
/// Changes the module, then fails in the way asked for.
struct Failing : PassWrapper<Failing, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Failing)
  explicit Failing(bool crash) : crash(crash) {}
  llvm::StringRef getArgument() const override { return "nova-failing"; }
  void runOnOperation() override {
    getOperation()->setAttr("changed", UnitAttr::get(&getContext()));
    if (crash)
      std::raise(SIGSEGV);
    getOperation().emitError("it does not work");
    signalPassFailure();
  }
  bool crash;
};

std::string reproduce(bool crash, std::string &errors) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  driver::Diagnostics diagnostics(&context);
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(NameLoc::get(StringAttr::get(&context, "step")));
  PassManager manager(&context, ModuleOp::getOperationName());
  manager.addPass(std::make_unique<Failing>(crash));
  std::string path;
  driver::reproduceFailuresOf(manager, path);
  EXPECT_TRUE(failed(manager.run(*module)));
  for (const driver::Diagnostics::Entry &entry : diagnostics.errors())
    errors += entry.text() + "\n";
  Expected<std::string> text = readFile(path, "reproducer");
  EXPECT_TRUE(text) << path;
  ::unlink(path.c_str());
  return text ? *text : "";
}
} // namespace

TEST(Reproducer, AFailingPassLeavesModuleAndPipeline) {
  std::string errors;
  std::string text = reproduce(false, errors);
  EXPECT_NE(text.find("mlir_reproducer"), std::string::npos) << text;
  EXPECT_NE(text.find("builtin.module(nova-failing)"), std::string::npos);
  EXPECT_EQ(text.find("changed"), std::string::npos)
      << "the module is as it was before the pass";
  EXPECT_NE(errors.find("graph 'step': it does not work"), std::string::npos)
      << errors;
}

TEST(Reproducer, ACrashLeavesTheSame) {
  std::string errors;
  std::string text = reproduce(true, errors);
  EXPECT_NE(text.find("builtin.module(nova-failing)"), std::string::npos);
}

TEST(Reproducer, TextIsWrittenWhereItsPathSays) {
  std::string path = driver::writeReproducer("module {}\n");
  Expected<std::string> text = readFile(path, "reproducer");
  ASSERT_TRUE(text) << path;
  EXPECT_EQ(*text, "module {}\n");
  ::unlink(path.c_str());
}
