//===- import_mlir_test.cpp - MLIR in, and the step contract --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportTestUtils.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nova;

static constexpr const char *goodStep = R"mlir(
func.func @step(
    %w: tensor<4xf32> {nova.name = "w", nova.role = "parameter", nova.path = "net.w"},
    %lr: tensor<f32> {nova.name = "lr", nova.role = "scalar", nova.path = "lr", nova.advance = 1.0 : f64})
  -> (tensor<4xf32> {nova.role = "update", nova.updates = 0 : i64})
  attributes {nova.graph = "g"} {
  %0 = nova.mul %w, %lr : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
)mlir";

namespace {
struct Parsed {
  MLIRContext context;
  std::string errors;
  OwningOpRef<ModuleOp> module;

  explicit Parsed(const std::string &bytes) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      llvm::raw_string_ostream(errors)
          << diagnostic.getLocation() << ": " << diagnostic << "\n";
      return success();
    });
    module = importMlir(llvm::MemoryBufferRef(bytes, "step.mlir"), context);
  }
};
} // namespace

static void expectRefused(const std::string &from, const std::string &to,
                          const std::string &message) {
  std::string text = goodStep;
  size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  Parsed parsed(text);
  EXPECT_FALSE(parsed.module);
  EXPECT_NE(parsed.errors.find(message), std::string::npos)
      << "expected: " << message << "\ngot: " << parsed.errors;
}

TEST(ImportMlir, TextAndBytecode) {
  Parsed text(goodStep);
  ASSERT_TRUE(text.module) << text.errors;
  std::string bytecode;
  llvm::raw_string_ostream stream(bytecode);
  ASSERT_TRUE(succeeded(writeBytecodeToFile(*text.module, stream)));
  Parsed again(bytecode);
  ASSERT_TRUE(again.module) << again.errors;
  EXPECT_TRUE(again.module->lookupSymbol<func::FuncOp>("step"));
}

TEST(ImportMlir, RefusesWhatDoesNotParse) {
  Parsed parsed("func.func @step(");
  EXPECT_FALSE(parsed.module);
  EXPECT_NE(parsed.errors.find("step.mlir\":1:"), std::string::npos)
      << parsed.errors;
}

TEST(ImportMlir, NeedsOneStep) {
  expectRefused("@step", "@main",
                "got func.func @main beside the step, expected func.func "
                "@step alone");
  expectRefused("@step", "@main", "no function named step");
  expectRefused(R"(attributes {nova.graph = "g"})", "",
                "step: missing nova.graph, expected the graph's name");
}

TEST(ImportMlir, ArgumentsAreDescribed) {
  expectRefused(R"(nova.name = "w", )", "",
                "step: argument 0: missing the string nova.name");
  expectRefused(R"(nova.name = "lr")", R"(nova.name = "w")",
                "step: argument 1: nova.name: \"w\" is taken, expected unique "
                "names");
  expectRefused("\"parameter\"", "\"weight\"",
                "step: argument 0: nova.role: got \"weight\", expected one of "
                "parameter, state, buffer, scalar, input");
  expectRefused("\"parameter\"", "\"scalar\"",
                "step: argument 0: got 'tensor<4xf32>', expected rank 0 for a "
                "scalar");
  expectRefused(R"(nova.path = "net.w")",
                R"(nova.path = "net.w", nova.strides = array<i64: 1, 2>)",
                "step: argument 0: nova.strides: got array<i64: 1, 2>, "
                "expected array<i64> of 1 strides >= 0");
  expectRefused("1.0 : f64", "1 : i64",
                "step: argument 1: nova.advance: got 1 : i64, expected an f64, "
                "on a scalar only");
  // Three things that no file of names, and no memory, can hold.
  expectRefused(R"(nova.path = "net.w")", R"(nova.path = "net\00w")",
                "step: argument 0: nova.path: got \"net\\00w\", expected a "
                "string without control characters");
  expectRefused(R"(nova.graph = "g")", R"(nova.graph = "g\n")",
                "expected a string without control characters");
  expectRefused(R"(nova.path = "net.w")",
                R"(nova.path = "net.w", nova.strides = array<i64: 274877906944>)",
                "step: argument 0: got 'tensor<4xf32>' with those strides, "
                "expected at most 1099511627776 bytes: no device holds more");
  expectRefused(R"(nova.path = "net.w")",
                R"(nova.path = "net.w", nova.strides = array<i64: 9223372036854775807>)",
                "expected at most 1099511627776 bytes: no device holds more");
}

TEST(ImportMlir, ResultsAreDescribed) {
  expectRefused("\"update\", nova.updates = 0 : i64", "\"update\"",
                "step: result 0: nova.updates: got nothing, expected an i64 in "
                "[0, 2)");
  expectRefused("nova.updates = 0", "nova.updates = 2",
                "step: result 0: nova.updates: got 2 : i64, expected an i64 in "
                "[0, 2)");
  expectRefused("nova.updates = 0", "nova.updates = 1",
                "step: result 0: 'tensor<4xf32>' replaces argument 1 of "
                "'tensor<f32>', expected the same type");
  expectRefused("\"update\"", "\"loss\"",
                "step: result 0: nova.updates: got 0 : i64, expected none for "
                "the role loss");
  expectRefused("\"update\"", "\"logits\"",
                "step: result 0: nova.role: got \"logits\", expected one of "
                "loss, output, gradient, update");
}

TEST(ImportMlir, OnlyNovaOperations) {
  expectRefused("return %0", "%e = tensor.empty() : tensor<4xf32>\n  return %0",
                "step: got tensor.empty, expected operations of the nova "
                "dialect");
}
