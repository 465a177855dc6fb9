//===- nova-opt.cpp - Runs passes one by one, for tests and for looking ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/HostCodegen/Passes.h"
#include "nova/IR/Nova.h"
#include "nova/Math/ExpandMath.h"
#include "nova/TileLowering/Passes.h"
#include "nova/Tiling/Passes.h"
#include "nova/Transforms/Passes.h"
#include "nova/Transforms/SortUpdates.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<nova::NovaDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::linalg::LinalgDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect,
                  mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  mlir::vector::VectorDialect, nova::tile::TileDialect,
                  mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect>();
  mlir::registerConvertNVVMToLLVMInterface(registry);
  nova::registerNovaTransformsPasses();
  nova::registerNovaSortUpdatesPasses();
  nova::registerNovaTilingPasses();
  nova::registerNovaMathPasses();
  nova::registerNovaHostCodegenPasses();
  nova::registerNovaTileLoweringPasses();
  mlir::PassPipelineRegistration<> tiles(
      "nova-tiles-to-nvvm", "tile programs to the LLVM and NVVM dialects", nova::buildTileLowering);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "nova-opt: runs novac's passes one by one\n", registry));
}
