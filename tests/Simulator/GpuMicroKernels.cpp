//===- GpuMicroKernels.cpp - The micro-kernels on a GPU -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   gpu-micro-kernels OUT.bin       results of GPU 0, in the form of Truth.h
//   gpu-micro-kernels --ptx FOLDER  the kernels as text, for an assembler
//
//===----------------------------------------------------------------------===//
#include "MicroKernels.h"
#include "Truth.h"

#include <cstdio>
#include <dlfcn.h>
#include <filesystem>

namespace {

template <typename F> F symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) {
    std::fprintf(stderr, "libcuda.so.1 has no %s\n", name);
    std::exit(4);
  }
  return reinterpret_cast<F>(found);
}

void check(int status, const char *what) {
  if (status) {
    std::fprintf(stderr, "%s: CUDA error %d\n", what, status);
    std::exit(4);
  }
}

int onGpu(const char *path) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) {
    std::fprintf(stderr, "no libcuda.so.1\n");
    return 4;
  }
  using Pointer = unsigned long long;
  auto init = symbol<int (*)(unsigned)>(cuda, "cuInit");
  auto retain = symbol<int (*)(void **, int)>(cuda, "cuDevicePrimaryCtxRetain");
  auto setCurrent = symbol<int (*)(void *)>(cuda, "cuCtxSetCurrent");
  auto load = symbol<int (*)(void **, const void *)>(cuda, "cuModuleLoadData");
  auto unload = symbol<int (*)(void *)>(cuda, "cuModuleUnload");
  auto get = symbol<int (*)(void **, void *, const char *)>(
      cuda, "cuModuleGetFunction");
  auto allocate = symbol<int (*)(Pointer *, size_t)>(cuda, "cuMemAlloc_v2");
  auto toDevice =
      symbol<int (*)(Pointer, const void *, size_t)>(cuda, "cuMemcpyHtoD_v2");
  auto toHost =
      symbol<int (*)(void *, Pointer, size_t)>(cuda, "cuMemcpyDtoH_v2");
  auto launch =
      symbol<int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, unsigned, void *, void **, void **)>(
          cuda, "cuLaunchKernel");
  auto synchronize = symbol<int (*)()>(cuda, "cuCtxSynchronize");
  check(init(0), "cuInit");
  void *context = nullptr;
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(setCurrent(context), "cuCtxSetCurrent");
  Pointer in = 0, out = 0;
  check(allocate(&in, 1 << 20), "cuMemAlloc");
  check(allocate(&out, 1 << 20), "cuMemAlloc");
  std::ofstream file(path, std::ios::binary);
  unsigned refused = 0;
  for (const micro::Case &c : micro::cases()) {
    micro::Truth truth{micro::digestOf(c), {}};
    void *module = nullptr, *function = nullptr;
    if (load(&module, c.ptx.c_str()) || get(&function, module, "micro")) {
      ++refused;
      std::fprintf(stderr, "refused: %s\n", c.name.c_str());
    } else {
      truth.words.resize(size_t(micro::kThreads) * c.outputs);
      std::vector<uint64_t> zeros(truth.words.size());
      check(toDevice(in, c.in.data(), c.in.size() * 8), "copy in");
      check(toDevice(out, zeros.data(), zeros.size() * 8), "clear");
      void *parameters[] = {&in, &out};
      check(launch(function, 1, 1, 1, micro::kThreads, 1, 1, 0, nullptr,
                   parameters, nullptr),
            c.name.c_str());
      check(synchronize(), c.name.c_str());
      check(toHost(truth.words.data(), out, truth.words.size() * 8),
            "copy out");
      unload(module);
    }
    micro::writeTruth(file, c.name, truth);
  }
  std::printf("%zu kernels, %u refused\n", micro::cases().size(), refused);
  return file.good() ? 0 : 4;
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2)
    return onGpu(argv[1]);
  if (argc != 3 || std::string(argv[1]) != "--ptx")
    return 2;
  std::filesystem::create_directories(argv[2]);
  size_t k = 0;
  for (const micro::Case &c : micro::cases())
    std::ofstream(std::string(argv[2]) + "/" + std::to_string(k++) + ".ptx")
        << "// " << c.name << '\n'
        << c.ptx;
  return 0;
}
