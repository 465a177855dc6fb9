//===- CudaTensorMap.cpp - Tensor maps that kernels take by value ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaTensorMap.h"

#include "nova/Bundle/TensorMapWords.h"

#include <algorithm>
#include <cstdio>

using namespace nova;
using namespace nova::rt::cuda;
using namespace nova::bundle;

namespace {

/// The driver's value of a word that the manifest's reader has accepted.
template <size_t N>
int valueOf(const std::array<std::string_view, N> &words,
            const std::string &word) {
  return static_cast<int>(wordIndex(words, word).value_or(0));
}

} // namespace

Result CudaTensorMap::point(const Driver &driver, void *address) {
  if (encoded)
    return driver.api().tensorMapReplaceAddress(&bits, address);
  unsigned box[5] = {}, elementStrides[5] = {};
  std::copy(map.box.begin(), map.box.end(), box);
  std::copy(map.elementStrides.begin(), map.elementStrides.end(),
            elementStrides);
  Result result = driver.api().tensorMapEncodeTiled(
      &bits, valueOf(kMapElementTypes, map.elementType), map.rank, address,
      map.sizes.data(), map.strides.data(), box, elementStrides,
      valueOf(kMapInterleaves, map.interleave),
      valueOf(kMapSwizzles, map.swizzle),
      valueOf(kMapL2Promotions, map.l2Promotion), valueOf(kMapFills, map.fill));
  encoded = !result;
  return result;
}

/// "argument 0 of ..., a tensormap of bfloat16 [64,8] at 0x7f0000000000".
Error CudaTensorMap::error(const Driver &driver, Result result,
                           const void *address, const std::string &what) const {
  std::string sizes;
  for (uint64_t size : map.sizes) {
    if (!sizes.empty())
      sizes += ',';
    sizes += std::to_string(size);
  }
  char where[32];
  std::snprintf(where, sizeof where, "%p", address);
  return driver.error(encoded ? names::tensorMapReplaceAddress
                              : names::tensorMapEncodeTiled,
                      result,
                      what + ", a tensormap of " + map.elementType + " [" +
                          sizes + "] at " + where);
}
