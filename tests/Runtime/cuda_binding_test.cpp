//===- cuda_binding_test.cpp - Addresses that change, with a fake driver --===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sets of addresses that come back, and steps of one instance on two streams.
// Single addresses are in cuda_test.cpp.
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"

#include <thread>

using namespace nova;
using namespace nova::test;

namespace {

/// The sample with so many launches on one output that a new address for it is
/// no small change.
class CudaBinding : public CudaTest {
protected:
  static constexpr int kMemsets = 20;
  void SetUp() override {
    CudaTest::SetUp();
    bundle::Target &t = gpu();
    // The last one there is the memset of output 5.
    for (int i = 0; i < kMemsets; ++i) {
      bundle::Launch again = t.launches[5];
      again.after = {static_cast<uint32_t>(t.launches.size() - 1)};
      t.launches.push_back(again);
    }
    publish(sample);
  }
  /// Launches with output 5 at `address`, and expects it to be written there.
  void step(GpuSample &s, void *address, void *stream = nullptr) {
    s.outputs[5] = address;
    ASSERT_EQ(s.bind(), NOVA_RT_OK) << nova_rt_error_message();
    char zeros[16] = {};
    ASSERT_EQ(nova_rt_memory_write(s.program, address, zeros, 16, s.stream),
              NOVA_RT_OK);
    ASSERT_EQ(nova_rt_instance_launch(s.instance, stream ? stream : s.stream),
              NOVA_RT_OK)
        << nova_rt_error_message();
    EXPECT_EQ(s.read<uint8_t>(address, 15), 3);
  }
  std::vector<void *> buffers(GpuSample &s, size_t count) {
    std::vector<void *> made(count);
    for (void *&p : made)
      EXPECT_EQ(nova_rt_memory_alloc(s.program, 16, &p), NOVA_RT_OK);
    return made;
  }
  /// What start() allocated is s's to free, the others are these.
  void freeAll(GpuSample &s, std::vector<void *> &made, void *own) {
    s.outputs[5] = own;
    for (void *p : made)
      EXPECT_EQ(nova_rt_memory_free(s.program, p), NOVA_RT_OK);
  }
  int instantiated() { return fake->calls["cuGraphInstantiateWithFlags"]; }
  int updates() { return fake->calls["cuGraphExecMemsetNodeSetParams"]; }
};

} // namespace

TEST_F(CudaBinding, AlternatingBuffersCostComparisons) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *own = s.outputs[5];
  auto made = buffers(s, 1);
  step(s, made[0]); // never seen: the nodes are updated
  EXPECT_EQ(updates(), kMemsets + 1);
  EXPECT_EQ(instantiated(), 1);
  step(s, own); // comes back: a graph of its own
  EXPECT_EQ(instantiated(), 2);
  int before = updates();
  auto calls = fake->calls;
  for (int i = 0; i < 10; ++i)
    step(s, i % 2 ? own : made[0]);
  EXPECT_EQ(updates(), before);
  EXPECT_EQ(instantiated(), 2);
  EXPECT_EQ(s.info().graph_builds, 2u);
  EXPECT_EQ(fake->calls["cuGraphLaunch"], calls["cuGraphLaunch"] + 10);
  freeAll(s, made, own);
}

TEST_F(CudaBinding, NewBuffersEveryTimeMakeNoGraphs) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *own = s.outputs[5];
  auto made = buffers(s, 12);
  for (void *p : made)
    step(s, p);
  EXPECT_EQ(instantiated(), 1);
  EXPECT_EQ(updates(), 12 * (kMemsets + 1));
  freeAll(s, made, own);
}

TEST_F(CudaBinding, ThereIsAnEndToGraphs) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *own = s.outputs[5];
  auto made = buffers(s, 6);
  for (int round = 0; round < 20; ++round)
    for (size_t i = 0; i < made.size(); ++i)
      step(s, made[i]);
  EXPECT_LE(instantiated(), 4);
  // As many as there are graphs settle again.
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < 3; ++i)
      step(s, made[i]);
  int before = updates();
  for (size_t i = 0; i < 3; ++i)
    step(s, made[i]);
  EXPECT_EQ(updates(), before);
  freeAll(s, made, own);
}

TEST_F(CudaBinding, SmallChangesGoToTheNearestGraph) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *own = s.outputs[5];
  auto made = buffers(s, 2);
  step(s, made[0]);
  step(s, own);
  ASSERT_EQ(instantiated(), 2);
  int before = updates();
  void *t = s.inputs[5], *other = nullptr;
  ASSERT_EQ(nova_rt_memory_alloc(s.program, 28, &other), NOVA_RT_OK);
  auto kernels = [&] {
    return fake->calls["cuGraphExecKernelNodeSetParams_v2"];
  };
  int kernelsBefore = kernels();
  for (int i = 0; i < 6; ++i) { // t moves each time, output 5 each other time
    s.inputs[5] = i % 2 ? t : other;
    step(s, i / 2 % 2 ? own : made[0]);
  }
  EXPECT_EQ(updates(), before) << "no memset has moved";
  EXPECT_EQ(instantiated(), 2);
  EXPECT_LE(kernels() - kernelsBefore, 6) << "residual, once a step at most";
  s.inputs[5] = t;
  ASSERT_EQ(nova_rt_memory_free(s.program, other), NOVA_RT_OK);
  freeAll(s, made, own);
}

TEST_F(CudaBinding, ADriverThatHasNoRoomIsAskedOnce) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *own = s.outputs[5];
  auto made = buffers(s, 1);
  step(s, made[0]);
  fake->failFunction = "cuGraphInstantiateWithFlags";
  fake->failCall = 2;
  fake->failResult = 2; // out of memory
  for (int i = 0; i < 4; ++i)
    step(s, i % 2 ? made[0] : own);
  EXPECT_EQ(instantiated(), 2);
  EXPECT_EQ(updates(), 5 * (kMemsets + 1)) << "in place, each time";
  freeAll(s, made, own);
}

TEST_F(CudaBinding, AnotherStreamStaysWithTheLastGraph) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *own = s.outputs[5], *second = nullptr;
  ASSERT_EQ(nova_rt_stream_create(s.program, &second), NOVA_RT_OK);
  auto made = buffers(s, 1);
  step(s, made[0]);
  step(s, own);
  int before = updates();
  // The driver keeps launches of one graph in order, not those of two.
  step(s, made[0], second);
  EXPECT_EQ(updates(), before + kMemsets + 1);
  step(s, made[0], second);
  step(s, own, second);
  EXPECT_EQ(instantiated(), 3) << "the set that was overwritten comes back";
  before = updates();
  step(s, made[0], second);
  step(s, own, second);
  EXPECT_EQ(updates(), before);
  ASSERT_EQ(nova_rt_stream_destroy(s.program, second), NOVA_RT_OK);
  freeAll(s, made, own);
}

TEST_F(CudaBinding, OverlapsAreStillFound) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *own = s.outputs[5], *x = s.inputs[4];
  auto made = buffers(s, 1);
  step(s, made[0]);
  step(s, own);
  s.inputs[4] = s.inputs[0];
  ASSERT_EQ(s.bind(), NOVA_RT_OK);
  EXPECT_EQ(s.launch(), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "the buffers of input 0 (\"w\") and input 4 (\"x\") overlap, "
               "and one of them is written");
  EXPECT_EQ(s.launch(), NOVA_RT_USAGE) << "again";
  s.inputs[4] = x;
  step(s, made[0]);
  freeAll(s, made, own);
}

TEST_F(CudaTest, TwoInstancesOnTwoStreams) {
  GpuSample a;
  ASSERT_EQ(a.open(bundle), NOVA_RT_OK) << nova_rt_error_message();
  ASSERT_EQ(a.start(), NOVA_RT_OK) << nova_rt_error_message();
  // The same program: code is shared, arena and graph are not.
  GpuSample b;
  b.bundle = a.bundle;
  b.program = a.program;
  ASSERT_EQ(b.start(), NOVA_RT_OK) << nova_rt_error_message();
  int loaded = fake->calls["cuModuleLoadDataEx"];
  EXPECT_EQ(loaded, 1);
  std::vector<std::thread> threads;
  for (GpuSample *s : {&a, &b})
    threads.emplace_back([s] {
      EXPECT_EQ(s->fill(Reference::start()), NOVA_RT_OK);
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(s->launch(), NOVA_RT_OK) << nova_rt_error_message();
        EXPECT_EQ(s->advance(), NOVA_RT_OK);
      }
    });
  for (std::thread &t : threads)
    t.join();
  Reference r = Reference::start();
  for (int i = 0; i < 50; ++i)
    r.step();
  for (GpuSample *s : {&a, &b}) {
    EXPECT_NEAR(s->read<float>(s->outputs[0]), r.loss, 1e-5);
    EXPECT_EQ(s->info().launches, 50u);
    EXPECT_EQ(s->info().graph_builds, 1u);
  }
  // b's own parts go first; the program is a's.
  nova_rt_instance_close(b.instance);
  for (void *&p : b.inputs)
    nova_rt_memory_free(b.program, p), p = nullptr;
  for (void *&p : b.outputs)
    nova_rt_memory_free(b.program, p), p = nullptr;
  nova_rt_stream_destroy(b.program, b.stream);
  b.instance = nullptr, b.program = nullptr, b.bundle = nullptr;
  ASSERT_EQ(a.launch(), NOVA_RT_OK) << "it does not miss the other";
}
