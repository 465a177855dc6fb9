//===- target_test.cpp - The device table ---------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Target/Target.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace nova::target;

TEST(Target, AnArchitectureStandsForOneCanonicalDevice) {
  const std::map<std::string_view, std::string_view> expected = {
      {"sm_80", "a100"},    {"sm_86", "rtx3060"}, {"sm_89", "rtx6000-ada"},
      {"sm_90a", "h200"},   {"sm_100a", "b200"},  {"sm_120a", "rtx5090"},
      {"host", "x86-64-v3"}};
  for (auto [arch, name] : expected) {
    const Device *device = findTarget(arch);
    ASSERT_NE(device, nullptr) << arch;
    EXPECT_EQ(device->name, name);
    EXPECT_TRUE(device->canonical);
  }
  std::map<std::string_view, int> canonical;
  for (const Device &device : devices())
    canonical[device.arch] += device.canonical;
  for (auto [arch, count] : canonical)
    EXPECT_EQ(count, 1) << arch;
  EXPECT_EQ(canonical.size(), expected.size());
}

TEST(Target, NamesAreUniqueAndFound) {
  std::set<std::string_view> seen;
  for (std::string_view name : targetNames()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_NE(findTarget(name), nullptr) << name;
  }
  EXPECT_EQ(findTarget("h100")->arch, "sm_90a");
  EXPECT_EQ(findTarget("h300"), nullptr);
  EXPECT_EQ(findTarget(""), nullptr);
  EXPECT_EQ(findTarget("native"), nullptr);
}

TEST(Target, NumbersHang) {
  for (const Device &d : devices()) {
    SCOPED_TRACE(d.name);
    EXPECT_GT(d.smCount, 0);
    EXPECT_GT(d.l2Bytes, 0);
    EXPECT_GT(d.dramBytesPerSecond, 1e11 - 1);
    EXPECT_GT(d.flops.f32, 0);
    if (d.kind == DeviceKind::Cpu)
      continue;
    EXPECT_LT(d.sharedBytesPerBlock, d.sharedBytesPerSm);
    EXPECT_EQ(d.registersPerSm, 65536);
    EXPECT_LE(d.flops.f32, d.flops.tf32);
    EXPECT_NEAR(d.flops.tf32 * 2, d.flops.bf16, 0.01 * d.flops.bf16);
    EXPECT_EQ(d.flops.bf16, d.flops.f16);
  }
}
