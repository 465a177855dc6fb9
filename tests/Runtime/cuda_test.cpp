//===- cuda_test.cpp - Steps on a GPU, with a fake driver -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is right: numbers, graphs, bindings, contexts. What goes wrong is in
// cuda_errors_test.cpp.
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"

#include <thread>

using namespace nova;
using namespace nova::test;

namespace {

int updates(const FakeCuda &fake) {
  int sum = 0;
  for (const char *call :
       {"cuGraphExecKernelNodeSetParams_v2", "cuGraphExecMemsetNodeSetParams",
        "cuGraphExecMemcpyNodeSetParams"}) {
    auto it = fake.calls.find(call);
    sum += it == fake.calls.end() ? 0 : it->second;
  }
  return sum;
}

void expectSteps(GpuSample &s, int steps) {
  Reference r = Reference::start();
  for (int i = 0; i < steps; ++i)
    r.step();
  EXPECT_NEAR(s.read<float>(s.outputs[0]), r.loss, 1e-5);
  for (size_t j = 0; j < 5; ++j) {
    EXPECT_NEAR(s.read<float>(s.inputs[0], j), r.w[j], 1e-5);
    EXPECT_NEAR(s.read<float>(s.outputs[1], j), r.g[j], 1e-5);
  }
  EXPECT_EQ(s.read<int64_t>(s.outputs[4]), 41 + steps - 1);
  EXPECT_EQ(s.read<int64_t>(s.inputs[3]), 41 + steps);
  EXPECT_EQ(s.read<uint8_t>(s.outputs[5], 15), 3);
}

} // namespace

TEST_F(CudaTest, StepsAreRightHoweverLaunched) {
  for (int32_t mode :
       {NOVA_RT_LAUNCH_GRAPH, NOVA_RT_LAUNCH_CHAIN, NOVA_RT_LAUNCH_PLAIN}) {
    GpuSample s;
    ASSERT_EQ(s.train(bundle, 20, mode), NOVA_RT_OK) << nova_rt_error_message();
    expectSteps(s, 20);
    nova_rt_instance_info_t info = s.info();
    EXPECT_EQ(info.launches, 20u);
    EXPECT_EQ(info.launch, mode);
    EXPECT_EQ(info.threads, 0u);
    bool graph = mode != NOVA_RT_LAUNCH_PLAIN;
    EXPECT_EQ(info.graph_builds, graph ? 1u : 0u);
    EXPECT_EQ(info.graph_nodes, graph ? 6u : 0u);
    EXPECT_EQ(info.node_updates, 0u);
  }
  EXPECT_EQ(fake->calls["cuGraphLaunch"], 40);
  EXPECT_EQ(fake->calls["cuLaunchKernel"], 80);
  EXPECT_EQ(fake->calls["cuModuleLoadDataEx"], 3) << "one blob, one module";
}

TEST_F(CudaTest, GraphIsTheLaunchList) {
  // A dependency that is named twice is one edge, one that another implies is
  // none.
  gpu().launches[3].after = {0, 2, 0};
  publish(sample);
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  ASSERT_EQ(fake->graph.size(), 6u);
  const char *kinds[] = {"kernel", "kernel", "kernel",
                         "kernel", "copy",   "memset"};
  std::vector<size_t> after[] = {{}, {0}, {1}, {2}, {}, {}};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(fake->graph[i].kind, kinds[i]);
    EXPECT_EQ(fake->graph[i].after, after[i]) << i;
  }
  const FakeNode &predict = fake->graph[0];
  EXPECT_EQ(predict.symbol, "predict");
  EXPECT_EQ(predict.grid, (std::array<unsigned, 3>{7, 1, 1}));
  EXPECT_EQ(predict.block, (std::array<unsigned, 3>{32, 1, 1}));
  void *x = nullptr;
  std::memcpy(&x, predict.values[0].data(), 8);
  EXPECT_EQ(x, s.inputs[4]);
  float scale = 0;
  ASSERT_EQ(fake->graph[2].values[2].size(), 4u) << "an immediate, by value";
  std::memcpy(&scale, fake->graph[2].values[2].data(), 4);
  EXPECT_EQ(scale, 2.0f / 7);
  // The fake runs the last of those that may run first.
  EXPECT_EQ(fake->launched[0].kind, "memset");

  GpuSample chain;
  ASSERT_EQ(chain.train(bundle, 1, NOVA_RT_LAUNCH_CHAIN), NOVA_RT_OK);
  for (size_t i = 1; i < 6; ++i)
    EXPECT_EQ(fake->graph[i].after, std::vector<size_t>{i - 1});
}

TEST_F(CudaTest, EmptyTransfersStayInTheGraph) {
  bundle::Target &t = gpu();
  t.launches[4].args[2] = bundle::Immediate{0, "int64"};
  t.launches[5].args[2] = bundle::Immediate{0, "int64"};
  publish(sample);
  for (int32_t mode : {NOVA_RT_LAUNCH_GRAPH, NOVA_RT_LAUNCH_PLAIN}) {
    GpuSample s;
    ASSERT_EQ(s.train(bundle, 1, mode), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(s.read<uint8_t>(s.outputs[5]), 0xcd) << "untouched";
  }
  EXPECT_EQ(fake->graph[4].kind, "empty");
  EXPECT_EQ(fake->graph[5].kind, "empty");
}

TEST_F(CudaTest, UnchangedBindingsCostNoUpdate) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  auto before = fake->calls;
  ASSERT_EQ(s.bind(), NOVA_RT_OK);
  ASSERT_EQ(nova_rt_instance_bind_input(s.instance, 0, s.inputs[0]),
            NOVA_RT_OK);
  ASSERT_EQ(s.launch(), NOVA_RT_OK);
  std::map<std::string, int> made;
  for (auto [call, count] : fake->calls)
    if (count != before[call])
      made[call] = count - before[call];
  // A context that is not current is pushed: that of a framework is.
  EXPECT_EQ(made, (std::map<std::string, int>{{"cuCtxGetCurrent", 1},
                                              {"cuCtxPushCurrent_v2", 1},
                                              {"cuCtxPopCurrent_v2", 1},
                                              {"cuGraphLaunch", 1}}));
}

TEST_F(CudaTest, ChangedAddressUpdatesItsNodesOnly) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  auto move = [&](void *&address, size_t bytes) {
    std::string values(bytes, '\0');
    void *fresh = nullptr;
    EXPECT_EQ(
        nova_rt_memory_read(s.program, values.data(), address, bytes, s.stream),
        NOVA_RT_OK);
    EXPECT_EQ(nova_rt_memory_alloc(s.program, bytes, &fresh), NOVA_RT_OK);
    EXPECT_EQ(
        nova_rt_memory_write(s.program, fresh, values.data(), bytes, s.stream),
        NOVA_RT_OK);
    // The old one is gone: a node that still has it would fail.
    EXPECT_EQ(nova_rt_memory_free(s.program, address), NOVA_RT_OK);
    address = fresh;
  };
  int steps = 1;
  auto step = [&] {
    int before = updates(*fake);
    EXPECT_EQ(s.bind(), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(updates(*fake), before) << "updates wait for the launch";
    EXPECT_EQ(s.launch(), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(s.advance(), NOVA_RT_OK) << nova_rt_error_message();
    expectSteps(s, ++steps);
    return updates(*fake) - before;
  };
  EXPECT_EQ(step(), 0);
  move(s.outputs[1], 20); // g: gradient and momentum
  EXPECT_EQ(step(), 2);
  move(s.inputs[4], 212); // x: predict and gradient
  EXPECT_EQ(step(), 2);
  move(s.inputs[0], 20); // w: predict, and momentum by the update
  EXPECT_EQ(step(), 2);
  move(s.outputs[5], 16); // the memset
  EXPECT_EQ(step(), 1);
  move(s.outputs[4], 8); // the copy, both of its ends: once
  move(s.inputs[3], 8);
  EXPECT_EQ(step(), 1);
  for (size_t i = 0; i < 6; ++i) {
    move(s.inputs[i], GpuSample::kInputBytes[i]);
    if (GpuSample::kOutputBytes[i])
      move(s.outputs[i], GpuSample::kOutputBytes[i]);
  }
  EXPECT_EQ(step(), 6) << "every node, each once";
  EXPECT_EQ(step(), 0);
  EXPECT_EQ(s.info().node_updates, 14u);
  EXPECT_EQ(s.info().graph_builds, 1u);
}

TEST_F(CudaTest, BindAllChecksWhatItIsGiven) {
  GpuSample s;
  ASSERT_EQ(s.open(bundle), NOVA_RT_OK) << nova_rt_error_message();
  ASSERT_EQ(s.start(), NOVA_RT_OK) << nova_rt_error_message();
  EXPECT_EQ(nova_rt_instance_bind(s.instance, s.inputs, 5, s.outputs, 6),
            NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "5 inputs and 6 outputs, the bundle has 6 and 6");
  EXPECT_EQ(nova_rt_instance_bind(s.instance, nullptr, 6, s.outputs, 6),
            NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(), "a null array of addresses");
  void *right = s.inputs[4];
  s.inputs[4] = static_cast<char *>(right) + 8;
  EXPECT_EQ(s.bind(), NOVA_RT_USAGE);
  EXPECT_NE(std::string(nova_rt_error_message())
                .find("expected a multiple of 16 bytes"),
            std::string::npos);
  s.inputs[4] = nullptr;
  EXPECT_EQ(s.bind(), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "input 4 (\"x\"): a null address, expected 212 bytes");
  s.inputs[4] = s.inputs[0];
  EXPECT_EQ(s.bind(), NOVA_RT_OK);
  EXPECT_EQ(s.launch(), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "the buffers of input 0 (\"w\") and input 4 (\"x\") overlap, "
               "and one of them is written");
  s.inputs[4] = right;
}

TEST_F(CudaTest, TwoDevicesAtOnce) {
  fake->devices.resize(2);
  GpuSample a, b;
  ASSERT_EQ(a.open(bundle, 0), NOVA_RT_OK) << nova_rt_error_message();
  ASSERT_EQ(b.open(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  nova_rt_program_info_t info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(nova_rt_program_info(b.program, &info), NOVA_RT_OK);
  EXPECT_EQ(info.device, 1);
  EXPECT_EQ(info.target, 1u);
  EXPECT_STREQ(info.device_name, "NVIDIA H200");
  EXPECT_EQ(info.jit, 0);
  std::vector<std::thread> threads;
  for (GpuSample *s : {&a, &b})
    threads.emplace_back([s] {
      EXPECT_EQ(s->start(), NOVA_RT_OK) << nova_rt_error_message();
      EXPECT_EQ(s->fill(Reference::start()), NOVA_RT_OK);
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(s->launch(), NOVA_RT_OK) << nova_rt_error_message();
        EXPECT_EQ(s->advance(), NOVA_RT_OK);
      }
    });
  for (std::thread &t : threads)
    t.join();
  expectSteps(a, 50);
  expectSteps(b, 50);
  // A stream of the other device is refused by name, not by a crash.
  EXPECT_EQ(nova_rt_instance_launch(a.instance, b.stream), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "the stream is of another CUDA context than the program, which "
               "was loaded on GPU 0");
}

TEST_F(CudaTest, TwoKindsOfDeviceAtOnce) {
  // One process, one bundle, and each GPU takes the target that is for it.
  fake->devices.resize(2);
  fake->devices[0] = FakeDevice{"NVIDIA A100-SXM4-80GB", 8, 0};
  addGpuTarget(sample, "sm_80", "a100",
               std::string("fake-cubin 8.0") + kSampleKernels);
  publish(sample);
  GpuSample a, b;
  ASSERT_EQ(a.open(bundle, 0), NOVA_RT_OK) << nova_rt_error_message();
  ASSERT_EQ(b.open(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  uint32_t targets[2];
  for (GpuSample *s : {&a, &b}) {
    nova_rt_program_info_t info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(nova_rt_program_info(s->program, &info), NOVA_RT_OK);
    targets[s == &b] = info.target;
    ASSERT_EQ(s->start(), NOVA_RT_OK) << nova_rt_error_message();
    ASSERT_EQ(s->fill(Reference::start()), NOVA_RT_OK);
  }
  EXPECT_EQ(targets[0], 2u);
  EXPECT_EQ(targets[1], 1u);
  // From one thread, in turns: neither leaves its context behind.
  for (int i = 0; i < 10; ++i)
    for (GpuSample *s : {&a, &b}) {
      ASSERT_EQ(s->launch(), NOVA_RT_OK) << nova_rt_error_message();
      ASSERT_EQ(s->advance(), NOVA_RT_OK) << nova_rt_error_message();
    }
  expectSteps(a, 10);
  a.close();
  ASSERT_EQ(b.launch(), NOVA_RT_OK) << "it does not miss the other";
  ASSERT_EQ(b.advance(), NOVA_RT_OK);
  expectSteps(b, 11);
  // A buffer of the other device is an address that this one does not have.
  GpuSample c;
  ASSERT_EQ(c.open(bundle, 0), NOVA_RT_OK) << nova_rt_error_message();
  ASSERT_EQ(c.start(), NOVA_RT_OK) << nova_rt_error_message();
  void *own = c.inputs[4];
  c.inputs[4] = b.inputs[4];
  ASSERT_EQ(c.bind(), NOVA_RT_OK);
  EXPECT_EQ(c.launch(), NOVA_RT_INTERNAL);
  EXPECT_NE(std::string(nova_rt_error_message()).find("ILLEGAL_ADDRESS"),
            std::string::npos)
      << nova_rt_error_message();
  c.inputs[4] = own;
}

TEST_F(CudaTest, CallersContextIsUsed) {
  fake->devices.resize(2);
  void *context = makeContext(1);
  {
    GpuSample s;
    s.load.context = context;
    ASSERT_EQ(s.train(bundle, 3), NOVA_RT_OK) << nova_rt_error_message();
    expectSteps(s, 3);
    EXPECT_EQ(fake->live.retained, 0u) << "no primary context was touched";
    nova_rt_program_info_t info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(nova_rt_program_info(s.program, &info), NOVA_RT_OK);
    EXPECT_EQ(info.device, 1);
  }
  // The current context, where it is of the device that was asked for.
  auto push = reinterpret_cast<int (*)(void *)>(
      ::dlsym(::dlopen(NOVA_FAKE_CUDA, RTLD_NOW), "cuCtxPushCurrent_v2"));
  auto pop = reinterpret_cast<int (*)(void **)>(
      ::dlsym(::dlopen(NOVA_FAKE_CUDA, RTLD_NOW), "cuCtxPopCurrent_v2"));
  push(context);
  {
    GpuSample on1, on0;
    ASSERT_EQ(on1.open(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(fake->live.retained, 0u);
    ASSERT_EQ(on0.open(bundle, 0), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(fake->live.retained, 1u);
    ASSERT_EQ(on1.start(), NOVA_RT_OK) << nova_rt_error_message();
    ASSERT_EQ(on1.fill(Reference::start()), NOVA_RT_OK);
    int pushes = fake->calls["cuCtxPushCurrent_v2"];
    ASSERT_EQ(on1.launch(), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(fake->calls["cuCtxPushCurrent_v2"], pushes) << "it is current";
  }
  void *popped = nullptr;
  pop(&popped);
  EXPECT_EQ(popped, context) << "the caller's stack is as it was";
  dropContext(context);
}

TEST_F(CudaTest, LargeSharedMemoryAndClustersAreAskedFor) {
  bundle::Target &t = gpu();
  t.kernels[0].dynamicSharedBytes = 200000;
  t.kernels[1].dynamicSharedBytes = 48 << 10;
  t.kernels[2].grid = {6, 1, 1};
  t.kernels[2].cluster = {2, 1, 1};
  t.kernels[3].grid = {16, 1, 1};
  t.kernels[3].cluster = {16, 1, 1};
  // What they compute is not the point here.
  for (bundle::Kernel &k : t.kernels)
    k.symbol += "_other";
  std::string code = "fake-cubin 9.0\npredict_other 8 8 8\nresidual_other 8 8 "
                     "8 8 8\ngradient_other 8 8 4 8\nmomentum_other 8 8 8 8\n";
  uint32_t blob = sample.addBlob(bundle::kMediaCubin, code);
  for (bundle::Kernel &k : gpu().kernels)
    k.blob = blob;
  publish(sample);
  for (int32_t mode : {NOVA_RT_LAUNCH_GRAPH, NOVA_RT_LAUNCH_PLAIN}) {
    fake->launched.clear();
    GpuSample s;
    ASSERT_EQ(s.train(bundle, 1, mode), NOVA_RT_OK) << nova_rt_error_message();
    int clusters = 0;
    for (const FakeNode &n : fake->launched)
      if (n.symbol == "gradient_other" || n.symbol == "momentum_other") {
        ++clusters;
        EXPECT_EQ(n.cluster[0], n.symbol[0] == 'g' ? 2u : 16u);
      }
    EXPECT_EQ(clusters, 2);
  }
  EXPECT_EQ(fake->functionAttributes,
            (std::map<std::string, int>{{"predict_other:8", 200000},
                                        {"momentum_other:14", 1}}));
}

TEST_F(CudaTest, TimersAndDevices) {
  nova_rt_device_t device{};
  device.struct_size = sizeof device;
  ASSERT_EQ(nova_rt_device_info(0, &device), NOVA_RT_OK);
  EXPECT_STREQ(device.name, "NVIDIA H200");
  EXPECT_EQ(device.major, 9);
  EXPECT_EQ(device.driver_version, 13000);
  EXPECT_EQ(device.devices, 1);
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  nova_rt_timer_t *timer = nullptr;
  ASSERT_EQ(nova_rt_timer_create(s.program, &timer), NOVA_RT_OK);
  EXPECT_EQ(nova_rt_timer_start(timer, s.stream), NOVA_RT_OK);
  EXPECT_EQ(s.launch(), NOVA_RT_OK);
  EXPECT_EQ(nova_rt_timer_stop(timer, s.stream), NOVA_RT_OK);
  double milliseconds = -1;
  EXPECT_EQ(nova_rt_timer_milliseconds(timer, &milliseconds), NOVA_RT_OK);
  EXPECT_GE(milliseconds, 0);
  EXPECT_LT(milliseconds, 1000);
  nova_rt_timer_close(timer);
}
