//===- CompileGpuKernel.cpp - A lowered kernel to PTX and machine code ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/KernelCompiler.h"
#include "nova/GpuCodegen/PtxEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

using namespace mlir;

namespace nova {

/// CUDA's limit for every architecture.
static constexpr uint32_t kMaxThreads = 1024;
/// Address space of global memory, as LLVM numbers it for NVPTX.
static constexpr unsigned kGlobalSpace = 1;

void loadGpuCodegenDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, func::FuncDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context.getOrLoadDialect(name);
}

GpuKernelModule emptyGpuKernel(func::FuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  Location loc = kernel.getLoc();
  GpuKernelModule result;
  result.module = ModuleOp::create(loc);
  result.threads = 1;
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(result.module->getBody());
  SmallVector<Type> params(kernel.getNumArguments() + kernel.getNumResults(),
                           LLVM::LLVMPointerType::get(context, kGlobalSpace));
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          params);
  auto entry =
      LLVM::LLVMFuncOp::create(builder, loc, kernel.getSymName(), type);
  entry->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                 builder.getUnitAttr());
  entry->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                 builder.getDenseI32ArrayAttr({1}));
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return result;
}

static Error beyond(StringRef kernel, const target::Device &device,
                    const std::string &what, uint64_t value, uint64_t limit) {
  return {ErrorCode::Internal,
          "kernel '" + kernel.str() + "': " + what + " " +
              std::to_string(value) + ", " + std::string(device.name) +
              " has at most " + std::to_string(limit),
          {}};
}

static std::array<uint32_t, 3> clusterOf(ModuleOp module) {
  std::array<uint32_t, 3> cluster{1, 1, 1};
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (auto dims = function->getAttrOfType<DenseI32ArrayAttr>(
            NVVM::NVVMDialect::getClusterDimAttrName()))
      for (auto [i, size] : llvm::enumerate(dims.asArrayRef().take_front(3)))
        cluster[i] = size;
  return cluster;
}

Expected<GpuKernelCode> compileGpuKernel(const GpuKernelModule &lowered,
                                         StringRef kernel,
                                         const target::Device &device,
                                         const Assembler *assembler) {
  GpuKernelCode code;
  code.threads = lowered.threads;
  code.dynamicSharedBytes = lowered.dynamicSharedBytes;
  code.cluster = clusterOf(*lowered.module);
  if (code.threads < 1 || code.threads > kMaxThreads)
    return beyond(kernel, device, "threads of a block:", code.threads,
                  kMaxThreads);
  Expected<std::string> ptx = emitPtx(*lowered.module, device.arch);
  if (!ptx)
    return ptx.error();
  code.ptx = std::move(*ptx);
  if (!assembler)
    return code;
  Expected<Assembled> assembled = assembler->assemble(
      code.ptx, device.arch, "kernel '" + kernel.str() + "'");
  if (!assembled)
    return assembled.error();
  code.cubin = std::move(assembled->cubin);
  code.warnings = std::move(assembled->warnings);
  for (const AssembledEntry &entry : assembled->entries) {
    if (entry.name != kernel)
      continue;
    code.registers = entry.registers;
    code.spillBytes = entry.spillStoreBytes + entry.spillLoadBytes;
    code.stackBytes = entry.stackBytes;
    code.staticSharedBytes = entry.staticSharedBytes;
  }
  if (!code.registers)
    return Error{ErrorCode::Internal,
                 "kernel '" + kernel.str() + "': ptxas " +
                     assembler->version() + " reports no entry of this name",
                 {}};
  if (code.spillBytes)
    code.warnings.push_back(
        {"", "it spills registers: " + std::to_string(code.spillBytes) +
                 " bytes are stored and loaded per thread"});
  uint64_t shared = code.staticSharedBytes + code.dynamicSharedBytes;
  if (shared > uint64_t(device.sharedBytesPerBlock))
    return beyond(kernel, device, "bytes of shared memory of a block:", shared,
                  device.sharedBytesPerBlock);
  return code;
}

} // namespace nova
