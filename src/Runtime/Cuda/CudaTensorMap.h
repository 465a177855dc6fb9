//===- CudaTensorMap.h - Tensor maps that kernels take by value -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDATENSORMAP_H
#define NOVA_RUNTIME_CUDA_CUDATENSORMAP_H

#include "CudaDriver.h"
#include "nova/Bundle/Manifest.h"

#include <cstdint>
#include <string>

namespace nova::rt::cuda {

/// One tensormap of the manifest, encoded for the address of its memory. Stays
/// where it is: a launch's parameter is its address.
class CudaTensorMap {
public:
  /// `map` has passed the checks of the manifest, and outlives this.
  explicit CudaTensorMap(const bundle::TensorMap &map) : map(map) {}
  CudaTensorMap(const CudaTensorMap &) = delete;
  CudaTensorMap &operator=(const CudaTensorMap &) = delete;

  /// Encodes the map whole the first time; afterwards only its address, which
  /// is all that ever changes.
  Result point(const Driver &driver, void *address);
  /// For a result of point(); `what` names the argument.
  Error error(const Driver &driver, Result result, const void *address,
              const std::string &what) const;

  /// The value of the kernel's parameter.
  void *value() { return &bits; }

private:
  const bundle::TensorMap &map;
  TensorMapBits bits{};
  bool encoded = false;
};

} // namespace nova::rt::cuda

#endif // NOVA_RUNTIME_CUDA_CUDATENSORMAP_H
