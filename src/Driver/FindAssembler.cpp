//===- FindAssembler.cpp - The assembler that a command line means --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FindAssembler.h"

#include "GraphCache.h"

#include <cstdlib>

using namespace nova;

Expected<Assembler> driver::findAssembler(const Options &options) {
  auto variable = [](const char *name) -> std::string {
    const char *value = std::getenv(name);
    return value ? value : "";
  };
  AssemblerSearch search;
  search.given = options.ptxas;
  search.cudaHome = variable("CUDA_HOME");
  search.cudaPath = variable("CUDA_PATH");
  search.path = variable("PATH");
  if (std::string folder =
          options.noCache ? "" : defaultCacheFolder(options.cacheDir);
      !folder.empty())
    search.memo = folder + "/memo";
  return Assembler::find(search);
}
