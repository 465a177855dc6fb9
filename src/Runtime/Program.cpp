//===- Program.cpp - An opened bundle, and one of its targets loaded ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include <cstring>
#include <map>

using namespace nova;
using namespace nova::rt;
using bundle::Blob;
using bundle::Target;

namespace {

std::string targetNames(const bundle::Manifest &manifest) {
  std::string names;
  for (const Target &t : manifest.targets)
    names += (names.empty() ? "" : ", ") + t.name + " (" + t.device + ")";
  return names.empty() ? "none" : names;
}

Error missing(std::string message, std::string hint) {
  return {ErrorCode::Missing, std::move(message), std::move(hint)};
}

/// Each blob is read and verified once, however many kernels it holds.
class BlobReader {
public:
  explicit BlobReader(const OpenedBundle &bundle) : bundle(bundle) {}

  Expected<const std::string *> read(uint32_t index) {
    auto it = bytes.find(index);
    if (it == bytes.end()) {
      Expected<std::string> blob =
          bundle::readBlob(bundle.dir, bundle.manifest.blobs[index]);
      if (!blob)
        return blob.error();
      it = bytes.emplace(index, std::move(*blob)).first;
    }
    return &it->second;
  }

private:
  const OpenedBundle &bundle;
  std::map<uint32_t, std::string> bytes;
};

Status loadKernels(Program &program, BlobReader &blobs) {
  std::map<uint32_t, std::shared_ptr<HostModule>> modules;
  for (const bundle::Kernel &kernel : program.target->kernels) {
    const Blob &blob = program.bundle->manifest.blobs[kernel.blob];
    std::shared_ptr<HostModule> &module = modules[kernel.blob];
    if (!module) {
      Expected<const std::string *> bytes = blobs.read(kernel.blob);
      if (!bytes)
        return bytes.error();
      Expected<std::shared_ptr<HostModule>> loaded =
          HostModule::load(**bytes, "blob " + blob.digest);
      if (!loaded)
        return loaded.error();
      module = *loaded;
      program.modules.push_back(module);
    }
    void *symbol = module->symbol(kernel.symbol);
    if (!symbol)
      return badInput("kernel \"" + kernel.name + "\": blob " + blob.digest +
                          " exports no symbol \"" + kernel.symbol + "\"",
                      "the bundle was not written by novac: compile it again");
    program.functions.push_back(reinterpret_cast<KernelFunction>(symbol));
  }
  return Status::ok();
}

Status loadConstants(Program &program, BlobReader &blobs) {
  for (size_t i = 0; i < program.target->constants.size(); ++i) {
    const bundle::Constant &constant = program.target->constants[i];
    Expected<const std::string *> bytes = blobs.read(constant.blob);
    if (!bytes)
      return bytes.error();
    // A copy of its own, so that its start is aligned wherever the blob has it.
    Expected<Memory> memory = allocate(constant.size, bundle::kBufferAlignment,
                                       "constant " + std::to_string(i));
    if (!memory)
      return memory.error();
    if (constant.size)
      std::memcpy(memory->get(), (*bytes)->data() + constant.offset,
                  constant.size);
    program.constants.push_back(std::move(*memory));
  }
  return Status::ok();
}

} // namespace

Expected<std::shared_ptr<const OpenedBundle>>
OpenedBundle::open(const std::string &dir) {
  Expected<bundle::Manifest> manifest = bundle::openManifest(dir);
  if (!manifest)
    return manifest.error();
  auto opened = std::make_shared<OpenedBundle>();
  opened->dir = dir;
  opened->manifest = std::move(*manifest);
  return std::shared_ptr<const OpenedBundle>(std::move(opened));
}

Status OpenedBundle::verify() const {
  for (const Blob &blob : manifest.blobs) {
    Expected<std::string> bytes = bundle::readBlob(dir, blob);
    if (!bytes)
      return bytes.error();
  }
  return Status::ok();
}

Expected<uint32_t> OpenedBundle::choose(int device) const {
  if (device < -1)
    return Error{ErrorCode::Usage,
                 "device " + std::to_string(device) +
                     ", expected -1 for the CPU or the ordinal of a GPU",
                 {}};
  if (device >= 0)
    return missing("GPU " + std::to_string(device) +
                       " was asked for, this loader runs `host` targets only",
                   "use --device host; the bundle has: " +
                       targetNames(manifest));
  for (size_t i = 0; i < manifest.targets.size(); ++i) {
    const Target &target = manifest.targets[i];
    if (target.name != "host")
      continue;
    if (Status s = checkHostDevice(target.device, x86V3Features()); !s)
      return s.error();
    return static_cast<uint32_t>(i);
  }
  return missing("the bundle has no target for the CPU, it has: " +
                     targetNames(manifest),
                 "compile it again with --target host");
}

Expected<std::shared_ptr<const Program>>
Program::load(std::shared_ptr<const OpenedBundle> bundle, uint32_t index) {
  const bundle::Manifest &manifest = bundle->manifest;
  if (index >= manifest.targets.size())
    return Error{ErrorCode::Usage,
                 "target " + std::to_string(index) + ", the bundle has " +
                     std::to_string(manifest.targets.size()),
                 {}};
  auto program = std::make_shared<Program>();
  program->bundle = std::move(bundle);
  program->target = &manifest.targets[index];
  if (program->target->name != "host")
    return missing("target " + program->target->name + " (" +
                       program->target->device +
                       ") was asked for, this loader runs `host` targets only",
                   "load the host target");
  if (Status s = checkHostDevice(program->target->device, x86V3Features()); !s)
    return s.error();
  for (size_t i = 0; i < program->target->launches.size(); ++i)
    for (const bundle::LaunchArg &arg : program->target->launches[i].args)
      if (std::holds_alternative<bundle::TensorMap>(arg))
        return badInput("launch " + std::to_string(i) +
                            " of the host target takes a tensormap, expected "
                            "memory or an immediate",
                        "only GPU targets have tensormaps");
  BlobReader blobs(*program->bundle);
  if (Status s = loadKernels(*program, blobs); !s)
    return s.error();
  if (Status s = loadConstants(*program, blobs); !s)
    return s.error();
  return std::shared_ptr<const Program>(std::move(program));
}
