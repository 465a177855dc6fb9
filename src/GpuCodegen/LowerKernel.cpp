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

// Depths of the rings to try: the first with which two blocks fit into a
// multiprocessor's shared memory, else the first with which one does. Four slots
// hide the latency of DRAM behind products of 32 deep tiles; below two there is
// no ring.

/// Shared memory that the driver takes for itself, for each block.
static constexpr int64_t kReservedSharedBytes = 1024;

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
  auto fail = [&](ErrorCode code, StringRef otherwise) {
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
  if (failed(run(*tiled, buildTiled)))
    return fail(ErrorCode::Internal, "no layouts for its tiles");

  GpuKernelModule result;
  result.threads = program->getAttrOfType<IntegerAttr>(tile::attr::warps).getInt() * kWarpSize;
  if (options.last == KernelStage::Tiled) {
    result.module = std::move(tiled);
    return result;
  }
  Builder builder(context);
  const int64_t half = device.sharedBytesPerSm / 2 - kReservedSharedBytes;
  const int64_t whole = device.sharedBytesPerBlock;
  const std::pair<int64_t, int64_t> attempts[] = {{4, half},  {3, half},  {4, whole},
                                                  {3, whole}, {2, whole}, {1, whole}};
  for (auto [stages, limit] : attempts) {
    OwningOpRef<ModuleOp> module = tiled->clone();
    func::FuncOp candidate = programOf(*module);
    if (!candidate->hasAttr(tile::attr::stages))
      candidate->setAttr(tile::attr::stages, builder.getI64IntegerAttr(stages));
    if (failed(run(*module, buildPipelined)))
      return fail(ErrorCode::Internal, "cannot be pipelined");
    // From here on an operation's location is its line in this text.
    result.listing.clear();
    llvm::raw_string_ostream listing(result.listing);
    generateLocationsFromIR(listing, kListingName, *module,
                            OpPrintingFlags().elideLargeElementsAttrs(16));
    OwningOpRef<ModuleOp> pipelined =
        options.last == KernelStage::Pipelined ? OwningOpRef<ModuleOp>(module->clone())
                                               : OwningOpRef<ModuleOp>();
    if (failed(run(*module, buildThreads)))
      return fail(ErrorCode::Internal, "cannot be lowered to code of threads");
    auto entry = *module->getOps<LLVM::LLVMFuncOp>().begin();
    result.dynamicSharedBytes = entry->getAttrOfType<IntegerAttr>(kSharedBytesAttr).getInt();
    if ((int64_t)result.dynamicSharedBytes > std::min(limit, whole))
      continue;
    result.module = pipelined ? std::move(pipelined) : std::move(module);
    return result;
  }
  return fail(ErrorCode::Internal,
              "needs " + std::to_string(result.dynamicSharedBytes) +
                  " bytes of shared memory for a block, the device has " +
                  std::to_string(device.sharedBytesPerBlock));
}

} // namespace nova
