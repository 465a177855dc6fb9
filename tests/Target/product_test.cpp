//===- product_test.cpp - Which row a product is --------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Target/Target.h"

#include <gtest/gtest.h>

using namespace nova::target;

TEST(Product, IsFoundByTheWordsOfItsName) {
  EXPECT_TRUE(isProduct("h200", "NVIDIA H200"));
  EXPECT_TRUE(isProduct("h100", "NVIDIA H100 80GB HBM3"));
  EXPECT_TRUE(isProduct("rtx6000-ada", "NVIDIA RTX 6000 Ada Generation"));
  EXPECT_TRUE(isProduct("rtx4090", "NVIDIA GeForce RTX 4090"));
  EXPECT_TRUE(isProduct("a100", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(isProduct("b200", "NVIDIA B200"));
  EXPECT_FALSE(isProduct("rtx4090", "NVIDIA GeForce RTX 4090 Laptop GPU"));
  EXPECT_FALSE(isProduct("rtx3060", "NVIDIA GeForce RTX 3060 Ti"));
  EXPECT_FALSE(isProduct("h100", "NVIDIA H1000"));
  EXPECT_FALSE(isProduct("h100", "NVIDIA H200"));
  EXPECT_FALSE(isProduct("h200", "NVIDIA GH200 480GB"));
  EXPECT_FALSE(isProduct("rtx6000-ada", "NVIDIA RTX 6000"));
  EXPECT_FALSE(isProduct("", "NVIDIA H200"));
}

TEST(Product, EveryRowIsItsOwn) {
  for (const Device &device : devices())
    if (device.kind == DeviceKind::Gpu) {
      EXPECT_EQ(deviceOf(device.arch, device.product), &device) << device.name;
    }
}

TEST(Product, AnUnknownOneOfAnArchitectureIsItsCanonicalDevice) {
  EXPECT_EQ(deviceOf("sm_89", "NVIDIA L40S")->name, "rtx6000-ada");
  EXPECT_EQ(deviceOf("sm_90a", "NVIDIA GH200 480GB")->name, "h200");
  EXPECT_EQ(deviceOf("sm_75", "Tesla T4"), nullptr);
}
