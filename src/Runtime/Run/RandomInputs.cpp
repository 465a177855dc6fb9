//===- RandomInputs.cpp - Inputs from a seed, the same everywhere ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The generator and the distributions are specified in Run.h. Only additions
// and multiplications: no libm whose last bit differs between machines.
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include <algorithm>

using namespace nova;
using namespace nova::run;
using namespace nova::rt;

namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t fnv1a(const std::string &text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

double uniform(uint64_t h) { return double(h >> 11) * 0x1p-53; }

double normal(uint64_t h) {
  uint64_t sum =
      (h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48);
  return 0x1.bb67ae8584caap+0 * (double(sum) * 0x1p-16 - 2 + 0x1p-15);
}

double floating(const Tensor &t, uint64_t h) {
  if (t.role == "scalar")
    return t.advance ? 1.0 : 0.001;
  if (t.role == "parameter")
    return t.shape.size() < 2 ? 0.5 + 0.1 * normal(h) : 0.02 * normal(h);
  if (t.role == "state")
    return t.shape.empty() ? 1.0 : 0.001 + 0.009 * uniform(h);
  return normal(h);
}

} // namespace

void Session::randomInputs(uint64_t seed) {
  uploaded = false;
  int64_t bound = 127;
  bool any = false;
  for (const Tensor &t : inputs)
    if (t.role == "parameter" || t.role == "buffer" || t.role == "input")
      for (int64_t extent : t.shape)
        if (extent > 1) {
          bound = std::min(bound, extent);
          any = true;
        }
  if (!any)
    bound = 2;
  for (Tensor &t : inputs) {
    uint64_t stream = mix(seed + kGolden * (1 + fnv1a(t.name)));
    uint64_t j = 0;
    unsigned size = bytesOf(t.dtype);
    forEachElement(t, [&](int64_t offset) {
      uint64_t h = mix(stream + kGolden * ++j);
      void *p = static_cast<char *>(t.data()) + offset * size;
      if (isFloat(t.dtype))
        storeElement(t.dtype, p, floating(t, h));
      else if (t.role == "scalar")
        storeInteger(t.dtype, p, 1);
      else
        storeInteger(
            t.dtype, p,
            int64_t(h % (t.dtype == DType::Bool ? 2 : uint64_t(bound))));
    });
  }
}
