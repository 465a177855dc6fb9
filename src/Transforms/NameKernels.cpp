//===- NameKernels.cpp - Merge equal kernels, name them by digest
//----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Support/Hash.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace nova {
#define GEN_PASS_DEF_NAMEKERNELS
#include "nova/Transforms/Passes.h.inc"

namespace {

/// SHA-256 of everything that decides what the kernel computes and how: the
/// function in generic form without its name and locations.
std::string structuralDigest(func::FuncOp kernel) {
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName("");
  std::string text;
  llvm::raw_string_ostream os(text);
  // Local scope: no aliases, whose numbers would depend on the module.
  kernel->print(os, OpPrintingFlags().printGenericOpForm().useLocalScope());
  kernel.setSymNameAttr(name);
  return sha256Hex(text);
}

StringAttr nameOf(func::FuncOp kernel) { return kernel.getSymNameAttr(); }

std::string roleOf(func::FuncOp kernel) {
  if (auto role = kernel->getAttrOfType<StringAttr>(attr::role))
    return role.str();
  return "kernel";
}

struct NameKernels : impl::NameKernelsBase<NameKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);

    // Kernels in the order of their first launch, then those never launched.
    llvm::SetVector<func::FuncOp> ordered;
    SmallVector<LaunchOp> launches;
    module.walk([&](LaunchOp launch) {
      launches.push_back(launch);
      if (auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel()))
        ordered.insert(kernel);
    });
    for (auto func : module.getOps<func::FuncOp>())
      if (isKernel(func))
        ordered.insert(func);

    llvm::MapVector<StringRef, func::FuncOp> byDigest;
    SmallVector<std::string> digests;
    for (func::FuncOp kernel : ordered)
      digests.push_back(structuralDigest(kernel));
    llvm::DenseMap<StringAttr, func::FuncOp> replacement;
    for (auto [i, kernel] : llvm::enumerate(ordered.getArrayRef()))
      replacement[nameOf(kernel)] =
          byDigest.insert({digests[i], kernel}).first->second;

    // The shortest prefix that tells a digest from those before and after it.
    std::map<StringRef, size_t> digits;
    for (auto &entry : byDigest)
      digits[entry.first] = 8;
    for (auto it = digits.begin(), next = it;
         it != digits.end() && ++next != digits.end(); ++it) {
      size_t common = 0;
      while (common < it->first.size() &&
             it->first[common] == next->first[common])
        ++common;
      it->second = std::max(it->second, common + 1);
      next->second = std::max(next->second, common + 1);
    }

    SmallVector<func::FuncOp> duplicates;
    for (func::FuncOp kernel : ordered)
      if (replacement[nameOf(kernel)] != kernel)
        duplicates.push_back(kernel);
    llvm::MapVector<func::FuncOp, std::string> names;
    for (auto &[digest, kernel] : byDigest)
      names[kernel] =
          roleOf(kernel) + "_" + digest.take_front(digits[digest]).str();
    for (LaunchOp launch : launches)
      if (auto it = replacement.find(launch.getKernelAttr().getAttr());
          it != replacement.end())
        launch.setKernelAttr(
            FlatSymbolRefAttr::get(&getContext(), names[it->second]));
    for (auto &[kernel, name] : names)
      kernel.setSymName(name);
    for (func::FuncOp kernel : duplicates)
      kernel.erase();

    // Kernels follow the step, in the order in which it needs them.
    for (auto &entry : byDigest)
      entry.second->moveBefore(module.getBody(), module.getBody()->end());
  }
};

} // namespace
} // namespace nova
