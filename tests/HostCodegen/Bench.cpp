//===- Bench.cpp - How fast host kernels compile and run ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HostCodegenBench [M N K TM TN]...: products, one core, best of several runs,
// A and B in every order in memory. Prints compile time, time and GFLOP/s.
//
// HostCodegenBench FILE.mlir [NAME]: every kernel function of a module at stage
// `configured` or `plan` (or those whose name contains NAME), one core: compile
// time, object size, time of the whole grid (from a part of it, if it takes
// long), and that time per floating-point operation and per byte touched.
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <sys/mman.h>

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
                 : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6",
                   "ymm7", "ymm8", "ymm9", "ymm14", "ymm15", "cc");
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
      for (int repeat = 0; repeat < 200 && (repeat < 3 || total < 1);
           ++repeat) {
        start = now();
        function(pointers, 0, kernelGridPoints(kernel));
        double t = (now() - start);
        best = std::min(best, t);
        total += t;
      }
      std::printf("%5ld x %5ld x %5ld  tile %4ld x %4ld  %c%c  compile %6.0f "
                  "ms  object %6zu B  %8.3f ms  %7.1f GFLOP/s\n",
                  m, n, k, tm, tn, ta ? 'T' : 'N', tb ? 'T' : 'N',
                  compile * 1e3, object->size(), best * 1e3,
                  2.0 * m * n * k / best * 1e-9);
      std::fflush(stdout);
    }
}

/// Floating-point operations of a kernel's generics.
static double operations(mlir::func::FuncOp kernel) {
  double total = 0;
  kernel.walk([&](mlir::linalg::GenericOp op) {
    double points = 1, perPoint = 0;
    for (int64_t extent : op.getStaticLoopRanges())
      points *= extent;
    for (mlir::Operation &inner : op.getBody()->without_terminator())
      perPoint += inner.getNumResults() &&
                  mlir::isa<mlir::FloatType>(inner.getResult(0).getType()) &&
                  !inner.hasTrait<mlir::OpTrait::ConstantLike>();
    total += points * perPoint;
  });
  return total;
}

static void runFile(const char *path, const char *name) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  auto module = parse(text.str());
  std::printf("%-34s %8s %8s %9s %12s %9s %9s\n", "kernel", "compile", "object",
              "points", "whole grid", "GFLOP/s", "GB/s");
  double totalCompile = 0;
  for (auto kernel : module->getOps<mlir::func::FuncOp>()) {
    if (!kernel->hasAttr(attr::kernel) ||
        kernel.getSymName().find(name) == mlir::StringRef::npos)
      continue;
    double start = now();
    auto object = compileKernel(kernel, "kernel");
    double compile = now() - start;
    totalCompile += compile;
    if (!object) {
      std::printf("%s\n", object.error().message.c_str());
      continue;
    }
    LoadedObject loaded(*linkSharedObject({*object}));
    std::vector<std::pair<void *, size_t>> memory;
    std::vector<void *> pointers;
    double bytes = 0;
    auto buffer = [&](mlir::Type type, mlir::DenseI64ArrayAttr strides) {
      auto tensor = mlir::cast<mlir::RankedTensorType>(type);
      int64_t span = 1, elements = tensor.getNumElements();
      auto list = strides ? llvm::SmallVector<int64_t>(strides.asArrayRef())
                          : contiguousStrides(tensor.getShape());
      for (auto [size, stride] : llvm::zip(tensor.getShape(), list))
        span += (size - 1) * stride;
      int64_t width = elementBytes(tensor.getElementType());
      size_t length = span * width + 64;
      void *data = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (tensor.getElementType().isF32())
        std::fill_n(static_cast<float *>(data), span, 0.5f);
      memory.emplace_back(data, length);
      pointers.push_back(data);
      bytes += static_cast<double>(std::min(span, elements)) * width;
    };
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      buffer(
          kernel.getArgument(i).getType(),
          kernel.getArgAttrOfType<mlir::DenseI64ArrayAttr>(i, attr::strides));
    for (mlir::Type type : kernel.getResultTypes())
      buffer(type, {});
    KernelFunction function = loaded.get("kernel");
    int64_t points = kernelGridPoints(kernel), done = 0;
    double spent = 0, best = 1e30;
    // Batches of points until enough time is spent; small grids several times.
    for (int64_t batch = 1; spent < 0.3;) {
      int64_t first = done % points, last = std::min(points, first + batch);
      start = now();
      function(pointers.data(), first, last);
      double t = now() - start;
      spent += t;
      if (last - first == batch || batch >= points)
        best = std::min(best, t / (last - first));
      done = last;
      if (batch < points && t < 0.02)
        batch *= 2;
    }
    double whole = best * points;
    std::printf("%-34s %5.0f ms %6zu B %9ld %9.3f ms %9.1f %9.2f\n",
                kernel.getSymName().str().c_str(), compile * 1e3,
                object->size(), points, whole * 1e3,
                operations(kernel) / whole * 1e-9, bytes / whole * 1e-9);
    std::fflush(stdout);
    for (auto [data, length] : memory)
      munmap(data, length);
  }
  std::printf("compile time together: %.2f s\n", totalCompile);
}

int main(int argc, char **argv) {
  if (argc > 1 && std::string(argv[1]).find(".mlir") != std::string::npos) {
    runFile(argv[1], argc > 2 ? argv[2] : "");
    return 0;
  }
  std::printf("peak of FMA in registers: %.1f GFLOP/s\n", peak());
  if (argc < 6) {
    run(512, 512, 512, 512, 512);
    run(512, 512, 512, 64, 64);
    run(1024, 768, 3072, 64, 64);
    run(120, 48, 144, 8, 48);
    run(120, 144, 48, 120, 144);
  }
  for (int i = 1; i + 4 < argc; i += 5)
    run(atoll(argv[i]), atoll(argv[i + 1]), atoll(argv[i + 2]),
        atoll(argv[i + 3]), atoll(argv[i + 4]));
}
