//===- cuda_device_test.cpp - Which target runs on which GPU --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime/Cuda/CudaDevice.h"

#include <gtest/gtest.h>

using namespace nova;
using namespace nova::rt::cuda;

namespace {

DeviceFacts device(int major, int minor, std::string name = "NVIDIA GPU") {
  DeviceFacts d;
  d.name = std::move(name);
  d.major = major;
  d.minor = minor;
  d.totalBytes = uint64_t(1) << 37;
  d.sharedBytesPerBlock = 101376;
  d.threadsPerBlock = 1024;
  d.block = {1024, 1024, 64};
  d.grid = {2147483647, 65535, 65535};
  d.clusters = true;
  d.driverVersion = 12080;
  return d;
}

bundle::Target target(std::string name, std::string row = "x",
                      bool ptx = true) {
  bundle::Target t;
  t.name = std::move(name);
  t.device = std::move(row);
  bundle::Kernel k;
  k.name = "k";
  if (ptx)
    k.ptxBlob = 0;
  t.kernels.push_back(k);
  return t;
}

std::string chosen(std::vector<bundle::Target> targets, const DeviceFacts &d,
                   bool allowJit = false) {
  bundle::Manifest m;
  m.targets = std::move(targets);
  Expected<uint32_t> index = chooseTarget(m, d, allowJit);
  return index ? describe(m.targets[*index]) : index.error().message;
}

std::string refusal(const bundle::Target &t, const DeviceFacts &d,
                    bool allowJit = false) {
  Status s = checkTarget(t, d, allowJit);
  EXPECT_FALSE(s) << describe(t);
  if (s)
    return "";
  EXPECT_EQ(s.error().code, ErrorCode::Missing);
  EXPECT_FALSE(s.error().hint.empty());
  return s.error().message;
}

} // namespace

TEST(CudaDevice, Architectures) {
  auto arch = architectureOf("sm_90a");
  ASSERT_TRUE(arch);
  EXPECT_EQ(arch->major, 9);
  EXPECT_EQ(arch->minor, 0);
  EXPECT_TRUE(arch->exact);
  arch = architectureOf("sm_120");
  ASSERT_TRUE(arch);
  EXPECT_EQ(arch->major, 12);
  EXPECT_FALSE(arch->exact);
  for (const char *name : {"host", "sm_", "sm_9", "sm_a", "sm_90b", "sm_90aa",
                           "sm_-90", "gfx942", ""})
    EXPECT_FALSE(architectureOf(name)) << name;
}

TEST(CudaDevice, Fits) {
  // Architecture-specific code: equal compute capability.
  EXPECT_EQ(fitOf(target("sm_90a"), device(9, 0), true), Fit::Cubin);
  EXPECT_EQ(fitOf(target("sm_100a"), device(10, 3), true), Fit::No);
  EXPECT_EQ(fitOf(target("sm_90a"), device(10, 0), true), Fit::No);
  // Other cubins: equal major, no lower minor.
  EXPECT_EQ(fitOf(target("sm_80"), device(8, 0), false), Fit::Cubin);
  EXPECT_EQ(fitOf(target("sm_80"), device(8, 9), false), Fit::Cubin);
  EXPECT_EQ(fitOf(target("sm_86"), device(8, 0), true), Fit::No);
  EXPECT_EQ(fitOf(target("sm_89"), device(9, 0), false), Fit::No);
  // PTX: when allowed, and for every kernel.
  EXPECT_EQ(fitOf(target("sm_89"), device(9, 0), true), Fit::Jit);
  EXPECT_EQ(fitOf(target("sm_89", "x", false), device(9, 0), true), Fit::No);
  EXPECT_EQ(fitOf(target("sm_80"), device(7, 5), true), Fit::No);
}

TEST(CudaDevice, Choice) {
  std::vector<bundle::Target> hopper = {target("sm_90a", "h100"),
                                        target("sm_90a", "h200")};
  EXPECT_EQ(chosen(hopper, device(9, 0, "NVIDIA H100 80GB HBM3")),
            "sm_90a (h100)");
  EXPECT_EQ(chosen(hopper, device(9, 0, "NVIDIA H200")), "sm_90a (h200)");
  EXPECT_EQ(chosen(hopper, device(9, 0, "NVIDIA GH200 480GB")), "sm_90a (h200)")
      << "the canonical device of the architecture";
  std::vector<bundle::Target> many = {
      target("host", "x86-64-v3"), target("sm_80", "a100"),
      target("sm_86", "rtx3060"),  target("sm_89", "rtx6000-ada"),
      target("sm_89", "rtx4090"),  target("sm_90", "other"),
      target("sm_90a", "h200"),    target("sm_120a", "rtx5090")};
  EXPECT_EQ(chosen(many, device(8, 0)), "sm_80 (a100)");
  EXPECT_EQ(chosen(many, device(8, 7)), "sm_86 (rtx3060)");
  EXPECT_EQ(chosen(many, device(8, 9)), "sm_89 (rtx6000-ada)");
  EXPECT_EQ(chosen(many, device(8, 9, "NVIDIA GeForce RTX 4090")),
            "sm_89 (rtx4090)");
  EXPECT_EQ(chosen(many, device(9, 0)), "sm_90a (h200)") << "before sm_90";
  EXPECT_EQ(chosen(many, device(12, 0)), "sm_120a (rtx5090)");
  EXPECT_EQ(chosen(many, device(12, 1), true), "sm_90 (other)")
      << "PTX of the highest that is not bound to its chip";
  EXPECT_EQ(chosen({target("sm_80", "a100"), target("sm_89", "rtx4090")},
                   device(8, 6), true),
            "sm_80 (a100)")
      << "a cubin before any PTX";
}

TEST(CudaDevice, RefusalsOfEveryTargetAreNamed) {
  EXPECT_EQ(chosen({target("sm_90a", "h200"), target("sm_80", "a100")},
                   device(12, 0, "NVIDIA GeForce RTX 5090")),
            "target sm_90a (h200) expects compute capability 9.0 exactly, got "
            "GPU 0 (NVIDIA GeForce RTX 5090, compute capability 12.0); target "
            "sm_80 (a100) expects compute capability 8.0 to 8.x, got GPU 0 "
            "(NVIDIA GeForce RTX 5090, compute capability 12.0)");
  bundle::Manifest m;
  m.targets = {target("sm_90a", "h200"), target("sm_80", "a100")};
  EXPECT_EQ(chooseTarget(m, device(12, 0), false).error().hint,
            "the driver can compile its PTX: give --allow-jit, or compile the "
            "graph for this device");
}

TEST(CudaDevice, Preflight) {
  DeviceFacts d = device(9, 0, "NVIDIA H200");
  bundle::Target t = target("sm_90a", "h200");
  EXPECT_TRUE(bool(checkTarget(t, d, false)));

  t.minDriver = 13000;
  EXPECT_EQ(refusal(t, d), "target sm_90a (h200) expects a driver of CUDA 13.0 "
                           "or later, got one of CUDA 12.8");
  t.minDriver = 12080;

  auto kernel = [&](auto change) {
    bundle::Target changed = t;
    change(changed.kernels[0]);
    return refusal(changed, d);
  };
  std::string end =
      ", got GPU 0 (NVIDIA H200, compute capability 9.0) with at most ";
  std::string begin = "kernel \"k\" of target sm_90a (h200) expects ";
  EXPECT_EQ(
      kernel([](bundle::Kernel &k) {
        k.staticSharedBytes = 1000;
        k.dynamicSharedBytes = 101000;
      }),
      begin +
          "1000 static and 101000 dynamic bytes of shared memory per block" +
          end + "101376");
  EXPECT_EQ(kernel([](bundle::Kernel &k) {
              k.staticSharedBytes = k.dynamicSharedBytes = uint64_t(1) << 63;
            }),
            begin +
                "9223372036854775808 static and 9223372036854775808 dynamic "
                "bytes of shared memory per block" +
                end + "101376");
  d.threadsPerBlock = 512;
  EXPECT_EQ(kernel([](bundle::Kernel &k) { k.block = {256, 4, 1}; }),
            begin + "1024 threads per block" + end + "512");
  d.threadsPerBlock = 1024;
  EXPECT_EQ(kernel([](bundle::Kernel &k) { k.block = {1, 1, 65}; }),
            begin + "a block of 1x1x65" + end + "1024x1024x64");
  EXPECT_EQ(kernel([](bundle::Kernel &k) { k.grid = {1, 65536, 1}; }),
            begin + "a grid of 1x65536x1" + end + "2147483647x65535x65535");
  d.clusters = false;
  EXPECT_EQ(kernel([](bundle::Kernel &k) {
              k.grid = {4, 1, 1};
              k.cluster = {2, 1, 1};
            }),
            begin + "a cluster of 2x1x1 blocks" + end + "single blocks");

  bundle::Target odd = t;
  odd.kernels[0].grid = {5, 1, 1};
  odd.kernels[0].cluster = {2, 1, 1};
  Status s = checkTarget(odd, d, false);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::BadInput);
  EXPECT_EQ(s.error().message,
            "kernel \"k\" of target sm_90a (h200) has a grid of 5x1x1 in "
            "clusters of 2x1x1, expected multiples");

  t.arena.size = uint64_t(1) << 37;
  t.constants.push_back({0, 0, 1});
  EXPECT_EQ(refusal(t, d),
            "target sm_90a (h200) expects 137438953472 bytes for the arena and "
            "1 for constants, got GPU 0 (NVIDIA H200, compute capability 9.0) "
            "with 137438953472");
  EXPECT_EQ(refusal(target("gfx942", "mi300"), d),
            "target gfx942 (mi300) is for no GPU that this loader knows, "
            "expected sm_ and a compute capability");
}
