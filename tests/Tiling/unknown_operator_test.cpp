//===- unknown_operator_test.cpp - Operators that no pass has heard of ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that a user writes in linalg, with reductions that are no operation of
// any dialect here: configured, right as tile programs under every candidate, and
// machine code by the real ptxas.
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include "nova/GpuCodegen/KernelCompiler.h"
#include "nova/IR/CollectDiagnostics.h"
#include "nova/Pipelines/GpuBackend.h"
#include "nova/Transforms/Candidates.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace nova;
using namespace nova::test;

/// sum |x - y| / (|x| + |y| + 1) of each row (Canberra's distance, nearly).
static const char kDistance[] = R"mlir(
func.func private @distance(%x: tensor<$Bx$Mx$Kxf32>, %y: tensor<$Kxf32>)
    -> (tensor<$Bx$Mxf32> {nova.map = array<i64: 0, 1>}) attributes {nova.kernel, nova.space = array<i64: $B, $M>} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<$Bx$Mxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<$Bx$Mxf32>) -> tensor<$Bx$Mxf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m, k)>, affine_map<(b, m, k) -> (k)>,
                                        affine_map<(b, m, k) -> (b, m)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<$Bx$Mx$Kxf32>, tensor<$Kxf32>) outs(%f : tensor<$Bx$Mxf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %d = arith.subf %a, %b : f32
    %n = math.absf %d : f32
    %p = math.absf %a : f32
    %q = math.absf %b : f32
    %s = arith.addf %p, %q : f32
    %t = arith.addf %s, %one : f32
    %v = arith.divf %n, %t : f32
    %next = arith.addf %sum, %v : f32
    linalg.yield %next : f32
  } -> tensor<$Bx$Mxf32>
  return %r : tensor<$Bx$Mxf32>
}
)mlir";

/// sum = |sum| * x + y: three operations on what has been reduced so far, of which
/// no order but the given one is the same; along columns.
static const char kFold[] = R"mlir(
func.func private @fold(%x: tensor<$Kx$Mxf32>, %y: tensor<$Kx$Mxf32>)
    -> (tensor<$Mxf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: $M>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$Mxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<$Mxf32>) -> tensor<$Mxf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, k) -> (k, m)>, affine_map<(m, k) -> (k, m)>,
                                        affine_map<(m, k) -> (m)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<$Kx$Mxf32>, tensor<$Kx$Mxf32>) outs(%f : tensor<$Mxf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %n = math.absf %sum : f32
    %p = arith.mulf %n, %a : f32
    %next = arith.addf %p, %b : f32
    linalg.yield %next : f32
  } -> tensor<$Mxf32>
  return %r : tensor<$Mxf32>
}
)mlir";

/// Five dimensions, none of which another kernel argument lets be one.
static const char kDeep[] = R"mlir(
func.func private @deep(%x: tensor<$Ax$Bx$Cx$Dx$Exf32> {nova.strides = array<i64: $STRIDES>},
                        %y: tensor<$Bx$Dxf32>, %z: tensor<$Ax$Cx$Exf32>)
    -> (tensor<$Ax$Bx$Cx$Dx$Exf32> {nova.map = array<i64: 0, 1, 2, 3, 4>})
    attributes {nova.kernel, nova.space = array<i64: $A, $B, $C, $D, $E>} {
  %e = tensor.empty() : tensor<$Ax$Bx$Cx$Dx$Exf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>,
                                        affine_map<(a, b, c, d, e) -> (b, d)>,
                                        affine_map<(a, b, c, d, e) -> (a, c, e)>,
                                        affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %y, %z : tensor<$Ax$Bx$Cx$Dx$Exf32>, tensor<$Bx$Dxf32>, tensor<$Ax$Cx$Exf32>)
      outs(%e : tensor<$Ax$Bx$Cx$Dx$Exf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %o: f32):
    %p = arith.mulf %u, %v : f32
    %q = arith.subf %p, %w : f32
    linalg.yield %q : f32
  } -> tensor<$Ax$Bx$Cx$Dx$Exf32>
  return %r : tensor<$Ax$Bx$Cx$Dx$Exf32>
}
)mlir";

static OwningOpRef<ModuleOp> configured(const std::string &text, StringRef device) {
  auto module = parseSourceString<ModuleOp>(text, &context());
  EXPECT_TRUE(module) << text;
  PassManager passes(&context());
  ConfigureKernelsOptions options;
  options.device = device.str();
  passes.addPass(createConfigureKernels(options));
  EXPECT_TRUE(succeeded(passes.run(*module)));
  return module;
}

static func::FuncOp kernelOf(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

/// The first candidate that lowers has machine code for both generations.
static GpuKernelCode compileFor(const std::string &text, StringRef name) {
  const target::Device &device = *target::findTarget(name.str());
  loadGpuCodegenDialects(context());
  AssemblerSearch search;
  search.given = NOVA_PTXAS;
  Expected<Assembler> assembler = Assembler::find(search);
  if (!assembler) {
    ADD_FAILURE() << assembler.error().message;
    return {};
  }
  OwningOpRef<ModuleOp> module = configured(text, device.name);
  func::FuncOp kernel = kernelOf(*module);
  Expected<GpuKernelModule> lowered = lowerKernelToNvvm(kernel, device);
  if (!lowered) {
    ADD_FAILURE() << lowered.error().message;
    return {};
  }
  Expected<GpuKernelCode> code = compileGpuKernel(*lowered, kernel.getSymName(), device, &*assembler);
  if (!code) {
    ADD_FAILURE() << code.error().message;
    return {};
  }
  EXPECT_FALSE(code->cubin.empty());
  EXPECT_EQ(code->spillBytes, 0u);
  return *code;
}

static void checkEveryCandidate(const std::string &text, const TilingOptions &options) {
  OwningOpRef<ModuleOp> module = configured(text, "h200");
  func::FuncOp kernel = kernelOf(*module);
  ASSERT_FALSE(candidatesOf(kernel).empty());
  for (DictionaryAttr candidate : candidatesOf(kernel)) {
    SCOPED_TRACE(describeCandidate(candidate));
    takeCandidate(kernel, candidate);
    checkTiles(kernel, options);
  }
}

TEST(UnknownOperator, AReductionOfThreeOperations) {
  for (auto [b, m, k] : {std::tuple("1", "1", "1"), std::tuple("3", "17", "70"), std::tuple("1", "5", "1000"),
                         std::tuple("2", "64", "1"), std::tuple("1", "2", "9001")}) {
    std::string text = filled(kDistance, {{"B", b}, {"M", m}, {"K", k}});
    checkEveryCandidate(text, {});
  }
  std::string text = filled(kDistance, {{"B", "7"}, {"M", "1000"}, {"K", "768"}});
  for (const char *arch : {"sm_80", "sm_90a"})
    compileFor(text, arch);
}

TEST(UnknownOperator, AFoldWhoseOrderCounts) {
  TilingOptions options;
  options.tolerance = 1e-4;
  for (auto [m, k] : {std::pair("1", "1"), std::pair("33", "20"), std::pair("200", "3"), std::pair("1", "50")})
    checkEveryCandidate(filled(kFold, {{"M", m}, {"K", k}}), options);
  std::string text = filled(kFold, {{"M", "768"}, {"K", "300"}});
  for (const char *arch : {"sm_80", "sm_90a"})
    compileFor(text, arch);
}

/// More dimensions than a tile may have: those that find no room go one by one.
TEST(UnknownOperator, FiveDimensionsThatCannotBeCollapsed) {
  for (auto [a, b, c, d, e] : {std::tuple(2, 3, 4, 5, 6), std::tuple(1, 9, 1, 3, 1), std::tuple(3, 1, 2, 1, 40)}) {
    std::map<std::string, std::string> sizes = {{"A", std::to_string(a)}, {"B", std::to_string(b)},
                                                {"C", std::to_string(c)}, {"D", std::to_string(d)},
                                                {"E", std::to_string(e)}};
    sizes["STRIDES"] = std::to_string(b * c * d * e) + ", " + std::to_string(c * d * e) + ", " +
                       std::to_string(d * e) + ", " + std::to_string(e) + ", 1";
    checkEveryCandidate(filled(kDeep, sizes), {});
  }
}

/// Rows that lie 2^31 elements apart: addresses are computed in 64 bits.
TEST(UnknownOperator, OffsetsBeyondTwoToThe31) {
  std::string text = filled(kDeep, {{"A", "3"}, {"B", "3"}, {"C", "4"}, {"D", "5"}, {"E", "64"},
                                    {"STRIDES", "6442450944, 2147483648, 320, 64, 1"}});
  for (const char *arch : {"sm_80", "sm_90a"}) {
    GpuKernelCode code = compileFor(text, arch);
    // Bytes of each stride, as a factor or a shift.
    bool wide = code.ptx.find("8589934592") != std::string::npos || code.ptx.find("shl.b64") != std::string::npos ||
                code.ptx.find("mul.wide") != std::string::npos || code.ptx.find("mad.lo.s64") != std::string::npos;
    EXPECT_TRUE(wide) << code.ptx;
  }
}

/// A tile of more than three dimensions is refused with its numbers, not crashed on.
TEST(UnknownOperator, ATileOfFourDimensionsIsRefused) {
  OwningOpRef<ModuleOp> module = configured(
      filled(kDeep, {{"A", "4"}, {"B", "4"}, {"C", "4"}, {"D", "4"}, {"E", "4"}, {"STRIDES", "256, 64, 16, 4, 1"}}),
      "h200");
  func::FuncOp kernel = kernelOf(*module);
  Builder builder(&context());
  kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr({2, 2, 1, 2, 4}));
  loadGpuCodegenDialects(context());
  Expected<GpuKernelModule> lowered = lowerKernelToNvvm(kernel, *target::findTarget("h200"));
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, ErrorCode::BadInput);
  EXPECT_NE(lowered.error().message.find("kernel 'deep'"), std::string::npos) << lowered.error().message;
  EXPECT_NE(lowered.error().message.find("4"), std::string::npos) << lowered.error().message;
}
