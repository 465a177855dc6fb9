//===- golden_test.cpp - Bundles of every schema version still open -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Goldens.h"
#include "SampleBundle.h"
#include "nova/Support/File.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace nova;
using namespace nova::bundle;

namespace {
const std::string golden = NOVA_TEST_SOURCE "/golden/v1";
} // namespace

bool test::regenerateGolden() {
  Expected<bool> r = publishBundle(golden, sampleBundle(sampleHostObject()),
                                   "{\"note\":\"BundleTests --regenerate\"}\n");
  if (!r)
    std::fprintf(stderr, "%s\n", r.error().message.c_str());
  return static_cast<bool>(r);
}

TEST(Golden, Version1Opens) {
  Expected<Bundle> bundle = openBundle(golden);
  ASSERT_TRUE(static_cast<bool>(bundle)) << bundle.error().message;
  EXPECT_EQ(bundle->manifest.schemaVersion, 1);
  EXPECT_EQ(bundle->manifest.name, "least_squares");
  EXPECT_EQ(bundle->manifest.targets.size(), 1u);
}

TEST(Golden, Version1IsCanonical) {
  std::string text = *readFile(manifestPath(golden), "manifest");
  Expected<Manifest> manifest = readManifest(text, "golden");
  ASSERT_TRUE(static_cast<bool>(manifest)) << manifest.error().message;
  EXPECT_EQ(writeManifest(*manifest), text);
}

TEST(Golden, Version1IsWhatTheWriterWritesToday) {
  // But for the host object: that depends on the C compiler of the day.
  Bundle old = *openBundle(golden);
  Bundle fresh = test::sampleBundle(old.blobs[0]);
  EXPECT_EQ(writeManifest(fresh.manifest),
            *readFile(manifestPath(golden), "manifest"))
      << "the writer changed: is it still schema 1?";
  EXPECT_EQ(fresh.blobs, old.blobs);
}
