//===- LocalGpus.cpp - The GPUs of this machine ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "LocalGpus.h"

#include "nova-rt/nova_rt.h"

using namespace nova;
using namespace nova::driver;

/// "sm_90a" where the table has that, else "sm_90".
static std::string archOf(int major, int minor) {
  std::string arch = "sm_" + std::to_string(10 * major + minor);
  bool accelerated =
      !target::findTarget(arch) && target::findTarget(arch + "a");
  return accelerated ? arch + "a" : arch;
}

std::vector<LocalGpu> driver::localGpus() {
  std::vector<LocalGpu> gpus;
  nova_rt_device_t info = {};
  info.struct_size = sizeof info;
  // The first one says how many there are.
  for (int32_t device = 0; device == 0 || device < info.devices; ++device) {
    if (nova_rt_device_info(device, &info) != NOVA_RT_OK)
      break;
    gpus.push_back({info.name, archOf(info.major, info.minor)});
  }
  return gpus;
}
