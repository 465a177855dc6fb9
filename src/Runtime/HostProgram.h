//===- HostProgram.h - A host target, loaded ------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_HOSTPROGRAM_H
#define NOVA_RUNTIME_HOSTPROGRAM_H

#include "HostModule.h"
#include "Memory.h"
#include "Program.h"
#include "ThreadPool.h"

#include <memory>
#include <vector>

namespace nova::rt {

class HostProgram final : public Program {
public:
  static Expected<std::shared_ptr<const Program>>
  load(std::shared_ptr<const OpenedBundle> bundle,
       const bundle::Target &target);

  Expected<std::unique_ptr<Instance>>
  instantiate(const InstanceOptions &options) const override;
  int device() const override { return -1; }
  const std::string &deviceName() const override { return target->device; }

  // Memory of the process; no streams: what is called is done on return.
  Expected<void *> allocate(uint64_t bytes) const override;
  Status release(void *address) const override;
  Status write(void *to, const void *from, uint64_t bytes,
               void *stream) const override;
  Status read(void *to, const void *from, uint64_t bytes,
              void *stream) const override;
  Expected<void *> createStream() const override { return nullptr; }
  Status destroyStream(void *) const override { return Status::ok(); }
  Status synchronize(void *) const override { return Status::ok(); }
  Expected<std::unique_ptr<Timer>> createTimer() const override;

  std::vector<KernelFunction> functions; ///< Per kernel of the target.
  std::vector<Memory> constants;         ///< Per constant of the target.

private:
  Status loadKernels(BlobReader &blobs);
  Status loadConstants(BlobReader &blobs);

  std::vector<std::shared_ptr<HostModule>> modules;
};

} // namespace nova::rt

#endif // NOVA_RUNTIME_HOSTPROGRAM_H
