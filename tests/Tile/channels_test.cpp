//===- channels_test.cpp - Roles and channels of tile programs ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TileProgram.h"

#include <numeric>

using namespace nova;
using namespace nova::test;

using Floats = std::vector<float>;

static const std::string parameters = "%in: memref<8xf32>, %out: memref<8xf32>";

/// Four tiles of two go through a channel of two slots; the parts of the program are
/// replaced one at a time, to break it.
struct Program {
  std::string bytes = "8";
  std::string sendSlot = "%s", sendPhase = "%p";
  std::string copies = "4";
  std::string readSlot = "%s", readPhase = "%p";
  std::string release = "tile.release %ch[%s] : !tile.channel<2>";
  std::string rounding = "";

  std::string text() const {
    return R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %no = arith.constant false
    %ch = tile.channel : !tile.channel<2>
    %ring = tile.alloc : !tile.buffer<2, [2], f32, 1, 1>
    tile.role of 1 single {
      %n = arith.constant )" + copies + R"( : index
      scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0, %p = %no) -> (index, i1) {
        %from = arith.muli %i, %c2 : index
        tile.acquire %ch[)" + sendSlot + ", " + sendPhase + "] bytes " + bytes + R"( : !tile.channel<2>
        tile.bulk_load %in[%from] into %ring[%s] through %ch along [0] bounds [1] )" + rounding + R"( : memref<8xf32>, !tile.buffer<2, [2], f32, 1, 1>, !tile.channel<2>
        %up = arith.addi %s, %c1 : index
        %wraps = arith.cmpi eq, %up, %c2 : index
        %next = arith.select %wraps, %c0, %up : index
        %turn = arith.xori %p, %wraps : i1
        scf.yield %next, %turn : index, i1
      }
    }
    scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %c0, %p = %no) -> (index, i1) {
      %to = arith.muli %i, %c2 : index
      %w = tile.await %ch[)" + readSlot + ", " + readPhase + R"(] : !tile.channel<2>
      %v = tile.local_load %ring[%s] after %w dims [0] : !tile.buffer<2, [2], f32, 1, 1> -> tensor<2xf32>
      )" + release + R"(
      tile.store %v, %out[%to] along [0] bounds [0] : tensor<2xf32>, memref<8xf32>
      %up = arith.addi %s, %c1 : index
      %wraps = arith.cmpi eq, %up, %c2 : index
      %next = arith.select %wraps, %c0, %up : index
      %turn = arith.xori %p, %wraps : i1
      scf.yield %next, %turn : index, i1
    })";
  }
};

static Floats numbers() {
  Floats values(8);
  std::iota(values.begin(), values.end(), 1);
  return values;
}
static void programFails(const std::string &why, const Program &program) {
  Floats in = numbers(), out(8);
  fails(why, parameters, program.text(), in, out);
}

TEST(Channels, TilesGoThrough) {
  Floats in = numbers(), out(8);
  run(parameters, Program().text(), in, out);
  EXPECT_EQ(out, in);
}

TEST(Channels, RoundedOnTheWay) {
  // 1 + 2^-11 lies in the middle of two neighbours in tf32, 1 + 2^-12 below it.
  Floats in{1 + 0x1p-11f, 1 + 0x1p-12f, 3, -1 - 0x1p-11f, 0, 5, 6, 7}, out(8);
  Program program;
  program.rounding = "tf32";
  run(parameters, program.text(), in, out);
  EXPECT_EQ(out, (Floats{1 + 0x1p-10f, 1, 3, -1 - 0x1p-10f, 0, 5, 6, 7}));
}

TEST(Channels, EverySideTakesTurns) {
  Program slot;
  slot.sendSlot = "%c0";
  programFails("slot 0 at use 1 of the channel, slot 1 has its turn", slot);
  Program phase;
  phase.readPhase = "%no";
  programFails("phase 0 at use 2 of the channel, expected 1", phase);
}

TEST(Channels, WhatIsAnnouncedComes) {
  Program program;
  program.bytes = "16";
  programFails("its copies bring 8 bytes", program);
}

TEST(Channels, Deadlocks) {
  Program few;
  few.copies = "3";
  programFails("deadlock: the sender sends only 3 times", few);
  Program held;
  held.release = "";
  programFails("deadlock: the sender waits for slot 0, which was not released", held);
}

TEST(Channels, NothingIsLeftOver) {
  Program program;
  program.copies = "5";
  programFails("no consumer awaits what it announces", program);
}

TEST(Channels, ARoleTurnsTiles) {
  Floats in{1, 2, 3, 4, 5, 6}, out(6);
  auto text = [](const std::string &send) {
    return R"(
    %c0 = arith.constant 0 : index
    %no = arith.constant false
    %a = tile.channel : !tile.channel<1>
    %raw = tile.alloc : !tile.buffer<1, [2, 3], f32, 1, 1>
    %b = tile.channel : !tile.channel<1>
    %turned = tile.alloc : !tile.buffer<1, [3, 2], f32, 1, 1>
    tile.role of 1 single {
      tile.acquire %a[%c0, %no] bytes 24 : !tile.channel<1>
      tile.bulk_load %in[%c0, %c0] into %raw[%c0] through %a along [0, 1] bounds [0, 0] : memref<2x3xf32>, !tile.buffer<1, [2, 3], f32, 1, 1>, !tile.channel<1>
    }
    tile.role of 4 {
      %w = tile.await %a[%c0, %no] : !tile.channel<1>
      %v = tile.local_load %raw[%c0] after %w dims [0, 1] : !tile.buffer<1, [2, 3], f32, 1, 1> -> tensor<2x3xf32>
      tile.acquire %b[%c0, %no] : !tile.channel<1>
      tile.local_store %v, %turned[%c0] dims [1, 0] : tensor<2x3xf32>, !tile.buffer<1, [3, 2], f32, 1, 1>
      )" + send + R"(
    }
    %w = tile.await %b[%c0, %no] : !tile.channel<1>
    %v = tile.local_load %turned[%c0] after %w dims [0, 1] : !tile.buffer<1, [3, 2], f32, 1, 1> -> tensor<3x2xf32>
    tile.store %v, %out[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<3x2xf32>, memref<3x2xf32>)";
  };
  const char *shapes = "%in: memref<2x3xf32>, %out: memref<3x2xf32>";
  run(shapes, text("tile.send %b[%c0] : !tile.channel<1>"), in, out);
  EXPECT_EQ(out, (Floats{1, 4, 2, 5, 3, 6}));
  fails("no send follows what was written into the slot", shapes, text(""), in, out);
}
