//===- TileProgram.cpp - Tile programs as text, executed on vectors -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TileProgram.h"

#include "nova/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace nova::test {

static MLIRContext &context() {
  static MLIRContext *context = [] {
    auto *created = new MLIRContext(MLIRContext::Threading::DISABLED);
    created->loadDialect<tile::TileDialect>();
    return created;
  }();
  return *context;
}

std::string runProgram(const std::string &text,
                       const std::vector<void *> &buffers,
                       const tile::InterpreterOptions &options) {
  auto module = parseSourceString<ModuleOp>(text, &context());
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return "does not parse";
  }
  func::FuncOp program = *module->getOps<func::FuncOp>().begin();
  return llvm::toString(tile::interpret(program, buffers, options));
}

std::string programText(const std::string &parameters, const std::string &body,
                        int64_t grid) {
  return "func.func @program(" + parameters +
         ") attributes {tile.warps = 4 : i64, tile.grid = " +
         std::to_string(grid) + " : i64} {\n" + body + "\nreturn\n}\n";
}

} // namespace nova::test
