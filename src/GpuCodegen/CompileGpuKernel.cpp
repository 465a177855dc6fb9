//===- CompileGpuKernel.cpp - A lowered kernel to PTX and machine code ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/KernelCompiler.h"
#include "nova/GpuCodegen/PtxEmitter.h"

#include "nova/IR/Nova.h"
#include "nova/Tile/Tile.h"
#include "nova/TileLowering/Passes.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
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
  registry.insert<NovaDialect, tile::TileDialect, arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect, tensor::TensorDialect,
                  ub::UBDialect>();
  registerConvertNVVMToLLVMInterface(registry);
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
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), params);
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

/// Threads that the code is for, as its attribute of that name says; 0 without.
static uint64_t threadsIn(ModuleOp module, StringRef attribute) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (auto sizes = function->getAttrOfType<DenseI32ArrayAttr>(attribute)) {
      uint64_t threads = 1;
      for (int32_t size : sizes.asArrayRef())
        threads *= size;
      return threads;
    }
  return 0;
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

static std::vector<TensorMapParam> tensorMapsOf(ModuleOp module) {
  std::vector<TensorMapParam> result;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto maps = function->getAttrOfType<ArrayAttr>(kTensorMapsAttr);
    if (!maps)
      continue;
    for (auto map : maps.getAsRange<DictionaryAttr>()) {
      auto list = [&](StringRef name) {
        ArrayRef<int64_t> values = map.getAs<DenseI64ArrayAttr>(name).asArrayRef();
        return std::vector<uint64_t>(values.begin(), values.end());
      };
      result.push_back({(unsigned)map.getAs<IntegerAttr>("argument").getInt(),
                        map.getAs<StringAttr>("element").str(), list("sizes"),
                        list("strides"), list("box")});
    }
  }
  return result;
}

Expected<GpuKernelCode> compileGpuKernel(const GpuKernelModule &lowered,
                                         StringRef kernel,
                                         const target::Device &device,
                                         const Assembler *assembler) {
  GpuKernelCode code;
  code.threads = lowered.threads;
  code.blocks = lowered.blocks;
  code.dynamicSharedBytes = lowered.dynamicSharedBytes;
  code.cluster = clusterOf(*lowered.module);
  code.tensorMaps = tensorMapsOf(*lowered.module);
  if (code.threads < 1 || code.threads > kMaxThreads)
    return beyond(kernel, device, "threads of a block:", code.threads,
                  kMaxThreads);
  // A launch of any other block would fail, on the GPU.
  uint64_t exact =
      threadsIn(*lowered.module, NVVM::NVVMDialect::getReqntidAttrName());
  uint64_t most =
      threadsIn(*lowered.module, NVVM::NVVMDialect::getMaxntidAttrName());
  if ((exact && code.threads != exact) || (most && code.threads > most))
    return Error{ErrorCode::Internal,
                 "kernel '" + kernel.str() + "': a block of " +
                     std::to_string(code.threads) +
                     " threads, its code is for " +
                     std::to_string(exact ? exact : most),
                 {}};
  Expected<std::string> ptx = emitPtx(*lowered.module, device.arch, lowered.listing);
  if (!ptx)
    return ptx.error();
  code.ptx = std::move(*ptx);
  if (!assembler)
    return code;
  Expected<Assembled> assembled = assembler->assemble(
      withoutLines(code.ptx), device.arch, "kernel '" + kernel.str() + "'");
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
