//===- bundle_test.cpp - Publishing and opening a bundle folder -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleBundle.h"
#include "nova/Support/File.h"
#include "nova/Support/Hash.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>

using namespace nova;
using namespace nova::bundle;
namespace fs = std::filesystem;

namespace {

class BundleTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "nova-bundle-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
    dir = root + "/a.nova";
  }
  void TearDown() override { fs::remove_all(root); }

  bool publish(const Bundle &b) {
    Expected<bool> r = publishBundle(dir, b, "{}\n");
    EXPECT_TRUE(static_cast<bool>(r)) << r.error().message;
    return r && *r;
  }
  std::set<std::string> files() const {
    std::set<std::string> out;
    for (const auto &entry : fs::recursive_directory_iterator(dir))
      if (entry.is_regular_file())
        out.insert(fs::relative(entry.path(), dir).string());
    return out;
  }
  void overwrite(const std::string &path, const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  std::string root, dir;
};

std::string blobFile(std::string_view bytes) {
  return "blobs/sha256/" + sha256Hex(bytes);
}

} // namespace

TEST_F(BundleTest, PublishThenOpen) {
  Bundle b = test::sampleBundle("code");
  EXPECT_TRUE(publish(b));
  EXPECT_EQ(files(),
            (std::set<std::string>{"manifest.json", "provenance.json",
                                   blobFile("code"), blobFile(b.blobs[1])}));
  Expected<Bundle> back = openBundle(dir);
  ASSERT_TRUE(static_cast<bool>(back)) << back.error().message;
  EXPECT_EQ(back->blobs, b.blobs);
  EXPECT_EQ(writeManifest(back->manifest), writeManifest(b.manifest));
}

TEST_F(BundleTest, UnchangedKeepsItsTimeStamps) {
  Bundle b = test::sampleBundle("code");
  EXPECT_TRUE(publish(b));
  timespec past[2] = {{1000, 0}, {1000, 0}};
  for (const std::string &file :
       {std::string("manifest.json"), blobFile("code")})
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir + "/" + file).c_str(), past, 0), 0);
  EXPECT_FALSE(publish(b));
  for (const std::string &file :
       {std::string("manifest.json"), blobFile("code")}) {
    struct stat info;
    ASSERT_EQ(::stat((dir + "/" + file).c_str(), &info), 0);
    EXPECT_EQ(info.st_mtime, 1000) << file;
  }
}

TEST_F(BundleTest, PublishingPrunesAndRepairs) {
  publish(test::sampleBundle("old code"));
  overwrite(dir + "/blobs/sha256/README", "not a blob");
  EXPECT_TRUE(publish(test::sampleBundle("new code")));
  EXPECT_EQ(files().count(blobFile("old code")), 0u);
  EXPECT_EQ(files().count("blobs/sha256/README"), 1u) << "not ours to remove";
  // A damaged blob of the right size is written again.
  overwrite(dir + "/" + blobFile("new code"), "NEW code");
  EXPECT_FALSE(publish(test::sampleBundle("new code")));
  EXPECT_TRUE(static_cast<bool>(openBundle(dir)));
}

TEST_F(BundleTest, EqualBytesAreOneBlob) {
  Bundle b;
  EXPECT_EQ(b.addBlob(kMediaData, "x"), 0u);
  EXPECT_EQ(b.addBlob(kMediaData, "y"), 1u);
  EXPECT_EQ(b.addBlob(kMediaData, "x"), 0u);
  EXPECT_EQ(b.addBlob(kMediaHost, "x"), 2u) << "another use of the same file";
  EXPECT_EQ(b.manifest.blobs[2].digest, b.manifest.blobs[0].digest);
}

TEST_F(BundleTest, FailureRemovesTheManifest) {
  publish(test::sampleBundle("code"));
  // The blob's place is taken by a folder: it cannot be written.
  fs::create_directories(dir + "/" + blobFile("other code"));
  Expected<bool> r = publishBundle(dir, test::sampleBundle("other code"), "{}");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::Missing);
  EXPECT_FALSE(fs::exists(dir + "/manifest.json"));
}

TEST_F(BundleTest, WhatItsOwnReaderRefusesIsInternal) {
  Bundle b = test::sampleBundle("code");
  b.manifest.inputs[0].bytes = 19;
  Expected<bool> r = publishBundle(dir, b, "{}");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::Internal);
  EXPECT_EQ(r.error().message,
            "the manifest to publish: inputs[0].bytes: 19, expected 20: "
            "float32 [5] with strides [1]");
  b = test::sampleBundle("code");
  b.blobs[0] = "edoc";
  r = publishBundle(dir, b, "{}");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "blob 0 is not what its digest and size say: "
                               "sha256:" +
                                   sha256Hex("code"));
}

TEST_F(BundleTest, MissingThings) {
  Expected<Manifest> r = openManifest(dir);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::BadInput);
  EXPECT_EQ(r.error().message, "cannot read manifest '" + dir +
                                   "/manifest.json': No such file or "
                                   "directory");
  publish(test::sampleBundle("code"));
  fs::remove(dir + "/" + blobFile("code"));
  r = openManifest(dir);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::BadInput);
  EXPECT_EQ(r.error().message, "cannot read blob '" + dir + "/" +
                                   blobFile("code") +
                                   "': No such file or directory");
}

TEST_F(BundleTest, SizeBeforeDigest) {
  publish(test::sampleBundle("code"));
  std::string path = dir + "/" + blobFile("code");
  overwrite(path, "longer code");
  Expected<Bundle> r = openBundle(dir);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::Verification);
  EXPECT_EQ(r.error().message,
            "blob '" + path + "' has 11 bytes, the manifest says 4");
  overwrite(path, "edoc");
  r = openBundle(dir);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::Verification);
  EXPECT_EQ(r.error().message,
            "blob '" + path + "' has digest sha256:" + sha256Hex("edoc") +
                ", the manifest says sha256:" + sha256Hex("code"));
  EXPECT_TRUE(static_cast<bool>(openManifest(dir))) << "reads no blob";
}

TEST_F(BundleTest, UnwritableFolder) {
  overwrite(root + "/file", "");
  Expected<bool> r =
      publishBundle(root + "/file", test::sampleBundle("code"), "{}");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::Missing);
  EXPECT_EQ(r.error().message,
            "cannot create folder '" + root + "/file/blobs': Not a directory");
}
