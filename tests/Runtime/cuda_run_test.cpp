//===- cuda_run_test.cpp - run and verify on a GPU ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"
#include "nova/Runtime/Run.h"
#include "nova/Support/File.h"

#include <sstream>

#include <sys/wait.h>

using namespace nova;
using namespace nova::test;

namespace {

class CudaRun : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    data = root + "/data.safetensors";
    dataFile().write(data);
  }
  run::RunOptions runOptions() {
    run::RunOptions o;
    o.bundle = bundle;
    o.device = "0";
    o.data = data;
    return o;
  }
  run::VerifyOptions verifyOptions() {
    run::VerifyOptions o;
    o.bundle = bundle;
    o.threads = 2;
    return o;
  }
  Status run(const run::RunOptions &o) {
    out.str("");
    log.str("");
    return run::run(o, out, log);
  }
  Status verify(const run::VerifyOptions &o) {
    out.str("");
    log.str("");
    return run::verify(o, out, log);
  }
  bool said(const std::string &text) {
    return out.str().find(text) != std::string::npos;
  }
  /// The exit status of nova-run; its output goes to `out`.
  int novaRun(const std::string &arguments) {
    std::string file = root + "/output";
    int status = std::system(
        (std::string(NOVA_RUN) + " " + arguments + " >" + file + " 2>&1")
            .c_str());
    out.str(*readFile(file, "output"));
    return WEXITSTATUS(status);
  }

  std::string data;
  std::ostringstream out, log;
};

} // namespace

TEST_F(CudaRun, StepsAsOnTheCpu) {
  run::RunOptions o = runOptions();
  o.steps = 3;
  o.out = root + "/gpu.safetensors";
  Status s = run(o);
  ASSERT_TRUE(bool(s)) << s.error().message;
  EXPECT_NE(log.str().find(" ms per step on sm_90a (NVIDIA H200)\n"),
            std::string::npos)
      << log.str();
  o.device = "host";
  o.out = root + "/cpu.safetensors";
  ASSERT_TRUE(bool(run(o)));
  auto gpu = SafetensorsFile::open(root + "/gpu.safetensors");
  auto cpu = SafetensorsFile::open(root + "/cpu.safetensors");
  ASSERT_TRUE(bool(gpu) && bool(cpu));
  ASSERT_EQ(gpu->entries().size(), cpu->entries().size());
  for (const SafetensorsEntry &entry : cpu->entries()) {
    std::string a = *cpu->read(entry), b = *gpu->read(*gpu->find(entry.name));
    if (entry.dtype != "F32") {
      EXPECT_EQ(a, b) << entry.name;
      continue;
    }
    for (size_t i = 0; i < a.size(); i += 4) {
      float x, y;
      std::memcpy(&x, &a[i], 4);
      std::memcpy(&y, &b[i], 4);
      EXPECT_NEAR(x, y, 1e-5) << entry.name;
    }
  }
}

TEST_F(CudaRun, DefaultDevice) {
  run::RunOptions o = runOptions();
  o.device = "";
  ASSERT_TRUE(bool(run(o)));
  EXPECT_NE(log.str().find("on host"), std::string::npos) << log.str();
  sample.manifest.targets.erase(sample.manifest.targets.begin());
  publish(sample);
  Status s = run(o);
  ASSERT_TRUE(bool(s)) << s.error().message;
  EXPECT_NE(log.str().find("on sm_90a"), std::string::npos) << log.str();
  o.launch = "fast";
  s = run(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().message,
            "launch \"fast\", expected graph, chain or plain");
}

TEST_F(CudaRun, Times) {
  run::RunOptions o = runOptions();
  o.steps = 100; // more than there are timers
  o.time = true;
  o.json = true;
  o.out = root + "/timed.safetensors";
  Status s = run(o);
  ASSERT_TRUE(bool(s)) << s.error().message;
  for (const char *key :
       {"\"bind_launch_us\":{\"16_new\":{\"count\":20,",
        "\"bind_launch_idle_us\":{\"16_new\":{\"count\":20,",
        "\"all_new\":{\"count\":20,", "\"alternating\":{\"count\":20,",
        "\"unchanged\":{\"count\":20,", "\"first_launch_ms\":",
        "\"graph_nodes\":6", "\"launch_us\":{\"count\":99",
        "\"open_to_first_launch_ms\":", "\"step_ms\":{\"count\":99",
        "\"launch\":\"graph\"", "\"device\":\"NVIDIA H200\"",
        "\"steps\":[{\"losses\":["})
    EXPECT_TRUE(said(key)) << key << "\n" << out.str();
  // What was saved is what 100 steps compute, measured or not.
  auto timed = SafetensorsFile::open(*o.out);
  o.time = false;
  o.out = root + "/plain.safetensors";
  o.launch = "plain";
  ASSERT_TRUE(bool(run(o)));
  auto plain = SafetensorsFile::open(*o.out);
  for (const char *name : {"out/0", "in/w", "in/count"})
    EXPECT_EQ(*timed->read(*timed->find(name)),
              *plain->read(*plain->find(name)))
        << name;

  o.time = true;
  o.json = false;
  o.launch = "";
  o.steps = 1;
  ASSERT_TRUE(bool(run(o)));
  EXPECT_TRUE(said("step 1  loss ")) << out.str();
  for (const char *line :
       {"\nbind and launch, us of CPU, step after step:\n  nothing changed: "
        "median ",
        "\nbind and launch, us of CPU, on an idle GPU:\n",
        "\n  two sets of buffers in turn: median ",
        "\n  every address new: median "})
    EXPECT_TRUE(said(line)) << out.str();
  EXPECT_TRUE(said("\nopen to first launch, ms: ")) << out.str();
  o.device = "host";
  ASSERT_TRUE(bool(run(o)));
  EXPECT_FALSE(said("every address new")) << out.str();

  // No memory for a second set of buffers: not measured, and no error.
  reset();
  fake->failFunction = "cuMemAlloc_v2";
  fake->failCall = 13;
  fake->failResult = 2;
  o.device = "0";
  o.json = true;
  s = run(o);
  ASSERT_TRUE(bool(s)) << s.error().message;
  EXPECT_EQ(fake->failed, "cuMemAlloc_v2");
  EXPECT_TRUE(said("\"bind_launch_us\":null")) << out.str();
}

TEST_F(CudaRun, VerifyData) {
  run::VerifyOptions o = verifyOptions();
  o.data = data;
  o.device = "0";
  Status s = verify(o);
  ASSERT_TRUE(bool(s)) << s.error().message << out.str();
  EXPECT_EQ(out.str().rfind("sm_90a (h200) on NVIDIA H200\ncompared with the "
                            "data file '",
                            0),
            0u)
      << out.str();
  EXPECT_TRUE(said("column f32")) << "as numerics.matmul says";
  sample.manifest.numerics.matmul = "tf32";
  publish(sample);
  ASSERT_TRUE(bool(verify(o)));
  EXPECT_TRUE(said("column tf32")) << out.str();
}

TEST_F(CudaRun, VerifySeedComparesEveryTargetThatRuns) {
  addGpuTarget(sample, "sm_90a", "h100");
  addGpuTarget(sample, "sm_80", "a100");
  publish(sample);
  run::VerifyOptions o = verifyOptions();
  o.seed = 3;
  Status s = verify(o);
  ASSERT_TRUE(bool(s)) << s.error().message << out.str();
  EXPECT_TRUE(said("sm_90a (h200) on NVIDIA H200\n")) << out.str();
  EXPECT_TRUE(said("sm_90a (h100) on NVIDIA H200\n")) << out.str();
  EXPECT_TRUE(said("compared with the host target on inputs from seed 3\n"));
  EXPECT_EQ(log.str().rfind("not verified here: target sm_80 (a100) expects "
                            "compute capability 8.0 to 8.x, got GPU 0",
                            0),
            0u)
      << log.str();
  o.allowJit = true;
  ASSERT_TRUE(bool(verify(o)));
  EXPECT_EQ(log.str(),
            "the driver compiled the PTX of target sm_80 (a100) for NVIDIA "
            "H200\n");
  o.allowJit = false;
  o.json = true;
  ASSERT_TRUE(bool(verify(o)));
  EXPECT_EQ(out.str().rfind("{\"bundle\":\"", 0), 0u);
  EXPECT_TRUE(said("\"passed\":true,\"seed\":3,\"targets\":[{\"column\":"))
      << out.str();
  EXPECT_TRUE(said("\"target\":\"sm_90a (h100)\"")) << out.str();

  // A kernel that multiplies by another constant, in one of them.
  sample.manifest.targets[2].launches[2].args[2] =
      bundle::Immediate{0x3e800000, "float32"};
  publish(sample);
  s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Verification);
  EXPECT_EQ(s.error().message.rfind("sm_90a (h100): ", 0), 0u)
      << s.error().message;
  EXPECT_TRUE(said("\"passed\":false"));
}

TEST_F(CudaRun, VerifySeedWhereNothingRuns) {
  fake->devices[0].major = 10;
  run::VerifyOptions o = verifyOptions();
  o.seed = 3;
  Status nothing = verify(o);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::Missing);
  EXPECT_TRUE(said("have the same bits in three runs")) << out.str();
  EXPECT_NE(log.str().find("not verified here: target sm_90a (h200) expects"),
            std::string::npos);
  // A GPU that was asked for is not passed over.
  o.device = "0";
  Status s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Missing);
  o.device = "host";
  EXPECT_FALSE(bool(verify(o)));
  fake->devices[0].major = 9;
  o.device = "";
  sample.manifest.targets.erase(sample.manifest.targets.begin());
  publish(sample);
  s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().message,
            "the bundle has no target for the CPU, it has: sm_90a (h200)");
  sample = sampleBundle(sampleHostObject());
  publish(sample);
  o.device = "0";
  s = verify(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().message, "GPU 0 was asked for, the bundle has no target "
                               "for a GPU");
}

TEST_F(CudaRun, FailureOnTheGpuIsReportedAndLeaksNothing) {
  for (const char *call : {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
                           "cuStreamSynchronize", "cuGraphLaunch"}) {
    reset();
    fake->failFunction = call;
    fake->failCall = 2;
    fake->failResult = 700;
    run::RunOptions o = runOptions();
    o.steps = 2;
    o.out = root + "/out.safetensors";
    Status s = run(o);
    ASSERT_FALSE(s) << call;
    EXPECT_NE(s.error().message.find(call), std::string::npos)
        << s.error().message;
    EXPECT_EQ(fake->live.total(), 0u) << call;
  }
}

TEST_F(CudaRun, ExitStatusOfNovaRun) {
  std::string on0 = " " + bundle + " --device 0";
  EXPECT_EQ(novaRun("run" + on0 + " --data " + data + " --steps 2"), 0)
      << out.str();
  EXPECT_EQ(novaRun("run" + on0 + " --launch chain --time --json"), 0);
  EXPECT_EQ(novaRun("run" + on0 + " --launch fast"), 2);
  EXPECT_EQ(novaRun("verify" + on0 + " --seed 1"), 0) << out.str();
  EXPECT_EQ(novaRun("run " + bundle + " --device 1"), 4);
  EXPECT_EQ(out.str(),
            "nova-run: error: GPU 1 was asked for, this machine has one, GPU "
            "0\n  check nvidia-smi and CUDA_VISIBLE_DEVICES\n");
  ::setenv("FAKE_CUDA_DEVICES", "12.0", 1);
  EXPECT_EQ(novaRun("run" + on0), 4);
  EXPECT_EQ(novaRun("run" + on0 + " --allow-jit"), 4) << "sm_90a is one chip's";
  addGpuTarget(sample, "sm_80", "a100");
  publish(sample);
  EXPECT_EQ(novaRun("run" + on0), 4);
  EXPECT_EQ(novaRun("run" + on0 + " --allow-jit --data " + data), 0);
  EXPECT_EQ(out.str().rfind("the driver compiled the PTX of target sm_80 "
                            "(a100) for NVIDIA H200\n",
                            0),
            0u)
      << out.str();
  ::unsetenv("FAKE_CUDA_DEVICES");
  ::setenv("FAKE_CUDA_FAIL", "cuGraphLaunch:1:719", 1);
  EXPECT_EQ(novaRun("run" + on0), 3);
  ::unsetenv("FAKE_CUDA_FAIL");
  ::setenv("NOVA_RT_LIBCUDA", "/none", 1);
  EXPECT_EQ(novaRun("run" + on0), 4);
  EXPECT_EQ(out.str().rfind("nova-run: error: there is no CUDA driver here: "
                            "/none: ",
                            0),
            0u)
      << out.str();
}
