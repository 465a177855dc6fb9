//===- HostModule.cpp - Host code from verified bytes ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostModule.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

using namespace nova;
using namespace nova::rt;

std::vector<CpuFeature> rt::x86V3Features() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // "avx" and "avx2" include that the system saves the wide registers.
  return {{"avx", __builtin_cpu_supports("avx") != 0},
          {"avx2", __builtin_cpu_supports("avx2") != 0},
          {"bmi", __builtin_cpu_supports("bmi") != 0},
          {"bmi2", __builtin_cpu_supports("bmi2") != 0},
          {"f16c", __builtin_cpu_supports("f16c") != 0},
          {"fma", __builtin_cpu_supports("fma") != 0},
          {"lzcnt", __builtin_cpu_supports("lzcnt") != 0},
          {"movbe", __builtin_cpu_supports("movbe") != 0}};
#else
  return {};
#endif
}

Status rt::checkHostDevice(const std::string &device,
                           const std::vector<CpuFeature> &features) {
  auto missing = [](std::string message, std::string hint) {
    return Error{ErrorCode::Missing, std::move(message), std::move(hint)};
  };
  if (device != "x86-64-v3")
    return missing("the host target is for the CPU \"" + device +
                       "\", expected \"x86-64-v3\", which this loader runs",
                   "use a newer loader, or compile again with --target host");
  if (features.empty())
    return missing("expected an x86-64 CPU, got another architecture",
                   "run the bundle on an x86-64 machine");
  std::string absent;
  for (const CpuFeature &feature : features)
    if (!feature.present)
      absent += std::string(absent.empty() ? "" : ", ") + feature.name;
  if (absent.empty())
    return Status::ok();
  return missing("expected a CPU with x86-64-v3, got one without " + absent,
                 "run the bundle on a CPU from 2015 or later (Haswell, Zen)");
}

Expected<std::shared_ptr<HostModule>>
HostModule::load(std::string_view bytes, const std::string &what) {
  auto fail = [&](ErrorCode code, const std::string &reason,
                  std::string hint = {}) {
    return Error{code, "cannot load " + what + ": " + reason, std::move(hint)};
  };
  std::shared_ptr<HostModule> module(new HostModule);
  // Newer kernels want to be told that the file will be executed, older ones
  // do not know the flag.
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  module->fd = ::memfd_create("nova-host", flags | MFD_EXEC);
  if (module->fd < 0 && errno == EINVAL)
    module->fd = ::memfd_create("nova-host", flags);
  if (module->fd < 0)
    return fail(ErrorCode::Missing,
                std::string("memfd_create: ") + std::strerror(errno));
  while (!bytes.empty()) {
    ssize_t n = ::write(module->fd, bytes.data(),
                        std::min<size_t>(bytes.size(), size_t(1) << 30));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail(ErrorCode::Missing,
                  std::string("writing to memory: ") + std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  ::fcntl(module->fd, F_ADD_SEALS,
          F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  // The descriptor stays open as long as the module: the dynamic linker knows
  // objects by path, and this path must not come to mean another object.
  std::string path = "/proc/self/fd/" + std::to_string(module->fd);
  module->handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module->handle) {
    const char *reason = ::dlerror();
    return fail(ErrorCode::BadInput, reason ? reason : "dlopen failed",
                "the blob is no shared object for this machine");
  }
  return module;
}

HostModule::~HostModule() {
  if (handle)
    ::dlclose(handle);
  if (fd >= 0)
    ::close(fd);
}

void *HostModule::symbol(const std::string &name) const {
  return ::dlsym(handle, name.c_str());
}
