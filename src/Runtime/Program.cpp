//===- Program.cpp - An opened bundle, and one of its targets loaded ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Cuda/CudaProgram.h"
#include "HostProgram.h"

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

Status checkOrdinal(int device) {
  if (device >= -1)
    return Status::ok();
  return Error{ErrorCode::Usage,
               "device " + std::to_string(device) +
                   ", expected -1 for the CPU or the ordinal of a GPU",
               {}};
}

Error outOfTargets(uint32_t index, const bundle::Manifest &manifest) {
  return {ErrorCode::Usage,
          "target " + std::to_string(index) + ", the bundle has " +
              std::to_string(manifest.targets.size()),
          {}};
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

Expected<const std::string *> BlobReader::read(uint32_t index) {
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

Expected<uint32_t> OpenedBundle::choose(int device, bool allowJit) const {
  if (Status s = checkOrdinal(device); !s)
    return s.error();
  if (device >= 0) {
    bool any = false;
    for (const Target &target : manifest.targets)
      any |= target.name != "host";
    // Said before a driver is looked for: no driver would help.
    if (!any)
      return missing("GPU " + std::to_string(device) +
                         " was asked for, the bundle has no target for a GPU, "
                         "it has: " +
                         targetNames(manifest),
                     "compile it again with --target, or use --device host");
    Expected<cuda::DeviceFacts> facts = cuda::openDevice(device);
    if (!facts)
      return facts.error();
    return cuda::chooseTarget(manifest, *facts, allowJit);
  }
  for (size_t i = 0; i < manifest.targets.size(); ++i) {
    if (manifest.targets[i].name != "host")
      continue;
    if (Status s = check(static_cast<uint32_t>(i), device, allowJit); !s)
      return s.error();
    return static_cast<uint32_t>(i);
  }
  return missing("the bundle has no target for the CPU, it has: " +
                     targetNames(manifest),
                 "compile it again with --target host");
}

Status OpenedBundle::check(uint32_t index, int device, bool allowJit) const {
  if (Status s = checkOrdinal(device); !s)
    return s;
  if (index >= manifest.targets.size())
    return outOfTargets(index, manifest);
  const Target &target = manifest.targets[index];
  if (device < 0) {
    if (target.name != "host")
      return missing("target " + cuda::describe(target) +
                         " is for a GPU, not for the CPU",
                     "give the number of a GPU");
    return checkHostDevice(target.device, x86V3Features());
  }
  if (target.name == "host")
    return missing("target " + cuda::describe(target) +
                       " is for the CPU, not for GPU " + std::to_string(device),
                   "use --device host");
  Expected<cuda::DeviceFacts> facts = cuda::openDevice(device);
  if (!facts)
    return facts.error();
  return cuda::checkTarget(target, *facts, allowJit);
}

Expected<std::shared_ptr<const Program>>
Program::load(std::shared_ptr<const OpenedBundle> bundle, uint32_t index,
              const LoadOptions &options) {
  const bundle::Manifest &manifest = bundle->manifest;
  if (index >= manifest.targets.size())
    return outOfTargets(index, manifest);
  const Target &target = manifest.targets[index];
  if (target.name != "host")
    return cuda::CudaProgram::load(std::move(bundle), target, options);
  // allowJit changes nothing for host: there is nothing to compile.
  if (options.context)
    return Error{ErrorCode::Usage,
                 "nova_rt_program_load: a CUDA context, expected NULL for a "
                 "host target",
                 {}};
  return HostProgram::load(std::move(bundle), target);
}
