//===- output_test.cpp - Output folders and depfiles ----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Output.h"
#include "nova/Support/File.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace nova;
using namespace nova::driver;
namespace fs = std::filesystem;

namespace {
class OutputTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = fs::path(::testing::TempDir()) /
             ("nova-output-" + std::to_string(::getpid()) +
              ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  void touch(const std::string &name) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << "x";
  }
  std::string at(const std::string &name) { return (folder / name).string(); }
  fs::path folder;
};
} // namespace

TEST_F(OutputTest, AFailureRemovesTheManifestOfAnOldBundle) {
  touch("b.nova/manifest.json");
  touch("b.nova/blobs/sha256/aa");
  {
    OutputFolder output;
    ASSERT_TRUE(output.choose(at("b.nova"), true));
  }
  EXPECT_FALSE(fs::exists(folder / "b.nova/manifest.json"));
  EXPECT_TRUE(fs::exists(folder / "b.nova/blobs/sha256/aa"));
}

TEST_F(OutputTest, AFailureRemovesAllOfANewBundle) {
  {
    OutputFolder output;
    ASSERT_TRUE(output.choose(at("b.nova"), true));
    touch("b.nova/blobs/sha256/aa");
  }
  EXPECT_FALSE(fs::exists(folder / "b.nova"));
}

TEST_F(OutputTest, SuccessKeepsIt) {
  {
    OutputFolder output;
    ASSERT_TRUE(output.choose(at("b.nova"), true));
    touch("b.nova/manifest.json");
    output.keep();
  }
  EXPECT_TRUE(fs::exists(folder / "b.nova/manifest.json"));
}

TEST_F(OutputTest, WhatIsNoBundleIsLeftAlone) {
  touch("site/manifest.json");
  touch("site/index.html");
  touch("file");
  {
    OutputFolder output;
    Status status = output.choose(at("site"), true);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::Missing);
    EXPECT_FALSE(OutputFolder().choose(at("file"), true));
  }
  EXPECT_TRUE(fs::exists(folder / "site/manifest.json"));
  EXPECT_TRUE(fs::exists(folder / "file"));
}

TEST_F(OutputTest, AGraphsNameDoesNotLeadOutOfTheFolder) {
  for (const char *name :
       {"", ".", "..", "../x", "/x", "a/b", "-o", ".hidden"}) {
    OutputFolder output;
    EXPECT_FALSE(output.choose(name)) << name;
    EXPECT_TRUE(output.path().empty());
  }
  OutputFolder output;
  ASSERT_TRUE(output.choose("plain name"));
  EXPECT_EQ(output.path(), "plain name.nova");
  output.keep();
}

TEST_F(OutputTest, ADepfileIsWhatMakeReads) {
  ASSERT_TRUE(writeDepfile(at("d"), "out dir/manifest.json",
                           {"graph.json", "a$b #1.safetensors"}));
  Expected<std::string> text = readFile(at("d"), "depfile");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "out\\ dir/manifest.json: \\\n  graph.json \\\n  "
                   "a$$b\\ \\#1.safetensors\n");
}
