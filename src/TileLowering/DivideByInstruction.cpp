//===- DivideByInstruction.cpp - Quotients without a slow path --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Correctly rounded quotients and roots of float32 are no instructions: ptxas expands
// them to a fast path, a test and a call, for each element of its own, and what stands
// between two of them can no longer be scheduled together. div.full and sqrt.approx
// (PTX ISA 8.0, 9.7.3.8 and 9.7.3.13) have no branches, take infinities, NaN and
// subnormal numbers as the exact ones do, and are within 2 ulp and 1 ulp (relative
// error 2^-23). ex2.approx.ftz (9.7.3.20) stands for the powers of two that may be
// approximate: 2 ulp, and 0 below 2^-126.
//
//===----------------------------------------------------------------------===//
#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

namespace nova {
#define GEN_PASS_DEF_DIVIDEBYINSTRUCTION
#include "nova/TileLowering/Passes.h.inc"
} // namespace nova

using namespace mlir;

static void replaceByIntrinsic(Operation *op, StringRef name, ValueRange operands) {
  OpBuilder builder(op);
  auto call = LLVM::CallIntrinsicOp::create(builder, op->getLoc(), op->getResult(0).getType(),
                                            builder.getStringAttr(name), operands);
  op->replaceAllUsesWith(call);
  op->erase();
}

namespace {
struct DivideByInstruction : ::nova::impl::DivideByInstructionBase<DivideByInstruction> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (op->getNumResults() != 1 || !op->getResult(0).getType().isF32())
        return;
      if (auto quotient = dyn_cast<arith::DivFOp>(op)) {
        // With `arcp` the divisor is known to be no denormal.
        if (bitEnumContainsAny(quotient.getFastmath(), arith::FastMathFlags::arcp) &&
            matchPattern(quotient.getLhs(), m_OneFloat()))
          replaceByIntrinsic(op, "llvm.nvvm.rcp.approx.ftz.f", quotient.getRhs());
        else
          replaceByIntrinsic(op, "llvm.nvvm.div.full", op->getOperands());
      } else if (auto power = dyn_cast<math::Exp2Op>(op);
                 power && bitEnumContainsAny(power.getFastmath(), arith::FastMathFlags::afn)) {
        replaceByIntrinsic(op, "llvm.nvvm.ex2.approx.ftz.f", op->getOperands());
      } else if (isa<math::SqrtOp>(op)) {
        replaceByIntrinsic(op, "llvm.nvvm.sqrt.approx.f", op->getOperands());
      }
    });
  }
};
} // namespace
