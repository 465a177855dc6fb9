//===- hopper_faults_test.cpp - Faults of what runs by itself -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Simulator/Simulator.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace nova;
using namespace nova::sim;

namespace {

constexpr uint32_t kBytes = 16384; // Of shared memory.

/// %d0 and %d1 are two buffers of 256 words, the second for results, %d10 and
/// %d11 tensor maps of them (32 by 8 float32, all of it a box), %r0 is %tid.x,
/// %r1 the address of shared memory, %r20 that of an mbarrier in it; %p7 holds
/// for thread 0.
std::string kernelOf(const std::string &body, unsigned threads,
                     unsigned blocks) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n"
         ".extern .shared .align 1024 .b8 tile[];\n"
         ".visible .entry k(.param .u64 in, .param .u64 out, "
         ".param .align 64 .b8 from[128], .param .align 64 .b8 to[128])\n"
         ".reqntid " +
         std::to_string(threads) + ", 1, 1\n.reqnctapercluster " +
         std::to_string(blocks) +
         ", 1, 1\n{\n"
         ".reg .pred %p<8>;\n.reg .b16 %h<4>;\n.reg .b32 %r<64>;\n"
         ".reg .b64 %d<32>;\n"
         "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\n"
         "mov.u32 %r0, %tid.x;\nmov.u32 %r1, tile;\n"
         "mov.b64 %d10, from;\ncvta.param.u64 %d10, %d10;\n"
         "mov.b64 %d11, to;\ncvta.param.u64 %d11, %d11;\n"
         "add.u32 %r20, %r1, 8192;\nsetp.eq.u32 %p7, %r0, 0;\n" +
         body + "\nret;\n}\n";
}

struct Setting {
  unsigned threads = 64, blocks = 1;
  uint32_t registers = 0;
  bool unwritten = false;
};

struct Ran {
  std::optional<Fault> fault;
  std::vector<uint32_t> out;
  std::string error;
};

Ran run(const std::string &body, const Setting &setting, uint64_t seed) {
  Ran ran;
  ran.out.resize(256);
  std::vector<uint32_t> in(256);
  for (uint32_t k = 0; k < 256; ++k)
    in[k] = 1000 + k;
  std::vector<uint8_t> written(1024, setting.unwritten ? 0 : 1);
  Expected<Kernel> kernel = Kernel::load(
      kernelOf(body, setting.threads, setting.blocks), "k", "test");
  if (!kernel) {
    ran.error = kernel.error().message;
    return ran;
  }
  std::vector<Argument> arguments(4);
  arguments[0].memory =
      Memory{"input 'x'", reinterpret_cast<uint8_t *>(in.data()),
             written.data(), 1024, false};
  arguments[1].memory =
      Memory{"output 'y'", reinterpret_cast<uint8_t *>(ran.out.data()), nullptr,
             1024, true};
  for (size_t k : {0, 1}) {
    TensorMap map;
    map.memory = *arguments[k].memory;
    map.sizes = map.box = {32, 8};
    map.strides = {128};
    map.elementStrides = {1, 1};
    map.elementType = 7; // float32
    arguments[2 + k].map = map;
  }
  Shape shape;
  shape.block = {setting.threads, 1, 1};
  shape.grid = shape.cluster = {setting.blocks, 1, 1};
  shape.dynamicShared = kBytes;
  shape.registers = setting.registers;
  Options options;
  options.threads = 1;
  options.seed = seed;
  options.device = target::findTarget("sm_90a");
  options.maxInstructions = 100000;
  auto outcome = kernel->launch(shape, arguments, options);
  EXPECT_TRUE(bool(outcome));
  ran.fault = outcome->fault;
  return ran;
}

/// The fault that `body` must have in any order of warps, of one of the kinds.
Fault faultOf(const std::string &body, std::vector<FaultKind> kinds,
              const Setting &setting = {}) {
  Fault first;
  for (uint64_t seed : {0, 1, 2, 3, 4}) {
    Ran ran = run(body, setting, seed);
    EXPECT_EQ(ran.error, "");
    EXPECT_TRUE(ran.fault) << "no fault with seed " << seed;
    if (!ran.fault)
      return {};
    EXPECT_TRUE(std::count(kinds.begin(), kinds.end(), ran.fault->kind))
        << ran.fault->text();
    if (seed == 0 || ran.fault->kind == kinds[0])
      first = *ran.fault;
  }
  return first;
}

Ran expectClean(const std::string &body, const Setting &setting = {}) {
  Ran ran;
  for (uint64_t seed : {0, 1, 2, 3, 4}) {
    ran = run(body, setting, seed);
    EXPECT_EQ(ran.error, "");
    EXPECT_FALSE(ran.fault) << ran.fault->text();
  }
  return ran;
}

void expectSays(const Fault &fault, const std::string &what) {
  EXPECT_NE(fault.what.find(what), std::string::npos) << fault.what;
}

const std::string kInit = "@%p7 mbarrier.init.shared::cta.b64 [%r20], 1;\n";
const std::string kShow = "@%p7 fence.mbarrier_init.release.cluster;\n";
const std::string kBarrier = "bar.sync 0;\n";
std::string announce(int bytes) {
  return "@%p7 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], " +
         std::to_string(bytes) + ";\n";
}
std::string copy(const std::string &at = "{0, 0}",
                 const std::string &to = "%r1",
                 const std::string &map = "%d10") {
  return "@%p7 cp.async.bulk.tensor.2d.shared::cluster.global.tile"
         ".mbarrier::complete_tx::bytes [" +
         to + "], [" + map + ", " + at + "], [%r20];\n";
}
std::string waitFor(const std::string &parity, const std::string &label = "W") {
  return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p6, [%r20], " +
         parity + ", 1000;\n@!%p6 bra " + label + ";\n";
}
/// Each thread gives out its word of shared memory.
const std::string kRead =
    "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\nld.shared.u32 %r4, [%r3];\n"
    "mul.wide.u32 %d2, %r0, 4;\nadd.u64 %d3, %d1, %d2;\n"
    "st.global.u32 [%d3], %r4;\n";
/// Each thread writes its word there.
const std::string kWrite = "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\n"
                           "st.shared.u32 [%r3], %r0;\n";
const std::string kFence = "fence.proxy.async.shared::cta;\n";

TEST(TensorCopies, AreWaitedFor) {
  std::string begun = kInit + kShow + kBarrier + announce(1024) + copy();
  Ran ran = expectClean(begun + waitFor("0") + kRead);
  EXPECT_EQ(ran.out[5], 1005u);
  EXPECT_EQ(ran.out[63], 1063u);
  Fault f = faultOf(begun + kRead, {FaultKind::Race, FaultKind::Uninitialised});
  expectSays(f, "has not waited for the phase of its mbarrier");
  // A wait for the wrong parity lets everybody pass.
  faultOf(begun + waitFor("1") + kRead,
          {FaultKind::Race, FaultKind::Uninitialised, FaultKind::Deadlock});
}

TEST(TensorCopies, BytesAreCounted) {
  std::string start = kInit + kShow + kBarrier;
  Fault f = faultOf(start + announce(2048) + copy() + waitFor("0") + kRead,
                    {FaultKind::Deadlock});
  expectSays(f, "for phase 0 of mbarrier shared 'tile' + 8192: it is in phase "
                "0, with 0 of 1 arrivals and 1024 of 2048 bytes missing "
                "(announced at PTX line ");
  f = faultOf(start + announce(512) + copy() + waitFor("0") + kRead,
              {FaultKind::Transaction});
  expectSays(f, "512 bytes more come to mbarrier shared 'tile' + 8192 in phase "
                "0 than the 512 that expect_tx has announced");
  f = faultOf(start + announce(1024) + waitFor("0") + kRead,
              {FaultKind::Deadlock});
  expectSays(f, "1024 of 1024 bytes missing");
  f = faultOf(start +
                  "@%p7 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 "
                  "[%r20], 0xfffff;\n" +
                  announce(1),
              {FaultKind::Transaction});
  expectSays(f, "1048576 bytes announced in a phase, the limit is 1048575");
  // Announced in two parts, the second by who does not arrive.
  expectClean(start +
              "@%p7 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r20], "
              "512;\n" +
              announce(512) + copy() + waitFor("0") + kRead);
}

TEST(TensorCopies, Proxies) {
  std::string rest = announce(1024) + copy() + waitFor("0") + kRead;
  Fault f = faultOf(kInit + kBarrier + rest, {FaultKind::ProxyFence});
  expectSays(f, "no fence.mbarrier_init or fence.proxy.async shows it");
  expectClean(kInit + "@%p7 fence.proxy.async;\n" + kBarrier + rest);
  // What was written by others, or by itself.
  std::string start = kInit + kShow;
  f = faultOf(start + kWrite + kBarrier + rest, {FaultKind::ProxyFence});
  expectSays(f, "in the generic one with no fence.proxy.async between the two");
  expectClean(start + kWrite + kFence + kBarrier + rest);
  expectClean(start + kWrite + kBarrier + kFence + rest);
  // Without a barrier the fence shows nobody else's.
  faultOf(start + kBarrier + kWrite + kFence + rest,
          {FaultKind::Race, FaultKind::ProxyFence});
}

TEST(TensorCopies, WhereTheyAre) {
  std::string start = kInit + kShow + kBarrier + announce(1024);
  Fault f = faultOf(start + copy("{2, 0}"), {FaultKind::Misaligned});
  expectSays(f, "begins at element 2 of 4 bytes, expected a multiple of 16");
  f = faultOf(start + "add.u32 %r5, %r1, 64;\n" + copy("{0, 0}", "%r5"),
              {FaultKind::Misaligned});
  expectSays(f,
             "accesses 1024 bytes at shared 'tile' + 64, no multiple of 128");
  f = faultOf(start + "add.u32 %r5, %r1, 15872;\n" + copy("{0, 0}", "%r5"),
              {FaultKind::OutOfBounds});
  f = faultOf(start + copy("{0, 0}", "%r1", "%d0"), {FaultKind::Undefined});
  expectSays(f, "no tensor map is at this address");
  Setting unwritten;
  unwritten.unwritten = true;
  f = faultOf(start + copy(), {FaultKind::Uninitialised}, unwritten);
  expectSays(f, "copies 128 bytes at offset 0 of input 'x', of which offset 0 "
                "was never written");
  // Outside the tensor there are zeros.
  Ran ran = expectClean(start + copy("{-4, 7}") + waitFor("0") + kRead);
  EXPECT_EQ(ran.out[3], 0u);
  EXPECT_EQ(ran.out[4], 1000u + 7 * 32);
  EXPECT_EQ(ran.out[32], 0u);
}

TEST(TensorCopies, Stores) {
  std::string write = "shl.b32 %r2, %r0, 4;\nadd.u32 %r3, %r1, %r2;\n"
                      "st.shared.v4.u32 [%r3], {%r0, %r0, %r0, %r0};\n";
  std::string store =
      "@%p7 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
      "[%d11, {0, 0}], [%r1];\n@%p7 cp.async.bulk.commit_group;\n";
  std::string wait = "cp.async.bulk.wait_group.read 0;\n";
  Ran ran = expectClean(write + kFence + kBarrier + store + wait);
  EXPECT_EQ(ran.out[9], 2u);
  EXPECT_EQ(ran.out[255], 63u);
  faultOf(write + kBarrier + store + wait, {FaultKind::ProxyFence});
  Fault f =
      faultOf(write + kFence + kBarrier + store, {FaultKind::AsyncPending});
  expectSays(f, "ends while the bulk copy it began");
  // Written over before and after the wait.
  std::string over = "@%p7 st.shared.u32 [%r1], 99;\n";
  f = faultOf(write + kFence + kBarrier + store + over + wait,
              {FaultKind::AsyncPending});
  expectSays(f, "still reads: wait for it by cp.async.bulk.wait_group.read");
  expectClean(write + kFence + kBarrier + store + wait + over);
  f = faultOf(write + kFence + kBarrier + store +
                  "@%p7 cp.async.bulk.wait_group.read 1;\n" + over,
              {FaultKind::AsyncPending});
  // The map of an input may only be read.
  std::string input = store;
  input.replace(input.find("%d11"), 4, "%d10");
  faultOf(write + kFence + kBarrier + input + wait, {FaultKind::NotWritable});
}

TEST(BulkCopies, Bytes) {
  std::string start = kInit + kShow + kBarrier + announce(512);
  auto bulk = [](const std::string &from, int bytes) {
    return "@%p7 cp.async.bulk.shared::cluster.global"
           ".mbarrier::complete_tx::bytes [%r1], [" +
           from + "], " + std::to_string(bytes) + ", [%r20];\n";
  };
  Ran ran = expectClean(start + bulk("%d0+256", 512) + waitFor("0") + kRead);
  EXPECT_EQ(ran.out[1], 1065u);
  faultOf(start + bulk("%d0+8", 512), {FaultKind::Misaligned});
  faultOf(start + bulk("%d0", 520), {FaultKind::Misaligned});
  faultOf(start + bulk("%d0+768", 512), {FaultKind::OutOfBounds});
}

TEST(Mbarriers, Life) {
  Fault f = faultOf(waitFor("0"), {FaultKind::Phase});
  expectSays(f, "where no mbarrier.init has been executed");
  faultOf(kInit + waitFor("1"), {FaultKind::Race, FaultKind::Phase});
  f = faultOf(kInit + kInit, {FaultKind::Phase});
  expectSays(f, "which has been one since PTX line");
  expectClean(kInit + "@%p7 mbarrier.inval.shared.b64 [%r20];\n" + kInit);
  f = faultOf(kInit + kBarrier +
                  "@%p7 st.shared.u32 [%r20], 5;\n@%p7 "
                  "mbarrier.arrive.shared.b64 _, [%r20];\n",
              {FaultKind::Phase});
  expectSays(f, "has written");
  f = faultOf("@%p7 mbarrier.init.shared.b64 [%r20], 0;\n", {FaultKind::Limit});
  faultOf("@%p7 mbarrier.init.shared.b64 [%r20+4], 1;\n",
          {FaultKind::Misaligned});
}

TEST(Mbarriers, Phases) {
  std::string start = kInit + kBarrier;
  std::string arrive = "@%p7 mbarrier.arrive.shared::cta.b64 _, [%r20];\n";
  Fault f = faultOf(start + "@%p7 mbarrier.arrive.shared::cta.b64 _, [%r20], "
                            "2;\n",
                    {FaultKind::Phase});
  expectSays(f, "arrives 2 times at mbarrier shared 'tile' + 8192, which is in "
                "phase 0, with 1 of 1 arrivals missing");
  f = faultOf(start + waitFor("2"), {FaultKind::Phase});
  expectSays(f, "parity 2");
  // Who waits is not part of what ends the phase: it may miss it.
  f = faultOf(start + arrive + arrive + "setp.lt.u32 %p1, %r0, 32;\n" +
                  "@%p1 bra END;\n" + waitFor("0") + "END:\n",
              {FaultKind::Phase, FaultKind::Deadlock});
  // Two phases in turn, each waited for.
  expectClean(start + arrive + waitFor("0") + kBarrier + arrive +
              waitFor("1", "V"));
  // Nobody arrives.
  f = faultOf(start + waitFor("0"), {FaultKind::Deadlock});
  expectSays(f, "warp 0 waits at PTX line");
  expectSays(f, "it is in phase 0, with 1 of 1 arrivals missing; warp 1 waits");
}

TEST(Mbarriers, OrderWhatWasReleased) {
  std::string start = kInit + kBarrier;
  // Warp 0 writes and arrives, warp 1 waits and reads.
  std::string roles = "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra READ;\n" + kWrite +
                      "bar.warp.sync -1;\n"
                      "@%p7 mbarrier.arrive.shared::cta.b64 _, [%r20];\n"
                      "bra.uni END;\nREAD:\n";
  std::string read = "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\n"
                     "ld.shared.u32 %r4, [%r3+-128];\n";
  expectClean(start + roles + waitFor("0") + read + "END:\n");
  faultOf(start + roles + read + "END:\n",
          {FaultKind::Race, FaultKind::Uninitialised});
  // Relaxed, it orders nothing.
  std::string relaxed = roles;
  relaxed.replace(relaxed.find("arrive.shared"), 13,
                  "arrive.relaxed.cta.shared");
  faultOf(start + relaxed + waitFor("0") + read + "END:\n", {FaultKind::Race});
}

TEST(Mbarriers, PollingIsNoDeadlock) {
  std::string poll =
      "P:\nmbarrier.test_wait.parity.shared.b64 %p6, [%r20], 0;\n"
      "add.u32 %r9, %r9, 1;\n@!%p6 bra P;\n";
  std::string body = kInit + kBarrier + "mov.u32 %r9, 0;\n";
  expectClean(body +
              "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra P;\n"
              "@%p7 mbarrier.arrive.shared.b64 _, [%r20];\n" +
              poll);
  Fault f = faultOf(body + poll, {FaultKind::Deadlock});
  expectSays(f, "polls at");
}

// --- products ---------------------------------------------------------------

/// Operands of zeros and ones: A at the start of shared memory, B behind 2048
/// bytes; descriptors %d20 and %d21, sums %r40 to %r43, fragment %r44 to %r47.
const std::string kOperands =
    "shl.b32 %r2, %r0, 4;\nadd.u32 %r3, %r1, %r2;\n"
    "st.shared.v4.u32 [%r3], {0x3f803f80, 0x3f803f80, 0x3f803f80, "
    "0x3f803f80};\n"
    "st.shared.v4.u32 [%r3+2048], {0x3f803f80, 0x3f803f80, 0x3f803f80, "
    "0x3f803f80};\n";
const std::string kDescriptors =
    "and.b32 %r5, %r1, 0x3ffff;\nshr.u32 %r5, %r5, 4;\ncvt.u64.u32 %d20, %r5;\n"
    // Leading 128 bytes, stride 256.
    "add.u64 %d20, %d20, 0x1000080000;\nadd.u64 %d21, %d20, 128;\n"
    "mov.u32 %r40, 0;\nmov.u32 %r41, 0;\nmov.u32 %r42, 0;\nmov.u32 %r43, 0;\n"
    "mov.u32 %r44, 0;\nmov.u32 %r45, 0;\nmov.u32 %r46, 0;\nmov.u32 %r47, 0;\n";
const std::string kProduct =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r40, %r41, %r42, "
    "%r43}, %d20, %d21, 1, 1, 1, 0, 0;\n";
const std::string kHeldProduct =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r40, %r41, %r42, "
    "%r43}, {%r44, %r45, %r46, %r47}, %d21, 1, 1, 1, 0;\n";
const std::string kOrdered = "wgmma.fence.sync.aligned;\n";
const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
const std::string kWaitProduct = "wgmma.wait_group.sync.aligned 0;\n";
const std::string kUse = "mul.wide.u32 %d2, %r0, 4;\nadd.u64 %d3, %d1, %d2;\n"
                         "st.global.u32 [%d3], %r43;\n";
const Setting kWarpgroup{128};
const std::string kBegin = kOperands + kFence + kBarrier + kDescriptors;

TEST(Products, AreWaitedFor) {
  Ran ran = expectClean(
      kBegin + kOrdered + kProduct + kCommit + kWaitProduct + kUse, kWarpgroup);
  EXPECT_EQ(ran.out[7], 0x41800000u); // 16
  Fault f = faultOf(kBegin + kOrdered + kProduct + kCommit + kUse,
                    {FaultKind::ProductPending}, kWarpgroup);
  expectSays(f, "reads a register that the product issued at PTX line");
  expectSays(f, "still sums into: first wgmma.wait_group 0");
  f = faultOf(kBegin + kOrdered + kProduct + kWaitProduct + kUse,
              {FaultKind::ProductPending}, kWarpgroup);
  expectSays(f, "first wgmma.commit_group, then wgmma.wait_group 0");
  f = faultOf(kBegin + kOrdered + kProduct + kCommit +
                  "wgmma.wait_group.sync.aligned 1;\n" + kUse,
              {FaultKind::ProductPending}, kWarpgroup);
  f = faultOf(kBegin + kOrdered + kProduct + kCommit + "mov.u32 %r41, 0;\n",
              {FaultKind::ProductPending}, kWarpgroup);
  expectSays(f, "writes a register");
  // The operand in registers, too.
  expectClean(kBegin + kOrdered + kHeldProduct + kCommit + kWaitProduct +
                  "mov.u32 %r44, 0;\n",
              kWarpgroup);
  f = faultOf(kBegin + kOrdered + kHeldProduct + kCommit + "mov.u32 %r44, 0;\n",
              {FaultKind::ProductPending}, kWarpgroup);
  expectSays(f, "still reads: first wgmma.wait_group 0");
}

TEST(Products, RegistersAreOrderedBefore) {
  Fault f = faultOf(kBegin + kProduct + kCommit + kWaitProduct,
                    {FaultKind::ProductPending}, kWarpgroup);
  expectSays(f, "no wgmma.fence before it");
  f = faultOf(kBegin + kOrdered + "mov.u32 %r42, 0;\n" + kProduct,
              {FaultKind::ProductPending}, kWarpgroup);
  expectSays(f, "uses a register that was written at PTX line");
  // One after the other into the same sums needs nothing.
  expectClean(kBegin + kOrdered + kProduct + kProduct + kCommit + kProduct +
                  kCommit + kWaitProduct + kUse,
              kWarpgroup);
  std::string other = kProduct;
  other.replace(other.find("%r40"), 4, "%r44");
  f = faultOf(kBegin + kOrdered + kHeldProduct + kCommit + other,
              {FaultKind::ProductPending}, kWarpgroup);
  expectSays(f, "uses a register otherwise than the product issued at");
}

TEST(Products, OperandsInSharedMemory) {
  Fault f = faultOf(kOperands + kBarrier + kDescriptors + kOrdered + kProduct,
                    {FaultKind::ProxyFence}, kWarpgroup);
  std::string issued = kBegin + kOrdered + kProduct + kCommit;
  std::string over = "@%p7 st.shared.u32 [%r1], 7;\n";
  f = faultOf(issued + over + kWaitProduct,
              {FaultKind::ProductPending, FaultKind::Race}, kWarpgroup);
  expectSays(f, "may still read: wait for it by wgmma.wait_group");
  // All warps of the warpgroup have to be done with what all read.
  faultOf(issued + kWaitProduct + "@%p7 st.shared.u32 [%r1+2048], 7;\n",
          {FaultKind::ProductPending, FaultKind::Race}, kWarpgroup);
  expectClean(issued + kWaitProduct + kBarrier + over, kWarpgroup);
  // A barrier before the wait says nothing.
  faultOf(issued + kBarrier + over + kWaitProduct, {FaultKind::ProductPending},
          kWarpgroup);
  f = faultOf(kBegin + "add.u64 %d20, %d20, 0x380;\n" + kOrdered + kProduct,
              {FaultKind::OutOfBounds, FaultKind::Uninitialised}, kWarpgroup);
}

TEST(Products, AreAWarpgroups) {
  Fault f =
      faultOf(kBegin + kOrdered + "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\n" +
                  kProduct + "bra.uni END;\nA:\n" + kProduct + "END:\n" +
                  kCommit + kWaitProduct,
              {FaultKind::Divergence}, kWarpgroup);
  expectSays(f, "executes a product other than the one at PTX line");
  Setting small;
  f = faultOf(kOperands + kFence + kBarrier + kDescriptors + kOrdered +
                  kProduct,
              {FaultKind::Undefined}, small);
  expectSays(f, "whose warpgroup is not whole: a block of 64 threads");
  f = faultOf(kBegin + kOrdered +
                  "cvt.u64.u32 %d9, %r0;\n"
                  "add.u64 %d20, %d20, %d9;\n" +
                  kProduct,
              {FaultKind::Undefined}, kWarpgroup);
  expectSays(f, "lanes have different descriptors of the left operand");
}

// --- registers, clusters ----------------------------------------------------

TEST(SetRegisters, Pool) {
  Setting two{256};
  two.registers = 128;
  auto roles = [](int first, int second) {
    return "setp.ge.u32 %p1, %r0, 128;\n@%p1 bra SECOND;\n"
           "setmaxnreg.dec.sync.aligned.u32 " +
           std::to_string(first) +
           ";\nbra.uni END;\nSECOND:\nsetmaxnreg.inc.sync.aligned.u32 " +
           std::to_string(second) + ";\nEND:\n";
  };
  expectClean(roles(40, 216), two);
  Fault f = faultOf(roles(40, 224), {FaultKind::Deadlock}, two);
  expectSays(f, "for registers:");
  expectSays(f, "of the block's are free, and who starts with fewer must give "
                "up more by setmaxnreg.dec");
  f = faultOf("setmaxnreg.dec.sync.aligned.u32 136;\n", {FaultKind::Limit},
              two);
  expectSays(f, "136 registers a thread, which has 128: .dec takes no more");
  EXPECT_EQ(run("setmaxnreg.inc.sync.aligned.u32 264;", two, 0).error,
            "kernel 'test': PTX line 23: 'setmaxnreg.inc.sync.aligned.u32': "
            "registers of a thread, expected a multiple of 8 from 24 to 256");
}

TEST(Clusters, RemoteMemory) {
  Setting pair{32, 2};
  std::string meet = "barrier.cluster.arrive.aligned;\n"
                     "barrier.cluster.wait.aligned;\n";
  std::string remote = "mov.u32 %r8, %cluster_ctarank;\nxor.b32 %r9, %r8, 1;\n"
                       "mapa.shared::cluster.u32 %r10, %r3, %r9;\n"
                       "ld.shared::cluster.u32 %r11, [%r10];\n";
  expectClean(kWrite + meet + remote + meet, pair);
  faultOf(kWrite + remote + meet, {FaultKind::Race, FaultKind::Uninitialised},
          pair);
  Fault f = faultOf(kWrite + meet + remote, {FaultKind::Undefined}, {32, 2});
  expectSays(f, "no block of a cluster may end before the others are done");
  f = faultOf("barrier.cluster.wait.aligned;\n", {FaultKind::Phase}, pair);
  f = faultOf("mapa.shared::cluster.u32 %r10, %r1, 2;\n",
              {FaultKind::Undefined}, pair);
  expectSays(f, "block 2 of a cluster of 2");
  f = faultOf("mov.u32 %r8, %cluster_ctarank;\nsetp.eq.u32 %p1, %r8, 0;\n"
              "@%p1 bra END;\nM:\nbar.sync 1, 64;\nEND:\n" +
                  meet,
              {FaultKind::Undefined, FaultKind::Deadlock}, pair);
}

TEST(Clusters, Multicast) {
  Setting pair{32, 2};
  std::string start = kInit + kShow + kBarrier + announce(1024) +
                      "barrier.cluster.arrive.aligned;\n"
                      "barrier.cluster.wait.aligned;\n"
                      "mov.u32 %r8, %cluster_ctarank;\n"
                      "setp.eq.and.u32 %p1, %r8, 1, %p7;\n";
  auto cast = [](const std::string &mask) {
    return "mov.u16 %h1, " + mask +
           ";\n@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile"
           ".mbarrier::complete_tx::bytes.multicast::cluster [%r1], "
           "[%d10, {0, 0}], [%r20], %h1;\n";
  };
  std::string end = "barrier.cluster.arrive.aligned;\n"
                    "barrier.cluster.wait.aligned;\n";
  expectClean(start + cast("3") + waitFor("0") + kRead + end, pair);
  Fault f = faultOf(start + cast("2") + waitFor("0") + kRead + end,
                    {FaultKind::Deadlock}, pair);
  expectSays(f, "block 0 of the cluster, warp 0 waits at");
  f = faultOf(start + cast("7"), {FaultKind::Undefined}, pair);
  expectSays(f, "a copy for the blocks of mask 7, the cluster has 2");
}

TEST(Decoding, WhatIsNotKnown) {
  auto errorOf = [](const std::string &text) { return run(text, {}, 0).error; };
  EXPECT_EQ(errorOf("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r40, "
                    "%r41, %r42, %r43}, %d20, %d21, 1;"),
            "kernel 'test': PTX line 23: 'wgmma.mma_async.sync.aligned."
            "m64n8k32.s32.s8.s8': no shape and types that the simulator knows: "
            "tf32, bf16 and f16 of m64nNk8 or m64nNk16 are");
  EXPECT_EQ(errorOf("mbarrier.explode.shared.b64 [%r20];"),
            "kernel 'test': PTX line 23: 'mbarrier.explode.shared.b64': no "
            "operation that the simulator knows");
  EXPECT_EQ(errorOf("fence.proxy.other;"),
            "kernel 'test': PTX line 23: 'fence.proxy.other': no proxies that "
            "the simulator knows");
  EXPECT_EQ(errorOf("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                    ".mbarrier::complete_tx::bytes [%r1], [%d10, {0, 0}], "
                    "[%r20];"),
            "kernel 'test': PTX line 23: 'cp.async.bulk.tensor.3d.shared::"
            "cluster.global.tile.mbarrier::complete_tx::bytes': 2 coordinates, "
            "expected 3");
}

} // namespace
