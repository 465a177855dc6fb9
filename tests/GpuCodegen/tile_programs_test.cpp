//===- tile_programs_test.cpp - Tile programs to machine code --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The programs of tests/TileLowering/*.mlir say what code they become; here the
// real ptxas says that it is code, for every architecture that they may run on.
//
//===----------------------------------------------------------------------===//
#include "HandWritten.h"
#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mlir;
using namespace nova;
using namespace nova::test;

static std::vector<std::string> filesOfPrograms() {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(NOVA_TILE_PROGRAMS)) {
    std::string stem = entry.path().stem();
    if (entry.path().extension() == ".mlir" && stem.find("-errors") == stem.npos)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

namespace {
class TilePrograms : public testing::TestWithParam<std::string> {};
} // namespace

TEST_P(TilePrograms, AssembleForEveryArchitecture) {
  ASSERT_NE(assembler(), nullptr);
  std::ifstream stream(GetParam());
  std::stringstream text;
  text << stream.rdbuf();
  SmallVector<StringRef> parts;
  std::string all = text.str();
  StringRef(all).split(parts, "// -----");
  Context context;
  int programs = 0;
  for (StringRef part : parts) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(part, &context.context);
    ASSERT_TRUE(module) << part.str();
    for (auto program : module->getOps<func::FuncOp>()) {
      if (!program->hasAttr(tile::attr::warps))
        continue;
      std::string name = program.getSymName().str();
      SCOPED_TRACE(name);
      GpuKernelModule kernel;
      kernel.module = ModuleOp::create(program.getLoc());
      kernel.module->push_back(program->clone());
      PassManager passes(&context.context);
      buildTileLowering(passes);
      ASSERT_TRUE(succeeded(passes.run(*kernel.module)));
      LLVM::LLVMFuncOp entry = *kernel.module->getOps<LLVM::LLVMFuncOp>().begin();
      kernel.dynamicSharedBytes = entry->getAttrOfType<IntegerAttr>(kSharedBytesAttr).getInt();
      // With the warps of roles of their own.
      kernel.threads =
          entry->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName())[0];
      bool asynchronous = program->hasAttr(tile::attr::asynchronous);
      for (const char *device : {"a100", "rtx3060", "rtx6000-ada", "h200"}) {
        if (asynchronous && !target::findTarget(device)->warpgroups)
          continue;
        Expected<GpuKernelCode> code = compileGpuKernel(kernel, name, *target::findTarget(device), assembler());
        ASSERT_TRUE(code) << code.error().message;
        EXPECT_FALSE(code->cubin.empty());
        for (const AssemblerWarning &warning : code->warnings)
          ADD_FAILURE() << device << ": " << warning.text;
      }
      ++programs;
    }
  }
  EXPECT_GT(programs, 0);
}

INSTANTIATE_TEST_SUITE_P(Files, TilePrograms, testing::ValuesIn(filesOfPrograms()), [](const auto &info) {
  std::string name = std::filesystem::path(info.param).stem();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
