//===- cuda_tables_test.cpp - Tables of pointers as parameters of kernels -===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"

using namespace nova;
using namespace nova::test;

namespace {

/// The second kernel takes its five pointers as a table of two, one by itself, and a
/// table of two.
class CudaTables : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    sample.manifest.features = {bundle::kFeaturePointerTables};
    uint32_t code =
        sample.addBlob(bundle::kMediaCubin,
                       "fake-cubin 9.0\npredict 8 8 8\nresidual 16 8 16"
                       "\ngradient 8 8 4 8\nmomentum 8 8 8 8\n");
    for (bundle::Kernel &k : gpu().kernels)
      k.blob = code;
    bundle::Param pair = {bundle::ParamKind::Pointers, 16, 8};
    gpu().kernels[1].params = {pair, bundle::Param{}, pair};
    publish(sample);
  }
};

float lossAfter(int steps) {
  Reference r = Reference::start();
  for (int i = 0; i < steps; ++i)
    r.step();
  return static_cast<float>(r.loss);
}

} // namespace

TEST_F(CudaTables, StepsAreRightHoweverLaunched) {
  for (int32_t mode :
       {NOVA_RT_LAUNCH_GRAPH, NOVA_RT_LAUNCH_CHAIN, NOVA_RT_LAUNCH_PLAIN}) {
    GpuSample s;
    ASSERT_EQ(s.train(bundle, 20, mode), NOVA_RT_OK) << nova_rt_error_message();
    EXPECT_NEAR(s.read<float>(s.outputs[0]), lossAfter(20), 1e-5);
  }
}

TEST_F(CudaTables, AChangedPointerIsInTheTableOfTheNextLaunch) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
  // The targets: the second of the first table.
  std::string values(28, '\0');
  ASSERT_EQ(nova_rt_memory_read(s.program, values.data(), s.inputs[5], 28, s.stream), NOVA_RT_OK);
  void *old = s.inputs[5];
  ASSERT_EQ(nova_rt_memory_alloc(s.program, 28, &s.inputs[5]), NOVA_RT_OK);
  ASSERT_EQ(nova_rt_memory_write(s.program, s.inputs[5], values.data(), 28, s.stream), NOVA_RT_OK);
  ASSERT_EQ(s.bind(), NOVA_RT_OK);
  fake->launched.clear();
  ASSERT_EQ(s.launch(), NOVA_RT_OK) << nova_rt_error_message();
  bool seen = false;
  for (const FakeNode &node : fake->launched)
    if (node.symbol == "residual") {
      ASSERT_EQ(node.values.size(), 3u);
      void *second = nullptr;
      std::memcpy(&second, node.values[0].data() + 8, 8);
      EXPECT_EQ(second, s.inputs[5]);
      seen = true;
    }
  EXPECT_TRUE(seen);
  EXPECT_NEAR(s.read<float>(s.outputs[0]), lossAfter(2), 1e-5);
  EXPECT_EQ(nova_rt_memory_free(s.program, old), NOVA_RT_OK);
}

TEST_F(CudaTables, CodeWithAnotherTableIsRefused) {
  gpu().kernels[1].params = {bundle::Param{bundle::ParamKind::Pointers, 40, 8}};
  publish(sample);
  GpuSample s;
  EXPECT_NE(s.train(bundle, 1), NOVA_RT_OK);
  EXPECT_NE(std::string(nova_rt_error_message()).find("parameter 0 has 16 bytes in the code, expected the 40 of the manifest"),
            std::string::npos)
      << nova_rt_error_message();
}
