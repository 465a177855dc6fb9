//===- HostModule.h - Host code from verified bytes -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_HOSTMODULE_H
#define NOVA_RUNTIME_HOSTMODULE_H

#include "nova/Support/Error.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nova::rt {

/// One instruction-set extension and whether the CPU (and its system) has it.
struct CpuFeature {
  const char *name;
  bool present;
};

/// What x86-64-v3 asks for beyond every x86-64; empty on another architecture.
std::vector<CpuFeature> x86V3Features();

/// Can code for `device` ("x86-64-v3") run on a CPU with these features?
/// Missing, with what is missing, when not. Takes the features as an argument
/// so that a machine that has them all can test one that does not.
Status checkHostDevice(const std::string &device,
                       const std::vector<CpuFeature> &features);

/// A shared object loaded from memory: the bytes that were verified are the
/// bytes that run, whatever happens to the file.
class HostModule {
public:
  /// `what` names the blob in errors.
  static Expected<std::shared_ptr<HostModule>> load(std::string_view bytes,
                                                    const std::string &what);
  ~HostModule();
  HostModule(const HostModule &) = delete;
  HostModule &operator=(const HostModule &) = delete;

  /// Null when the object exports no such symbol.
  void *symbol(const std::string &name) const;

private:
  HostModule() = default;
  void *handle = nullptr;
  int fd = -1;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_HOSTMODULE_H
