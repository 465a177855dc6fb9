//===- CudaProgram.h - A GPU target, loaded -------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDAPROGRAM_H
#define NOVA_RUNTIME_CUDA_CUDAPROGRAM_H

#include "../Program.h"
#include "CudaContext.h"
#include "CudaDevice.h"

#include <memory>
#include <string>
#include <vector>

namespace nova::rt::cuda {

class CudaProgram final : public Program {
public:
  /// Checks everything that can be checked, then loads: no module is loaded
  /// for a target that would fail later for a reason known now.
  static Expected<std::shared_ptr<const Program>>
  load(std::shared_ptr<const OpenedBundle> bundle, const bundle::Target &target,
       const LoadOptions &options);
  ~CudaProgram() override;

  Expected<std::unique_ptr<Instance>>
  instantiate(const InstanceOptions &options) const override;
  int device() const override { return facts.ordinal; }
  const std::string &deviceName() const override { return facts.name; }
  bool jit() const override { return fromPtx; }

  Expected<void *> allocate(uint64_t bytes) const override;
  Status release(void *address) const override;
  Status write(void *to, const void *from, uint64_t bytes,
               void *stream) const override;
  Status read(void *to, const void *from, uint64_t bytes,
              void *stream) const override;
  Expected<void *> createStream() const override;
  Status destroyStream(void *stream) const override;
  Status synchronize(void *stream) const override;
  Expected<std::unique_ptr<Timer>> createTimer() const override;

  const Driver &driver() const { return context->driver; }
  /// "GPU 0".
  std::string where() const { return "GPU " + std::to_string(facts.ordinal); }

  std::shared_ptr<const DeviceContext> context;
  std::vector<Function> functions;  ///< Per kernel of the target.
  std::vector<DevicePtr> constants; ///< Per constant of the target.

private:
  Status checkFreeMemory(uint64_t callerBytes) const;
  Status loadModules();
  Expected<Module> loadModule(const std::string &image,
                              const std::string &what) const;
  Expected<Function> resolve(Module module, const bundle::Kernel &kernel) const;
  Status checkParameters(Function function, const bundle::Kernel &kernel) const;
  Status uploadConstants();
  uint64_t constantBytes() const;

  DeviceFacts facts;
  bool fromPtx = false;
  std::vector<Module> modules;
  DeviceMemory constantMemory;
};

} // namespace nova::rt::cuda

#endif // NOVA_RUNTIME_CUDA_CUDAPROGRAM_H
