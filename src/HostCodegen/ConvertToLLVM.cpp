//===- ConvertToLLVM.cpp - Kernel loops to the LLVM dialect ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream conversions only, called as functions and not as passes: a pass
// manager per step would cost more than the steps.
//
//===----------------------------------------------------------------------===//
#include "Internal.h"

#include "nova/Math/ExpandMath.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace nova::host {

/// Arithmetic on 16-bit floats becomes float32 arithmetic with a rounding after
/// each op: the processor has no other.
static LogicalResult widenShortFloats(ModuleOp module) {
  MLIRContext *context = module.getContext();
  TypeConverter converter;
  converter.addConversion(
      [](Type type) -> std::optional<Type> { return type; });
  arith::populateEmulateUnsupportedFloatsConversions(
      converter, {BFloat16Type::get(context), Float16Type::get(context)},
      Float32Type::get(context));
  RewritePatternSet patterns(context);
  arith::populateEmulateUnsupportedFloatsPatterns(patterns, converter);
  ConversionTarget target(*context);
  arith::populateEmulateUnsupportedFloatsLegality(target, converter);
  return applyPartialConversion(module, target, std::move(patterns));
}

namespace {
/// maximum and minimum that return NaN if either side is NaN: the processor's
/// max(x, y) is `x > y ? x : y`, so a NaN in y comes through, and one in x is
/// put in. Which zero comes out of two zeros is open, as in PyTorch. (LLVM's
/// own lowering orders the zeros too, at three times the cost.)
template <typename Op, arith::CmpFPredicate predicate>
struct ExpandNaNPropagating : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value x = op.getRhs(), y = op.getLhs();
    Value better = arith::CmpFOp::create(rewriter, loc, predicate, x, y);
    Value best = arith::SelectOp::create(rewriter, loc, better, x, y);
    Value nan =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, x, x);
    auto vector = dyn_cast<VectorType>(op.getType());
    unsigned bits = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
    if (!vector || bits < 32) {
      rewriter.replaceOpWithNewOp<arith::SelectOp>(op, nan, x, best);
      return success();
    }
    // All ones are a NaN: an OR is cheaper than a blend, most of all in the
    // chain of a reduction.
    auto integers =
        VectorType::get(vector.getShape(), rewriter.getIntegerType(bits));
    Value mask = arith::ExtSIOp::create(rewriter, loc, integers, nan);
    Value raw = arith::BitcastOp::create(rewriter, loc, integers, best);
    Value marked = arith::OrIOp::create(rewriter, loc, raw, mask);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), marked);
    return success();
  }
};
} // namespace

LogicalResult convertLoopsToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  if (failed(widenShortFloats(module)))
    return failure();
  // Walks, not the greedy driver: that one folds math ops of constants with the
  // libm of this machine.
  {
    RewritePatternSet patterns(context);
    populateExpandMathPatterns(patterns);
    walkAndApplyPatterns(module, std::move(patterns));
  }
  {
    RewritePatternSet patterns(context);
    patterns.add<
        ExpandNaNPropagating<arith::MaximumFOp, arith::CmpFPredicate::OGT>,
        ExpandNaNPropagating<arith::MinimumFOp, arith::CmpFPredicate::OLT>>(
        context);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateExpandBFloat16Patterns(patterns);
    walkAndApplyPatterns(module, std::move(patterns));
  }
  {
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<scf::SCFDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
  }
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

} // namespace nova::host
