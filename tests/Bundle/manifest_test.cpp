//===- manifest_test.cpp - Writer, reader, sizes and reals ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleBundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace nova;
using namespace nova::bundle;

namespace {

Manifest sample() { return test::sampleBundle("an object").manifest; }

std::string errorOf(const Manifest &m) {
  Expected<Manifest> r = readManifest(writeManifest(m), "m");
  return r ? "" : r.error().message;
}

/// A target that only GPUs have, with what a host target cannot show.
Target gpuTarget(Bundle &b) {
  Target t;
  t.name = "sm_90a";
  t.device = "h200";
  t.minDriver = 13000;
  t.ptxVersion = 90;
  Kernel k;
  k.name = "matmul_3f9c21ab";
  k.symbol = "matmul_3f9c21ab";
  k.blob = b.addBlob(kMediaCubin, "cubin");
  k.ptxBlob = b.addBlob(kMediaPtx, "ptx");
  k.grid = {132, 1, 1};
  k.block = {384, 1, 1};
  k.cluster = {2, 1, 1};
  k.dynamicSharedBytes = 200000;
  k.schedule = {{"stages", 4},
                {"intensity", hexFloat(61.25)},
                {"nested", Attributes{{"deep", true}}}};
  k.params = {{ParamKind::TensorMap, 128, 64}, {ParamKind::Scalar, 8, 8}};
  t.kernels = {k};
  TensorMap map;
  map.memory = InputRef{0, 0};
  map.elementType = "float32";
  map.rank = 1;
  map.sizes = {5};
  map.box = {4};
  map.elementStrides = {1};
  map.interleave = "none";
  map.swizzle = "128b";
  map.l2Promotion = "256b";
  map.fill = "nan";
  Launch l;
  l.kernel = 0;
  l.args = {map, Immediate{UINT64_MAX, "int64"}};
  t.launches = {l};
  t.bucketReady = {0};
  return t;
}

} // namespace

TEST(Manifest, RoundTrip) {
  Bundle b = test::sampleBundle("an object");
  b.manifest.targets.push_back(gpuTarget(b));
  b.manifest.numerics.graph16bit = true;
  b.manifest.numerics.fastMath = {"contract"};
  std::string text = writeManifest(b.manifest);
  Expected<Manifest> back = readManifest(text, "m");
  ASSERT_TRUE(static_cast<bool>(back)) << back.error().message;
  EXPECT_EQ(writeManifest(*back), text);
  EXPECT_EQ(back->inputs[3].advance, "0x1p+0");
  EXPECT_EQ(back->targets[0].arena.buffers[1].alias, 0u);
  EXPECT_TRUE(back->numerics.graph16bit);
  const auto &map = std::get<TensorMap>(back->targets[1].launches[0].args[0]);
  EXPECT_EQ(map.swizzle, "128b");
  EXPECT_EQ(std::get<Immediate>(back->targets[1].launches[0].args[1]).bits,
            UINT64_MAX);
}

TEST(Manifest, CanonicalText) {
  Manifest m = sample();
  m.targets.clear();
  m.buckets.clear();
  m.inputs.resize(1);
  m.outputs.resize(0);
  m.blobs.clear();
  EXPECT_EQ(
      writeManifest(m),
      "{\"blobs\":[],\"buckets\":[],\"features\":[],"
      "\"graph_digest\":\"" +
          m.graphDigest +
          "\","
          "\"inputs\":[{\"alignment\":16,\"bytes\":20,\"dtype\":\"float32\","
          "\"name\":\"w\",\"path\":\"model.w\",\"role\":\"parameter\","
          "\"shape\":[5],\"strides\":[1]}\n],"
          "\"name\":\"least_squares\","
          "\"numerics\":{\"deterministic\":true,\"fast_math\":[],"
          "\"matmul\":\"f32\"},\"outputs\":[],"
          "\"producer\":{\"llvm\":\"22.1.8\",\"novac\":\"0.1.0\","
          "\"options\":{\"fusion\":true,\"precision\":\"f32\"},\"ptxas\":\"\"},"
          "\"schema_version\":1,\"targets\":[]}\n");
}

TEST(Manifest, OneNewlinePerTopLevelElement) {
  Manifest m = sample();
  std::string text = writeManifest(m);
  size_t elements = m.features.size() + m.inputs.size() + m.outputs.size() +
                    m.blobs.size() + m.targets.size() + m.buckets.size();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<long>(elements) + 1);
  bool quoted = false;
  for (char c : text) {
    quoted ^= c == '"';
    EXPECT_FALSE(c == ' ' && !quoted) << "white space between values";
  }
}

TEST(Manifest, ALaterSchemaMayAddKeysButNotFeatures) {
  std::string text = writeManifest(sample());
  auto with = [&](const std::string &from, const std::string &to) {
    std::string out = text;
    size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos);
    return out.replace(at, from.size(), to);
  };
  std::string added =
      with("\"features\":[]", "\"extra\":{\"x\":[1]},\"features\":[]");
  EXPECT_FALSE(readManifest(added, "m")) << "unknown in schema 1";
  std::string later = added;
  later.replace(later.find("\"schema_version\":1"), 18, "\"schema_version\":2");
  Expected<Manifest> r = readManifest(later, "m");
  EXPECT_TRUE(static_cast<bool>(r)) << r.error().message;
  std::string feature = later;
  feature.replace(feature.find("\"features\":[]"), 13,
                  "\"features\":[\"multicast\"]");
  r = readManifest(feature, "m");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message,
            "m: features[0]: \"multicast\", expected only features that this "
            "reader knows (pointer_tables): a newer loader is needed");
}

TEST(Manifest, SizeCap) {
  Expected<Manifest> r = readManifest(std::string_view("{}").substr(0, 2), "m");
  ASSERT_FALSE(r);
  std::string big(kMaxManifestBytes + 1, ' ');
  r = readManifest(big, "m");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "m: 268435457 bytes, the limit is 268435456");
}

TEST(Manifest, AliveTogetherMustNotOverlapUnlessAlias) {
  Manifest m = sample();
  auto &buffers = m.targets[0].arena.buffers;
  EXPECT_EQ(errorOf(m), "");
  buffers[1].alias.reset();
  EXPECT_EQ(errorOf(m),
            "m: targets[0].arena.buffers[1]: bytes 0 + 28, launches 1 to 2, "
            "expected no overlap with buffer 0 (bytes 0 + 28, launches 0 to "
            "1), which is not its alias");
  // Not alive together: no alias needed.
  buffers.push_back({0, 28, 3, 4, {}});
  buffers[1].alias = 0;
  EXPECT_EQ(errorOf(m), "");
  // An alias of an alias is one; a brother is not.
  buffers[2] = {0, 28, 1, 2, 1};
  EXPECT_EQ(errorOf(m), "");
  buffers[2].alias = 0;
  EXPECT_NE(errorOf(m).find("expected no overlap with buffer 1"),
            std::string::npos);
  // A circle of aliases.
  buffers[0].alias = 2;
  EXPECT_EQ(errorOf(m), "m: targets[0].arena.buffers[0].alias: 2, expected a "
                        "chain of aliases that ends");
}

TEST(Manifest, ManyBuffers) {
  Manifest m = sample();
  Target &t = m.targets[0];
  t.launches.resize(1);
  t.launches[0].args[2] = BufferRef{0, 0};
  t.bucketReady = {0};
  t.arena.buffers.clear();
  // All alive together, side by side: the most comparisons there can be.
  constexpr uint64_t count = 4000;
  for (uint64_t i = 0; i < count; ++i)
    t.arena.buffers.push_back({i * 256, 256, 0, 0, {}});
  t.arena.size = count * 256;
  EXPECT_TRUE(static_cast<bool>(checkManifest(m, "m")));
  t.arena.buffers[count - 1].offset = 256;
  Status s = checkManifest(m, "m");
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().message.find("buffers[3999]: bytes 256 + 256, launches 0 "
                                   "to 0, expected no overlap with buffer 1 "),
            std::string::npos);
  t.arena.buffers.resize(kMaxArenaBuffers + 1, {0, 0, 0, 0, {}});
  s = checkManifest(m, "m");
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().message, "m: targets[0].arena.buffers: a list of 65537, "
                               "expected at most 65536");
}

TEST(Manifest, TensorBytes) {
  using V = std::vector<int64_t>;
  EXPECT_EQ(tensorBytes("float32", {}, {}), 4u);
  EXPECT_EQ(tensorBytes("bfloat16", {3, 4}, {4, 1}), 24u);
  EXPECT_EQ(tensorBytes("float64", {3, 4}, {10, 2}), 8 * (1 + 20 + 6u));
  EXPECT_EQ(tensorBytes("int8", {3, 4}, {0, 1}), 4u) << "a broadcast";
  EXPECT_EQ(tensorBytes("int8", {3, 0}, {1, 1}), 0u);
  EXPECT_EQ(tensorBytes("float8", V{}, V{}), std::nullopt);
  EXPECT_EQ(tensorBytes("int8", V{3}, V{}), std::nullopt);
  EXPECT_EQ(tensorBytes("int8", V{-1}, V{1}), std::nullopt);
  EXPECT_EQ(tensorBytes("int8", V{2}, V{-1}), std::nullopt);
  int64_t big = int64_t(1) << 40;
  EXPECT_EQ(tensorBytes("int8", V{big, big}, V{big, 1}), std::nullopt);
  EXPECT_EQ(tensorBytes("int8", V{big, big}, V{0, 0}), std::nullopt)
      << "one byte, but more elements than 64 bits count";
  EXPECT_EQ(tensorBytes("float64", V{int64_t(1) << 60}, V{1}), std::nullopt)
      << "2^63 bytes";
  EXPECT_EQ(contiguousStrides({2, 3, 4}), (V{12, 4, 1}));
}

TEST(Manifest, HexFloat) {
  for (double v : {0.0, 1.0, -1.5, 1e-5, 0.1, 5e-324, 1.7976931348623157e308}) {
    EXPECT_EQ(parseHexFloat(hexFloat(v)), v) << v;
  }
  EXPECT_EQ(hexFloat(1), "0x1p+0");
  EXPECT_EQ(hexFloat(-0.1), "-0x1.999999999999ap-4");
  EXPECT_EQ(hexFloat(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_TRUE(std::signbit(*parseHexFloat("-0x0p+0")));
  for (const char *bad : {"", "1", "0x", "0x1p+0 ", " 0x1p+0", "0xinf", "0x-1",
                          "--0x1p+0", "+0x1p+0", "0x1p+99999", "-nan"})
    EXPECT_EQ(parseHexFloat(bad), std::nullopt) << bad;
}
