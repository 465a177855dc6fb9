//===- CompileTarget.cpp - A planned step to the code of one target -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"
#include "FindAssembler.h"
#include "Log.h"
#include "nova/GpuCodegen/PtxEmitter.h"
#include "nova/Pipelines/HostBackend.h"
#include "nova/Support/File.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nova;
using namespace nova::driver;

std::string driver::printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text + "\n";
}

Error Compiler::backEndError(const Error &error, ModuleOp planned) const {
  if (error.code == ErrorCode::Missing)
    return error;
  return internalError(error.message, planned);
}

Status Compiler::needAssembler() {
  if (assembler)
    return Status::ok();
  return timing.time("find ptxas", [&]() -> Status {
    Expected<Assembler> found = findAssembler(options);
    if (!found)
      return found.error();
    assembler = std::move(*found);
    info("ptxas " + assembler->version() + ": '" + assembler->path() + "'");
    return Status::ok();
  });
}

//===----------------------------------------------------------------------===//
// Dumps
//===----------------------------------------------------------------------===//

std::string Compiler::dumpFolder(const target::Device *device) const {
  if (!device || options.devices.size() == 1)
    return options.dumpStages;
  return options.dumpStages + "/" + std::string(device->name);
}

static Status writeDump(const std::string &folder, const std::string &file,
                        std::string_view bytes) {
  if (Status status = makeDirectories(folder); !status)
    return status;
  Expected<bool> written = writeIfChanged(folder + "/" + file, bytes);
  return written ? Status::ok() : Status(written.error());
}

Status Compiler::dump(Stage stage, ModuleOp module,
                      const target::Device *device) {
  if (options.dumpStages.empty())
    return Status::ok();
  return writeDump(dumpFolder(device), std::string(stageName(stage)) + ".mlir",
                   printed(module));
}

Status Compiler::dumpKernels(ModuleOp planned, const target::Device &device,
                             Stage last,
                             const std::vector<GpuKernelCode> &codes) {
  if (options.dumpStages.empty())
    return Status::ok();
  for (auto [stage, held] :
       {std::pair(Stage::Tiled, KernelStage::Tiled),
        std::pair(Stage::Pipelined, KernelStage::Pipelined),
        std::pair(Stage::Nvvm, KernelStage::Nvvm)}) {
    if (stage > last)
      break;
    Expected<OwningOpRef<ModuleOp>> lowered =
        lowerKernels(planned, device, held);
    if (!lowered)
      return lowered.error();
    if (Status status = dump(stage, **lowered, &device); !status)
      return status;
  }
  std::string folder = dumpFolder(&device);
  std::vector<func::FuncOp> kernels = launchedKernels(planned);
  for (size_t i = 0; i < codes.size(); ++i) {
    std::string name = kernels[i].getSymName().str();
    if (Status status = writeDump(folder + "/ptx", name + ".ptx", codes[i].ptx);
        !status)
      return status;
    if (codes[i].cubin.empty())
      continue;
    if (Status status =
            writeDump(folder + "/cubin", name + ".cubin", codes[i].cubin);
        !status)
      return status;
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

GpuBackendOptions Compiler::gpuOptions(const target::Device &device) const {
  GpuBackendOptions gpu;
  gpu.device = &device;
  gpu.lowering.matmul = options.matmul;
  gpu.assembler = assembler ? &*assembler : nullptr;
  gpu.store = kernelCache.get();
  return gpu;
}

Expected<OwningOpRef<ModuleOp>>
Compiler::lowerKernels(ModuleOp planned, const target::Device &device,
                       KernelStage last) {
  GpuBackendOptions gpu = gpuOptions(device);
  gpu.lowering.last = last;
  Expected<OwningOpRef<ModuleOp>> lowered = lowerForGpu(planned, gpu, *pool);
  if (!lowered)
    return backEndError(lowered.error(), planned);
  return lowered;
}

/// Says what was compiled, on the line that progress overwrites and in the log,
/// and keeps it for the report.
KernelProgress Compiler::reportTo(ProgressLine &line,
                                  const std::string &prefix) {
  return [this, &line, prefix](const KernelDone &kernel) {
    line.update(prefix + "kernel " + std::to_string(kernel.done) + " of " +
                std::to_string(kernel.total));
    info("compiled " + prefix + kernel.kernel + " in " +
         std::to_string(static_cast<int>(kernel.seconds * 1000)) + " ms");
    compiledKernels.push_back(kernel);
    compiledKernels.back().kernel = prefix + kernel.kernel;
  };
}

Expected<std::vector<GpuKernelCode>>
Compiler::compileKernels(ModuleOp planned, const target::Device &device) {
  std::string name(device.name);
  ProgressLine line;
  Expected<std::vector<GpuKernelCode>> codes = timing.time(name + " code", [&] {
    return compileForGpu(planned, gpuOptions(device), *pool,
                         reportTo(line, name + " "));
  });
  if (!codes)
    return backEndError(codes.error(), planned);
  return codes;
}

Expected<TargetCode> Compiler::compileTarget(ModuleOp planned,
                                             const target::Device &device) {
  TargetCode code;
  code.name = device.arch;
  code.device = device.name;
  if (device.kind == target::DeviceKind::Cpu) {
    ProgressLine line;
    Expected<std::string> object = timing.time("host code", [&] {
      return compileForHost(planned, *pool, reportTo(line, ""),
                            kernelCache.get());
    });
    // A plan that its own back end refuses is no fault of the graph.
    if (!object)
      return backEndError(object.error(), planned);
    code.object = std::move(*object);
    return code;
  }
  Expected<std::vector<GpuKernelCode>> kernels =
      compileKernels(planned, device);
  if (!kernels)
    return kernels.error();
  if (Status status = dumpKernels(planned, device, Stage::Cubin, *kernels);
      !status)
    return status.error();
  code.kernels = std::move(*kernels);
  code.minDriver = minimumDriver(device, &*assembler);
  code.ptxVersion = findPtxTarget(device.arch)->ptxVersion;
  return code;
}

Status Compiler::check() {
  for (const target::Device *device : options.devices) {
    Expected<ModuleOp> step = runStages(kLastStage, device);
    if (!step)
      return step.error();
    if (device->kind == target::DeviceKind::Cpu)
      continue;
    Expected<OwningOpRef<ModuleOp>> lowered =
        lowerKernels(*step, *device, KernelStage::Nvvm);
    if (!lowered)
      return lowered.error();
  }
  return Status::ok();
}

Expected<std::string> Compiler::stageContent(Stage stage) {
  if (stage == Stage::Cubin)
    if (Status status = needAssembler(); !status)
      return status.error();
  Expected<ModuleOp> step = runStages(std::min(stage, kLastStage));
  if (!step)
    return step.error();
  if (stage <= kLastStage)
    return printed(*step);
  const target::Device &device = *options.devices.front();
  if (stage <= Stage::Nvvm) {
    if (Status status = dumpKernels(*step, device, stage, {}); !status)
      return status.error();
    KernelStage last = stage == Stage::Tiled       ? KernelStage::Tiled
                       : stage == Stage::Pipelined ? KernelStage::Pipelined
                                                   : KernelStage::Nvvm;
    Expected<OwningOpRef<ModuleOp>> lowered = lowerKernels(*step, device, last);
    if (!lowered)
      return lowered.error();
    return printed(**lowered);
  }
  Expected<std::vector<GpuKernelCode>> kernels = compileKernels(*step, device);
  if (!kernels)
    return kernels.error();
  if (Status status = dumpKernels(*step, device, stage, *kernels); !status)
    return status.error();
  std::vector<std::string> texts;
  for (GpuKernelCode &kernel : *kernels)
    texts.push_back(std::move(kernel.ptx));
  std::string ptx = joinPtx(texts);
  if (stage == Stage::Ptx)
    return ptx;
  Expected<Assembled> all =
      assembler->assemble(ptx, device.arch, "the kernels of '" + name() + "'");
  if (!all)
    return backEndError(all.error(), *step);
  return std::move(all->cubin);
}
