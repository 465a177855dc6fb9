//===- HandWritten.cpp - Kernels in the LLVM dialect, and an assembler ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "HandWritten.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

using namespace nova;

const char *const nova::test::kVectorAdd = R"mlir(
llvm.func @vector_add(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %z: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256>} {
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %size = llvm.mlir.constant(256 : i32) : i32
  %first = llvm.mul %block, %size : i32
  %i = llvm.add %first, %thread : i32
  %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %pz = llvm.getelementptr %z[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %a = llvm.load %px : !llvm.ptr<1> -> f32
  %b = llvm.load %py : !llvm.ptr<1> -> f32
  %square = llvm.fmul %b, %b : f32
  %sum = llvm.fadd %square, %a : f32
  llvm.store %sum, %pz : f32, !llvm.ptr<1>
  llvm.return
}
)mlir";

const char *const nova::test::kShared = R"mlir(
llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x f32>
llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
llvm.func @shared(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %last = llvm.mlir.constant(127 : i32) : i32
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %dynamic = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
  %px = llvm.getelementptr %x[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %a = llvm.load %px : !llvm.ptr<1> -> f32
  %slot = llvm.getelementptr %tile[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %other = llvm.getelementptr %dynamic[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  llvm.store %a, %slot : f32, !llvm.ptr<3>
  llvm.store %a, %other : f32, !llvm.ptr<3>
  nvvm.barrier0
  %mirror = llvm.sub %last, %thread : i32
  %from = llvm.getelementptr %tile[%mirror] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %from2 = llvm.getelementptr %dynamic[%mirror] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %b = llvm.load %from : !llvm.ptr<3> -> f32
  %c = llvm.load %from2 : !llvm.ptr<3> -> f32
  %sum = llvm.fadd %b, %c : f32
  %py = llvm.getelementptr %y[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %sum, %py : f32, !llvm.ptr<1>
  llvm.return
}
)mlir";

const char *const nova::test::kMma = R"mlir(
llvm.mlir.global internal @a() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<512 x i8>
llvm.func @mma(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %a = llvm.mlir.addressof @a : !llvm.ptr<3>
  %px = llvm.getelementptr %x[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
  %word = llvm.load %px : !llvm.ptr<1> -> vector<4xi32>
  %slot = llvm.getelementptr %a[%thread] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
  llvm.store %word, %slot : vector<4xi32>, !llvm.ptr<3>
  nvvm.barrier0
  %f = nvvm.ldmatrix %slot {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  %a0 = llvm.extractvalue %f[0] : !llvm.struct<(i32, i32, i32, i32)>
  %a1 = llvm.extractvalue %f[1] : !llvm.struct<(i32, i32, i32, i32)>
  %a2 = llvm.extractvalue %f[2] : !llvm.struct<(i32, i32, i32, i32)>
  %a3 = llvm.extractvalue %f[3] : !llvm.struct<(i32, i32, i32, i32)>
  %d = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%a0, %a1] C[%zero, %zero, %zero, %zero]
    {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
     multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>,
     shape = #nvvm.shape<m = 16, n = 8, k = 16>}
    : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
  %py = llvm.getelementptr %y[%thread] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %d0, %py : f32, !llvm.ptr<1>
  llvm.return
}
)mlir";

const char *const nova::test::kHopper = R"mlir(
llvm.mlir.global internal @barrier() {addr_space = 3 : i32, alignment = 8 : i64} : i64
llvm.func @hopper(%x: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 1 : i32} {
  %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
  %one = llvm.mlir.constant(1 : i32) : i32
  %bytes = llvm.mlir.constant(0 : i32) : i32
  %ticks = llvm.mlir.constant(10000 : i32) : i32
  %first = nvvm.elect.sync -> i1
  nvvm.mbarrier.init %barrier, %one : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  nvvm.barrier0
  llvm.cond_br %first, ^elected, ^wait
^elected:
  nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32
  llvm.br ^wait
^wait:
  nvvm.setmaxregister increase 232
  nvvm.mbarrier.try_wait.parity %barrier, %bytes, %ticks : !llvm.ptr<3>, i32, i32
  llvm.store %one, %x : i32, !llvm.ptr<1>
  llvm.return
}
)mlir";

GpuKernelModule test::Context::parse(const char *text, uint32_t threads,
                                     uint64_t dynamicSharedBytes) {
  GpuKernelModule result;
  result.module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(result.module) << text;
  result.threads = threads;
  result.dynamicSharedBytes = dynamicSharedBytes;
  return result;
}

const Assembler *test::assembler() {
  static const std::optional<Assembler> found =
      []() -> std::optional<Assembler> {
    AssemblerSearch search;
    if (const char *home = std::getenv("CUDA_HOME"))
      search.cudaHome = home;
    search.given = search.cudaHome.empty() ? NOVA_PTXAS : "";
    Expected<Assembler> assembler = Assembler::find(search);
    if (!assembler) {
      ADD_FAILURE() << assembler.error().message
                    << "; scripts/setup.sh installs an assembler";
      return std::nullopt;
    }
    return *assembler;
  }();
  return found ? &*found : nullptr;
}
