//===- cuda_tensormap_test.cpp - Tensor maps as arguments of kernels ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With the fake driver, which keeps in a map's 128 bytes what it was encoded
// from. What the hardware makes of them is tests/Device/check_tensormaps.py.
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"

using namespace nova;
using namespace nova::test;

namespace {

/// The first kernel takes x (an input), w (an input that is updated) and y (an
/// arena buffer) by tensor maps.
class CudaTensorMaps : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    take(0, bundle::InputRef{4, 0}, {5, 7}, {32}, {8, 7});
    take(1, bundle::InputRef{0, 0}, {5}, {}, {4});
    take(2, bundle::BufferRef{0, 0}, {7}, {}, {8});
    auto &x = std::get<bundle::TensorMap>(gpu().launches[0].args[0]);
    x.swizzle = "32b";
    x.l2Promotion = "128b";
    x.elementType = "tfloat32";
    x.fill = "nan";
    uint32_t code =
        sample.addBlob(bundle::kMediaCubin,
                       "fake-cubin 9.0\npredict 128 128 128\nresidual 8 8 8 8 8"
                       "\ngradient 8 8 4 8\nmomentum 8 8 8 8\n");
    for (bundle::Kernel &k : gpu().kernels)
      k.blob = code;
    publish(sample);
  }
  void take(size_t argument, bundle::MemoryRef memory,
            std::vector<uint64_t> sizes, std::vector<uint64_t> strides,
            std::vector<uint64_t> box) {
    bundle::TensorMap map;
    map.memory = memory;
    map.elementType = "float32";
    map.rank = static_cast<uint32_t>(sizes.size());
    map.elementStrides.assign(sizes.size(), 1);
    map.sizes = std::move(sizes);
    map.strides = std::move(strides);
    map.box = std::move(box);
    gpu().kernels[0].params[argument] = {bundle::ParamKind::TensorMap, 128, 64};
    gpu().launches[0].args[argument] = map;
  }
  /// A buffer with the same values elsewhere; the old one stays.
  void *copyOf(GpuSample &s, void *old, size_t bytes) {
    std::string values(bytes, '\0');
    void *fresh = nullptr;
    EXPECT_EQ(
        nova_rt_memory_read(s.program, values.data(), old, bytes, s.stream),
        NOVA_RT_OK);
    EXPECT_EQ(nova_rt_memory_alloc(s.program, bytes, &fresh), NOVA_RT_OK);
    EXPECT_EQ(
        nova_rt_memory_write(s.program, fresh, values.data(), bytes, s.stream),
        NOVA_RT_OK);
    return fresh;
  }
  static FakeTensorMap decode(const FakeNode &node, size_t argument) {
    FakeTensorMap map{};
    EXPECT_EQ(node.values[argument].size(), 128u);
    std::memcpy(&map, node.values[argument].data(), sizeof map);
    return map;
  }
};

float lossAfter(int steps) {
  Reference r = Reference::start();
  for (int i = 0; i < steps; ++i)
    r.step();
  return static_cast<float>(r.loss);
}

} // namespace

TEST_F(CudaTensorMaps, StepsAreRightHoweverLaunched) {
  for (int32_t mode :
       {NOVA_RT_LAUNCH_GRAPH, NOVA_RT_LAUNCH_CHAIN, NOVA_RT_LAUNCH_PLAIN}) {
    GpuSample s;
    ASSERT_EQ(s.train(bundle, 20, mode), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_NEAR(s.read<float>(s.outputs[0]), lossAfter(20), 1e-5);
  }
  EXPECT_EQ(fake->calls["cuTensorMapEncodeTiled"], 9) << "each once, ever";
  EXPECT_EQ(fake->calls["cuTensorMapReplaceAddress"], 0);
}

TEST_F(CudaTensorMaps, TheDriverIsToldWhatTheManifestSays) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  FakeTensorMap x = decode(fake->graph[0], 0);
  EXPECT_EQ(x.address, reinterpret_cast<uintptr_t>(s.inputs[4]));
  EXPECT_EQ(x.elementType, 11); // CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
  EXPECT_EQ(x.rank, 2);
  EXPECT_EQ(x.sizes[0], 5u);
  EXPECT_EQ(x.sizes[1], 7u);
  EXPECT_EQ(x.strides[0], 32u);
  EXPECT_EQ(x.box[0], 8);
  EXPECT_EQ(x.box[1], 7);
  EXPECT_EQ(x.elementStrides[1], 1);
  EXPECT_EQ(x.interleave, 0);
  EXPECT_EQ(x.swizzle, 1);     // CU_TENSOR_MAP_SWIZZLE_32B
  EXPECT_EQ(x.l2Promotion, 2); // CU_TENSOR_MAP_L2_PROMOTION_L2_128B
  EXPECT_EQ(x.fill, 1);        // NaN
  FakeTensorMap y = decode(fake->graph[0], 2);
  EXPECT_EQ(y.elementType, 7); // CU_TENSOR_MAP_DATA_TYPE_FLOAT32
  EXPECT_EQ(y.address % 256, 0u) << "in the arena";
  EXPECT_EQ(y.swizzle + y.l2Promotion + y.fill, 0);
}

TEST_F(CudaTensorMaps, ChangedAddressesAreReplaced) {
  for (int32_t mode : {NOVA_RT_LAUNCH_GRAPH, NOVA_RT_LAUNCH_PLAIN}) {
    reset();
    GpuSample s;
    ASSERT_EQ(s.train(bundle, 1, mode), NOVA_RT_OK) << nova_rt_error_message();
    void *old = s.inputs[4];
    s.inputs[4] = copyOf(s, old, 212);
    // Twice before one launch costs once.
    ASSERT_EQ(s.bind(), NOVA_RT_OK);
    void *other = s.inputs[4];
    s.inputs[4] = old;
    ASSERT_EQ(s.bind(), NOVA_RT_OK);
    s.inputs[4] = other;
    ASSERT_EQ(s.bind(), NOVA_RT_OK);
    EXPECT_EQ(fake->calls["cuTensorMapReplaceAddress"], 0);
    fake->launched.clear();
    ASSERT_EQ(s.launch(), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_EQ(fake->calls["cuTensorMapReplaceAddress"], 1);
    EXPECT_EQ(fake->calls["cuTensorMapEncodeTiled"], 3);
    for (const FakeNode &node : fake->launched) {
      if (node.symbol == "predict") {
        EXPECT_EQ(decode(node, 0).address, reinterpret_cast<uintptr_t>(other));
      }
    }
    EXPECT_NEAR(s.read<float>(s.outputs[0]), lossAfter(2), 1e-5);
    ASSERT_EQ(s.launch(), NOVA_RT_OK);
    EXPECT_EQ(fake->calls["cuTensorMapReplaceAddress"], 1) << "unchanged";
    EXPECT_EQ(nova_rt_memory_free(s.program, old), NOVA_RT_OK);
  }
}

TEST_F(CudaTensorMaps, WhatTheDriverRefusesIsNamed) {
  fake->failFunction = "cuTensorMapEncodeTiled";
  fake->failCall = 1;
  fake->failResult = 1;
  {
    GpuSample s;
    EXPECT_EQ(s.train(bundle, 1), NOVA_RT_INTERNAL);
    std::string message = nova_rt_error_message();
    EXPECT_EQ(message.find("argument "), 0u) << message;
    EXPECT_NE(message.find(" of launch 0 (kernel \"predict_00000000\"), a "
                           "tensormap of float32 [7] at 0x"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find(": cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE "
                           "(1)"),
              std::string::npos)
        << message;
    // It is encoded at the next launch, as if nothing had been.
    ASSERT_EQ(s.launch(), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_NEAR(s.read<float>(s.outputs[0]), lossAfter(1), 1e-5);
  }
  reset();
  fake->failFunction = "cuTensorMapReplaceAddress";
  fake->failCall = 1;
  fake->failResult = 1;
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  void *old = s.inputs[4];
  s.inputs[4] = copyOf(s, old, 212);
  ASSERT_EQ(s.bind(), NOVA_RT_OK);
  EXPECT_EQ(s.launch(), NOVA_RT_INTERNAL);
  std::string message = nova_rt_error_message();
  EXPECT_EQ(
      message.find("argument 0 of launch 0 (kernel \"predict_00000000\"), "
                   "a tensormap of tfloat32 [5,7] at 0x"),
      0u)
      << message;
  EXPECT_NE(message.find(": cuTensorMapReplaceAddress: "), std::string::npos);
  ASSERT_EQ(s.launch(), NOVA_RT_OK) << nova_rt_error_message();
  EXPECT_NEAR(s.read<float>(s.outputs[0]), lossAfter(2), 1e-5);
  EXPECT_EQ(nova_rt_memory_free(s.program, old), NOVA_RT_OK);
}

TEST_F(CudaTensorMaps, OlderGpusAreRefused) {
  fake->devices[0].major = 8;
  fake->devices[0].name = "NVIDIA A100";
  gpu().name = "sm_80";
  gpu().device = "a100";
  publish(sample);
  GpuSample s;
  EXPECT_EQ(s.open(bundle), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "argument 0 of launch 0 of target sm_80 (a100) is a tensormap, "
               "expected a GPU of compute capability 9.0 or later, got GPU 0 "
               "(NVIDIA A100, compute capability 8.0)");
  EXPECT_STREQ(nova_rt_error_hint(), "compile the graph for this device");
  EXPECT_EQ(fake->calls["cuModuleLoadDataEx"], 0);
}
