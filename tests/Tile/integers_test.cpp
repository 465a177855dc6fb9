//===- integers_test.cpp - Integer arithmetic of tile programs ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All pairs of i8, against the host's arithmetic in a wider type.
//
//===----------------------------------------------------------------------===//
#include "ApplyElements.h"

#include <cmath>

using namespace nova;
using namespace nova::test;

using I8 = std::vector<int8_t>;
using I64 = std::vector<int64_t>;

struct IntegerCase {
  const char *name;
  int (*expected)(int a, int b); ///< Of the numbers, as the case reads them.
  bool isUnsigned = false;
  /// Pairs that are undefined are left out.
  bool (*defined)(int a, int b) = [](int, int) { return true; };
};

static int floorOf(double x) { return int(std::floor(x)); }
static bool divides(int a, int b) { return b != 0 && !(a == -128 && b == -1); }
static bool shiftable(int, int b) { return b >= 0 && b < 8; }

static const IntegerCase cases[] = {
    {"addi", [](int a, int b) { return a + b; }},
    {"subi", [](int a, int b) { return a - b; }},
    {"muli", [](int a, int b) { return a * b; }},
    {"andi", [](int a, int b) { return a & b; }},
    {"ori", [](int a, int b) { return a | b; }},
    {"xori", [](int a, int b) { return a ^ b; }},
    {"maxsi", [](int a, int b) { return std::max(a, b); }},
    {"minsi", [](int a, int b) { return std::min(a, b); }},
    {"maxui", [](int a, int b) { return std::max(a, b); }, true},
    {"minui", [](int a, int b) { return std::min(a, b); }, true},
    {"shli", [](int a, int b) { return a << b; }, false, shiftable},
    {"shrsi", [](int a, int b) { return a >> b; }, false, shiftable},
    {"shrui", [](int a, int b) { return a >> b; }, true, shiftable},
    {"divsi", [](int a, int b) { return a / b; }, false, divides},
    {"remsi", [](int a, int b) { return a % b; }, false, divides},
    {"divui", [](int a, int b) { return a / b; }, true, divides},
    {"remui", [](int a, int b) { return a % b; }, true, divides},
    {"floordivsi", [](int a, int b) { return floorOf(double(a) / b); }, false,
     divides},
    {"ceildivsi", [](int a, int b) { return -floorOf(-double(a) / b); }, false,
     divides},
    {"ceildivui", [](int a, int b) { return -floorOf(-double(a) / b); }, true,
     divides},
};

TEST(Integers, AllPairs) {
  for (const IntegerCase &c : cases) {
    I8 a, b, want;
    for (int x = -128; x < 128; ++x)
      for (int y = -128; y < 128; ++y) {
        int left = c.isUnsigned ? x & 255 : x,
            right = c.isUnsigned ? y & 255 : y;
        if (!c.defined(left, right))
          continue;
        a.push_back(x), b.push_back(y);
        want.push_back(int8_t(c.expected(left, right)));
      }
    I8 got = apply<int8_t>("arith." + std::string(c.name) + " %a, %b : T:i8",
                           "i8", {"i8", "i8"}, a, b);
    EXPECT_TRUE(got == want) << c.name;
  }
}

TEST(Integers, Comparisons) {
  // Less in one reading, more in the other; equal.
  I8 a{-1, 1, 5}, b{1, -1, 5};
  const std::pair<const char *, std::vector<uint8_t>> predicates[] = {
      {"eq", {0, 0, 1}},  {"ne", {1, 1, 0}},  {"slt", {1, 0, 0}},
      {"sle", {1, 0, 1}}, {"sgt", {0, 1, 0}}, {"sge", {0, 1, 1}},
      {"ult", {0, 1, 0}}, {"ule", {0, 1, 1}}, {"ugt", {1, 0, 0}},
      {"uge", {1, 0, 1}}};
  for (const auto &[predicate, want] : predicates)
    EXPECT_EQ(apply<uint8_t>(std::string("arith.cmpi ") + predicate +
                                 ", %a, %b : T:i8",
                             "i1", {"i8", "i8"}, a, b),
              want)
        << predicate;
}

TEST(Integers, SixtyFourBitsWrap) {
  EXPECT_EQ(apply<int64_t>("arith.muli %a, %b : T:index", "index",
                           {"index", "index"}, I64{INT64_MAX, INT64_MIN},
                           I64{2, -1}),
            (I64{-2, INT64_MIN}));
}

TEST(Integers, Unary) {
  auto unary = [](const std::string &name) {
    return apply<int8_t>("math." + name + " %a : T:i8", "i8", {"i8"},
                         I8{-128, -3, 0, 6});
  };
  EXPECT_EQ(unary("absi"), (I8{-128, 3, 0, 6}));
  EXPECT_EQ(unary("ctlz"), (I8{0, 0, 8, 5}));
  EXPECT_EQ(unary("cttz"), (I8{7, 0, 8, 1}));
  EXPECT_EQ(unary("ctpop"), (I8{1, 7, 0, 2}));
}

TEST(Integers, Powers) {
  EXPECT_EQ(apply<int8_t>("math.ipowi %a, %b : T:i8", "i8", {"i8", "i8"},
                          I8{3, -2, 2, 1, -1, -1, 5, 0},
                          I8{4, 3, 9, -5, -3, -2, -1, 0}),
            (I8{81, -8, 0, 1, -1, 1, 0, 1}));
}

TEST(Integers, ResultsOfTwoParts) {
  I8 a{-1, 100}, b{2, 3};
  std::vector<int8_t> low(2), upper(2), carry(2);
  std::string parameters = "%a: memref<2xi8>, %b: memref<2xi8>, %l: "
                           "memref<2xi8>, %h: memref<2xi8>, %c: memref<2xi1>";
  auto body = [](const std::string &op, const std::string &second) {
    return R"(
      %c0 = arith.constant 0 : index
      %x = tile.load %a[%c0] along [0] bounds [0] : memref<2xi8> -> tensor<2xi8>
      %y = tile.load %b[%c0] along [0] bounds [0] : memref<2xi8> -> tensor<2xi8>
      %p, %q = )" +
           op + R"(
      tile.store %p, %l[%c0] along [0] bounds [0] : tensor<2xi8>, memref<2xi8>
      tile.store %q, )" +
           second;
  };
  std::string toHigh =
      "%h[%c0] along [0] bounds [0] : tensor<2xi8>, memref<2xi8>";
  run(parameters, body("arith.mulsi_extended %x, %y : tensor<2xi8>", toHigh), a,
      b, low, upper, carry);
  EXPECT_EQ(low, (I8{-2, 44}));
  EXPECT_EQ(upper, (I8{-1, 1}));
  run(parameters, body("arith.mului_extended %x, %y : tensor<2xi8>", toHigh), a,
      b, low, upper, carry);
  EXPECT_EQ(low, (I8{-2, 44}));
  EXPECT_EQ(upper, (I8{1, 1}));
  run(parameters,
      body("arith.addui_extended %x, %y : tensor<2xi8>, tensor<2xi1>",
           "%c[%c0] along [0] bounds [0] : tensor<2xi1>, memref<2xi1>"),
      a, b, low, upper, carry);
  EXPECT_EQ(low, (I8{1, 103}));
  EXPECT_EQ(carry, (I8{1, 0}));
}

TEST(Integers, SelectByElementAndByScalar) {
  EXPECT_EQ(apply<int8_t>("arith.select %a, %b, %c : T:i1, T:i8", "i8",
                          {"i1", "i8", "i8"}, I8{1, 0}, I8{3, 4}, I8{5, 6}),
            (I8{3, 6}));
  EXPECT_EQ(apply<int8_t>("%no = arith.constant false\n"
                          "%r = arith.select %no, %a, %b : T:i8",
                          "i8", {"i8", "i8"}, I8{3, 4}, I8{5, 6}),
            (I8{5, 6}));
}

TEST(Integers, Undefined) {
  for (const char *name : {"divsi", "divui", "remsi", "remui", "floordivsi",
                           "ceildivsi", "ceildivui"})
    applyFails(std::string("arith.") + name +
                   " at grid point 0: element (1): division by zero",
               std::string("arith.") + name + " %a, %b : T:i8", "i8",
               {"i8", "i8"}, I8{1, 1}, I8{1, 0});
  for (const char *name : {"divsi", "remsi", "floordivsi", "ceildivsi"})
    applyFails("element (0): overflow of a division",
               std::string("arith.") + name + " %a, %b : T:i8", "i8",
               {"i8", "i8"}, I8{-128}, I8{-1});
  for (const char *name : {"shli", "shrsi", "shrui"})
    applyFails("element (0): shift by the width or more",
               std::string("arith.") + name + " %a, %b : T:i8", "i8",
               {"i8", "i8"}, I8{1}, I8{8});
  std::vector<int8_t> out(1);
  fails("arith.divsi at grid point 0: division by zero", "%out: memref<1xi8>",
        "%c0 = arith.constant 0 : index\n%x = arith.divsi %c0, %c0 : index",
        out);
}
