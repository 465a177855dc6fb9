//===- LowerKernel.cpp - A kernel function to the NVVM dialect -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/KernelCompiler.h"
#include "nova/IR/CollectDiagnostics.h"
#include "nova/IR/Nova.h"
#include "nova/TileLowering/Passes.h"
#include "nova/Tiling/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/LocationSnapshot.h"

using namespace mlir;

namespace nova {

/// What locations call the text of a tile program; it is no file.
static constexpr char kListingName[] = "tiles";

/// The tile program in `module`: the tiling pass leaves one function.
static func::FuncOp programOf(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(tile::attr::warps))
      return function;
  return {};
}

/// What the plan knows of the addresses of arguments and results, in the order
/// of the program's parameters.
static void copyAlignments(func::FuncOp kernel, func::FuncOp program) {
  unsigned parameter = 0;
  auto give = [&](Attribute alignment) {
    if (alignment)
      program.setArgAttr(parameter, tile::attr::alignment, alignment);
    ++parameter;
  };
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    give(kernel.getArgAttr(i, attr::alignment));
  for (unsigned i = 0; i < kernel.getNumResults(); ++i)
    give(kernel.getResultAttr(i, attr::alignment));
}

Expected<GpuKernelModule> lowerKernelToNvvm(func::FuncOp kernel,
                                            const target::Device &device,
                                            const GpuLoweringOptions &options) {
  MLIRContext *context = kernel.getContext();
  CollectDiagnostics diagnostics(context);
  auto fail = [&](ErrorCode code, const std::string &otherwise) {
    std::string said = diagnostics.take();
    if (said.empty())
      said = ("kernel '" + kernel.getSymName() + "' for " + device.name + ": " + otherwise).str();
    return Error{code, said, {}};
  };
  auto run = [&](ModuleOp module, llvm::function_ref<void(OpPassManager &)> build) {
    PassManager passes(context);
    build(passes);
    return passes.run(module);
  };

  OwningOpRef<ModuleOp> tiled = ModuleOp::create(kernel.getLoc());
  tiled->getBody()->push_back(kernel->clone());
  LowerKernelsToTilesOptions tiling;
  tiling.precision = options.matmul;
  if (failed(run(*tiled, [&](OpPassManager &passes) {
        passes.addPass(createLowerKernelsToTiles(tiling));
      })))
    return fail(ErrorCode::BadInput, "cannot be written as a tile program");
  func::FuncOp program = programOf(*tiled);
  if (!program)
    return fail(ErrorCode::Internal, "became no tile program");
  copyAlignments(kernel, program);
  auto family = kernel->getAttrOfType<StringAttr>(attr::family);
  if (device.warpgroups && family && family.getValue() == "hopper")
    program->setAttr(tile::attr::asynchronous, UnitAttr::get(context));
  if (auto resident = kernel->getAttrOfType<IntegerAttr>(attr::residentBlocks))
    program->setAttr(tile::attr::residentBlocks, resident);
  for (auto [from, to] : {std::pair(attr::teams, tile::attr::teams),
                          std::pair(attr::persistentBlocks, tile::attr::persistentBlocks)})
    if (auto value = kernel->getAttrOfType<IntegerAttr>(from); value && value.getInt() > 0)
      program->setAttr(to, value);
  if (failed(run(*tiled, buildTiled)))
    return fail(ErrorCode::Internal, "no layouts for its tiles");

  GpuKernelModule result;
  const uint32_t ownThreads = program->getAttrOfType<IntegerAttr>(tile::attr::warps).getInt() * kWarpSize;
  result.threads = ownThreads;
  if (options.last == KernelStage::Tiled) {
    result.module = std::move(tiled);
    return result;
  }
  if (failed(run(*tiled, buildPipelined)))
    return fail(ErrorCode::Internal, "cannot be pipelined");
  result.blocks = program->getAttrOfType<IntegerAttr>(tile::attr::grid).getInt();
  // From here on an operation's location is its line in this text.
  llvm::raw_string_ostream listing(result.listing);
  generateLocationsFromIR(listing, kListingName, *tiled,
                          OpPrintingFlags().elideLargeElementsAttrs(16));
  OwningOpRef<ModuleOp> pipelined;
  if (options.last == KernelStage::Pipelined)
    pipelined = OwningOpRef<ModuleOp>(tiled->clone());
  if (failed(run(*tiled, buildThreads)))
    return fail(ErrorCode::Internal, "cannot be lowered to code of threads");
  auto entry = *tiled->getOps<LLVM::LLVMFuncOp>().begin();
  result.threads =
      entry->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName())[0];
  result.dynamicSharedBytes = entry->getAttrOfType<IntegerAttr>(kSharedBytesAttr).getInt();
  if ((int64_t)result.dynamicSharedBytes > device.sharedBytesPerBlock)
    return fail(ErrorCode::BadInput,
                "needs " + std::to_string(result.dynamicSharedBytes) +
                    " bytes of shared memory for a block, the device has " +
                    std::to_string(device.sharedBytesPerBlock));
  result.module = pipelined ? std::move(pipelined) : std::move(tiled);
  return result;
}

} // namespace nova
