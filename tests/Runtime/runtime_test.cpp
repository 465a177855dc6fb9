//===- runtime_test.cpp - Loading and launching through the C ABI ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a caller in C can do wrong is in c_abi.c; here are numbers, threads and
// bundles that cannot be loaded.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"
#include "nova-rt/nova_rt.h"
#include "nova/Support/File.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include <xmmintrin.h>

using namespace nova;
using namespace nova::test;

namespace {

/// The sample with buffers: what a framework would hold.
struct Sample {
  nova_rt_bundle_t *bundle = nullptr;
  nova_rt_program_t *program = nullptr;
  nova_rt_instance_t *instance = nullptr;
  alignas(64) float w[8] = {}, m[8] = {}, x[56] = {}, t[8] = {}, g[8] = {};
  alignas(64) float lr[4] = {}, loss[4] = {};
  alignas(64) int64_t count[2] = {41, 0}, seen[2] = {};
  alignas(64) uint8_t threes[16] = {};

  nova_rt_status_t open(const std::string &path, uint32_t threads) {
    nova_rt_status_t s = nova_rt_bundle_open(path.c_str(), &bundle);
    uint32_t target = 0;
    if (!s)
      s = nova_rt_bundle_choose(bundle, NOVA_RT_DEVICE_HOST, &target);
    if (!s)
      s = nova_rt_program_load(bundle, target, nullptr, &program);
    return s ? s : start(threads);
  }
  nova_rt_status_t start(uint32_t threads) {
    nova_rt_instance_options_t options{sizeof options, threads, 0};
    nova_rt_status_t s = nova_rt_instance_create(program, &options, &instance);
    void *in[] = {w, m, lr, count, x, t};
    for (uint32_t i = 0; i < 6 && !s; ++i)
      s = nova_rt_instance_bind_input(instance, i, in[i]);
    void *out[] = {loss, g, nullptr, nullptr, seen, threes};
    for (uint32_t i = 0; i < 6 && !s; ++i)
      if (out[i])
        s = nova_rt_instance_bind_output(instance, i, out[i]);
    return s;
  }
  void fill(const Reference &r) {
    for (int j = 0; j < 5; ++j)
      w[j] = float(r.w[j]), m[j] = float(r.m[j]);
    for (int i = 0; i < 7; ++i) {
      t[i] = float(r.t[i]);
      for (int j = 0; j < 5; ++j)
        x[8 * i + j] = float(r.x[5 * i + j]);
    }
    lr[0] = float(r.lr);
  }
  ~Sample() {
    nova_rt_instance_close(instance);
    nova_rt_program_close(program);
    nova_rt_bundle_close(bundle);
  }
};

using RuntimeTest = SampleTest;

} // namespace

TEST_F(RuntimeTest, StepsAreRight) {
  Reference r = Reference::start();
  Sample s;
  ASSERT_EQ(s.open(bundle, 2), NOVA_RT_OK) << nova_rt_error_message();
  s.fill(r);
  for (int step = 0; step < 20; ++step) {
    ASSERT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_OK);
    r.step();
    EXPECT_NEAR(s.loss[0], r.loss, 1e-5 * std::fabs(r.loss) + 1e-6) << step;
    EXPECT_EQ(s.seen[0], 41 + step);
    ASSERT_EQ(nova_rt_instance_advance(s.instance, nullptr), NOVA_RT_OK);
  }
  for (int j = 0; j < 5; ++j)
    EXPECT_NEAR(s.w[j], r.w[j], 1e-5);
  EXPECT_EQ(s.threes[15], 3);
}

TEST_F(RuntimeTest, BitsDoNotDependOnThreadsNorOnTheCaller) {
  std::vector<std::vector<float>> results;
  for (uint32_t threads : {1u, 2u, 3u, 16u}) {
    Sample s;
    ASSERT_EQ(s.open(bundle, threads), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(nova_rt_instance_threads(s.instance), threads);
    s.fill(Reference::start());
    // A caller with flush-to-zero and another rounding mode.
    unsigned mode = _mm_getcsr();
    if (threads == 3)
      _mm_setcsr(mode | 0x8040 | 0x6000);
    for (int step = 0; step < 50; ++step)
      EXPECT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_OK);
    _mm_setcsr(mode);
    results.emplace_back(s.w, s.w + 5);
  }
  for (const auto &result : results)
    EXPECT_EQ(std::memcmp(result.data(), results[0].data(), 20), 0);
}

TEST_F(RuntimeTest, InstancesOfOneProgramRunConcurrently) {
  Sample owner;
  ASSERT_EQ(owner.open(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  owner.fill(Reference::start());
  for (int step = 0; step < 100; ++step)
    ASSERT_EQ(nova_rt_instance_launch(owner.instance, nullptr), NOVA_RT_OK);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      Sample s;
      // Half share the program, half load their own; errors are per thread.
      bool own = i % 2;
      nova_rt_bundle_t *none = nullptr;
      std::string wrong = "/none/" + std::to_string(i);
      EXPECT_EQ(nova_rt_bundle_open(wrong.c_str(), &none), NOVA_RT_BAD_INPUT);
      if (own) {
        EXPECT_EQ(s.open(bundle, 2), NOVA_RT_OK) << nova_rt_error_message();
      } else {
        s.program = owner.program;
        EXPECT_EQ(s.start(2), NOVA_RT_OK) << nova_rt_error_message();
        s.program = nullptr;
      }
      EXPECT_NE(std::string(nova_rt_error_message()).find(wrong),
                std::string::npos);
      s.fill(Reference::start());
      for (int step = 0; step < 100; ++step)
        EXPECT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_OK);
      EXPECT_EQ(std::memcmp(s.w, owner.w, 20), 0);
    });
  for (std::thread &t : threads)
    t.join();
}

TEST_F(RuntimeTest, OneInstanceFromManyThreads) {
  // Launches exclude each other: as many momentum steps as calls were made.
  Reference r = Reference::start();
  Sample s;
  ASSERT_EQ(s.open(bundle, 2), NOVA_RT_OK) << nova_rt_error_message();
  s.fill(r);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int step = 0; step < 10; ++step) {
        EXPECT_EQ(nova_rt_instance_bind_input(s.instance, 0, s.w), NOVA_RT_OK);
        EXPECT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_OK);
        EXPECT_EQ(nova_rt_instance_advance(s.instance, nullptr), NOVA_RT_OK);
      }
    });
  for (std::thread &t : threads)
    t.join();
  for (int step = 0; step < 40; ++step)
    r.step();
  for (int j = 0; j < 5; ++j)
    EXPECT_NEAR(s.w[j], r.w[j], 1e-4);
  EXPECT_EQ(s.count[0], 81);
}

TEST_F(RuntimeTest, Rebinding) {
  Sample s;
  ASSERT_EQ(s.open(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  s.fill(Reference::start());
  alignas(64) float loss2[4] = {}, w2[8] = {};
  std::memcpy(w2, s.w, sizeof w2);
  float before = s.w[0];
  ASSERT_EQ(nova_rt_instance_bind_output(s.instance, 0, loss2), NOVA_RT_OK);
  ASSERT_EQ(nova_rt_instance_bind_input(s.instance, 0, w2), NOVA_RT_OK);
  ASSERT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_OK);
  EXPECT_NE(loss2[0], 0);
  EXPECT_EQ(s.loss[0], 0);
  EXPECT_EQ(s.w[0], before);
  EXPECT_NE(w2[0], before) << "the update follows its input";
  // Overlap of what is only read is allowed; with what is written it is not.
  ASSERT_EQ(nova_rt_instance_bind_input(s.instance, 5, s.x), NOVA_RT_OK);
  EXPECT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_OK);
  ASSERT_EQ(nova_rt_instance_bind_output(s.instance, 1, s.x), NOVA_RT_OK);
  EXPECT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "the buffers of input 4 (\"x\") and output 1 (\"g\") overlap, "
               "and one of them is written");
}

TEST_F(RuntimeTest, DamagedBlobIsNotLoaded) {
  bundle::Bundle b = *bundle::openBundle(bundle);
  std::string path = bundle::blobPath(bundle, b.manifest.blobs[0]);
  std::string bytes = b.blobs[0];
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  Sample s;
  EXPECT_EQ(s.open(bundle, 1), NOVA_RT_VERIFICATION);
  EXPECT_NE(std::string(nova_rt_error_message()).find("has digest sha256:"),
            std::string::npos);
  EXPECT_EQ(s.program, nullptr);
  EXPECT_EQ(nova_rt_bundle_verify(s.bundle), NOVA_RT_VERIFICATION);
}

TEST_F(RuntimeTest, BlobsThatAreNoCode) {
  publish(sampleBundle("not a shared object"));
  Sample s;
  EXPECT_EQ(s.open(bundle, 1), NOVA_RT_BAD_INPUT);
  EXPECT_NE(
      std::string(nova_rt_error_message()).find("cannot load blob sha256:"),
      std::string::npos);

  bundle::Bundle b = sampleBundle(sampleHostObject());
  b.manifest.targets[0].kernels[2].symbol = "gradientt";
  publish(b);
  Sample s2;
  EXPECT_EQ(s2.open(bundle, 1), NOVA_RT_BAD_INPUT);
  EXPECT_EQ(std::string(nova_rt_error_message()),
            "kernel \"gradient_00000000\": blob " + b.manifest.blobs[0].digest +
                " exports no symbol \"gradientt\"");
}

TEST_F(RuntimeTest, TargetsThatDoNotRunHere) {
  bundle::Bundle b = sampleBundle(sampleHostObject());
  b.manifest.targets[0].device = "x86-64-v5";
  publish(b);
  Sample s;
  EXPECT_EQ(s.open(bundle, 1), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "the host target is for the CPU \"x86-64-v5\", expected "
               "\"x86-64-v3\", which this loader runs");

  b = sampleBundle("cubin");
  b.manifest.blobs[0].mediaType = bundle::kMediaCubin;
  b.manifest.targets[0].name = "sm_90a";
  b.manifest.targets[0].device = "h200";
  publish(b);
  Sample s2;
  EXPECT_EQ(s2.open(bundle, 1), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "the bundle has no target for the CPU, it has: sm_90a (h200)");
  // A driver that is not there, on every machine.
  ::setenv("NOVA_RT_LIBCUDA", "/none/libcuda.so.1", 1);
  for (bool load : {true, false}) {
    uint32_t target = 0;
    EXPECT_EQ(load ? nova_rt_program_load(s2.bundle, 0, nullptr, &s2.program)
                   : nova_rt_bundle_choose(s2.bundle, 0, &target),
              NOVA_RT_MISSING);
    EXPECT_STREQ(nova_rt_error_message(),
                 "there is no CUDA driver here: /none/libcuda.so.1: cannot "
                 "open shared object file: No such file or directory");
    EXPECT_STREQ(nova_rt_error_hint(),
                 "install NVIDIA's driver, or name its libcuda.so.1 in "
                 "NOVA_RT_LIBCUDA");
  }
  ::unsetenv("NOVA_RT_LIBCUDA");
}

TEST_F(RuntimeTest, ArenaThatDoesNotFit) {
  bundle::Bundle b = sampleBundle(sampleHostObject());
  b.manifest.targets[0].arena.size = uint64_t(1) << 60;
  publish(b);
  Sample s;
  EXPECT_EQ(s.open(bundle, 1), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "cannot allocate 1152921504606846976 bytes for the arena");
}

TEST_F(RuntimeTest, ManyBundlesAtOnce) {
  // The dynamic linker knows objects by path, and ours are /proc/self/fd/N:
  // opening and closing in any order must never give one the other's code.
  bundle::Bundle other = sampleBundle(sampleHostObject() + std::string(64, 0));
  std::string second = root + "/second.nova";
  ASSERT_TRUE(static_cast<bool>(bundle::publishBundle(second, other, "{}")));
  auto a = std::make_unique<Sample>(), b = std::make_unique<Sample>();
  ASSERT_EQ(a->open(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  ASSERT_EQ(b->open(second, 1), NOVA_RT_OK) << nova_rt_error_message();
  a.reset();
  auto c = std::make_unique<Sample>();
  ASSERT_EQ(c->open(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  b->fill(Reference::start());
  c->fill(Reference::start());
  EXPECT_EQ(nova_rt_instance_launch(b->instance, nullptr), NOVA_RT_OK);
  b.reset();
  EXPECT_EQ(nova_rt_instance_launch(c->instance, nullptr), NOVA_RT_OK);
  EXPECT_NE(c->loss[0], 0);
}

TEST(Golden, Version1Runs) {
  Reference r = Reference::start();
  Sample s;
  ASSERT_EQ(s.open(NOVA_GOLDEN "/v1", 2), NOVA_RT_OK)
      << nova_rt_error_message();
  s.fill(r);
  ASSERT_EQ(nova_rt_instance_launch(s.instance, nullptr), NOVA_RT_OK);
  r.step();
  EXPECT_NEAR(s.loss[0], r.loss, 1e-5);
  for (int j = 0; j < 5; ++j)
    EXPECT_NEAR(s.w[j], r.w[j], 1e-5);
}
