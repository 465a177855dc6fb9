//===- tiles_test.cpp - Operations on tiles, control, whole programs ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TileProgram.h"

#include <bit>
#include <cmath>
#include <random>

using namespace nova;
using namespace nova::test;

using Floats = std::vector<float>;
using I64 = std::vector<int64_t>;

/// A store of all of %name to %memory, of type `tile`, at 0.
static std::string storeAll(const std::string &name, const std::string &memory,
                            const std::string &tile, int64_t rank) {
  std::string zeros, along, bounds;
  for (int64_t d = 0; d < rank; ++d) {
    zeros += d ? ", %c0" : "%c0";
    along += (d ? ", " : "") + std::to_string(d);
    bounds += d ? ", 0" : "0";
  }
  return "\ntile.store %" + name + ", %" + memory + "[" + zeros + "] along [" +
         along + "] bounds [" + bounds + "] : tensor<" + tile + ">, memref<" +
         tile + ">\n";
}

/// The elements of %r, a tile of `tile` that `body` defines.
template <typename T>
static std::vector<T> resultOf(const std::string &body, const std::string &tile,
                               int64_t rank, size_t count,
                               const tile::InterpreterOptions &options = {}) {
  std::vector<T> out(count);
  EXPECT_EQ(runProgram(programText("%out: memref<" + tile + ">",
                                   "%c0 = arith.constant 0 : index\n" + body +
                                       storeAll("r", "out", tile, rank)),
                       {out.data()}, options),
            "");
  return out;
}

TEST(Tiles, RangeSplatPoint) {
  EXPECT_EQ(resultOf<int64_t>("%m2 = arith.constant -2 : index\n"
                              "%r = tile.range %m2 : tensor<4xindex>",
                              "4xindex", 1, 4),
            (I64{-2, -1, 0, 1}));
  EXPECT_EQ(resultOf<int64_t>("%p = tile.point\n"
                              "%r = tile.splat %p : index -> tensor<2x2xindex>",
                              "2x2xindex", 2, 4),
            (I64{0, 0, 0, 0}));
}

TEST(Tiles, Constants) {
  EXPECT_EQ(resultOf<float>("%r = arith.constant dense<1.5> : tensor<2xf32>",
                            "2xf32", 1, 2),
            (Floats{1.5, 1.5}));
  EXPECT_EQ(
      resultOf<int8_t>("%r = arith.constant dense<[-1, 7]> : tensor<2xi8>",
                       "2xi8", 1, 2),
      (std::vector<int8_t>{-1, 7}));
  EXPECT_EQ(resultOf<uint8_t>(
                "%r = arith.constant dense<[true, false]> : tensor<2xi1>",
                "2xi1", 1, 2),
            (std::vector<uint8_t>{1, 0}));
}

static const char *const twoByThree =
    "%t = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : "
    "tensor<2x3xf32>\n";

TEST(Tiles, Broadcast) {
  EXPECT_EQ(resultOf<float>(std::string(twoByThree) +
                                "%r = tile.broadcast %t dims [1, 0] : "
                                "tensor<2x3xf32> -> tensor<3x2xf32>",
                            "3x2xf32", 2, 6),
            (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(resultOf<float>(std::string(twoByThree) +
                                "%r = tile.broadcast %t dims [2, 0] : "
                                "tensor<2x3xf32> -> tensor<3x2x2xf32>",
                            "3x2x2xf32", 3, 12),
            (Floats{1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6}));
  EXPECT_EQ(resultOf<float>("%t = arith.constant dense<7.0> : tensor<f32>\n"
                            "%r = tile.broadcast %t dims [] : tensor<f32> -> "
                            "tensor<2xf32>",
                            "2xf32", 1, 2),
            (Floats{7, 7}));
}

TEST(Tiles, ReduceInTheOrderOfTheIndex) {
  // 1 + 2^24 is a tie in float32: the order is visible.
  EXPECT_EQ(
      resultOf<float>(
          R"(%t = arith.constant dense<[16777216.0, 1.0, 1.0]> : tensor<3xf32>
    %r = tile.reduce %t along 0 : tensor<3xf32> -> tensor<f32> {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tile.yield %s : f32
    })",
          "f32", 0, 1),
      (Floats{16777216}));
}

TEST(Tiles, ReduceEachDimension) {
  auto sums = [&](const std::string &dim, const std::string &tile, size_t n) {
    return resultOf<float>(std::string(twoByThree) +
                               "%r = tile.reduce %t along " + dim +
                               " : tensor<2x3xf32> -> tensor<" + tile +
                               R"(> {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tile.yield %s : f32
    })",
                           tile, 1, n);
  };
  EXPECT_EQ(sums("0", "3xf32", 3), (Floats{5, 7, 9}));
  EXPECT_EQ(sums("1", "2xf32", 2), (Floats{6, 15}));
}

TEST(Tiles, ReduceSeveralOperandsTogether) {
  // The largest element and where it is first.
  EXPECT_EQ(
      resultOf<int64_t>(
          R"(%t = arith.constant dense<[3.0, 9.0, 9.0, 1.0]> : tensor<4xf32>
    %i = tile.range %c0 : tensor<4xindex>
    %m, %r = tile.reduce %t, %i along 0 : tensor<4xf32>, tensor<4xindex> -> tensor<f32>, tensor<index> {
    ^bb0(%a: f32, %ia: index, %b: f32, %ib: index):
      %greater = arith.cmpf ogt, %b, %a : f32
      %v = arith.select %greater, %b, %a : f32
      %at = arith.select %greater, %ib, %ia : index
      tile.yield %v, %at : f32, index
    })",
          "index", 0, 1),
      (I64{1}));
}

TEST(Tiles, ErrorsInACombiner) {
  std::vector<int32_t> out(1);
  fails("arith.divsi at grid point 0: division by zero", "%out: memref<i32>",
        R"(%t = arith.constant dense<[1, 0]> : tensor<2xi32>
    %r = tile.reduce %t along 0 : tensor<2xi32> -> tensor<i32> {
    ^bb0(%a: i32, %b: i32):
      %s = arith.divsi %a, %b : i32
      tile.yield %s : i32
    })",
        out);
}

TEST(Tiles, Scan) {
  auto scan = [&](const std::string &dim) {
    return resultOf<float>(std::string(twoByThree) +
                               "%r = tile.scan %t along " + dim +
                               " : tensor<2x3xf32> -> tensor<2x3xf32>",
                           "2x3xf32", 2, 6);
  };
  EXPECT_EQ(scan("0"), (Floats{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(scan("1"), (Floats{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(resultOf<int8_t>(
                "%t = arith.constant dense<[100, 100, 1]> : tensor<3xi8>\n"
                "%r = tile.scan %t along 0 : tensor<3xi8> -> tensor<3xi8>",
                "3xi8", 1, 3),
            (std::vector<int8_t>{100, -56, -55}));
}

TEST(Tiles, AnyScalarConvert) {
  auto any = [&](const std::string &elements) {
    return resultOf<uint8_t>("%t = arith.constant dense<" + elements +
                                 "> : tensor<2xi1>\n%a = tile.any %t : "
                                 "tensor<2xi1>\n%r = tile.splat %a : i1 -> "
                                 "tensor<i1>",
                             "i1", 0, 1)[0];
  };
  EXPECT_EQ(any("[false, true]"), 1);
  EXPECT_EQ(any("[false, false]"), 0);
  EXPECT_EQ(resultOf<float>(
                R"(%t = arith.constant dense<3.0> : tensor<f32>
    %s = tile.scalar %t : tensor<f32> -> f32
    %x = tile.splat %s : f32 -> tensor<32xf32, #tile.layout<core = [32], outer = [1], registers = [], lanes = [1, 2, 4, 8, 16], warps = []>>
    %r = tile.convert %x : tensor<32xf32, #tile.layout<core = [32], outer = [1], registers = [], lanes = [1, 2, 4, 8, 16], warps = []>> -> tensor<32xf32>)",
                "32xf32", 1, 32),
            Floats(32, 3));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static std::string dotBody(const std::string &lhs, const std::string &rhs,
                           const std::string &type, const std::string &sum,
                           const std::string &precision, const std::string &m,
                           const std::string &k, const std::string &n) {
  return "%a = arith.constant dense<" + lhs + "> : tensor<" + m + "x" + k +
         "x" + type + ">\n%b = arith.constant dense<" + rhs + "> : tensor<" +
         k + "x" + n + "x" + type +
         ">\n%z = arith.constant dense<1.0> : tensor<" + m + "x" + n + "x" +
         sum + ">\n%r = tile.dot %a, %b, %z " + precision + " : tensor<" + m +
         "x" + k + "x" + type + ">, tensor<" + k + "x" + n + "x" + type +
         "> -> tensor<" + m + "x" + n + "x" + sum + ">";
}

TEST(Dot, ShapesOfEveryType) {
  // [1 2 3; 4 5 6] * [1 2; 3 4; 5 6] + 1
  for (const char *type : {"f32", "bf16", "f16"})
    EXPECT_EQ(resultOf<float>(dotBody("[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]",
                                      "[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]",
                                      type, "f32", "f32", "2", "3", "2"),
                              "2x2xf32", 2, 4),
              (Floats{23, 29, 50, 65}))
        << type;
  EXPECT_EQ(resultOf<double>(dotBody("[[1.0, 2.0], [4.0, 5.0]]",
                                     "[[1.0e-12, 2.0], [3.0, 4.0]]", "f64",
                                     "f64", "f32", "2", "2", "2"),
                             "2x2xf64", 2, 4),
            (std::vector<double>{std::fma(2, 3, 1 + 1e-12), 11,
                                 std::fma(5, 3, std::fma(4, 1e-12, 1)), 29}));
}

TEST(Dot, AccumulatesInFloat32InTheOrderOfK) {
  // 1 + 2^24 + 1 + 1: in float32 the ones are lost one by one, in double not.
  std::string body = dotBody("[[16777216.0, 1.0, 1.0], [0.0, 0.0, 0.0]]",
                             "[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]", "f32",
                             "f32", "f32", "2", "3", "2");
  EXPECT_EQ(resultOf<float>(body, "2x2xf32", 2, 4)[0], 16777216.f);
  tile::InterpreterOptions wide;
  wide.dotInDouble = true;
  EXPECT_EQ(resultOf<float>(body, "2x2xf32", 2, 4, wide)[0], 16777220.f);
}

/// x * 1 + 0 in the first element, by dot.
static float rounded(float x, const std::string &precision) {
  Floats in{x, 0, 0, 0}, out(4);
  run("%in: memref<2x2xf32>, %out: memref<2x2xf32>",
      "%c0 = arith.constant 0 : index\n"
      "%a = tile.load %in[%c0, %c0] along [0, 1] bounds [0, 0] : "
      "memref<2x2xf32> -> tensor<2x2xf32>\n"
      "%b = arith.constant dense<[[1.0, 0.0], [0.0, 0.0]]> : tensor<2x2xf32>\n"
      "%z = arith.constant dense<-0.0> : tensor<2x2xf32>\n"
      "%r = tile.dot %a, %b, %z " +
          precision + " : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>" +
          storeAll("r", "out", "2x2xf32", 2),
      in, out);
  return out[0];
}

TEST(Dot, PrecisionOfOperands) {
  const float ulp10 = 1.f / 1024, ulp7 = 1.f / 128;
  float fine = 1 + ulp10 / 4096;
  EXPECT_EQ(rounded(fine, "f32"), fine);
  // tf32: nearest, ties away from zero.
  EXPECT_EQ(rounded(1 + ulp10 * 0.49f, "tf32"), 1);
  EXPECT_EQ(rounded(1 + ulp10 * 0.5f, "tf32"), 1 + ulp10);
  EXPECT_EQ(rounded(-(1 + ulp10 * 0.5f), "tf32"), -(1 + ulp10));
  EXPECT_EQ(rounded(2 - ulp10 / 4, "tf32"), 2);
  EXPECT_EQ(rounded(3.4028234e38f, "tf32"), INFINITY);
  EXPECT_EQ(rounded(1e-39f, "tf32"),
            std::bit_cast<float>((std::bit_cast<uint32_t>(1e-39f) + 0x1000) &
                                 0xffffe000));
  // bf16: nearest, ties to even.
  EXPECT_EQ(rounded(1 + ulp7 * 0.5f, "bf16"), 1);
  EXPECT_EQ(rounded(1 + ulp7 * 1.5f, "bf16"), 1 + 2 * ulp7);
  EXPECT_EQ(rounded(1 + ulp7 * 0.51f, "bf16"), 1 + ulp7);
  // The element is multiplied by zero too, so its NaN and infinity stay NaN
  // there.
  EXPECT_TRUE(std::isnan(rounded(NAN, "tf32")));
  EXPECT_EQ(rounded(INFINITY, "tf32"), INFINITY);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

TEST(Control, LoopsCarryTiles) {
  EXPECT_EQ(resultOf<int64_t>(R"(
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %z = arith.constant dense<0> : tensor<2xindex>
    %r, %last = scf.for %i = %c1 to %c6 step %c2 iter_args(%s = %z, %l = %c0) -> (tensor<2xindex>, index) {
      %t = tile.range %i : tensor<2xindex>
      %sum = arith.addi %s, %t : tensor<2xindex>
      scf.yield %sum, %i : tensor<2xindex>, index
    })",
                              "2xindex", 1, 2),
            (I64{1 + 3 + 5, 2 + 4 + 6}));
}

TEST(Control, LoopsOfNoTrip) {
  EXPECT_EQ(resultOf<int64_t>(R"(
    %c1 = arith.constant 1 : index
    %t = arith.constant dense<7> : tensor<index>
    %r = scf.for %i = %c1 to %c0 step %c1 iter_args(%s = %t) -> (tensor<index>) {
      %u = tile.splat %i : index -> tensor<index>
      scf.yield %u : tensor<index>
    })",
                              "index", 0, 1),
            (I64{7}));
}

TEST(Control, LoopsAtTheEndOfTheirType) {
  // The next value after the last would wrap around.
  EXPECT_EQ(resultOf<int8_t>(R"(
    %lo = arith.constant 120 : i8
    %hi = arith.constant 127 : i8
    %by = arith.constant 5 : i8
    %z = arith.constant dense<0> : tensor<i8>
    %r = scf.for %i = %lo to %hi step %by iter_args(%s = %z) -> (tensor<i8>) : i8 {
      %t = tile.splat %i : i8 -> tensor<i8>
      scf.yield %t : tensor<i8>
    })",
                             "i8", 0, 1),
            (std::vector<int8_t>{125}));
}

TEST(Control, UnsignedLoops) {
  EXPECT_EQ(resultOf<int8_t>(R"(
    %lo = arith.constant 126 : i8
    %hi = arith.constant -126 : i8
    %by = arith.constant 1 : i8
    %z = arith.constant dense<0> : tensor<i8>
    %one = arith.constant dense<1> : tensor<i8>
    %r = scf.for unsigned %i = %lo to %hi step %by iter_args(%s = %z) -> (tensor<i8>) : i8 {
      %t = arith.addi %s, %one : tensor<i8>
      scf.yield %t : tensor<i8>
    })",
                             "i8", 0, 1),
            (std::vector<int8_t>{4}));
}

TEST(Control, StepsArePositive) {
  Floats out(1);
  fails("scf.for at grid point 0: step 0 is not positive",
        "%out: memref<1xf32>",
        "%c0 = arith.constant 0 : index\nscf.for %i = %c0 to %c0 step %c0 {\n}",
        out);
}

TEST(Control, If) {
  for (bool condition : {true, false})
    EXPECT_EQ(resultOf<float>(std::string("%c = arith.constant ") +
                                  (condition ? "true" : "false") + R"(
    %x = arith.constant dense<1.0> : tensor<f32>
    %y = arith.constant dense<2.0> : tensor<f32>
    %r = scf.if %c -> (tensor<f32>) {
      scf.yield %x : tensor<f32>
    } else {
      scf.yield %y : tensor<f32>
    }
    scf.if %c {
    })",
                              "f32", 0, 1)[0],
              condition ? 1 : 2);
}

//===----------------------------------------------------------------------===//
// What is no program
//===----------------------------------------------------------------------===//

TEST(Program, OperationsThatAreNotThere) {
  Floats out(1);
  std::string parameter = "%out: memref<1xf32>";
  fails("tensor.empty at grid point 0: not an operation of tile programs",
        parameter, "%t = tensor.empty() : tensor<2xf32>", out);
  fails("memref.dealloc at grid point 0: not an operation of tile programs",
        parameter, "memref.dealloc %out : memref<1xf32>", out);
  fails(
      "arith.constant at grid point 0: no values of type i128 in tile programs",
      parameter, "%t = arith.constant 0 : i128", out);
  fails("arith.constant at grid point 0: neither a number nor a dense tile",
        parameter, "%t = arith.constant sparse<0, 1.0> : tensor<2xf32>", out);
  fails(
      "scf.while at grid point 0: not an operation of tile programs", parameter,
      "scf.while : () -> () {\n%t = arith.constant true\nscf.condition(%t)\n} "
      "do {\nscf.yield\n}",
      out);
}

TEST(Program, SignatureAndBuffers) {
  float data[4] = {};
  EXPECT_EQ(runProgram(programText("%a: memref<4xf32>", ""), {}),
            "tile program 'program': 1 buffers expected, got 0");
  EXPECT_EQ(runProgram(programText("%a: memref<4xf32>", ""), {nullptr}),
            "tile program 'program': no buffer for parameter 0");
  std::string parameter = "tile program 'program': parameter 0 is no memref of "
                          "static shape and strides with elements that the "
                          "level has: ";
  for (const char *type :
       {"memref<?xf32>", "memref<4xf32, strided<[?]>>", "memref<4xi4>", "f32",
        "memref<4xf32, affine_map<(i) -> (i mod 2)>>"})
    EXPECT_EQ(runProgram(programText(std::string("%a: ") + type, ""), {data}),
              parameter +
                  (std::string(type).find("affine") == std::string::npos
                       ? type
                       : "memref<4xf32, affine_map<(d0) -> (d0 mod 2)>>"));
  EXPECT_EQ(runProgram("func.func @p() -> i32 {\n%c = arith.constant 0 : i32\n"
                       "return %c : i32\n}",
                       {}),
            "tile program 'p': it returns values");
  EXPECT_EQ(runProgram("func.func private @p()", {}),
            "tile program 'p': a body of one block expected");
  EXPECT_EQ(runProgram("func.func @p() {\nreturn\n}", {}),
            "tile program 'p': no attribute tile.grid");
  tile::InterpreterOptions options;
  options.endPoint = 3;
  EXPECT_EQ(runProgram(programText("", "", 2), {}, options),
            "tile program 'program': grid points 0 to 2 are not all of a grid "
            "of 2");
}

/// Softmax of rows of 5 in tiles of 8: fill, select on the range, two
/// reductions.
TEST(Program, SoftmaxWithAnEdge) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Floats in(3 * 5), out(3 * 5);
  for (float &x : in)
    x = normal(random);
  std::string body = R"(
    %c0 = arith.constant 0 : index
    %p = tile.point
    %low = arith.constant 0xFF800000 : f32
    %t = tile.load %in[%p, %c0] along [1] bounds [1] fill %low : f32 : memref<3x5xf32> -> tensor<8xf32>
    %max = tile.reduce %t along 0 : tensor<8xf32> -> tensor<f32> {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %b : f32
      tile.yield %m : f32
    }
    %maxs = tile.broadcast %max dims [] : tensor<f32> -> tensor<8xf32>
    %x = arith.subf %t, %maxs : tensor<8xf32>
    %e = math.exp %x : tensor<8xf32>
    %i = tile.range %c0 : tensor<8xindex>
    %five = arith.constant dense<5> : tensor<8xindex>
    %inside = arith.cmpi slt, %i, %five : tensor<8xindex>
    %zero = arith.constant dense<0.0> : tensor<8xf32>
    %f = arith.select %inside, %e, %zero : tensor<8xi1>, tensor<8xf32>
    %sum = tile.reduce %f along 0 : tensor<8xf32> -> tensor<f32> {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tile.yield %s : f32
    }
    %sums = tile.broadcast %sum dims [] : tensor<f32> -> tensor<8xf32>
    %y = arith.divf %f, %sums : tensor<8xf32>
    tile.store %y, %out[%p, %c0] along [1] bounds [1] : tensor<8xf32>, memref<3x5xf32>)";
  EXPECT_EQ(
      runProgram(
          programText("%in: memref<3x5xf32>, %out: memref<3x5xf32>", body, 3),
          {in.data(), out.data()}),
      "");
  for (int row = 0; row < 3; ++row) {
    double sum = 0;
    for (int i = 0; i < 5; ++i)
      sum += std::exp(double(in[row * 5 + i]));
    for (int i = 0; i < 5; ++i)
      EXPECT_NEAR(out[row * 5 + i], std::exp(double(in[row * 5 + i])) / sum,
                  1e-6);
  }
}
