//===- parts_test.cpp - Thread pool, preflight, elements ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Elements.h"
#include "Runtime/HostModule.h"
#include "Runtime/ThreadPool.h"

#include <gtest/gtest.h>

#include <vector>

#include <xmmintrin.h>

using namespace nova;
using namespace nova::rt;

namespace {

/// args[0]: one counter per grid point, which must come to 1 each.
void countPoints(void *const *args, int64_t first, int64_t last) {
  auto *counts = static_cast<std::atomic<int> *>(args[0]);
  for (int64_t i = first; i < last; ++i)
    counts[i].fetch_add(1, std::memory_order_relaxed);
}

void countLength(void *const *args, int64_t first, int64_t last) {
  static_cast<std::atomic<int64_t> *>(args[0])->fetch_add(last - first);
}

} // namespace

TEST(ThreadPool, EveryPointOnce) {
  for (unsigned threads : {1u, 2u, 5u}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(static_cast<bool>(pool));
    EXPECT_EQ((*pool)->size(), threads);
    std::vector<std::atomic<int>> counts(1000);
    void *args[] = {counts.data()};
    // Thousands of short grids of changing size, back to back: the late helper
    // is the dangerous one.
    (*pool)->run([&] {
      for (int grid = 0; grid < 3000; ++grid) {
        int64_t points = grid % 41;
        (*pool)->parallel(countPoints, args, points);
        for (int64_t i = 0; i < points; ++i)
          if (counts[i].exchange(0) != 1)
            ADD_FAILURE() << "grid " << grid << " point " << i;
      }
    });
  }
}

TEST(ThreadPool, AGridOfMoreThan64KChunks) {
  auto pool = ThreadPool::create(3);
  std::atomic<int64_t> sum{0};
  void *args[] = {&sum};
  (*pool)->run([&] { (*pool)->parallel(countLength, args, INT64_MAX); });
  EXPECT_EQ(sum, INT64_MAX);
}

TEST(ThreadPool, ComesAndGoes) {
  for (int i = 0; i < 50; ++i) {
    auto pool = ThreadPool::create(4);
    ASSERT_TRUE(static_cast<bool>(pool));
    if (i % 2)
      (*pool)->run([] {});
  }
}

TEST(Preflight, NamesWhatIsMissing) {
  std::vector<CpuFeature> all = x86V3Features();
  EXPECT_EQ(all.size(), 8u);
  for (CpuFeature &f : all)
    f.present = true;
  EXPECT_TRUE(static_cast<bool>(checkHostDevice("x86-64-v3", all)));
  all[1].present = all[5].present = false;
  Status s = checkHostDevice("x86-64-v3", all);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Missing);
  EXPECT_EQ(s.error().message,
            "expected a CPU with x86-64-v3, got one without avx2, fma");
  s = checkHostDevice("x86-64-v3", {});
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().message,
            "expected an x86-64 CPU, got another architecture");
}

TEST(Elements, SixteenBitTypesRoundTrip) {
  for (DType t : {DType::BF16, DType::F16})
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      uint64_t in = bits, out = 0;
      double value = loadElement(t, &in);
      storeElement(t, &out, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(loadElement(t, &out)));
      } else {
        ASSERT_EQ(in, out) << bits;
        if (std::isfinite(value)) {
          ASSERT_EQ(roundTo(t, value), value) << bits;
        }
      }
    }
}

TEST(Elements, RoundsToNearestEven) {
  auto through = [](DType t, double v) {
    uint64_t p = 0;
    storeElement(t, &p, v);
    return loadElement(t, &p);
  };
  EXPECT_EQ(through(DType::BF16, 1 + 0x1p-8), 1);
  EXPECT_EQ(through(DType::BF16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  // In two steps, through float, this would round up.
  EXPECT_EQ(through(DType::BF16, 1 + 0x1p-8 - 0x1p-40), 1);
  EXPECT_EQ(through(DType::F16, 1 + 0x1p-11), 1);
  EXPECT_EQ(through(DType::F16, 65519), 65504);
  EXPECT_TRUE(std::isinf(through(DType::F16, 65520)));
  EXPECT_EQ(through(DType::F16, 0x1p-25), 0);
  EXPECT_EQ(through(DType::F16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(through(DType::I8, 130), -126) << "wraps";
  EXPECT_EQ(through(DType::Bool, 2), 1);
}

TEST(Elements, Ulp) {
  EXPECT_EQ(ulp(DType::F32, 1), 0x1p-23);
  EXPECT_EQ(ulp(DType::F32, -1.999), 0x1p-23);
  EXPECT_EQ(ulp(DType::F32, 0), 0x1p-149);
  EXPECT_EQ(ulp(DType::BF16, 4), 0x1p-5);
  EXPECT_EQ(ulp(DType::F16, 0x1p-20), 0x1p-24);
  EXPECT_EQ(ulp(DType::F64, 1), 0x1p-52);
}
