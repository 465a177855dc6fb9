//===- safetensors_test.cpp - The strict reader and the writer ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphTestUtils.h"
#include "nova/Support/Safetensors.h"

using namespace nova;
using nova::graph::TemporaryFolder;

static void expectHeaderError(const std::string &header, uint64_t dataSize,
                              const std::string &message) {
  auto entries = parseSafetensorsHeader(header, dataSize);
  ASSERT_FALSE(entries) << "accepted, expected: " << message;
  EXPECT_EQ(entries.error().message, message);
}

TEST(Safetensors, ReadsAHeader) {
  std::vector<std::pair<std::string, std::string>> metadata;
  auto entries = parseSafetensorsHeader(
      R"({"b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
      R"("a\u00e9\n":{"data_offsets":[0,8],"dtype":"I64","shape":[]},)"
      R"("none":{"dtype":"U8","shape":[0,5],"data_offsets":[32,32]},)"
      R"("__metadata__":{"format":"pt"}}   )",
      32, &metadata);
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].name, "a\xc3\xa9\n");
  EXPECT_EQ((*entries)[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*entries)[1].offset, 8u);
  EXPECT_EQ((*entries)[1].size, 24u);
  EXPECT_EQ((*entries)[2].size, 0u);
  ASSERT_EQ(metadata.size(), 1u);
  EXPECT_EQ(metadata[0].second, "pt");
}

TEST(Safetensors, RefusesHolesOverlapsAndTails) {
  auto two = [](const std::string &first, const std::string &second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[)" + first +
           R"(]},"b":{"dtype":"U8","shape":[4],"data_offsets":[)" + second +
           "]}}";
  };
  EXPECT_TRUE(parseSafetensorsHeader(two("4,8", "0,4"), 8));
  expectHeaderError(two("0,4", "5,9"), 9,
                    "tensor \"b\" begins at byte 5 of the data, expected 4 (a "
                    "hole)");
  expectHeaderError(two("0,4", "3,7"), 7,
                    "tensor \"b\" begins at byte 3 of the data, expected 4 (an "
                    "overlap)");
  expectHeaderError(two("0,4", "0,4"), 4,
                    "tensor \"b\" begins at byte 0 of the data, expected 4 (an "
                    "overlap)");
  expectHeaderError(two("0,4", "4,8"), 9,
                    "the tensors cover 8 bytes of data, the file has 9");
  expectHeaderError(two("0,4", "4,8"), 7,
                    "the tensors cover 8 bytes of data, the file has 7");
  expectHeaderError("{}", 1,
                    "the tensors cover 0 bytes of data, the file has 1");
}

TEST(Safetensors, RefusesSizesThatDoNotAgree) {
  expectHeaderError(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
      "tensor \"a\" has data_offsets [0,4], expected 8 bytes for F32 [2] at "
      "byte 53 of the header");
  expectHeaderError(
      R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],)"
      R"("data_offsets":[0,4]}})",
      4,
      "tensor \"a\" of shape [4294967296,4294967296,4294967296] is larger "
      "than 2^64 bytes at byte 84 of the header");
  expectHeaderError(
      R"({"a":{"dtype":"F31","shape":[],"data_offsets":[0,4]}})", 4,
      "tensor \"a\" has the unknown dtype \"F31\" at byte 52 of the header");
}

TEST(Safetensors, RefusesBadJson) {
  for (const char *header :
       {"",
        "[]",
        " {}",
        "{",
        "{}x",
        R"({"a":1})",
        R"({"a":{}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
        R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})",
        R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[00],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[0.0],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[18446744073709551616],)"
        R"("data_offsets":[0,0]}})",
        R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}})",
        R"({"__metadata__":{"a":1}})",
        R"({"__metadata__":"a"})",
        "{\"\xff\":{}}",
        R"({"\ud800":{}})",
        R"({"\x":{}})",
        "{\"a\n\":{}}"})
    EXPECT_FALSE(parseSafetensorsHeader(header, 0)) << header;
}

TEST(Safetensors, WrittenFilesReadBack) {
  TemporaryFolder folder;
  std::string path = folder.path + "/t.safetensors";
  float floats[] = {1, 2, 3};
  uint8_t bytes[] = {7};
  double wide[] = {0.5};
  std::vector<SafetensorsTensor> tensors{
      {"z\"\\", "F32", {3}, floats, sizeof floats},
      {"a", "U8", {1, 1}, bytes, sizeof bytes},
      {"m", "F64", {}, wide, sizeof wide},
      {"empty", "F32", {0}, nullptr, 0}};
  ASSERT_TRUE(writeSafetensors(path, tensors, {{"k", "v\n"}}));
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata()[0].second, "v\n");
  ASSERT_EQ(file->entries().size(), 4u);
  EXPECT_EQ(file->entries()[0].name, "m") << "largest elements first";
  const SafetensorsEntry *entry = file->find("z\"\\");
  ASSERT_TRUE(entry);
  float back[3];
  ASSERT_TRUE(file->read(*entry, back));
  EXPECT_EQ(back[2], 3.0f);
  EXPECT_FALSE(file->find("nope"));
}

TEST(Safetensors, TheWriterIsDeterministicAndAligned) {
  float x[] = {1};
  std::vector<SafetensorsTensor> ab{{"a", "F32", {1}, x, 4},
                                    {"b", "F32", {1}, x, 4}},
      ba{ab[1], ab[0]};
  auto first = safetensorsHeader(ab), second = safetensorsHeader(ba);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(first->size() % 8, 0u);
}

TEST(Safetensors, TheWriterRefusesWhatTheReaderWould) {
  float x[] = {1};
  std::vector<SafetensorsTensor> wrong{{"a", "F32", {2}, x, 4}},
      twice{{"a", "F32", {1}, x, 4}, {"a", "F32", {1}, x, 4}},
      reserved{{"__metadata__", "F32", {1}, x, 4}};
  EXPECT_FALSE(safetensorsHeader(wrong));
  EXPECT_FALSE(safetensorsHeader(twice));
  EXPECT_FALSE(safetensorsHeader(reserved));
}

TEST(Safetensors, FilesThatAreNone) {
  TemporaryFolder folder;
  auto refuse = [&](const std::string &bytes, const std::string &why) {
    folder.write("f", bytes);
    auto file = SafetensorsFile::open(folder.path + "/f");
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().message,
              "safetensors file " + folder.path + "/f: " + why);
  };
  refuse("", "has 0 bytes, expected at least 8");
  refuse("1234567", "has 7 bytes, expected at least 8");
  refuse(std::string("\x03\0\0\0\0\0\0\0{}", 10),
         "the header has 3 bytes, the file only 2 after the size");
  refuse(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10),
         "the header has 18446744073709551615 bytes, the limit is 100000000");
  refuse(std::string(8, '\0'), "the header does not begin with '{'");
  EXPECT_FALSE(SafetensorsFile::open(folder.path));
  EXPECT_FALSE(SafetensorsFile::open(folder.path + "/nothing"));
}
