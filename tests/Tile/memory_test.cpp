//===- memory_test.cpp - Loads, stores and gathers of tile programs -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TileProgram.h"

#include <cstring>
#include <numeric>

using namespace nova;
using namespace nova::test;

template <typename T> static std::vector<T> iota(size_t count, T first = 0) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Loads a tile of `tile` as `access` says and stores it all to %out.
static std::string loadBody(const std::string &memory, const std::string &tile,
                            const std::string &access, int64_t rank) {
  std::string zeros, along, bounds;
  for (int64_t d = 0; d < rank; ++d) {
    zeros += d ? ", %c0" : "%c0";
    along += (d ? ", " : "") + std::to_string(d);
    bounds += d ? ", 0" : "0";
  }
  return R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %m2 = arith.constant -2 : index
    %minus = arith.constant -1.0 : f32
    %t = tile.load %in)" +
         access + " : " + memory + " -> tensor<" + tile + R"(>
    tile.store %t, %out[)" +
         zeros + "] along [" + along + "] bounds [" + bounds + "] : tensor<" +
         tile + ">, memref<" + tile + ">";
}

/// What a load of float32 from a 4x6 memory of 0, 1, ... gives.
static std::vector<float>
loaded(const std::string &tile, size_t count, const std::string &access,
       int64_t rank, const std::string &memory = "memref<4x6xf32>") {
  std::vector<float> in = iota<float>(24), out(count, 99);
  run("%in: " + memory + ", %out: memref<" + tile + ">",
      loadBody(memory, tile, access, rank), in, out);
  return out;
}

TEST(Load, Inside) {
  EXPECT_EQ(loaded("2x3xf32", 6, "[%c1, %c3] along [0, 1] bounds [0, 0]", 2),
            (std::vector<float>{9, 10, 11, 15, 16, 17}));
}

TEST(Load, DimensionsInAnyOrder) {
  EXPECT_EQ(loaded("3x2xf32", 6, "[%c1, %c3] along [1, 0] bounds [0, 0]", 2),
            (std::vector<float>{9, 15, 10, 16, 11, 17}));
}

TEST(Load, OneDimensionOfTwo) {
  EXPECT_EQ(loaded("4xf32", 4, "[%c0, %c3] along [0] bounds [0]", 1),
            (std::vector<float>{3, 9, 15, 21}));
}

TEST(Load, RankZero) {
  EXPECT_EQ(loaded("f32", 1, "[%c3, %c1] along [] bounds []", 0),
            (std::vector<float>{19}));
}

TEST(Load, UpperEdgeReadsAsZero) {
  EXPECT_EQ(loaded("2x4xf32", 8, "[%c3, %c3] along [0, 1] bounds [1, 1]", 2),
            (std::vector<float>{21, 22, 23, 0, 0, 0, 0, 0}));
}

TEST(Load, BothEdgesReadAsFill) {
  EXPECT_EQ(loaded("4xf32", 4,
                   "[%c1, %m2] along [1] bounds [2] fill %minus : f32", 1),
            (std::vector<float>{-1, -1, 6, 7}));
}

TEST(Load, StridesAlsoZeroAndOffset) {
  // The buffer is the address of the view's first element: no offset is added.
  EXPECT_EQ(loaded("2x3xf32", 6, "[%c1, %c0] along [0, 1] bounds [0, 0]", 2,
                   "memref<4x6xf32, strided<[3, 2], offset: 100>>"),
            (std::vector<float>{3, 5, 7, 6, 8, 10}));
  EXPECT_EQ(loaded("2x3xf32", 6, "[%c1, %c0] along [0, 1] bounds [0, 0]", 2,
                   "memref<4x6xf32, strided<[0, 1]>>"),
            (std::vector<float>{0, 1, 2, 0, 1, 2}));
}

TEST(Load, NegativeStride) {
  std::vector<float> in = iota<float>(4), out(4);
  float *last = &in[3];
  EXPECT_EQ(
      runProgram(programText("%in: memref<4xf32, strided<[-1]>>, "
                             "%out: memref<4xf32>",
                             loadBody("memref<4xf32, strided<[-1]>>", "4xf32",
                                      "[%c0] along [0] bounds [0]", 1)),
                 {last, out.data()}),
      "");
  EXPECT_EQ(out, (std::vector<float>{3, 2, 1, 0}));
}

static void loadFails(const std::string &why, const std::string &tile,
                      const std::string &access) {
  std::vector<float> in = iota<float>(24), out(64);
  fails(why, "%in: memref<4x6xf32>, %out: memref<" + tile + ">",
        loadBody("memref<4x6xf32>", tile, access, 1), in, out);
}

TEST(Load, OutsideWithoutBounds) {
  loadFails("tile.load at grid point 0: element (3) is at 6 along dimension 1 "
            "of a memory of shape (4, 6), but bounds[0] is 0",
            "4xf32", "[%c0, %c3] along [1] bounds [0]");
  loadFails("element (0) is at -2 along dimension 1", "4xf32",
            "[%c0, %m2] along [1] bounds [0]");
}

TEST(Load, BelowWithUpperBoundsOnly) {
  loadFails(
      "element (0) is at -2 along dimension 1 of a memory of shape (4, 6), "
      "but bounds[0] is 1",
      "4xf32", "[%c0, %m2] along [1] bounds [1]");
}

TEST(Load, OtherOffsetsLieInside) {
  loadFails("offset -2 of dimension 0 is outside a memory of shape (4, 6)",
            "4xf32", "[%m2, %c0] along [1] bounds [2]");
  std::vector<float> in(24), out(4);
  fails("offset 4 of dimension 0 is outside",
        "%in: memref<4x6xf32>, %out: memref<4xf32>",
        "%c4 = arith.constant 4 : index\n" +
            loadBody("memref<4x6xf32>", "4xf32",
                     "[%c4, %c0] along [1] bounds [1]", 1),
        in, out);
}

TEST(Load, OffsetOverflow) {
  std::vector<float> in(24), out(4);
  fails("overflows", "%in: memref<4x6xf32>, %out: memref<4xf32>",
        "%big = arith.constant 9223372036854775807 : index\n" +
            loadBody("memref<4x6xf32>", "4xf32",
                     "[%c0, %big] along [1] bounds [1]", 1),
        in, out);
}

TEST(Load, TheErrorHasItsLocation) {
  std::vector<float> in(4);
  std::string error = runProgram(
      "func.func @p(%in: memref<4xf32>) attributes {tile.grid = 3 : i64} {\n"
      "  %p = tile.point\n"
      "  %t = tile.load %in[%p] along [0] bounds [0] : memref<4xf32> -> "
      "tensor<2xf32> loc(\"layer3/add\")\n"
      "  %u = tile.load %in[%p] along [0] bounds [0] : memref<4xf32> -> "
      "tensor<3xf32> loc(\"layer3/mul\")\n"
      "  return\n}",
      {in.data()});
  EXPECT_EQ(error,
            "loc(\"layer3/mul\"): tile.load at grid point 2: element (2) is at "
            "4 along dimension 0 of a memory of shape (4), but bounds[0] is 0");
}

/// Every type goes through memory bit by bit.
template <typename T>
static void roundTrip(const std::string &type, std::vector<T> in) {
  std::vector<T> out(in.size());
  std::string tile = std::to_string(in.size()) + "x" + type;
  run("%in: memref<" + tile + ">, %out: memref<" + tile + ">",
      loadBody("memref<" + tile + ">", tile, "[%c0] along [0] bounds [0]", 1),
      in, out);
  EXPECT_EQ(0, std::memcmp(in.data(), out.data(), in.size() * sizeof(T)))
      << type;
}

TEST(Load, EveryTypeBitByBit) {
  // Among them signalling NaNs with a payload.
  roundTrip<uint64_t>("f64", {0x7ff0000000000123, 0x8000000000000000});
  roundTrip<uint32_t>("f32", {0x7f800123, 0x80000001});
  roundTrip<uint16_t>("f16", {0x7c12, 0x8001});
  roundTrip<uint16_t>("bf16", {0x7f81, 0x8001});
  roundTrip<int64_t>("i64", {INT64_MIN, -1});
  roundTrip<int64_t>("index", {INT64_MIN, -1});
  roundTrip<int32_t>("i32", {INT32_MIN, -1});
  roundTrip<int16_t>("i16", {INT16_MIN, -1});
  roundTrip<int8_t>("i8", {INT8_MIN, -1});
  roundTrip<uint8_t>("i1", {0, 1});
}

TEST(Load, BooleansAreZeroOrOne) {
  std::vector<uint8_t> in{0, 7}, out(2);
  fails("element (1) is an i1 of value 7",
        "%in: memref<2xi1>, %out: memref<2xi1>",
        loadBody("memref<2xi1>", "2xi1", "[%c0] along [0] bounds [0]", 1), in,
        out);
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

static std::string storeBody(const std::string &access,
                             const std::string &memory) {
  return R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m1 = arith.constant -1 : index
    %t = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    tile.store %t, %out)" +
         access + " : tensor<2x2xf32>, " + memory;
}

TEST(Store, InsideAndTransposed) {
  std::vector<float> out(6);
  run("%out: memref<2x3xf32>",
      storeBody("[%c0, %c1] along [0, 1] bounds [0, 0]", "memref<2x3xf32>"),
      out);
  EXPECT_EQ(out, (std::vector<float>{0, 1, 2, 0, 3, 4}));
  run("%out: memref<2x3xf32>",
      storeBody("[%c0, %c1] along [1, 0] bounds [0, 0]", "memref<2x3xf32>"),
      out);
  EXPECT_EQ(out, (std::vector<float>{0, 1, 3, 0, 2, 4}));
}

TEST(Store, WhatIsOutsideIsDropped) {
  std::vector<float> out(6);
  run("%out: memref<2x3xf32>",
      storeBody("[%c1, %m1] along [0, 1] bounds [1, 2]", "memref<2x3xf32>"),
      out);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 2, 0, 0}));
}

TEST(Store, OutsideWithoutBounds) {
  std::vector<float> out(6);
  fails("tile.store at grid point 0: element (1, 0) is at 2 along dimension 0",
        "%out: memref<2x3xf32>",
        storeBody("[%c1, %c0] along [0, 1] bounds [0, 0]", "memref<2x3xf32>"),
        out);
}

TEST(Store, NotWhereElementsCoincide) {
  std::vector<float> out(6);
  fails("several elements go to one place: dimension 0 of the memory has "
        "stride 0",
        "%out: memref<2x3xf32, strided<[0, 1]>>",
        storeBody("[%c0, %c0] along [0, 1] bounds [0, 0]",
                  "memref<2x3xf32, strided<[0, 1]>>"),
        out);
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

static std::string gatherBody(const std::string &rows,
                              const std::string &mask) {
  return "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
         "%rows = arith.constant dense<" +
         rows +
         "> : tensor<3xindex>\n"
         "%mask = arith.constant dense<[true, false, true]> : tensor<3xi1>\n"
         "%t = tile.gather %in[%rows, %c1 : tensor<3xindex>, index] " +
         mask +
         " : memref<4x2xf32> -> tensor<3xf32>\n"
         "tile.store %t, %out[%c0] along [0] bounds [0] : tensor<3xf32>, "
         "memref<3xf32>";
}

TEST(Gather, TileAndScalarIndices) {
  std::vector<float> in = iota<float>(8), out(3);
  run("%in: memref<4x2xf32>, %out: memref<3xf32>", gatherBody("[3, 0, 3]", ""),
      in, out);
  EXPECT_EQ(out, (std::vector<float>{7, 1, 7}));
}

TEST(Gather, MaskedElementsAreZeroAndNotAccessed) {
  std::vector<float> in = iota<float>(8), out(3, 9);
  run("%in: memref<4x2xf32>, %out: memref<3xf32>",
      gatherBody("[2, -5, 1]", "mask %mask : tensor<3xi1>"), in, out);
  EXPECT_EQ(out, (std::vector<float>{5, 0, 3}));
}

TEST(Gather, OutsideWhereTheMaskIsTrue) {
  std::vector<float> in = iota<float>(8), out(3);
  fails(
      "tile.gather at grid point 0: element (2) is at (4, 1), outside a memory "
      "of shape (4, 2)",
      "%in: memref<4x2xf32>, %out: memref<3xf32>",
      gatherBody("[2, 0, 4]", "mask %mask : tensor<3xi1>"), in, out);
  fails("element (1) is at (-1, 1), outside",
        "%in: memref<4x2xf32>, %out: memref<3xf32>",
        gatherBody("[2, -1, 0]", ""), in, out);
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

static std::string gridText(const std::string &body) {
  return programText("%a: memref<4xi32>, %b: memref<4xi32>",
                     "%p = tile.point\n%c0 = arith.constant 0 : index\n"
                     "%pi = arith.index_cast %p : index to i32\n"
                     "%t = tile.splat %pi : i32 -> tensor<i32>\n" +
                         body,
                     4);
}

static const char *const storeAtPoint =
    "tile.store %t, %a[%p] along [] bounds [] : tensor<i32>, memref<4xi32>\n";
static const char *const storeAtZero =
    "tile.store %t, %a[%c0] along [] bounds [] : tensor<i32>, memref<4xi32>\n";
static const char *const loadAtZero =
    "%u = tile.load %b[%c0] along [] bounds [] : memref<4xi32> -> "
    "tensor<i32>\n";

TEST(Grid, AllPointsOrARange) {
  std::vector<int32_t> a(4, -1), b(4);
  EXPECT_EQ(runProgram(gridText(storeAtPoint), {a.data(), b.data()}), "");
  EXPECT_EQ(a, (std::vector<int32_t>{0, 1, 2, 3}));
  a.assign(4, -1);
  tile::InterpreterOptions options;
  options.firstPoint = 1;
  options.endPoint = 3;
  EXPECT_EQ(runProgram(gridText(storeAtPoint), {a.data(), b.data()}, options),
            "");
  EXPECT_EQ(a, (std::vector<int32_t>{-1, 1, 2, -1}));
}

TEST(Grid, TwoPointsWriteOneElement) {
  std::vector<int32_t> a(4), b(4);
  std::string error = runProgram(gridText(storeAtZero), {a.data(), b.data()});
  EXPECT_NE(error.find("tile.store at grid point 1: element () overwrites what "
                       "grid point 0 wrote, with another value"),
            std::string::npos)
      << error;
  tile::InterpreterOptions unchecked;
  unchecked.checkRaces = false;
  EXPECT_EQ(runProgram(gridText(storeAtZero), {a.data(), b.data()}, unchecked),
            "");
  EXPECT_EQ(a[0], 3);
}

TEST(Grid, EqualValuesMayBeWrittenTwice) {
  std::vector<int32_t> a(4), b(4);
  EXPECT_EQ(runProgram(gridText("%one = arith.constant dense<1> : tensor<i32>\n"
                                "tile.store %one, %a[%c0] along [] bounds [] : "
                                "tensor<i32>, memref<4xi32>"),
                       {a.data(), b.data()}),
            "");
}

TEST(Grid, OnePointReadsWhatAnotherWrites) {
  // The two parameters are the same memory.
  std::vector<int32_t> a(4);
  std::string error = runProgram(
      gridText(std::string(loadAtZero) + storeAtPoint), {a.data(), a.data()});
  EXPECT_NE(error.find("tile.load at grid point 1: element () reads what grid "
                       "point 0 wrote"),
            std::string::npos)
      << error;
  std::string skewed =
      "%c3 = arith.constant 3 : index\n%q = arith.subi %c3, %p : index\n"
      "%u = tile.load %b[%q] along [] bounds [] : memref<4xi32> -> "
      "tensor<i32>\n";
  error = runProgram(gridText(skewed + storeAtPoint), {a.data(), a.data()});
  EXPECT_NE(error.find("reads what grid point 1 wrote"), std::string::npos)
      << error;
}

TEST(Grid, OnePointOverwritesWhatOthersRead) {
  std::vector<int32_t> a(4);
  std::string late = std::string(loadAtZero) + R"(
    %c3 = arith.constant 3 : index
    %last = arith.cmpi eq, %p, %c3 : index
    scf.if %last {
      tile.store %t, %a[%c0] along [] bounds [] : tensor<i32>, memref<4xi32>
    })";
  std::string error = runProgram(gridText(late), {a.data(), a.data()});
  EXPECT_NE(error.find("tile.store at grid point 3: element () overwrites what "
                       "another grid point reads"),
            std::string::npos)
      << error;
}

TEST(Grid, InPlaceIsNoRace) {
  std::vector<int32_t> a{5, 6, 7, 8};
  EXPECT_EQ(runProgram(gridText(R"(
    %u = tile.load %b[%p] along [] bounds [] : memref<4xi32> -> tensor<i32>
    %v = arith.addi %u, %t : tensor<i32>
    tile.store %v, %a[%p] along [] bounds [] : tensor<i32>, memref<4xi32>)"),
                       {a.data(), a.data()}),
            "");
  EXPECT_EQ(a, (std::vector<int32_t>{5, 7, 9, 11}));
}

/// Copies the member that a grid point is of, in tiles of 4.
static const char *kMembers = "%a: memref<6xf32>, %b: memref<3xf32>, %c: memref<9xf32>, "
                              "%x: memref<6xf32>, %y: memref<3xf32>, %z: memref<9xf32>";
static std::string membersBody(const std::string &number) {
  return R"(
    %p = tile.point
    %c4 = arith.constant 4 : index
    %c7 = arith.constant 7 : index
    %member, %local = tile.member %p starts [0, 2, 3]
    %from = tile.select )" +
         number + R"( of %a, %b, %c : memref<6xf32>, memref<3xf32>, memref<9xf32> -> memref<?xf32, strided<[1]>>
    %to = tile.select %member of %x, %y, %z : memref<6xf32>, memref<3xf32>, memref<9xf32> -> memref<?xf32, strided<[1]>>
    %i = arith.muli %local, %c4 : index
    %t = tile.load %from[%i] along [0] bounds [1] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
    tile.store %t, %to[%i] along [0] bounds [1] : tensor<4xf32>, memref<?xf32, strided<[1]>>)";
}

TEST(Members, EachGridPointHasItsMembersMemory) {
  std::vector<float> a = iota<float>(6, 10), b = iota<float>(3, 20), c = iota<float>(9, 30), x(6), y(3), z(9);
  EXPECT_EQ(runProgram(programText(kMembers, membersBody("%member"), 6),
                       {a.data(), b.data(), c.data(), x.data(), y.data(), z.data()}),
            "");
  EXPECT_EQ(x, a);
  EXPECT_EQ(y, b);
  EXPECT_EQ(z, c);
}

TEST(Members, ANumberBeyondThemIsRefused) {
  std::vector<float> a(6), b(3), c(9), x(6), y(3), z(9);
  std::string error = runProgram(programText(kMembers, membersBody("%c7"), 6),
                                 {a.data(), b.data(), c.data(), x.data(), y.data(), z.data()});
  EXPECT_NE(error.find("number 7 of 3 memories"), std::string::npos) << error;
}
