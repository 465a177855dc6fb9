//===- CudaProgram.cpp - A GPU target, loaded -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaProgram.h"

#include "CudaInstance.h"

#include <map>

using namespace nova;
using namespace nova::rt;
using namespace nova::rt::cuda;
using bundle::Kernel;

namespace {

/// More dynamic shared memory than this has to be asked for.
constexpr uint64_t kSharedBytesUnasked = 48 << 10;
/// A larger cluster is not portable over all GPUs of an architecture.
constexpr uint64_t kPortableCluster = 8;

uint64_t roundUp(uint64_t value) {
  constexpr uint64_t a = bundle::kBufferAlignment;
  return (value + a - 1) / a * a;
}

std::string kernelName(const Kernel &kernel) {
  return "kernel \"" + kernel.name + "\"";
}

} // namespace

Expected<std::shared_ptr<const Program>>
CudaProgram::load(std::shared_ptr<const OpenedBundle> bundle,
                  const bundle::Target &target, const LoadOptions &options) {
  Expected<const Driver *> opened = Driver::open();
  if (!opened)
    return opened.error();
  const Driver &driver = **opened;
  int ordinal = options.device;
  auto *given = static_cast<Context>(options.context);
  if (given) {
    Expected<int> of = DeviceContext::ordinalOf(driver, given);
    if (!of)
      return of.error();
    ordinal = *of;
  }
  if (ordinal < 0)
    return Error{ErrorCode::Usage,
                 "target " + describe(target) + " is for a GPU, got device " +
                     std::to_string(ordinal),
                 "give the number of a GPU"};
  Expected<DeviceFacts> facts = deviceFacts(driver, ordinal);
  if (!facts)
    return facts.error();
  if (Status s = checkTarget(target, *facts, options.allowJit); !s)
    return s.error();
  auto program = std::make_shared<CudaProgram>();
  program->bundle = std::move(bundle);
  program->target = &target;
  program->facts = std::move(*facts);
  program->fromPtx =
      fitOf(target, program->facts, options.allowJit) == Fit::Jit;
  if (given) {
    program->context = DeviceContext::given(driver, ordinal, given);
  } else {
    auto context = DeviceContext::ofDevice(driver, ordinal);
    if (!context)
      return context.error();
    program->context = std::move(*context);
  }
  Current current(*program->context);
  if (!current)
    return current.error();
  if (Status s = program->checkFreeMemory(options.callerBytes); !s)
    return s.error();
  if (Status s = program->loadModules(); !s)
    return s.error();
  if (Status s = program->uploadConstants(); !s)
    return s.error();
  return std::shared_ptr<const Program>(std::move(program));
}

CudaProgram::~CudaProgram() {
  if (modules.empty())
    return;
  if (Current current(*context); current)
    for (Module module : modules)
      context->driver.api().moduleUnload(module);
}

uint64_t CudaProgram::constantBytes() const {
  uint64_t sum = 0;
  for (const bundle::Constant &constant : target->constants)
    sum += roundUp(constant.size);
  return sum;
}

Status CudaProgram::checkFreeMemory(uint64_t callerBytes) const {
  size_t free = 0, total = 0;
  NOVA_CUDA_TRY(driver(), memGetInfo, where(), &free, &total);
  uint64_t needed = target->arena.size + constantBytes(); // checked: fits
  if (!__builtin_add_overflow(needed, callerBytes, &needed) && needed <= free)
    return Status::ok();
  std::string buffers =
      callerBytes ? " and " + std::to_string(callerBytes) + " for buffers" : "";
  return Error{ErrorCode::Missing,
               "target " + describe(*target) + " expects " +
                   std::to_string(target->arena.size) +
                   " bytes for the arena, " + std::to_string(constantBytes()) +
                   " for constants" + buffers + ", got " + describe(facts) +
                   " with " + std::to_string(free) + " free of " +
                   std::to_string(total),
               "free memory on the GPU, or use one with more"};
}

Status CudaProgram::loadModules() {
  BlobReader blobs(*bundle);
  std::map<uint32_t, Module> loaded;
  for (const Kernel &kernel : target->kernels) {
    uint32_t index = fromPtx ? *kernel.ptxBlob : kernel.blob;
    auto it = loaded.find(index);
    if (it == loaded.end()) {
      Expected<const std::string *> image = blobs.read(index);
      if (!image)
        return image.error();
      Expected<Module> module =
          loadModule(**image, kernelName(kernel) + ", blob " +
                                  bundle->manifest.blobs[index].digest);
      if (!module)
        return module.error();
      modules.push_back(*module);
      it = loaded.emplace(index, *module).first;
    }
    Expected<Function> function = resolve(it->second, kernel);
    if (!function)
      return function.error();
    functions.push_back(*function);
  }
  return Status::ok();
}

Expected<Module> CudaProgram::loadModule(const std::string &image,
                                         const std::string &what) const {
  Module module = nullptr;
  char log[4096] = {};
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSize};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log - 1)};
  // The log is the compiler's: a cubin has none.
  Result result = driver().api().moduleLoadDataEx(
      &module, image.c_str(), fromPtx ? 2 : 0, options, values);
  if (!result)
    return module;
  Error error = driver().error(names::moduleLoadDataEx, result, what);
  if (log[0])
    error.message += std::string("\n") + log;
  return error;
}

Expected<Function> CudaProgram::resolve(Module module,
                                        const Kernel &kernel) const {
  Function function = nullptr;
  NOVA_CUDA_TRY(driver(), moduleGetFunction,
                kernelName(kernel) + ", symbol \"" + kernel.symbol + "\"",
                &function, module, kernel.symbol.c_str());
  // Functions are loaded when first used; the first step shall not pay that.
  if (driver().api().funcLoad)
    NOVA_CUDA_TRY(driver(), funcLoad, kernelName(kernel), function);
  if (Status s = checkParameters(function, kernel); !s)
    return s.error();
  if (kernel.dynamicSharedBytes > kSharedBytesUnasked)
    NOVA_CUDA_TRY(driver(), funcSetAttribute,
                  kernelName(kernel) + ", " +
                      std::to_string(kernel.dynamicSharedBytes) +
                      " bytes of dynamic shared memory",
                  function, kFunctionMaxDynamicSharedSizeBytes,
                  static_cast<int>(kernel.dynamicSharedBytes));
  uint64_t cluster = kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2];
  if (cluster > kPortableCluster)
    NOVA_CUDA_TRY(driver(), funcSetAttribute,
                  kernelName(kernel) + ", clusters of " +
                      std::to_string(cluster) + " blocks",
                  function, kFunctionNonPortableClusterSizeAllowed, 1);
  return function;
}

/// The driver copies as many bytes per parameter as the code asks for: a
/// manifest that promises others would make it read past the values.
Status CudaProgram::checkParameters(Function function,
                                    const Kernel &kernel) const {
  auto *info = driver().api().funcGetParamInfo;
  if (!info)
    return Status::ok();
  size_t offset = 0, size = 0, count = 0;
  for (; count <= kernel.params.size(); ++count) {
    Result result = info(function, count, &offset, &size);
    if (result == kInvalidValue)
      break; // past the last one
    if (result)
      return driver().error(names::funcGetParamInfo, result,
                            kernelName(kernel));
    if (count < kernel.params.size() && size != kernel.params[count].size)
      return badInput(
          kernelName(kernel) + ": parameter " + std::to_string(count) +
              " has " + std::to_string(size) +
              " bytes in the code, expected the " +
              std::to_string(kernel.params[count].size) + " of the manifest",
          "the bundle was not written by novac: compile it again");
  }
  if (count == kernel.params.size())
    return Status::ok();
  return badInput(
      kernelName(kernel) + ": the code has " +
          (count > kernel.params.size() ? "more" : std::to_string(count)) +
          " parameters, expected the " + std::to_string(kernel.params.size()) +
          " of the manifest",
      "the bundle was not written by novac: compile it again");
}

Status CudaProgram::uploadConstants() {
  if (target->constants.empty())
    return Status::ok();
  // One allocation: the driver gives no less than a page to each.
  Expected<DeviceMemory> memory =
      DeviceMemory::allocate(context, constantBytes(), "constants");
  if (!memory)
    return memory.error();
  constantMemory = std::move(*memory);
  BlobReader blobs(*bundle);
  uint64_t offset = 0;
  for (size_t i = 0; i < target->constants.size(); ++i) {
    const bundle::Constant &constant = target->constants[i];
    Expected<const std::string *> bytes = blobs.read(constant.blob);
    if (!bytes)
      return bytes.error();
    DevicePtr address = constantMemory.address() + offset;
    if (constant.size)
      NOVA_CUDA_TRY(driver(), memcpyHtoDAsync,
                    "constant " + std::to_string(i) + " to " + where(), address,
                    (*bytes)->data() + constant.offset, constant.size, nullptr);
    constants.push_back(address);
    offset += roundUp(constant.size);
  }
  // Steps run on streams that do not wait for this one.
  NOVA_CUDA_TRY(driver(), streamSynchronize, "constants to " + where(),
                nullptr);
  return Status::ok();
}

Expected<std::unique_ptr<Instance>>
CudaProgram::instantiate(const InstanceOptions &options) const {
  return CudaInstance::create(
      std::static_pointer_cast<const CudaProgram>(shared_from_this()),
      options.mode);
}
