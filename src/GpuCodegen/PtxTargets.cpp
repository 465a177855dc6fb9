//===- PtxTargets.cpp - Versions of PTX, and who reads them ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/PtxEmitter.h"

#include <array>

namespace nova {

// 8.0 is the first version with the instructions of sm_90a (wgmma, setmaxnreg,
// bulk tensor copies); sm_80 to sm_89 would do with less, but no driver that is
// still maintained reads less. The others are the first version that knows the
// architecture: LLVM refuses any lower one.
static constexpr std::array kTargets = {
    PtxTarget{"sm_80", 80},  PtxTarget{"sm_86", 80},   PtxTarget{"sm_89", 80},
    PtxTarget{"sm_90a", 80}, PtxTarget{"sm_100a", 86}, PtxTarget{"sm_120a", 87},
};

// Source: NVIDIA, Parallel Thread Execution ISA 9.0, "Release Notes", table
// "PTX Release History" (PTX ISA version, CUDA release).
struct PtxRelease {
  unsigned ptx, cuda;
};
static constexpr std::array kReleases = {
    PtxRelease{80, 12000}, PtxRelease{81, 12010}, PtxRelease{82, 12020},
    PtxRelease{83, 12030}, PtxRelease{84, 12040}, PtxRelease{85, 12050},
    PtxRelease{86, 12070}, PtxRelease{87, 12080}, PtxRelease{88, 12090},
    PtxRelease{90, 13000},
};

std::span<const PtxTarget> ptxTargets() { return kTargets; }

const PtxTarget *findPtxTarget(std::string_view arch) {
  for (const PtxTarget &target : kTargets)
    if (target.arch == arch)
      return &target;
  return nullptr;
}

int64_t parameterBytesOfPtx(unsigned ptxVersion) {
  return ptxVersion >= 81 ? 32764 : 4096;
}

unsigned cudaOfPtx(unsigned ptxVersion) {
  for (const PtxRelease &release : kReleases)
    if (release.ptx == ptxVersion)
      return release.cuda;
  return 0;
}

} // namespace nova
