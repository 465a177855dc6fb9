//===- async_test.cpp - Rings, copies and tokens of tile programs ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TileProgram.h"

#include <numeric>
#include <sstream>

using namespace nova;
using namespace nova::test;

using Floats = std::vector<float>;

static const std::string parameters = "%in: memref<8xf32>, %out: memref<8xf32>";

/// Lines in short form, so that what matters is seen: "copy N SLOT OFFSET"
/// defines %tN, "commit ..." with numbers of tokens, "wait N PENDING" defines
/// %wN, "read N SLOT W" reads a slot through %wW into a tile, "store N OFFSET"
/// stores that.
static std::string asyncBody(const std::string &script) {
  std::string body = "%ring = tile.alloc : !tile.buffer<2, [2], f32, 1, 1>\n"
                     "%off = arith.constant false\n";
  for (int i = 0; i < 8; ++i)
    body += "%c" + std::to_string(i) + " = arith.constant " +
            std::to_string(i) + " : index\n";
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string verb, a, b, c, d;
    words >> verb >> a >> b >> c >> d;
    if (verb == "copy")
      body +=
          "%t" + a + " = tile.async_load %in[%c" + c + "] into %ring[%c" + b +
          "] " + (d.empty() ? "" : "when %" + d) +
          " along [0] bounds [1] : memref<8xf32>, !tile.buffer<2, [2], f32, "
          "1, 1>\n";
    else if (verb == "commit") {
      body += "%g" + std::to_string(body.size()) + " = tile.commit[";
      for (const std::string &token : {a, b, c})
        if (!token.empty())
          body += (token == a ? "%" : ", %") + token;
      body += "]\n";
    } else if (verb == "wait")
      body += "%w" + a + " = tile.wait " + b + "\n";
    else if (verb == "read")
      body += "%r" + a + " = tile.local_load %ring[%c" + b + "] after %" + c +
              " dims [0] : !tile.buffer<2, [2], f32, 1, 1> -> tensor<2xf32>\n";
    else if (verb == "store")
      body += "tile.store %r" + a + ", %" + (c.empty() ? "out" : c) + "[%c" +
              b + "] along [0] bounds [0] : tensor<2xf32>, memref<8xf32>\n";
  }
  return body;
}

static Floats runAsync(const std::string &script) {
  Floats in(8), out(8);
  std::iota(in.begin(), in.end(), 1);
  run(parameters, asyncBody(script), in, out);
  return out;
}
static void asyncFails(const std::string &why, const std::string &script) {
  Floats in(8), out(8);
  std::iota(in.begin(), in.end(), 1);
  fails(why, parameters, asyncBody(script), in, out);
}

TEST(Async, CopyWaitRead) {
  EXPECT_EQ(runAsync("copy 0 0 2\ncommit t0\nwait 0 0\nread 0 0 w0\nstore 0 0"),
            (Floats{3, 4, 0, 0, 0, 0, 0, 0}));
}

TEST(Async, GroupsArriveInOrder) {
  EXPECT_EQ(runAsync("copy 0 0 0\ncommit t0\ncopy 1 1 4\ncommit t1\n"
                     "wait 0 1\nread 0 0 w0\nwait 1 0\nread 1 1 w1\n"
                     "store 0 0\nstore 1 2"),
            (Floats{1, 2, 5, 6, 0, 0, 0, 0}));
  // Both in one group.
  EXPECT_EQ(runAsync("copy 0 0 0\ncopy 1 1 4\ncommit t0 t1\nwait 0 0\n"
                     "read 0 0 w0\nread 1 1 w0\nstore 0 0\nstore 1 2"),
            (Floats{1, 2, 5, 6, 0, 0, 0, 0}));
}

TEST(Async, TheMemoryEdgeIsZero) {
  EXPECT_EQ(runAsync("copy 0 0 7\ncommit t0\nwait 0 0\nread 0 0 w0\nstore 0 0"),
            (Floats{8, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Async, NothingStartsWhenNotWanted) {
  // Outside memory and into a slot that is read: neither matters.
  EXPECT_EQ(runAsync("copy 0 0 2\ncommit t0\nwait 0 0\nread 0 0 w0\n"
                     "copy 1 0 0 off\ncommit t1\nwait 1 0\nread 1 0 w1\n"
                     "store 1 0"),
            (Floats{3, 4, 0, 0, 0, 0, 0, 0}));
}

TEST(Async, RingInALoop) {
  Floats in(8), out(8);
  std::iota(in.begin(), in.end(), 1);
  // Two slots; the copy of the next tile flies while this one is read.
  run(parameters, R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %ring = tile.alloc : !tile.buffer<2, [2], f32, 1, 1>
    %t0 = tile.async_load %in[%c0] into %ring[%c0] along [0] bounds [0] : memref<8xf32>, !tile.buffer<2, [2], f32, 1, 1>
    %g0 = tile.commit[%t0]
    scf.for %i = %c0 to %c4 step %c1 {
      %w = tile.wait 0
      %next = arith.addi %i, %c1 : index
      %more = arith.cmpi slt, %next, %c4 : index
      %slot = arith.remui %i, %c2 : index
      %into = arith.remui %next, %c2 : index
      %from = arith.muli %next, %c2 : index
      %t = tile.async_load %in[%from] into %ring[%into] when %more along [0] bounds [0] : memref<8xf32>, !tile.buffer<2, [2], f32, 1, 1>
      %g = tile.commit[%t]
      %v = tile.local_load %ring[%slot] after %w dims [0] : !tile.buffer<2, [2], f32, 1, 1> -> tensor<2xf32>
      %d = arith.addf %v, %v : tensor<2xf32>
      %to = arith.muli %i, %c2 : index
      tile.store %d, %out[%to] along [0] bounds [0] : tensor<2xf32>, memref<8xf32>
    })",
      in, out);
  EXPECT_EQ(out, (Floats{2, 4, 6, 8, 10, 12, 14, 16}));
}

TEST(Async, DimensionsOfASlotInAnyOrder) {
  Floats in{1, 2, 3, 4, 5, 6}, out(6);
  run("%in: memref<2x3xf32>, %out: memref<3x2xf32>", R"(
    %c0 = arith.constant 0 : index
    %ring = tile.alloc : !tile.buffer<1, [2, 3], f32, 1, 1>
    %t = tile.async_load %in[%c0, %c0] into %ring[%c0] along [0, 1] bounds [0, 0] : memref<2x3xf32>, !tile.buffer<1, [2, 3], f32, 1, 1>
    %g = tile.commit[%t]
    %w = tile.wait 0
    %v = tile.local_load %ring[%c0] after %w dims [1, 0] : !tile.buffer<1, [2, 3], f32, 1, 1> -> tensor<3x2xf32>
    tile.store %v, %out[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<3x2xf32>, memref<3x2xf32>)",
      in, out);
  EXPECT_EQ(out, (Floats{1, 4, 2, 5, 3, 6}));
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

TEST(AsyncErrors, ReadOfWhatNeverArrived) {
  asyncFails("tile.local_load at grid point 0: slot 0 was never written",
             "wait 0 0\nread 0 0 w0");
  asyncFails("tile.local_load at grid point 0: slot 0 has a copy in flight",
             "wait 0 0\ncopy 0 0 0\ncommit t0\nread 0 0 w0");
  // Not committed before the wait.
  asyncFails("slot 0 has a copy in flight",
             "copy 0 0 0\nwait 0 0\nread 0 0 w0");
  // One group too many may be pending.
  asyncFails("slot 0 has a copy in flight",
             "copy 0 0 0\ncommit t0\nwait 0 1\nread 0 0 w0");
}

TEST(AsyncErrors, ReadThroughAnEarlierWait) {
  asyncFails("the copy into slot 0 arrived after the wait of this token",
             "wait 0 0\ncopy 0 0 0\ncommit t0\nwait 1 0\nread 0 0 w0");
}

TEST(AsyncErrors, ReadThroughAnotherToken) {
  asyncFails("tile.local_load at grid point 0: the token is not a wait's",
             "copy 0 0 0\ncommit t0\nwait 0 0\nread 0 0 t0");
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

TEST(AsyncErrors, CopyIntoASlotInFlight) {
  asyncFails(
      "tile.async_load at grid point 0: slot 0 has another copy in flight",
      "copy 0 0 0\ncommit t0\ncopy 1 0 0");
}

TEST(AsyncErrors, CopyIntoASlotThatOthersRead) {
  asyncFails("slot 0 was read since the last wait: other threads may still be "
             "reading it",
             "copy 0 0 0\ncommit t0\nwait 0 0\nread 0 0 w0\ncopy 1 0 2");
}

TEST(AsyncErrors, SourceIsWrittenBeforeArrival) {
  asyncFails(
      "tile.async_load at grid point 0: element (0) was written in memory "
      "before the copy arrived",
      "copy 0 0 0\ncommit t0\nwait 0 0\nread 0 0 w0\n"
      "copy 1 1 4\ncommit t1\nstore 0 4 in\nwait 1 0");
}

TEST(AsyncErrors, OutsideMemory) {
  Floats in(8), out(8);
  fails(
      "tile.async_load at grid point 0: element (1) is at 8 along dimension 0",
      parameters, R"(
    %c0 = arith.constant 0 : index
    %c7 = arith.constant 7 : index
    %ring = tile.alloc : !tile.buffer<1, [2], f32, 1, 1>
    %t = tile.async_load %in[%c7] into %ring[%c0] along [0] bounds [0] : memref<8xf32>, !tile.buffer<1, [2], f32, 1, 1>)",
      in, out);
}

TEST(AsyncErrors, Slots) {
  Floats in(8), out(8);
  fails("tile.async_load at grid point 0: slot -1 of a ring of 1", parameters,
        R"(
    %m1 = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %ring = tile.alloc : !tile.buffer<1, [2], f32, 1, 1>
    %t = tile.async_load %in[%c0] into %ring[%m1] along [0] bounds [0] : memref<8xf32>, !tile.buffer<1, [2], f32, 1, 1>)",
        in, out);
  fails("tile.alloc at grid point 0: no elements of type i128", parameters,
        "%ring = tile.alloc : !tile.buffer<1, [2], i128, 1, 1>", in, out);
  asyncFails("tile.local_load at grid point 0: slot 2 of a ring of 2",
             "wait 0 0\nread 0 2 w0");
}

TEST(AsyncErrors, ARingInALoopIsTheSameMemoryEachTime) {
  Floats in(8), out(8);
  fails("slot 0 was read since the last wait", parameters, R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    scf.for %i = %c0 to %c2 step %c1 {
      %ring = tile.alloc : !tile.buffer<1, [2], f32, 1, 1>
      %t = tile.async_load %in[%c0] into %ring[%c0] along [0] bounds [0] : memref<8xf32>, !tile.buffer<1, [2], f32, 1, 1>
      %g = tile.commit[%t]
      %w = tile.wait 0
      %v = tile.local_load %ring[%c0] after %w dims [0] : !tile.buffer<1, [2], f32, 1, 1> -> tensor<2xf32>
    })",
        in, out);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

TEST(AsyncErrors, CommitNamesExactlyWhatStarted) {
  asyncFails(
      "tile.commit at grid point 0: 2 copies were started since the last "
      "commit, but it names 1 of them",
      "copy 0 0 0\ncopy 1 1 0\ncommit t0");
  asyncFails("1 copies were started since the last commit, but it names 0",
             "copy 0 0 0\ncommit t0\ncopy 1 1 0\ncommit t0");
  asyncFails("tile.commit at grid point 0: a token that is not a copy's",
             "wait 0 0\ncommit w0");
}

TEST(AsyncErrors, NothingIsLeftInFlight) {
  asyncFails("tile.async_load at grid point 0: the copy is never committed",
             "copy 0 0 0");
  asyncFails(
      "tile.async_load at grid point 0: the copy is in flight at the end",
      "copy 0 0 0\ncommit t0\nwait 0 1");
}
