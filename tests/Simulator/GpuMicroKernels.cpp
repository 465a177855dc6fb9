//===- GpuMicroKernels.cpp - The micro-kernels on a GPU -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   gpu-micro-kernels OUT.bin       results of GPU 0, in the form of Truth.h; a
//                                   second argument: from that case on,
//                                   appended
//   gpu-micro-kernels --ptx FOLDER  the kernels as text, for an assembler
//
//===----------------------------------------------------------------------===//
#include "MicroKernels.h"
#include "Truth.h"

#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

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

int onGpu(const char *path, size_t from) {
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
  using Encode =
      int (*)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *,
              const unsigned *, const unsigned *, int, int, int, int);
  auto encode = symbol<Encode>(cuda, "cuTensorMapEncodeTiled");
  auto synchronize = symbol<int (*)()>(cuda, "cuCtxSynchronize");
  check(init(0), "cuInit");
  void *context = nullptr;
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(setCurrent(context), "cuCtxSetCurrent");
  Pointer in = 0, out = 0;
  check(allocate(&in, 1 << 20), "cuMemAlloc");
  check(allocate(&out, 1 << 20), "cuMemAlloc");
  std::ofstream file(path, from ? std::ios::binary | std::ios::app
                                : std::ios::binary);
  unsigned refused = 0;
  for (size_t k = from; k < micro::cases().size(); ++k) {
    const micro::Case &c = micro::cases()[k];
    micro::Truth truth{micro::digestOf(c), {}};
    void *module = nullptr, *function = nullptr;
    if (load(&module, c.ptx.c_str()) || get(&function, module, "micro")) {
      ++refused;
      std::fprintf(stderr, "refused: %s\n", c.name.c_str());
    } else {
      truth.words.resize(size_t(c.blocks) * micro::kThreads * c.outputs);
      std::vector<uint64_t> zeros(truth.words.size());
      check(toDevice(in, c.in.data(), c.in.size() * 8), "copy in");
      check(toDevice(out, zeros.data(), zeros.size() * 8), "clear");
      std::vector<void *> parameters = {&in, &out};
      struct alignas(64) Bits {
        char bytes[128];
      };
      std::vector<Bits> maps(c.maps.size());
      for (size_t i = 0; i < maps.size(); ++i) {
        const micro::Map &m = c.maps[i];
        auto narrow = [](const std::vector<uint64_t> &values) {
          return std::vector<unsigned>(values.begin(), values.end());
        };
        Pointer at = (m.onOut ? out : in) + m.offset;
        // Of one dimension there are no strides, and still their address.
        std::vector<uint64_t> strides = m.strides;
        strides.resize(5);
        if (int status = encode(&maps[i], int(m.type), unsigned(m.sizes.size()),
                                reinterpret_cast<void *>(at), m.sizes.data(),
                                strides.data(), narrow(m.box).data(),
                                narrow(m.elementStrides).data(), 0,
                                int(m.swizzle), 0, int(m.fill)))
          std::fprintf(stderr, "no tensor map (CUDA error %d): %s\n", status,
                       c.name.c_str());
        parameters.push_back(&maps[i]);
      }
      check(launch(function, c.blocks, 1, 1, micro::kThreads, 1, 1, 0, nullptr,
                   parameters.data(), nullptr),
            c.name.c_str());
      if (int status = synchronize()) {
        // The context is lost: another process goes on with the next.
        std::fprintf(stderr, "failed (CUDA error %d): %s\n", status,
                     c.name.c_str());
        truth.words.clear();
        micro::writeTruth(file, c.name, truth);
        file.close();
        execl("/proc/self/exe", "gpu-micro-kernels", path,
              std::to_string(k + 1).c_str(), nullptr);
        return 4;
      }
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
  if (argc < 2 || argc > 3)
    return 2;
  if (std::string(argv[1]) != "--ptx")
    return onGpu(argv[1], argc == 3 ? std::stoul(argv[2]) : 0);
  if (argc != 3)
    return 2;
  std::filesystem::create_directories(argv[2]);
  size_t k = 0;
  for (const micro::Case &c : micro::cases())
    std::ofstream(std::string(argv[2]) + "/" + std::to_string(k++) + ".ptx")
        << "// " << c.name << '\n'
        << c.ptx;
  return 0;
}
