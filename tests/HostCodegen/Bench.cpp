//===- Bench.cpp - How fast host kernels compile and run ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HostCodegenBench [M N K TM TN]...: one core, best of several runs, for A and
// B in every order in memory. Prints compile time, time and GFLOP/s.
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace nova;
using namespace nova::test;

/// Time this thread has had a core: other work on the machine does not count.
static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static const char *kMatmul = R"(
func.func private @matmul(%a: tensor<$Mx$Kxf32> {nova.strides = array<i64: $SAM, $SAK>}, %b: tensor<$Kx$Nxf32> {nova.strides = array<i64: $SBK, $SBN>})
    -> (tensor<$Mx$Nxf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: $M, $N>, nova.tile = array<i64: $TM, $TN>} {
  %zero = arith.constant dense<0.0> : tensor<$Mx$Nxf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<$Mx$Kxf32>, tensor<$Kx$Nxf32>) outs(%zero : tensor<$Mx$Nxf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<$Mx$Nxf32>
  return %c : tensor<$Mx$Nxf32>
}
)";

/// FMAs on registers alone: what one core can do here and now.
__attribute__((target("avx2,fma"))) static double peak() {
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    double start = now();
    const int64_t n = 5000000;
    int64_t i = n;
    // Ten independent sums hide the latency.
    asm volatile("1:\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm1\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm2\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm3\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm4\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm5\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm6\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm7\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm8\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm9\n"
                 "dec %0\n"
                 "jnz 1b\n"
                 : "+r"(i)
                 :
                 : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9",
                   "ymm14", "ymm15", "cc");
    best = std::max(best, n * 160.0 / (now() - start) * 1e-9);
  }
  return best;
}

static void run(int64_t m, int64_t n, int64_t k, int64_t tm, int64_t tn) {
  auto s = [](int64_t v) { return std::to_string(v); };
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      auto module = parse(fill(kMatmul, {{"M", s(m)},
                                         {"N", s(n)},
                                         {"K", s(k)},
                                         {"TM", s(tm)},
                                         {"TN", s(tn)},
                                         {"SAM", s(ta ? 1 : k)},
                                         {"SAK", s(ta ? m : 1)},
                                         {"SBK", s(tb ? 1 : n)},
                                         {"SBN", s(tb ? k : 1)}}));
      auto kernel = kernelOf(*module);
      double start = now();
      auto object = compileKernel(kernel, "matmul");
      double compile = (now() - start);
      if (!object) {
        std::printf("%s\n", object.error().message.c_str());
        return;
      }
      auto shared = linkSharedObject({*object});
      LoadedObject loaded(*shared);
      KernelFunction function = loaded.get("matmul");
      std::vector<float> a(m * k, 0.5f), b(k * n, 0.25f), c(m * n);
      void *pointers[] = {a.data(), b.data(), c.data()};
      double best = 1e9, total = 0;
      for (int repeat = 0; repeat < 200 && (repeat < 3 || total < 1); ++repeat) {
        start = now();
        function(pointers, 0, kernelGridPoints(kernel));
        double t = (now() - start);
        best = std::min(best, t);
        total += t;
      }
      std::printf("%5ld x %5ld x %5ld  tile %4ld x %4ld  %c%c  compile %6.0f ms  object %6zu B  %8.3f ms  %7.1f GFLOP/s\n",
                  m, n, k, tm, tn, ta ? 'T' : 'N', tb ? 'T' : 'N', compile * 1e3, object->size(),
                  best * 1e3, 2.0 * m * n * k / best * 1e-9);
      std::fflush(stdout);
    }
}

int main(int argc, char **argv) {
  std::printf("peak of FMA in registers: %.1f GFLOP/s\n", peak());
  if (argc < 6) {
    run(512, 512, 512, 512, 512);
    run(512, 512, 512, 64, 64);
    run(1024, 768, 3072, 64, 64);
    run(120, 48, 144, 8, 48);
    run(120, 144, 48, 120, 144);
  }
  for (int i = 1; i + 4 < argc; i += 5)
    run(atoll(argv[i]), atoll(argv[i + 1]), atoll(argv[i + 2]), atoll(argv[i + 3]),
        atoll(argv[i + 4]));
}
