//===- read_constant_test.cpp - Constants, inline and in files ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphTestUtils.h"
#include "nova/Support/Safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <unistd.h>

using namespace nova;
using namespace nova::graph;

/// A graph whose constant has these fields.
static std::string withConstant(const std::string &fields) {
  return R"({"format":"nova.graph","version":1,"name":"n","inputs":[],)"
         R"("constants":[{"name":"c",)" +
         fields + R"(}],"nodes":[],"outputs":[{"ref":"c","role":"output"}]})";
}

template <typename T>
static std::vector<T> elements(const std::string &dtype,
                               const std::string &values, size_t count) {
  auto graph = parseGraph(
      withConstant(R"("dtype":")" + dtype + R"(","shape":[)" +
                   std::to_string(count) + R"(],"values":)" + values));
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph)
    return {};
  EXPECT_EQ(graph->constants[0].bytes.size(), count * sizeof(T));
  std::vector<T> out(count);
  std::memcpy(out.data(), graph->constants[0].bytes.data(), count * sizeof(T));
  return out;
}

TEST(ReadConstant, InlineValuesOfEveryKind) {
  EXPECT_EQ(elements<double>("float64", "[1,0.1]", 2),
            (std::vector<double>{1, 0.1}));
  auto floats = elements<float>(
      "float32", R"([1,0.1,{"float":"inf"},{"float":"-inf"},{"float":"nan"}])",
      5);
  EXPECT_EQ(floats[1], 0.1f);
  EXPECT_EQ(floats[2], std::numeric_limits<float>::infinity());
  EXPECT_EQ(floats[3], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(floats[4]));
  EXPECT_EQ(elements<int64_t>("int64", "[9223372036854775807,-1]", 2),
            (std::vector<int64_t>{INT64_MAX, -1}));
  EXPECT_EQ(elements<int8_t>("int8", "[-128,127]", 2),
            (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(elements<uint8_t>("uint8", "[0,255]", 2),
            (std::vector<uint8_t>{0, 255}));
  EXPECT_EQ(elements<uint8_t>("bool", "[true,false]", 2),
            (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(elements<float>("float32", "[]", 0), std::vector<float>());
}

TEST(ReadConstant, SixteenBitFloatsRoundToNearestEven) {
  // 1 + 2^-8 lies between two bfloat16: to even, 1. A little more: up.
  EXPECT_EQ(elements<uint16_t>("bfloat16", "[1,1.00390625,1.00390626,-2]", 4),
            (std::vector<uint16_t>{0x3F80, 0x3F80, 0x3F81, 0xC000}));
  // Through float32 this would round twice, to 1.
  EXPECT_EQ(elements<uint16_t>("bfloat16", "[1.0039062500000001]", 1)[0],
            0x3F80);
  EXPECT_EQ(elements<uint16_t>("float16",
                               "[1,65504,65519,5.9604644775390625e-8,"
                               "2.9802322387695312e-8,6.103515625e-5]",
                               6),
            (std::vector<uint16_t>{0x3C00, 0x7BFF, 0x7BFF, 1, 0, 0x0400}));
  EXPECT_EQ(elements<uint16_t>(
                "float16",
                R"([{"float":"inf"},{"float":"-inf"},{"float":"nan"},-0.0])",
                4),
            (std::vector<uint16_t>{0x7C00, 0xFC00, 0x7E00, 0x8000}));
  // Carries out of the mantissa into the exponent.
  EXPECT_EQ(elements<uint16_t>("bfloat16", "[1.999]", 1)[0], 0x4000);
}

TEST(ReadConstant, RefusesTheWrongNumberOfValues) {
  expectError(
      withConstant(R"("dtype":"float32","shape":[2,3],"values":[1,2,3,4,5])"),
      "constants[0].values: got 5 elements, expected 6 for shape [2,3]");
  // Without allocating what the shape asks for.
  expectError(withConstant(R"("dtype":"int8","shape":[4611686018427387904],)"
                           R"("values":[])"),
              "constants[0].values: got 0 elements, expected "
              "4611686018427387904 for shape [4611686018427387904]");
}

TEST(ReadConstant, RefusesValuesThatDoNotFit) {
  auto refuse = [](const std::string &dtype, const std::string &value,
                   const std::string &expected) {
    expectError(withConstant(R"("dtype":")" + dtype +
                             R"(","shape":[1],"values":[)" + value + "]"),
                "constants[0].values[0]: got " + value + ", expected " +
                    expected);
  };
  refuse("int8", "128", "a value in the range of int8");
  refuse("uint8", "-1", "a value in the range of uint8");
  refuse("int32", "2147483648", "a value in the range of int32");
  refuse("int64", "1.0", "an integer for int64");
  refuse("bool", "1", "true or false");
  refuse("float32", "1e+39", "a value in the range of float32");
  refuse("float16", "65520.0", "a value in the range of float16");
  refuse("float32", "true", R"(a number or {"float": ...} for float32)");
  refuse("float32", "\"1\"", R"(a number or {"float": ...} for float32)");
}

TEST(ReadConstant, NeedsValuesOrAFile) {
  const char *message = "constants[0]: expected either values, or file and key";
  expectError(withConstant(R"("dtype":"int8","shape":[])"), message);
  expectError(withConstant(R"("dtype":"int8","shape":[],"file":"a")"), message);
  expectError(
      withConstant(
          R"("dtype":"int8","shape":[],"file":"a","key":"b","values":[1])"),
      message);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static std::string fileConstant(const std::string &file,
                                const std::string &key = "t",
                                const std::string &dtype = "float32",
                                const std::string &shape = "[2]") {
  return withConstant(R"("dtype":")" + dtype + R"(","shape":)" + shape +
                      R"(,"file":")" + file + R"(","key":")" + key + "\"");
}

namespace {
class ConstantFiles : public ::testing::Test {
protected:
  void SetUp() override {
    float values[] = {1.5f, -2.0f};
    uint8_t flags[] = {1, 2};
    Status status =
        writeSafetensors(folder.path + "/data.safetensors",
                         {{"t", "F32", {2}, values, sizeof values},
                          {"flags", "BOOL", {2}, flags, sizeof flags}});
    ASSERT_TRUE(status) << status.error().message;
  }
  TemporaryFolder folder;
};
} // namespace

TEST_F(ConstantFiles, ReadsTheNamedTensor) {
  auto graph = parseGraph(fileConstant("data.safetensors"), folder.path);
  ASSERT_TRUE(graph) << graph.error().message;
  float values[2];
  std::memcpy(values, graph->constants[0].bytes.data(), sizeof values);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(graph->constants[0].file, "data.safetensors");
}

TEST_F(ConstantFiles, StaysInTheFolderOfTheGraph) {
  auto refuse = [&](const std::string &file, const std::string &why) {
    expectError(fileConstant(file),
                "constants[0].file: got \"" + file + "\", " + why, folder.path);
  };
  refuse("/etc/passwd", "expected a path relative to the graph's folder");
  refuse("../data.safetensors", "expected a path without ..");
  refuse("sub/../data.safetensors", "expected a path without ..");
  refuse("missing.safetensors",
         "expected a file beside the graph: No such file or directory");
  TemporaryFolder outside;
  outside.write("secret", "");
  ASSERT_EQ(::symlink((outside.path + "/secret").c_str(),
                      (folder.path + "/link").c_str()),
            0);
  refuse("link", "expected a file inside the graph's folder; the link leaves "
                 "it");
  expectError(fileConstant("data.safetensors"),
              "constants[0].file: got \"data.safetensors\", expected none: "
              "this graph has no folder");
}

TEST_F(ConstantFiles, LinksInsideTheFolderAreFine) {
  ASSERT_EQ(::symlink("data.safetensors", (folder.path + "/link").c_str()), 0);
  EXPECT_TRUE(parseGraph(fileConstant("link"), folder.path));
}

TEST_F(ConstantFiles, NamesKeysAndTypesThatDoNotMatch) {
  expectError(fileConstant("data.safetensors", "flagz"),
              R"(constants[0].key: got "flagz", expected the name of one of )"
              "the 2 tensors of data.safetensors; nearest: flags",
              folder.path);
  expectError(fileConstant("data.safetensors", "t", "float64"),
              R"(constants[0].key: "t" is F32 [2] in data.safetensors, )"
              "expected F64 [2]",
              folder.path);
  expectError(fileConstant("data.safetensors", "t", "float32", "[2,1]"),
              R"(constants[0].key: "t" is F32 [2] in data.safetensors, )"
              "expected F32 [2,1]",
              folder.path);
  expectError(fileConstant("data.safetensors", "flags", "bool"),
              R"(constants[0].key: element 1 of the bool "flags" is the byte )"
              "2, expected 0 or 1",
              folder.path);
}
