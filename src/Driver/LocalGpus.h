//===- LocalGpus.h - The GPUs of this machine -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_LOCALGPUS_H
#define NOVA_LIB_DRIVER_LOCALGPUS_H

#include "nova/Driver/Options.h"

#include <vector>

namespace nova::driver {

/// Asks the CUDA driver, where there is one; no context is made on any GPU.
/// Empty without a driver or a GPU. Costs the driver's start (a tenth of a
/// second with a GPU), so ask only for the target `native`.
std::vector<LocalGpu> localGpus();

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_LOCALGPUS_H
