//===- faults_test.cpp - What the simulator reports, and what it does not -===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Simulator/Simulator.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace nova;
using namespace nova::sim;

namespace {

/// A kernel around `body`: %d0 and %d1 are two buffers, the second for results,
/// %r0 is %tid.x, %r1 the address of 4096 bytes of shared memory.
std::string kernelOf(const std::string &body, unsigned threads) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".extern .shared .align 1024 .b8 tile[];\n"
         ".visible .entry k(.param .u64 in, .param .u64 out)\n"
         ".reqntid " +
         std::to_string(threads) +
         ", 1, 1\n{\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %d<32>;\n"
         "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\n"
         "mov.u32 %r0, %tid.x;\nmov.u32 %r1, tile;\n" +
         body + "\nret;\n}\n";
}

struct Ran {
  std::optional<Fault> fault;
  std::vector<uint32_t> out;
  std::string error;
};

Ran run(const std::string &body, unsigned threads = 64, uint64_t seed = 0,
        bool unwritten = false) {
  Ran ran;
  ran.out.resize(256);
  std::vector<uint32_t> in(256);
  for (uint32_t k = 0; k < 256; ++k)
    in[k] = 1000 + k;
  std::vector<uint8_t> written(1024, unwritten ? 0 : 1);
  Expected<Kernel> kernel = Kernel::load(kernelOf(body, threads), "k", "test");
  if (!kernel) {
    ran.error = kernel.error().message;
    return ran;
  }
  Argument arguments[2];
  arguments[0].memory =
      Memory{"input 'x'", reinterpret_cast<uint8_t *>(in.data()),
             written.data(), 1024, false};
  arguments[1].memory =
      Memory{"output 'y'", reinterpret_cast<uint8_t *>(ran.out.data()), nullptr,
             1024, true};
  Shape shape;
  shape.block = {threads, 1, 1};
  shape.dynamicShared = 4096;
  Options options;
  options.threads = 1;
  options.seed = seed;
  options.device = target::findTarget("sm_80");
  options.maxInstructions = 100000;
  auto outcome = kernel->launch(shape, {arguments[0], arguments[1]}, options);
  EXPECT_TRUE(bool(outcome));
  ran.fault = outcome->fault;
  return ran;
}

/// The fault that `body` must have, in any order of warps.
Fault faultOf(const std::string &body, FaultKind kind, unsigned threads = 64,
              bool unwritten = false) {
  Fault first;
  for (uint64_t seed : {0, 1, 2}) {
    Ran ran = run(body, threads, seed, unwritten);
    EXPECT_EQ(ran.error, "");
    EXPECT_TRUE(ran.fault) << "no fault with seed " << seed;
    if (!ran.fault)
      return {};
    EXPECT_EQ(nameOf(ran.fault->kind), nameOf(kind)) << ran.fault->text();
    first = *ran.fault;
  }
  return first;
}

void expectClean(const std::string &body, unsigned threads = 64) {
  for (uint64_t seed : {0, 1, 2}) {
    Ran ran = run(body, threads, seed);
    EXPECT_EQ(ran.error, "");
    EXPECT_FALSE(ran.fault) << ran.fault->text();
  }
}

const std::string kMine = "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\n";

TEST(Faults, OutOfBoundsNamesEverything) {
  Fault f = faultOf("mul.wide.u32 %d2, %r0, 16;\nadd.u64 %d3, %d0, %d2;\n"
                    "ld.global.u32 %r4, [%d3+40];",
                    FaultKind::OutOfBounds);
  EXPECT_EQ(f.text(), "out of bounds in kernel 'test', PTX line 17 "
                      "(ld.global.u32 %r4, [%d3+40];), "
                      "block (0,0,0), warp 1, lane 30, address 0x10000000408: "
                      "reads 4 bytes at offset "
                      "1032 of input 'x', which has 1024");
}

TEST(Faults, OneBufferNeverReachesAnother) {
  faultOf("ld.global.u32 %r4, [%d0+1024];", FaultKind::OutOfBounds);
  faultOf("ld.global.u32 %r4, [%d0+-4];", FaultKind::OutOfBounds);
  faultOf("mov.u64 %d2, 0;\nld.global.u32 %r4, [%d2];", FaultKind::OutOfBounds);
}

TEST(Faults, SharedOutOfBounds) {
  Fault f = faultOf("st.shared.u32 [%r1+4096], %r0;", FaultKind::OutOfBounds);
  EXPECT_EQ(f.what,
            "accesses 4 bytes at offset 4096 of shared memory, which has 4096");
  EXPECT_EQ(f.lane, 0u);
}

TEST(Faults, Misaligned) {
  EXPECT_EQ(faultOf("ld.global.u64 %d2, [%d0+4];", FaultKind::Misaligned).what,
            "reads 8 bytes at offset 4 of input 'x', no multiple of 8");
  EXPECT_EQ(
      faultOf("st.shared.v2.u32 [%r1+4], {%r0, %r0};", FaultKind::Misaligned)
          .what,
      "accesses 8 bytes at shared 'tile' + 4, no multiple of 8");
}

TEST(Faults, UninitialisedReads) {
  EXPECT_EQ(
      faultOf("ld.shared.u32 %r4, [%r1+8];", FaultKind::Uninitialised).what,
      "reads shared 'tile' + 8, which nobody has written");
  EXPECT_EQ(
      faultOf("ld.global.u32 %r4, [%d0+8];", FaultKind::Uninitialised, 64, true)
          .what,
      "reads 4 bytes of input 'x', of which offset 8 was never written");
}

TEST(Faults, WriteOutsideTheOutputs) {
  Fault f = faultOf("st.global.u32 [%d0], %r0;", FaultKind::NotWritable);
  EXPECT_EQ(f.buffer, "input 'x'");
}

TEST(Faults, RaceWithoutABarrier) {
  std::string write = kMine + "st.shared.u32 [%r3], %r0;\n";
  // Each thread reads what one of the other warp wrote.
  std::string read = "xor.b32 %r4, %r3, 128;\nld.shared.u32 %r5, [%r4];\n";
  std::string init = kMine + "st.shared.u32 [%r3], 7;\nbar.sync 0;\n";
  Fault f = faultOf(init + write + read, FaultKind::Race);
  EXPECT_NE(f.what.find("with no barrier between the two"), std::string::npos)
      << f.what;
  expectClean(write + "bar.sync 0;\n" + read);
  // Writing over what the other warp may still read.
  faultOf(write + "bar.sync 0;\n" + read + "st.shared.u32 [%r3], 5;",
          FaultKind::Race);
  expectClean(write + "bar.sync 0;\n" + read +
              "bar.sync 0;\nst.shared.u32 [%r3], 5;");
}

TEST(Faults, RaceWithinAWarp) {
  std::string write = kMine + "st.shared.u32 [%r3], %r0;\n";
  std::string read = "xor.b32 %r4, %r3, 4;\nld.shared.u32 %r5, [%r4];\n";
  faultOf(write + read, FaultKind::Race, 32);
  expectClean(write + "bar.warp.sync -1;\n" + read, 32);
}

TEST(Faults, NamedBarriersOrderTheirWarpsOnly) {
  // Warps 0 and 1 meet at barrier 1, 2 and 3 at barrier 2; a warp then reads
  // from its partner, or from one of the other pair.
  std::string body = kMine + "st.shared.u32 [%r3], %r0;\nshr.u32 %r6, %r0, 6;\n"
                             "add.u32 %r6, %r6, 1;\nbar.sync %r6, 64;\n";
  expectClean(body + "xor.b32 %r4, %r3, 128;\nld.shared.u32 %r5, [%r4];", 128);
  Ran ran;
  for (uint64_t seed = 0; seed < 8 && !ran.fault; ++seed)
    ran = run(body + "xor.b32 %r4, %r3, 256;\nld.shared.u32 %r5, [%r4];", 128,
              seed);
  ASSERT_TRUE(ran.fault);
  EXPECT_TRUE(ran.fault->kind == FaultKind::Race ||
              ran.fault->kind == FaultKind::Uninitialised)
      << ran.fault->text();
}

TEST(Faults, ProducersArriveAndConsumersWait) {
  // bar.arrive releases what came before it, not what comes after.
  std::string roles =
      kMine + "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra PRODUCE;\n"
              "bar.sync 1, 64;\nsub.u32 %r4, %r3, 128;\n"
              "ld.shared.u32 %r5, [%r4];\nbra.uni END;\n"
              "PRODUCE:\nst.shared.u32 [%r3], %r0;\nbar.arrive 1, 64;\n";
  expectClean(roles + "END:\n");
  faultOf(roles + "st.shared.u32 [%r3], 9;\nEND:\n", FaultKind::Race);
}

TEST(Faults, AnAsyncCopyMustBeWaitedFor) {
  std::string copy =
      "shl.b32 %r2, %r0, 4;\nadd.u32 %r3, %r1, %r2;\n"
      "cp.async.cg.shared.global [%r3], [%d0], 16;\ncp.async.commit_group;\n";
  std::string read = "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];";
  EXPECT_NE(faultOf(copy + read, FaultKind::AsyncPending)
                .what.find("nobody has waited"),
            std::string::npos);
  faultOf(copy + "cp.async.wait_group 1;\n" + read, FaultKind::AsyncPending);
  expectClean(copy + "cp.async.wait_group 0;\n" + read);
  expectClean(copy + "cp.async.wait_all;\n" + read);
  // Other threads need a barrier besides.
  std::string other = "xor.b32 %r3, %r3, 512;\n" + read;
  Ran ran = run(copy + "cp.async.wait_all;\n" + other);
  ASSERT_TRUE(ran.fault);
  expectClean(copy + "cp.async.wait_all;\nbar.sync 0;\n" + other);
}

TEST(Faults, PartialBarriers) {
  Fault f = faultOf("setp.lt.u32 %p1, %r0, 40;\n@%p1 bar.sync 0;",
                    FaultKind::PartialBarrier);
  EXPECT_NE(f.what.find("8 of the warp's 32 threads"), std::string::npos)
      << f.what;
  f = faultOf("setp.lt.u32 %p1, %r0, 32;\n@!%p1 bra END;\nbar.sync 0;\nEND:\n",
              FaultKind::PartialBarrier);
  EXPECT_NE(
      f.what.find("barrier 0 has 32 of 64 threads; other warps have ended"),
      std::string::npos)
      << f.what;
}

TEST(Faults, Deadlock) {
  // Two warps wait at different barriers for each other.
  Fault f =
      faultOf("shr.u32 %r2, %r0, 5;\nbar.sync %r2, 64;", FaultKind::Deadlock);
  EXPECT_NE(
      f.what.find("warp 0 waits at PTX line 16; warp 1 waits at PTX line 16"),
      std::string::npos)
      << f.what;
}

TEST(Faults, LanesThatPartMustMeet) {
  faultOf("setp.lt.u32 %p1, %r0, 16;\n@%p1 bra OTHER;\n"
          "shfl.sync.bfly.b32 %r4, %r0, 1, 31, -1;\nbra.uni END;\n"
          "OTHER:\nadd.u32 %r4, %r0, 1;\nEND:\n",
          FaultKind::Divergence, 32);
  // With the mask of those who are there it is right.
  expectClean("setp.lt.u32 %p1, %r0, 16;\n@%p1 bra OTHER;\n"
              "shfl.sync.bfly.b32 %r4, %r0, 1, 31, 0xffff0000;\nbra.uni END;\n"
              "OTHER:\nshfl.sync.bfly.b32 %r4, %r0, 1, 31, 0xffff;\nEND:\n",
              32);
}

TEST(Faults, UndefinedShuffle) {
  faultOf("setp.lt.u32 %p1, %r0, 16;\n@%p1 bra END;\n"
          "shfl.sync.bfly.b32 %r4, %r0, 16, 31, 0xffff0000;\nEND:\n",
          FaultKind::Undefined, 32);
}

TEST(Faults, Endless) { faultOf("L:\nbra.uni L;", FaultKind::Endless); }

TEST(Faults, Trap) { faultOf("trap;", FaultKind::Trap); }

TEST(Faults, Limits) {
  Expected<Kernel> kernel = Kernel::load(kernelOf("", 64), "k", "test");
  ASSERT_TRUE(bool(kernel));
  std::vector<Argument> arguments(2);
  for (Argument &a : arguments)
    a.memory = Memory{};
  Options options;
  options.device = target::findTarget("sm_86");
  Shape shape;
  shape.block = {64, 1, 1};
  shape.dynamicShared = 128 << 10;
  auto outcome = kernel->launch(shape, arguments, options);
  ASSERT_TRUE(bool(outcome) && outcome->fault);
  EXPECT_EQ(outcome->fault->text(),
            "device limit in kernel 'test': 131072 bytes of shared memory, "
            "a block of rtx3060 has 101376");
  shape.dynamicShared = 0;
  shape.block = {128, 1, 1};
  outcome = kernel->launch(shape, arguments, options);
  ASSERT_TRUE(bool(outcome) && outcome->fault);
  EXPECT_EQ(outcome->fault->text(),
            "device limit in kernel 'test': a block of 128 x 1 x 1 threads, "
            "its .reqntid is 64 x 1 x 1");
}

TEST(Faults, UnknownInstructionsAreNamed) {
  EXPECT_EQ(run("sturdy.b32 %r4, %r0;").error,
            "kernel 'test': PTX line 15: 'sturdy.b32': an instruction that the "
            "simulator does not know");
  EXPECT_EQ(run("add.slowly.s32 %r4, %r0, %r0;").error,
            "kernel 'test': PTX line 15: 'add.slowly.s32': modifier '.slowly' "
            "is not one that the "
            "simulator knows here");
  EXPECT_EQ(run("add.s32 %r4, %r0;").error,
            "kernel 'test': PTX line 15: 'add.s32': 2 operands, expected 3");
  EXPECT_EQ(run("add.s32 %d4, %r0, %r0;").error,
            "kernel 'test': PTX line 15: 'add.s32': register '%d4' has 64 "
            "bits, expected 32");
  EXPECT_EQ(run("add.s32 %r4, %r0, %r99;").error,
            "kernel 'test': PTX line 15: 'add.s32': '%r99' is neither a "
            "register nor a variable that "
            "the simulator knows");
}

TEST(Faults, WhatIsNoPtx) {
  auto errorOf = [](const std::string &text) {
    auto kernel = Kernel::load(text, "k", "test");
    return kernel ? std::string() : kernel.error().message;
  };
  EXPECT_EQ(errorOf("hello"),
            "kernel 'test': PTX line 1: 'hello', expected a directive");
  EXPECT_EQ(errorOf(".version 8.0\n.entry k() { add.s32 %r1 %r2; }"),
            "kernel 'test': PTX line 2: '%r2', expected ';'");
  EXPECT_EQ(errorOf(".version 8.0\n.entry k() {"),
            "kernel 'test': PTX line 2: the end of the text, expected an "
            "instruction");
  EXPECT_EQ(errorOf(".version 8.0\n.entry other() { ret; }"),
            "kernel 'test': its PTX has no kernel 'k'");
  EXPECT_EQ(errorOf(".version 8.0\n.func f() { ret; }"),
            "kernel 'test': PTX line 2: a device function, which the simulator "
            "does not know");
  EXPECT_EQ(
      errorOf(".version 8.0\n.address_size 32\n"),
      "kernel 'test': PTX line 3: 32-bit addresses, expected .address_size 64");
}

TEST(Faults, SourceLines) {
  std::string text = kernelOf("\t.loc 1 42 7\nst.global.u32 [%d0], %r0;", 64);
  text += ".file 1 \"tiles\"\n//tiles 42 nova_tile.store %3\n";
  auto kernel = Kernel::load(text, "k", "test");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  std::vector<uint8_t> bytes(64);
  std::vector<Argument> arguments(2);
  for (Argument &a : arguments)
    a.memory = Memory{"m", bytes.data(), nullptr, 64, false};
  Shape shape;
  shape.block = {64, 1, 1};
  auto outcome = kernel->launch(shape, arguments, {});
  ASSERT_TRUE(bool(outcome) && outcome->fault);
  EXPECT_EQ(outcome->fault->source, "tiles:42:7 'nova_tile.store %3'");
}

TEST(Execution, ChoosesBetweenParameters) {
  Ran ran =
      run("mov.b64 %d2, in;\nmov.b64 %d3, out;\nsetp.lt.u32 %p1, %r0, 64;\n"
          "selp.b64 %d4, %d3, %d2, %p1;\nld.param.b64 %d5, [%d4];\n"
          "st.global.u32 [%d5], 17;");
  EXPECT_EQ(ran.error, "");
  EXPECT_FALSE(ran.fault) << ran.fault->text();
  EXPECT_EQ(ran.out[0], 17u);
  faultOf("mov.b64 %d2, 0;\nld.param.b64 %d5, [%d2];", FaultKind::OutOfBounds);
}

TEST(Execution, IsTheSameOnAnyNumberOfThreads) {
  std::string text =
      kernelOf("mov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r3, %r2, 64, %r0;\n"
               "mul.wide.u32 %d2, %r3, 4;\nadd.u64 %d3, %d1, %d2;\n"
               "mul.lo.u32 %r4, %r3, 2654435761;\nst.global.u32 [%d3], %r4;",
               64);
  auto kernel = Kernel::load(text, "k", "test");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  std::vector<std::vector<uint32_t>> results;
  for (unsigned threads : {1, 2, 5}) {
    std::vector<uint32_t> out(64 * 50);
    std::vector<Argument> arguments(2);
    arguments[0].memory = Memory{};
    arguments[1].memory = Memory{"y", reinterpret_cast<uint8_t *>(out.data()),
                                 nullptr, out.size() * 4, true};
    Shape shape;
    shape.grid = {50, 1, 1};
    shape.block = {64, 1, 1};
    Options options;
    options.threads = threads;
    auto outcome = kernel->launch(shape, arguments, options);
    ASSERT_TRUE(bool(outcome) && !outcome->fault);
    EXPECT_EQ(outcome->counts.laneInstructions % (50 * 64), 0u);
    results.push_back(out);
  }
  EXPECT_EQ(results[0][777], 777u * 2654435761u);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

/// A parameter of several pointers takes as many arguments, from which the code may
/// choose by a number.
TEST(Launch, ATableOfPointersIsOneParameter) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry k(.param .align 8 .b8 table[24])\n.reqntid 32, 1, 1\n{\n"
                     ".reg .b32 %r<4>;\n.reg .b64 %d<6>;\n"
                     "mov.b64 %d0, table;\nmov.u32 %r0, %ctaid.x;\nmul.wide.u32 %d1, %r0, 8;\n"
                     "add.s64 %d2, %d0, %d1;\nld.param.b64 %d3, [%d2];\nld.param.b64 %d4, [table+16];\n"
                     "ld.global.b32 %r1, [%d3];\nshl.b32 %r2, %r0, 2;\ncvt.u64.u32 %d5, %r2;\n"
                     "add.s64 %d4, %d4, %d5;\nst.global.b32 [%d4], %r1;\nret;\n}\n";
  Expected<Kernel> kernel = Kernel::load(text, "k", "test");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  uint32_t values[2] = {7, 9}, out[2] = {0, 0};
  std::vector<Argument> arguments(3);
  for (int k : {0, 1})
    arguments[k].memory = Memory{"x", reinterpret_cast<uint8_t *>(&values[k]), nullptr, 4, false};
  arguments[2].memory = Memory{"y", reinterpret_cast<uint8_t *>(out), nullptr, 8, true};
  Shape shape;
  shape.grid = {2, 1, 1};
  shape.block = {32, 1, 1};
  auto outcome = kernel->launch(shape, arguments, {});
  ASSERT_TRUE(bool(outcome)) << outcome.error().message;
  EXPECT_FALSE(outcome->fault) << outcome->fault->text();
  EXPECT_EQ(out[0], 7u);
  EXPECT_EQ(out[1], 9u);
  arguments.pop_back();
  outcome = kernel->launch(shape, arguments, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "kernel 'test': parameter 0 has 24 bytes, the launch gives 16");
}

} // namespace
