//===- cuda_errors_test.cpp - What goes wrong on a GPU --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every refusal with its text, every driver call failing once, and nothing
// left behind (CudaTest::TearDown).
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"

using namespace nova;
using namespace nova::test;

namespace {

class CudaErrors : public CudaTest {
protected:
  /// Opens the bundle and expects a failure.
  std::string openError(nova_rt_status_t status, bool allowJit = false) {
    publish(sample);
    GpuSample s;
    s.load.allow_jit = allowJit;
    EXPECT_EQ(s.open(bundle), status) << nova_rt_error_message();
    return nova_rt_error_message();
  }
  /// Trains with this call of a function failing.
  std::string callError(const std::string &function, int result,
                        nova_rt_status_t status,
                        int32_t mode = NOVA_RT_LAUNCH_GRAPH, int call = 1) {
    reset();
    fake->failFunction = function;
    fake->failCall = call;
    fake->failResult = result;
    GpuSample s;
    EXPECT_EQ(s.train(bundle, 2, mode), status) << function;
    return nova_rt_error_message();
  }
  std::string hint() { return nova_rt_error_hint(); }
};

const char *kH200 = "GPU 0 (NVIDIA H200, compute capability 9.0)";

} // namespace

TEST_F(CudaErrors, Driver) {
  ::setenv("NOVA_RT_LIBCUDA", NOVA_OLD_CUDA, 1);
  EXPECT_EQ(openError(NOVA_RT_MISSING),
            std::string("the CUDA driver '") + NOVA_OLD_CUDA +
                "' has no cuGetErrorName (it is of CUDA 11.8), expected a "
                "driver of CUDA 12.0 or later");
  EXPECT_EQ(hint(), "update NVIDIA's driver");
  ::setenv("NOVA_RT_LIBCUDA", NOVA_FAKE_CUDA, 1);

  GpuSample s;
  EXPECT_EQ(s.open(bundle, 3), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "GPU 3 was asked for, this machine has one, GPU 0");
  EXPECT_EQ(hint(), "check nvidia-smi and CUDA_VISIBLE_DEVICES");
  fake->devices.resize(2);
  GpuSample s2;
  EXPECT_EQ(s2.open(bundle, 3), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "GPU 3 was asked for, this machine has 2, GPU 0 to 1");
  fake->devices.clear();
  EXPECT_EQ(openError(NOVA_RT_MISSING),
            "GPU 0 was asked for, this machine has none");
}

TEST_F(CudaErrors, NothingIsLoadedForATargetThatCannotRun) {
  fake->devices[0].major = 8;
  EXPECT_EQ(openError(NOVA_RT_MISSING),
            "target sm_90a (h200) expects compute capability 9.0 exactly, got "
            "GPU 0 (NVIDIA H200, compute capability 8.0)");
  fake->devices[0].major = 9;
  fake->devices[0].sharedBytesPerBlock = 1000;
  gpu().kernels[2].dynamicSharedBytes = 1001;
  EXPECT_EQ(openError(NOVA_RT_MISSING),
            std::string("kernel \"gradient_00000000\" of target sm_90a (h200) "
                        "expects 0 static and 1001 dynamic bytes of shared "
                        "memory per block, got ") +
                kH200 + " with at most 1000");
  gpu().kernels[2].dynamicSharedBytes = 0;
  fake->devices[0].freeBytes = 600;
  EXPECT_EQ(fake->calls["cuDevicePrimaryCtxRetain"], 0);

  // 256 for the arena and as much for constants do fit; not with the buffers.
  publish(sample);
  GpuSample s;
  s.load.caller_bytes = 344;
  EXPECT_EQ(s.open(bundle), NOVA_RT_MISSING);
  EXPECT_EQ(std::string(nova_rt_error_message()),
            std::string("target sm_90a (h200) expects 256 bytes for the arena, "
                        "256 for constants and 344 for buffers, got ") +
                kH200 + " with 600 free of 137438953472");
  EXPECT_EQ(hint(), "free memory on the GPU, or use one with more");
  s.close();
  s.load.caller_bytes = UINT64_MAX;
  EXPECT_EQ(s.open(bundle), NOVA_RT_MISSING);
  s.close();
  fake->devices[0].freeBytes = 511;
  s.load.caller_bytes = 0;
  EXPECT_EQ(s.open(bundle), NOVA_RT_MISSING);
  EXPECT_EQ(std::string(nova_rt_error_message()),
            std::string("target sm_90a (h200) expects 256 bytes for the arena, "
                        "256 for constants, got ") +
                kH200 + " with 511 free of 137438953472");
  EXPECT_EQ(fake->calls["cuModuleLoadDataEx"], 0);
  EXPECT_EQ(fake->calls["cuMemAlloc_v2"], 0);
}

TEST_F(CudaErrors, BundlesThatThisLoaderCannotLaunch) {
  bundle::Bundle good = sample;
  gpu().kernels[2].params[2].size = 16;
  EXPECT_EQ(openError(NOVA_RT_BAD_INPUT),
            "argument 2 of launch 2 of target sm_90a (h200) is a scalar of 16 "
            "bytes, expected at most 8");
  sample = good;
  gpu().kernels[2].params[2].size = 8;
  EXPECT_EQ(openError(NOVA_RT_BAD_INPUT),
            "kernel \"gradient_00000000\": parameter 2 has 4 bytes in the "
            "code, expected the 8 of the manifest");
  sample = good;
  gpu().kernels[0].params.pop_back();
  gpu().launches[0].args.pop_back();
  EXPECT_EQ(openError(NOVA_RT_BAD_INPUT),
            "kernel \"predict_00000000\": the code has more parameters, "
            "expected the 2 of the manifest");
  sample = good;
  gpu().kernels[0].params.push_back({});
  gpu().launches[0].args.push_back(bundle::InputRef{0, 0});
  EXPECT_EQ(openError(NOVA_RT_BAD_INPUT),
            "kernel \"predict_00000000\": the code has 3 parameters, expected "
            "the 4 of the manifest");
  sample = good;
  gpu().kernels[1].symbol = "residue";
  EXPECT_EQ(openError(NOVA_RT_BAD_INPUT),
            "kernel \"residual_00000000\", symbol \"residue\": "
            "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)");
  EXPECT_EQ(hint(), "the bundle is not for this GPU, or was not written by "
                    "novac: compile it again");
  sample = good;
  uint32_t blob = sample.addBlob(bundle::kMediaCubin, "fake-cubin 8.0\n");
  gpu().kernels[3].blob = blob;
  EXPECT_EQ(openError(NOVA_RT_BAD_INPUT),
            "kernel \"momentum_00000000\", blob " +
                sample.manifest.blobs[blob].digest +
                ": cuModuleLoadDataEx: CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
  sample = good;
  gpu().launches[4].args[0] = bundle::InputRef{4, 16};
  gpu().launches[4].args[1] = bundle::InputRef{4, 32};
  gpu().launches[4].args[2] = bundle::Immediate{17, "int64"};
  gpu().launches[4].after = {0, 1, 2, 3};
  for (size_t i = 5; i < gpu().launches.size(); ++i)
    gpu().launches[i].after.push_back(4);
  publish(sample);
  GpuSample s;
  EXPECT_EQ(s.train(bundle, 1), NOVA_RT_BAD_INPUT);
  EXPECT_STREQ(nova_rt_error_message(),
               "launch 4 of target sm_90a (h200) copies 17 bytes within memory "
               "that overlaps, expected 17 bytes between source and "
               "destination, got 16");
}

TEST_F(CudaErrors, DamagedBlobIsNotLoaded) {
  const bundle::Blob &blob = sample.manifest.blobs[gpu().kernels[0].blob];
  std::string damaged = sample.blobs[gpu().kernels[0].blob];
  damaged[5] ^= 1;
  std::FILE *file = std::fopen(bundle::blobPath(bundle, blob).c_str(), "wb");
  std::fwrite(damaged.data(), 1, damaged.size(), file);
  std::fclose(file);
  GpuSample s;
  EXPECT_EQ(s.open(bundle), NOVA_RT_VERIFICATION);
  EXPECT_EQ(fake->calls["cuModuleLoadDataEx"], 0);
}

TEST_F(CudaErrors, PtxOnlyWhenAllowed) {
  fake->devices[0].major = 12;
  addGpuTarget(sample, "sm_80", "a100");
  EXPECT_NE(openError(NOVA_RT_MISSING).find("; target sm_80 (a100) expects"),
            std::string::npos);
  EXPECT_NE(hint().find("give --allow-jit"), std::string::npos);
  {
    GpuSample s;
    s.load.allow_jit = 1;
    ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK) << nova_rt_error_message();
    nova_rt_program_info_t info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(nova_rt_program_info(s.program, &info), NOVA_RT_OK);
    EXPECT_EQ(info.jit, 1);
    EXPECT_EQ(info.target, 2u);
  }
  uint32_t blob = sample.addBlob(bundle::kMediaPtx, "fake-ptx 8.0 broken\n");
  sample.manifest.targets[2].kernels[0].ptxBlob = blob;
  EXPECT_EQ(openError(NOVA_RT_BAD_INPUT, true),
            "kernel \"predict_00000000\", blob " +
                sample.manifest.blobs[blob].digest +
                ": cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218)\nptxas "
                "fatal: line 3");
}

TEST_F(CudaErrors, TextOfACall) {
  EXPECT_EQ(callError("cuMemAlloc_v2", 2, NOVA_RT_MISSING),
            "cannot allocate 256 bytes for constants on GPU 0: cuMemAlloc_v2: "
            "CUDA_ERROR_OUT_OF_MEMORY (2), out of memory");
  EXPECT_EQ(
      callError("cuMemAlloc_v2", 2, NOVA_RT_MISSING, NOVA_RT_LAUNCH_GRAPH, 2),
      "cannot allocate 256 bytes for the arena on GPU 0: cuMemAlloc_v2: "
      "CUDA_ERROR_OUT_OF_MEMORY (2), out of memory");
  EXPECT_EQ(callError("cuGraphAddKernelNode_v2", 1, NOVA_RT_INTERNAL,
                      NOVA_RT_LAUNCH_GRAPH, 2),
            "launch 1 (kernel \"residual_00000000\"): cuGraphAddKernelNode_v2: "
            "CUDA_ERROR_INVALID_VALUE (1)");
  EXPECT_EQ(callError("cuGraphAddMemsetNode", 1, NOVA_RT_INTERNAL),
            "launch 5 (memset): cuGraphAddMemsetNode: CUDA_ERROR_INVALID_VALUE "
            "(1)");
  EXPECT_EQ(callError("cuGraphInstantiateWithFlags", 999, NOVA_RT_INTERNAL),
            "graph of 6 launches: cuGraphInstantiateWithFlags: unknown result "
            "(999)");
  EXPECT_EQ(callError("cuGraphLaunch", 700, NOVA_RT_INTERNAL),
            "step \"least_squares\" on GPU 0: cuGraphLaunch: "
            "CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal memory access was "
            "encountered");
  EXPECT_EQ(hint(), "it may come from an earlier launch; the process cannot "
                    "use this GPU any more; compute-sanitizer finds the "
                    "kernel");
  EXPECT_EQ(callError("cuLaunchKernel", 700, NOVA_RT_INTERNAL,
                      NOVA_RT_LAUNCH_PLAIN, 4)
                .substr(0, 53),
            "launch 3 (kernel \"momentum_00000000\"): cuLaunchKernel");
  EXPECT_EQ(
      callError("cuMemsetD8Async", 1, NOVA_RT_INTERNAL, NOVA_RT_LAUNCH_PLAIN),
      "launch 5 (memset): cuMemsetD8Async: CUDA_ERROR_INVALID_VALUE (1)");
  EXPECT_EQ(callError("cuLaunchHostFunc", 1, NOVA_RT_INTERNAL),
            "scalars advance: cuLaunchHostFunc: CUDA_ERROR_INVALID_VALUE (1)");
}

/// Whatever call of the driver fails, for whatever reason: the loader says
/// which, or did not need it, and leaves nothing behind.
TEST_F(CudaErrors, EveryCallFailing) {
  // The driver itself is opened once in a process: not in what is counted.
  ASSERT_EQ(GpuSample().open(bundle), NOVA_RT_OK) << nova_rt_error_message();
  for (int32_t mode : {NOVA_RT_LAUNCH_GRAPH, NOVA_RT_LAUNCH_PLAIN}) {
    reset();
    int closing = 0;
    {
      GpuSample s;
      ASSERT_EQ(s.train(bundle, 2, mode), NOVA_RT_OK);
      // A binding that changes, so that updates are in it too.
      std::swap(s.inputs[0], s.inputs[1]);
      ASSERT_EQ(s.bind(), NOVA_RT_OK);
      ASSERT_EQ(s.launch(), NOVA_RT_OK);
      closing = fake->totalCalls;
    }
    std::vector<std::string> sequence = fake->sequence;
    int total = fake->totalCalls;
    ASSERT_GT(total, 100);
    int reported = 0;
    for (int call = 1; call <= total; ++call)
      for (int result : {2, 700}) {
        // Without a context nothing can be freed: it is gone, and with it
        // everything that was in it.
        if (call > closing &&
            sequence[size_t(call - 1)] == "cuCtxPushCurrent_v2")
          continue;
        reset();
        fake->failCall = call;
        fake->failResult = result;
        GpuSample s;
        nova_rt_status_t status = s.train(bundle, 2, mode);
        if (!status) {
          std::swap(s.inputs[0], s.inputs[1]);
          if (!(status = s.bind()))
            status = s.launch();
        }
        std::string message = status ? nova_rt_error_message() : "";
        s.close();
        EXPECT_EQ(fake->live.total(), 0u)
            << "call " << call << ", " << fake->failed;
        if (!status)
          continue;
        ++reported;
        EXPECT_EQ(status, result == 2 ? NOVA_RT_MISSING : NOVA_RT_INTERNAL);
        EXPECT_NE(message.find(fake->failed + ": CUDA_ERROR_"),
                  std::string::npos)
            << message;
      }
    // Not reported: what destroys, and questions that have another answer.
    EXPECT_GT(reported, total);
  }
}

/// A launch after one that failed builds what is broken anew.
TEST_F(CudaErrors, GraphAfterAFailedUpdate) {
  GpuSample s;
  ASSERT_EQ(s.train(bundle, 1), NOVA_RT_OK);
  void *fresh = nullptr;
  ASSERT_EQ(nova_rt_memory_alloc(s.program, 20, &fresh), NOVA_RT_OK);
  std::swap(fresh, s.outputs[1]);
  ASSERT_EQ(s.bind(), NOVA_RT_OK);
  fake->failFunction = "cuGraphExecKernelNodeSetParams_v2";
  fake->failCall = 2;
  fake->failResult = 1;
  EXPECT_EQ(s.launch(), NOVA_RT_INTERNAL);
  EXPECT_STREQ(nova_rt_error_message(),
               "launch 3 (kernel \"momentum_00000000\"): "
               "cuGraphExecKernelNodeSetParams_v2: CUDA_ERROR_INVALID_VALUE "
               "(1)");
  ASSERT_EQ(nova_rt_memory_free(s.program, fresh), NOVA_RT_OK);
  EXPECT_EQ(s.launch(), NOVA_RT_OK) << nova_rt_error_message();
  EXPECT_EQ(s.info().graph_builds, 2u);
  EXPECT_EQ(s.info().launches, 2u);
}

TEST_F(CudaErrors, Usage) {
  GpuSample s;
  ASSERT_EQ(s.open(bundle), NOVA_RT_OK) << nova_rt_error_message();
  EXPECT_EQ(s.start(3), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "launch: 3, expected one of NOVA_RT_LAUNCH_...");
  ASSERT_EQ(s.start(), NOVA_RT_OK);
  nova_rt_instance_close(s.instance);
  nova_rt_instance_options_t create{sizeof create, 0, 0};
  ASSERT_EQ(nova_rt_instance_create(s.program, &create, &s.instance),
            NOVA_RT_OK);
  EXPECT_EQ(s.launch(), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(), "input 0 (\"w\") is not bound");
  EXPECT_EQ(s.advance(), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(), "input 3 (\"count\") is not bound");

  nova_rt_device_t device{};
  EXPECT_EQ(nova_rt_device_info(-1, &device), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "device -1, expected the ordinal of a GPU");
  EXPECT_EQ(nova_rt_device_info(0, nullptr), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(), "nova_rt_device_info: a null argument");
  EXPECT_EQ(nova_rt_memory_alloc(nullptr, 1, &s.inputs[0]), NOVA_RT_USAGE);
  EXPECT_EQ(nova_rt_memory_free(s.program, nullptr), NOVA_RT_OK);
  EXPECT_EQ(nova_rt_stream_destroy(s.program, nullptr), NOVA_RT_OK);

  nova_rt_choose_options_t choose{sizeof choose, 0, 0};
  EXPECT_EQ(nova_rt_bundle_check(s.bundle, 1, &choose), NOVA_RT_OK);
  EXPECT_EQ(nova_rt_bundle_check(s.bundle, 0, &choose), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "target host (x86-64-v3) is for the CPU, not for GPU 0");
  choose.device = NOVA_RT_DEVICE_HOST;
  EXPECT_EQ(nova_rt_bundle_check(s.bundle, 0, &choose), NOVA_RT_OK);
  EXPECT_EQ(nova_rt_bundle_check(s.bundle, 1, &choose), NOVA_RT_MISSING);
  EXPECT_STREQ(nova_rt_error_message(),
               "target sm_90a (h200) is for a GPU, not for the CPU");
  EXPECT_EQ(nova_rt_bundle_check(s.bundle, 2, &choose), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(), "target 2, the bundle has 2");
  nova_rt_program_t *none = nullptr;
  s.load.device = -1;
  EXPECT_EQ(nova_rt_program_load(s.bundle, 1, &s.load, &none), NOVA_RT_USAGE);
  EXPECT_STREQ(nova_rt_error_message(),
               "target sm_90a (h200) is for a GPU, got device -1");
}
