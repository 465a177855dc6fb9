//===- CompileKernel.cpp - One kernel function to an object ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Internal.h"

#include "nova/HostCodegen/Passes.h"
#include "nova/IR/CollectDiagnostics.h"
#include "nova/IR/Nova.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

using namespace mlir;

namespace nova {

void registerHostCodegenDialects(DialectRegistry &registry) {
  registry.insert<NovaDialect, affine::AffineDialect, arith::ArithDialect,
                  cf::ControlFlowDialect, func::FuncDialect,
                  linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                  ub::UBDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

void loadHostCodegenDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerHostCodegenDialects(registry);
  context.appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context.getOrLoadDialect(name);
}

int64_t kernelGridPoints(func::FuncOp kernel) {
  int64_t points = 1;
  auto space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  auto tile = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::tile);
  if (space && tile)
    for (auto [extent, size] : llvm::zip(space.asArrayRef(), tile.asArrayRef()))
      points *= (extent + size - 1) / size;
  return points;
}

Expected<std::string> compileKernel(func::FuncOp kernel, StringRef symbol,
                                    const HostCodegenOptions &options) {
  MLIRContext *context = kernel.getContext();
  CollectDiagnostics diagnostics(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  module->getBody()->push_back(kernel->clone());
  auto fail = [&](ErrorCode code, const Twine &otherwise) {
    std::string said = diagnostics.take();
    if (said.empty())
      said = ("kernel '" + kernel.getSymName() + "': " + otherwise).str();
    return Error{code, said, {}};
  };

  LowerKernelsToLoopsOptions lowering;
  lowering.scratchLimit = options.scratchLimit;
  PassManager passes(context);
  passes.addPass(createLowerKernelsToLoops(lowering));
  if (failed(passes.run(*module)))
    return fail(ErrorCode::BadInput, "cannot be lowered to loops");
  if (failed(host::convertLoopsToLLVM(*module)))
    return fail(ErrorCode::Internal, "cannot be converted to LLVM");

  // A context of its own: LLVM's are not shared between threads.
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(*module, llvmContext, "nova");
  if (!llvmModule)
    return fail(ErrorCode::Internal, "cannot be translated to LLVM IR");
  return host::emitObject(*llvmModule, kernel.getSymName(), symbol, options);
}

} // namespace nova
