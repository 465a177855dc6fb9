//===- emit_ptx_test.cpp - Kernels in the LLVM dialect to PTX -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "HandWritten.h"
#include "nova/GpuCodegen/PtxEmitter.h"

#include <gtest/gtest.h>

#include <thread>

using namespace nova;
using namespace nova::test;

namespace {

std::string ptxOf(const char *text, const char *arch) {
  Context context;
  GpuKernelModule kernel = context.parse(text);
  Expected<std::string> ptx = emitPtx(*kernel.module, arch);
  EXPECT_TRUE(ptx) << (ptx ? "" : ptx.error().message);
  return ptx ? *ptx : "";
}

Error errorOf(const char *text, const char *arch = "sm_80") {
  Context context;
  GpuKernelModule kernel = context.parse(text);
  Expected<std::string> ptx = emitPtx(*kernel.module, arch);
  EXPECT_FALSE(ptx) << *ptx;
  return ptx ? Error{} : ptx.error();
}

bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(EmitPtx, EveryGpuOfTheTableHasPtxAndAVersionOfCuda) {
  for (const target::Device &device : target::devices()) {
    if (device.kind != target::DeviceKind::Gpu)
      continue;
    const PtxTarget *ptx = findPtxTarget(device.arch);
    ASSERT_NE(ptx, nullptr) << device.name;
    EXPECT_GE(cudaOfPtx(ptx->ptxVersion), 12000u) << device.name;
  }
  EXPECT_EQ(cudaOfPtx(78), 0u);
  EXPECT_EQ(parameterBytesOfPtx(80), 4096);
  EXPECT_EQ(parameterBytesOfPtx(81), 32764);
}

TEST(EmitPtx, SaysVersionArchitectureAndOneEntry) {
  std::string ptx = ptxOf(kVectorAdd, "sm_90a");
  EXPECT_TRUE(has(ptx, ".version 8.0\n.target sm_90a\n.address_size 64\n"));
  EXPECT_TRUE(has(ptx, ".visible .entry vector_add("));
  EXPECT_TRUE(has(ptx, ".reqntid 256"));
  EXPECT_TRUE(has(ptx, ".param .u64 .ptr .global"));
  EXPECT_TRUE(has(ptxOf(kVectorAdd, "sm_100a"), ".version 8.6\n"));
  EXPECT_TRUE(has(ptxOf(kVectorAdd, "sm_120a"), ".version 8.7\n"));
}

TEST(EmitPtx, AProductAndASumAreFused) {
  EXPECT_TRUE(has(ptxOf(kVectorAdd, "sm_80"), "fma.rn.f32"));
}

TEST(EmitPtx, SymbolsBesideTheKernelCarryItsName) {
  std::string ptx = ptxOf(kShared, "sm_80");
  EXPECT_TRUE(has(ptx, ".shared .align 16 .b8 shared$tile[512]")) << ptx;
  EXPECT_TRUE(has(ptx, ".extern .shared .align 1024 .b8 shared$dynamic[]"))
      << ptx;
}

TEST(EmitPtx, InstructionsAreThere) {
  std::string mma = ptxOf(kMma, "sm_80");
  EXPECT_TRUE(has(mma, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"));
  EXPECT_TRUE(has(mma, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
  std::string hopper = ptxOf(kHopper, "sm_90a");
  for (const char *part : {"elect.sync", "mbarrier.try_wait.parity",
                           "setmaxnreg.inc", "fence.mbarrier_init"})
    EXPECT_TRUE(has(hopper, part)) << part << "\n" << hopper;
}

TEST(EmitPtx, TheSameBytesInEveryThreadAndNoPlacesInThem) {
  std::string first = ptxOf(kMma, "sm_86");
  std::vector<std::string> texts(8);
  {
    std::vector<std::thread> threads;
    for (std::string &text : texts)
      threads.emplace_back([&] { text = ptxOf(kMma, "sm_86"); });
    for (std::thread &thread : threads)
      thread.join();
  }
  for (const std::string &text : texts)
    EXPECT_EQ(text, first);
  EXPECT_FALSE(has(first, ".file"));
}

TEST(EmitPtx, KernelsOfOneContextInSeveralThreads) {
  Context context;
  context.context.enableMultithreading();
  std::vector<GpuKernelModule> kernels;
  for (int i = 0; i < 8; ++i)
    kernels.push_back(context.parse(i % 2 ? kMma : kShared));
  std::vector<std::string> texts(kernels.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kernels.size(); ++i)
    threads.emplace_back([&, i] {
      Expected<std::string> ptx = emitPtx(*kernels[i].module, "sm_89");
      texts[i] = ptx ? *ptx : ptx.error().message;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 2; i < texts.size(); ++i)
    EXPECT_EQ(texts[i], texts[i % 2]);
}

TEST(EmitPtx, JoinedTextsHaveOneHeaderAndAssemble) {
  std::string joined = joinPtx({ptxOf(kShared, "sm_90a"), ptxOf(kMma, "sm_90a"),
                                ptxOf(kHopper, "sm_90a")});
  EXPECT_EQ(joined.find(".version"), joined.rfind(".version"));
  ASSERT_NE(assembler(), nullptr);
  Expected<Assembled> assembled =
      assembler()->assemble(joined, "sm_90a", "three kernels");
  ASSERT_TRUE(assembled) << assembled.error().message;
  ASSERT_EQ(assembled->entries.size(), 3u);
}

/// Locations of a parsed text are its lines: it can be its own listing.
TEST(EmitPtx, LinesOfAListing) {
  std::string texts[2];
  for (auto [text, source] : {std::pair(&texts[0], kShared), std::pair(&texts[1], kMma)}) {
    Context context;
    GpuKernelModule kernel = context.parse(source);
    Expected<std::string> ptx = emitPtx(*kernel.module, "sm_80", source);
    ASSERT_TRUE(ptx) << ptx.error().message;
    EXPECT_TRUE(has(*ptx, "\t.loc\t1 ")) << *ptx;
    EXPECT_TRUE(has(*ptx, "\n//tiles ")) << *ptx;
    std::string bare = withoutLines(*ptx);
    EXPECT_FALSE(has(bare, ".section")) << bare;
    EXPECT_FALSE(has(bare, ".loc"));
    EXPECT_FALSE(has(bare, ".file"));
    EXPECT_FALSE(has(bare, "//tiles"));
    *text = *ptx;
  }
  std::string joined = joinPtx(texts);
  EXPECT_EQ(joined.find(".file"), joined.rfind(".file"));
  ASSERT_NE(assembler(), nullptr);
  Expected<Assembled> assembled = assembler()->assemble(joined, "sm_80", "two kernels");
  EXPECT_TRUE(assembled) << assembled.error().message;
}

TEST(EmitPtx, AnUndefinedFunctionIsNamed) {
  Error error = errorOf(R"mlir(
llvm.func @__nv_expf(f32) -> f32
llvm.func @needs(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %a = llvm.load %x : !llvm.ptr<1> -> f32
  %b = llvm.call @__nv_expf(%a) : (f32) -> f32
  llvm.store %b, %x : f32, !llvm.ptr<1>
  llvm.return
})mlir");
  EXPECT_EQ(error.code, ErrorCode::Internal);
  EXPECT_EQ(error.message,
            "kernel 'needs': its GPU code uses '__nv_expf', which nothing "
            "defines (there is no device library)");
}

TEST(EmitPtx, AnUndefinedVariableIsNamed) {
  EXPECT_EQ(errorOf(R"mlir(
llvm.mlir.global external @table() {addr_space = 1 : i32} : !llvm.array<4 x f32>
llvm.func @needs(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %t = llvm.mlir.addressof @table : !llvm.ptr<1>
  %a = llvm.load %t : !llvm.ptr<1> -> f32
  llvm.store %a, %x : f32, !llvm.ptr<1>
  llvm.return
})mlir")
                .message,
            "kernel 'needs': its GPU code uses 'needs$table', which nothing "
            "defines (there is no device library)");
}

TEST(EmitPtx, ADeclarationThatNothingUsesIsNoError) {
  EXPECT_TRUE(has(ptxOf(R"mlir(
llvm.func @unused(f32) -> f32
llvm.func @idle() attributes {nvvm.kernel} {
  llvm.return
})mlir",
                        "sm_80"),
                  ".entry idle"));
}

TEST(EmitPtx, UnknownArchitectureAndMissingKernelAreNamed) {
  Error error = errorOf(kVectorAdd, "sm_75");
  EXPECT_EQ(error.code, ErrorCode::Usage);
  EXPECT_EQ(error.message, "no PTX for architecture 'sm_75'");
  EXPECT_EQ(error.hint,
            "architectures: sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a");
  EXPECT_EQ(errorOf("llvm.func @f() { llvm.return }").message,
            "a GPU module has 0 kernels; expected one llvm.func with "
            "nvvm.kernel");
  EXPECT_EQ(errorOf((std::string(kVectorAdd) + kMma).c_str()).message,
            "a GPU module has 2 kernels: vector_add, mma; expected one "
            "llvm.func with nvvm.kernel");
}

TEST(EmitPtx, WhatIsNotOfTheseDialectsIsNamed) {
  Error error = errorOf(R"mlir(
llvm.func @left(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %a = llvm.load %x : !llvm.ptr<1> -> i32
  %b = builtin.unrealized_conversion_cast %a : i32 to index
  %c = builtin.unrealized_conversion_cast %b : index to i64
  llvm.store %c, %x : i64, !llvm.ptr<1>
  llvm.return
})mlir");
  EXPECT_EQ(error.code, ErrorCode::Internal);
  EXPECT_TRUE(has(error.message, "kernel 'left': ")) << error.message;
  EXPECT_TRUE(has(error.message, "unrealized_conversion_cast"))
      << error.message;
}
