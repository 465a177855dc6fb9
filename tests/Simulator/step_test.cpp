//===- step_test.cpp - A launch list, simulated ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Simulator/Step.h"

#include <gtest/gtest.h>

using namespace nova;
using namespace nova::bundle;

namespace {

/// y = 2 x, 32 elements of 4 bytes: parameters x, y.
std::string doubling(const std::string &body = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry twice(.param .u64 x, .param .u64 y)\n{\n"
         ".reg .b32 %r<9>;\n.reg .b64 %d<9>;\n"
         "ld.param.u64 %d0, [x];\nld.param.u64 %d1, [y];\n"
         "mov.u32 %r0, %tid.x;\nmad.wide.u32 %d2, %r0, 4, %d0;\n"
         "mad.wide.u32 %d3, %r0, 4, %d1;\n" +
         body +
         "ld.global.u32 %r1, [%d2];\nshl.b32 %r1, %r1, 1;\n"
         "st.global.u32 [%d3], %r1;\nret;\n}\n";
}

/// input -> arena 0 -> arena 1 -> output; the arena's buffers lie apart.
Manifest chain() {
  Manifest m;
  TensorDesc in;
  in.name = "x";
  in.role = "input";
  in.dtype = "int32";
  in.shape = {32};
  in.strides = {1};
  in.bytes = 128;
  m.inputs = {in};
  OutputDesc out;
  static_cast<TensorDesc &>(out) = in;
  out.name = "y";
  out.role = "output";
  m.outputs = {out};
  m.blobs = {{"", 0, kMediaCubin}, {"", 0, kMediaPtx}};
  Target t;
  t.name = "sm_80";
  t.device = "a100";
  bundle::Kernel k;
  k.name = k.symbol = "twice";
  k.ptxBlob = 1;
  k.block = {32, 1, 1};
  k.params.resize(2);
  t.kernels = {k};
  t.arena.size = 512;
  t.arena.buffers = {{0, 128, 0, 1, std::nullopt},
                     {256, 128, 1, 2, std::nullopt}};
  auto launch = [](LaunchArg from, LaunchArg to) {
    Launch l;
    l.kernel = 0;
    l.args = {from, to};
    return l;
  };
  t.launches = {launch(InputRef{0, 0}, BufferRef{0, 0}),
                launch(BufferRef{0, 0}, BufferRef{1, 0}),
                launch(BufferRef{1, 0}, OutputRef{0, 0})};
  m.targets = {t};
  return m;
}

struct Result {
  std::string error;
  std::optional<sim::Fault> fault;
  std::vector<int32_t> in, out;
};

Result run(const Manifest &m, const std::string &ptx) {
  Result r;
  r.in.resize(32);
  r.out.resize(32);
  for (int k = 0; k < 32; ++k)
    r.in[k] = k + 1;
  auto step = sim::Step::make(m, 0, {"", ptx});
  if (!step) {
    r.error = step.error().message;
    return r;
  }
  sim::Options options;
  options.device = target::findTarget("a100");
  auto outcome = step->run({r.in.data()}, {r.out.data()}, options);
  if (!outcome)
    r.error = outcome.error().message;
  else
    r.fault = outcome->fault;
  return r;
}

TEST(Step, RunsTheLaunchesInOrder) {
  Result r = run(chain(), doubling());
  EXPECT_EQ(r.error, "");
  ASSERT_FALSE(r.fault) << r.fault->text();
  EXPECT_EQ(r.out[0], 8);
  EXPECT_EQ(r.out[31], 256);
}

TEST(Step, MemsetAndCopy) {
  Manifest m = chain();
  Launch set;
  set.kind = LaunchKind::Memset;
  set.args = {BufferRef{0, 0}, Immediate{1, "uint8"}, Immediate{128, "int64"}};
  m.targets[0].launches[0] = set;
  Launch copy;
  copy.kind = LaunchKind::Copy;
  copy.args = {BufferRef{1, 0}, BufferRef{0, 0}, Immediate{128, "int64"}};
  m.targets[0].launches[1] = copy;
  Result r = run(m, doubling());
  ASSERT_FALSE(r.fault) << r.fault->text();
  EXPECT_EQ(r.out[5], 0x02020202);
  copy.args[2] = Immediate{129, "int64"};
  m.targets[0].launches[1] = copy;
  r = run(m, doubling());
  ASSERT_TRUE(r.fault);
  EXPECT_EQ(r.fault->text(), "out of bounds in kernel 'copy': launch 1 writes "
                             "129 bytes at offset 0 of "
                             "arena buffer 1");
}

TEST(Step, ArenaMemoryIsUnwrittenWhenItsBufferIsBorn) {
  Manifest m = chain();
  // The last launch reads a buffer that shares its place with one of before.
  m.targets[0].arena.buffers.push_back({0, 128, 2, 2, std::nullopt});
  m.targets[0].kernels[0].schedule["results"] = int64_t(1);
  m.targets[0].launches[2].args[0] = BufferRef{2, 0};
  Result r = run(m, doubling());
  ASSERT_TRUE(r.fault);
  EXPECT_EQ(r.fault->kind, sim::FaultKind::Uninitialised);
  EXPECT_EQ(r.fault->what, "reads 4 bytes of arena buffer 2, of which offset 0 "
                           "was never written (launch 2)");
  // The same memory under an alias is what the other left there.
  m.targets[0].arena.buffers[2] = {0, 128, 2, 2, 0u};
  r = run(m, doubling());
  EXPECT_FALSE(r.fault) << r.fault->text();
}

TEST(Step, OnlyOutputsOfALaunchAreWritten) {
  std::string writesItsArgument = doubling("st.global.u32 [%d2], %r0;\n");
  Result r = run(chain(), writesItsArgument);
  ASSERT_TRUE(r.fault);
  EXPECT_EQ(r.fault->kind, sim::FaultKind::NotWritable);
  EXPECT_EQ(r.fault->buffer, "input 'x'");
  // Also where the memory is another launch's output.
  Manifest m = chain();
  m.targets[0].launches[0].kind = LaunchKind::Memset;
  m.targets[0].launches[0].kernel.reset();
  m.targets[0].launches[0].args = {BufferRef{0, 0}, Immediate{1, "uint8"},
                                   Immediate{128, "int64"}};
  r = run(m, writesItsArgument);
  ASSERT_TRUE(r.fault);
  EXPECT_EQ(r.fault->buffer, "arena buffer 0");
  // schedule.results says it where places alone do not.
  m = chain();
  m.targets[0].kernels[0].schedule["results"] = int64_t(0);
  r = run(m, doubling());
  ASSERT_TRUE(r.fault);
  EXPECT_EQ(r.fault->kind, sim::FaultKind::NotWritable);
}

TEST(Step, RegistersOfABlock) {
  Manifest m = chain();
  m.targets[0].kernels[0].registers = 255;
  m.targets[0].kernels[0].block = {1024, 1, 1};
  Result r = run(m, doubling());
  ASSERT_TRUE(r.fault);
  EXPECT_EQ(r.fault->text(),
            "device limit in kernel 'twice': 262144 registers for a block, a "
            "multiprocessor of a100 has 65536");
}

TEST(Step, WhatCannotBeSimulated) {
  Manifest m = chain();
  m.targets[0].kernels[0].ptxBlob.reset();
  EXPECT_EQ(run(m, doubling()).error,
            "kernel 'twice' of target sm_80 has no PTX in the bundle: machine "
            "code is not simulated");
  m = chain();
  m.targets[0].kernels[0].params.resize(3);
  EXPECT_EQ(run(m, doubling()).error,
            "kernel 'twice': its PTX has 2 parameters, the manifest says 3");
}

} // namespace
