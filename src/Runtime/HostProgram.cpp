//===- HostProgram.cpp - A host target, loaded ----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostProgram.h"

#include "HostInstance.h"

#include <chrono>
#include <cstring>
#include <map>

using namespace nova;
using namespace nova::rt;
using bundle::Blob;

namespace {

class HostTimer final : public Timer {
public:
  Status start(void *) override {
    begin = end = Clock::now();
    return Status::ok();
  }
  Status stop(void *) override {
    end = Clock::now();
    return Status::ok();
  }
  Expected<double> milliseconds() override {
    return std::chrono::duration<double, std::milli>(end - begin).count();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin, end;
};

} // namespace

Expected<std::shared_ptr<const Program>>
HostProgram::load(std::shared_ptr<const OpenedBundle> bundle,
                  const bundle::Target &target) {
  if (Status s = checkHostDevice(target.device, x86V3Features()); !s)
    return s.error();
  for (size_t i = 0; i < target.launches.size(); ++i)
    for (const bundle::LaunchArg &arg : target.launches[i].args)
      if (std::holds_alternative<bundle::TensorMap>(arg))
        return badInput("launch " + std::to_string(i) +
                            " of the host target takes a tensormap, expected "
                            "memory or an immediate",
                        "only GPU targets have tensormaps");
  auto program = std::make_shared<HostProgram>();
  program->bundle = std::move(bundle);
  program->target = &target;
  BlobReader blobs(*program->bundle);
  if (Status s = program->loadKernels(blobs); !s)
    return s.error();
  if (Status s = program->loadConstants(blobs); !s)
    return s.error();
  return std::shared_ptr<const Program>(std::move(program));
}

Status HostProgram::loadKernels(BlobReader &blobs) {
  std::map<uint32_t, std::shared_ptr<HostModule>> loaded;
  for (const bundle::Kernel &kernel : target->kernels) {
    const Blob &blob = bundle->manifest.blobs[kernel.blob];
    std::shared_ptr<HostModule> &module = loaded[kernel.blob];
    if (!module) {
      Expected<const std::string *> bytes = blobs.read(kernel.blob);
      if (!bytes)
        return bytes.error();
      Expected<std::shared_ptr<HostModule>> opened =
          HostModule::load(**bytes, "blob " + blob.digest);
      if (!opened)
        return opened.error();
      module = *opened;
      modules.push_back(module);
    }
    void *symbol = module->symbol(kernel.symbol);
    if (!symbol)
      return badInput("kernel \"" + kernel.name + "\": blob " + blob.digest +
                          " exports no symbol \"" + kernel.symbol + "\"",
                      "the bundle was not written by novac: compile it again");
    functions.push_back(reinterpret_cast<KernelFunction>(symbol));
  }
  return Status::ok();
}

Status HostProgram::loadConstants(BlobReader &blobs) {
  for (size_t i = 0; i < target->constants.size(); ++i) {
    const bundle::Constant &constant = target->constants[i];
    Expected<const std::string *> bytes = blobs.read(constant.blob);
    if (!bytes)
      return bytes.error();
    // A copy of its own, so that its start is aligned wherever the blob has it.
    Expected<Memory> memory =
        rt::allocate(constant.size, bundle::kBufferAlignment,
                     "constant " + std::to_string(i));
    if (!memory)
      return memory.error();
    if (constant.size)
      std::memcpy(memory->get(), (*bytes)->data() + constant.offset,
                  constant.size);
    constants.push_back(std::move(*memory));
  }
  return Status::ok();
}

Expected<std::unique_ptr<Instance>>
HostProgram::instantiate(const InstanceOptions &options) const {
  return HostInstance::create(
      std::static_pointer_cast<const HostProgram>(shared_from_this()),
      options.threads);
}

Expected<void *> HostProgram::allocate(uint64_t bytes) const {
  Expected<Memory> memory =
      rt::allocate(bytes, bundle::kBufferAlignment, "a buffer");
  if (!memory)
    return memory.error();
  return memory->release();
}

Status HostProgram::release(void *address) const {
  FreeMemory()(address);
  return Status::ok();
}

Status HostProgram::write(void *to, const void *from, uint64_t bytes,
                          void *) const {
  if (bytes)
    std::memcpy(to, from, bytes);
  return Status::ok();
}

Status HostProgram::read(void *to, const void *from, uint64_t bytes,
                         void *) const {
  if (bytes)
    std::memcpy(to, from, bytes);
  return Status::ok();
}

Expected<std::unique_ptr<Timer>> HostProgram::createTimer() const {
  return std::unique_ptr<Timer>(new HostTimer);
}
