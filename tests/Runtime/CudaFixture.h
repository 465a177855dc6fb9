//===- CudaFixture.h - The sample for a GPU, and a fake driver ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_RUNTIME_CUDAFIXTURE_H
#define NOVA_TESTS_RUNTIME_CUDAFIXTURE_H

#include "FakeCuda.h"
#include "Fixture.h"
#include "nova-rt/nova_rt.h"

#include <cstring>

#include <dlfcn.h>

namespace nova::test {

inline constexpr const char *kSampleKernels = "\npredict 8 8 8"
                                              "\nresidual 8 8 8 8 8"
                                              "\ngradient 8 8 4 8"
                                              "\nmomentum 8 8 8 8\n";

/// Adds the sample's step for a GPU. `code` is the text of FakeCuda.h.
inline bundle::Target &addGpuTarget(
    bundle::Bundle &b, const std::string &name, const std::string &device,
    const std::string &code = std::string("fake-cubin 9.0") + kSampleKernels,
    const std::string &ptx = std::string("fake-ptx 8.0") + kSampleKernels) {
  bundle::Target t = b.manifest.targets[0];
  t.name = name;
  t.device = device;
  t.minDriver = 12040;
  t.ptxVersion = 84;
  uint32_t cubin = b.addBlob(bundle::kMediaCubin, code);
  uint32_t text = b.addBlob(bundle::kMediaPtx, ptx);
  for (bundle::Kernel &k : t.kernels) {
    k.blob = cubin;
    k.ptxBlob = text;
    k.block = {32, 1, 1};
  }
  b.manifest.targets.push_back(t);
  return b.manifest.targets.back();
}

/// The sample with a target for an H200 beside that of the CPU, in a folder.
class CudaTest : public SampleTest {
protected:
  void SetUp() override {
    SampleTest::SetUp();
    ::setenv("NOVA_RT_LIBCUDA", NOVA_FAKE_CUDA, 1);
    void *library = ::dlopen(NOVA_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    auto function = [&](const char *symbol) {
      return ::dlsym(library, symbol);
    };
    reset = reinterpret_cast<void (*)()>(function("fakeCudaReset"));
    makeContext = reinterpret_cast<void *(*)(int)>(function("fakeCudaContext"));
    dropContext =
        reinterpret_cast<void (*)(void *)>(function("fakeCudaDropContext"));
    fake = reinterpret_cast<FakeCuda *(*)()>(function("fakeCuda"))();
    reset();
    EXPECT_EQ(fake->live.total(), 0u);
    sample = sampleBundle(sampleHostObject());
    addGpuTarget(sample, "sm_90a", "h200");
    publish(sample);
  }
  void TearDown() override {
    EXPECT_EQ(fake->live.total(), 0u) << "something of the driver leaks";
    ::unsetenv("NOVA_RT_LIBCUDA");
    SampleTest::TearDown();
  }
  bundle::Target &gpu() { return sample.manifest.targets[1]; }

  FakeCuda *fake = nullptr;
  void (*reset)() = nullptr;
  void *(*makeContext)(int) = nullptr;
  void (*dropContext)(void *) = nullptr;
  bundle::Bundle sample;
};

/// The sample on a GPU with buffers of its own, through the C ABI.
class GpuSample {
public:
  ~GpuSample() { close(); }
  void close() {
    nova_rt_instance_close(instance);
    if (program) {
      for (void *&p : inputs)
        nova_rt_memory_free(program, p), p = nullptr;
      for (void *&p : outputs)
        nova_rt_memory_free(program, p), p = nullptr;
      nova_rt_stream_destroy(program, stream);
    }
    nova_rt_program_close(program);
    nova_rt_bundle_close(bundle);
    instance = nullptr, program = nullptr, bundle = nullptr, stream = nullptr;
  }

  nova_rt_status_t open(const std::string &path, int32_t device = 0) {
    nova_rt_status_t s = nova_rt_bundle_open(path.c_str(), &bundle);
    nova_rt_choose_options_t choose{sizeof choose, device, load.allow_jit};
    uint32_t target = 0;
    if (!s)
      s = nova_rt_bundle_choose_for(bundle, &choose, &target);
    load.device = device;
    if (!s)
      s = nova_rt_program_load(bundle, target, &load, &program);
    return s;
  }
  /// After open().
  nova_rt_status_t start(int32_t launch = NOVA_RT_LAUNCH_GRAPH) {
    nova_rt_instance_options_t create{sizeof create, 0, launch};
    nova_rt_status_t s = nova_rt_instance_create(program, &create, &instance);
    if (!s)
      s = nova_rt_stream_create(program, &stream);
    for (size_t i = 0; i < 6 && !s; ++i)
      s = nova_rt_memory_alloc(program, kInputBytes[i], &inputs[i]);
    for (size_t i = 0; i < 6 && !s; ++i)
      if (kOutputBytes[i])
        s = nova_rt_memory_alloc(program, kOutputBytes[i], &outputs[i]);
    return s ? s : bind();
  }
  nova_rt_status_t bind() {
    return nova_rt_instance_bind(instance, inputs, 6, outputs, 6);
  }
  nova_rt_status_t fill(const Reference &r, int64_t count = 41) {
    float w[5], m[5], t[7], x[56] = {}, lr = float(r.lr);
    for (int j = 0; j < 5; ++j)
      w[j] = float(r.w[j]), m[j] = float(r.m[j]);
    for (int i = 0; i < 7; ++i) {
      t[i] = float(r.t[i]);
      for (int j = 0; j < 5; ++j)
        x[8 * i + j] = float(r.x[5 * i + j]);
    }
    const void *values[] = {w, m, &lr, &count, x, t};
    for (size_t i = 0; i < 6; ++i)
      if (auto s = nova_rt_memory_write(program, inputs[i], values[i],
                                        kInputBytes[i], stream))
        return s;
    return NOVA_RT_OK;
  }
  nova_rt_status_t launch() {
    return nova_rt_instance_launch(instance, stream);
  }
  nova_rt_status_t advance() {
    return nova_rt_instance_advance(instance, stream);
  }
  /// All of it: what a framework does for `steps` steps.
  nova_rt_status_t train(const std::string &path, int steps,
                         int32_t mode = NOVA_RT_LAUNCH_GRAPH) {
    nova_rt_status_t s = open(path);
    if (!s)
      s = start(mode);
    if (!s)
      s = fill(Reference::start());
    for (int i = 0; i < steps && !s; ++i)
      if (!(s = launch()))
        s = advance();
    return s ? s : nova_rt_stream_synchronize(program, stream);
  }
  template <typename T> T read(void *address, size_t index = 0) {
    T value{};
    EXPECT_EQ(nova_rt_memory_read(program, &value,
                                  static_cast<T *>(address) + index,
                                  sizeof value, stream),
              NOVA_RT_OK)
        << nova_rt_error_message();
    return value;
  }
  nova_rt_instance_info_t info() {
    nova_rt_instance_info_t info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(nova_rt_instance_info(instance, &info), NOVA_RT_OK);
    return info;
  }

  static constexpr size_t kInputBytes[6] = {20, 20, 4, 8, 212, 28};
  static constexpr size_t kOutputBytes[6] = {4, 20, 0, 0, 8, 16};
  nova_rt_load_options_t load{sizeof load, 0, nullptr, 0, 0};
  nova_rt_bundle_t *bundle = nullptr;
  nova_rt_program_t *program = nullptr;
  nova_rt_instance_t *instance = nullptr;
  void *stream = nullptr;
  void *inputs[6] = {}, *outputs[6] = {};
};

} // namespace nova::test

#endif // NOVA_TESTS_RUNTIME_CUDAFIXTURE_H
