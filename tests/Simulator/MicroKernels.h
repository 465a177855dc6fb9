//===- MicroKernels.h - One instruction, many inputs ----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of one instruction, or a few, with inputs from a seed: executed on a
// GPU by GpuMicroKernels.cpp, whose results are committed (truth/), and by the
// simulator in micro_kernels_test.cpp. Every thread reads `inputs` words of 64
// bits and writes `outputs`.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_SIMULATOR_MICROKERNELS_H
#define NOVA_TESTS_SIMULATOR_MICROKERNELS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace micro {

constexpr unsigned kThreads = 256; ///< Of a case: one block.
/// How a case's results may differ from the device's.
struct Tolerance {
  enum Kind {
    Exact,
    Ulps,     ///< Of `format`.
    Relative, ///< 2^-bits of the larger one, float32.
    Absolute, ///< 2^-bits, float32.
  } kind = Exact;
  double amount = 0;
  char format = 's'; ///< h float16, b bfloat16, s float32, d float64.
};

/// A tensor map that a case's kernel takes after its two buffers, of one of
/// them: as cuTensorMapEncodeTiled is given it, with its numbers.
struct Map {
  bool onOut = false;
  unsigned type = 7, swizzle = 0, fill = 0;
  uint64_t offset = 0; ///< Bytes.
  std::vector<uint64_t> sizes, strides, box, elementStrides;
};

struct Case {
  std::string name; ///< The instruction.
  std::string family;
  std::string ptx;
  unsigned inputs = 3, outputs = 1;
  unsigned blocks = 1;      ///< All of one cluster.
  std::vector<uint64_t> in; ///< blocks * kThreads * inputs.
  std::vector<Map> maps;
  Tolerance tolerance;
};

/// All of them, always the same.
const std::vector<Case> &cases();

/// Of a text, to tell whether committed results belong to today's cases.
std::string digestOf(const Case &c);

} // namespace micro

#endif // NOVA_TESTS_SIMULATOR_MICROKERNELS_H
