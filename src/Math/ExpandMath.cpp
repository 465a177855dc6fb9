//===- ExpandMath.cpp - The pass nova-expand-math -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which op becomes which expansion, and in which type it is computed.
//
//===----------------------------------------------------------------------===//

#include "nova/Math/ExpandMath.h"
#include "Expansions.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace nova {

#define GEN_PASS_DEF_EXPANDMATH
#include "nova/Math/Passes.h.inc"

using expand::Num;

/// Scalars and vectors of f32, f64 and the types that widen to f32 exactly.
static bool isComputable(Type type) {
  if (!type.isIntOrIndexOrFloat() && !isa<VectorType>(type))
    return false;
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element &&
         (element.getWidth() < 32 || element.isF32() || element.isF64());
}

static Num widened(ImplicitLocOpBuilder &b, Value v) {
  Num x{v, &b};
  return x.bits() < 32 ? toF32(x) : x;
}

/// `result` as the type of `op`'s result, replacing it.
static void replaceNarrowed(PatternRewriter &rewriter, Operation *op,
                            const Num &result) {
  Value v = result.value;
  Type type = op->getResult(0).getType();
  if (v.getType() != type)
    v = arith::TruncFOp::create(*result.b, type, v);
  rewriter.replaceOp(op, v);
}

/// The value of a scalar or splat constant of integer or float type.
static std::optional<double> constantValue(Value v) {
  Attribute attr;
  if (!matchPattern(v, m_Constant(&attr)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(attr))
    attr = splat.getSplatValue<Attribute>();
  if (auto f = dyn_cast<FloatAttr>(attr))
    return f.getValueAsDouble();
  if (auto i = dyn_cast<IntegerAttr>(attr))
    if (i.getValue().getSignificantBits() <= 53)
      return double(i.getValue().getSExtValue());
  return std::nullopt;
}

namespace {

template <typename Op, Num (*expansion)(const Num &)>
struct ExpandUnary : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!isComputable(op.getType()))
      return rewriter.notifyMatchFailure(op, "not f32, f64 or narrower");
    if (isInlineMathOp(op))
      return rewriter.notifyMatchFailure(op, "an instruction computes it");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    replaceNarrowed(rewriter, op, expansion(widened(b, op.getOperand())));
    return success();
  }
};

struct ExpandPowF : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isComputable(op.getType()))
      return rewriter.notifyMatchFailure(op, "not f32, f64 or narrower");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Num x = widened(b, op.getLhs());
    std::optional<Num> result;
    if (std::optional<double> n = constantValue(op.getRhs()))
      result = expand::powConstant(x, *n);
    if (!result)
      result = expand::pow(x, widened(b, op.getRhs()));
    replaceNarrowed(rewriter, op, *result);
    return success();
  }
};

// An exponent of up to 32 bits is exact as a double.
struct ExpandFPowI : OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    if (!isComputable(op.getType()))
      return rewriter.notifyMatchFailure(op, "not f32, f64 or narrower");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Num x = widened(b, op.getLhs());
    Num like = toF64(x);
    std::optional<Num> result;
    if (std::optional<double> n = constantValue(op.getRhs())) {
      result = expand::powConstant(x, *n);
      if (!result)
        result = expand::pow(x, expand::constant(like, *n));
    } else if (getElementTypeOrSelf(op.getRhs()).getIntOrFloatBitWidth() <=
               32) {
      result = expand::pow(x, intToFloat(Num{op.getRhs(), &b}, like));
    } else {
      return rewriter.notifyMatchFailure(op, "exponent wider than 32 bits");
    }
    replaceNarrowed(rewriter, op, *result);
    return success();
  }
};

struct ExpandIPowI : OpRewritePattern<math::IPowIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::IPowIOp op,
                                PatternRewriter &rewriter) const override {
    Attribute attr;
    if (isa<TensorType>(op.getType()) ||
        !matchPattern(op.getRhs(), m_Constant(&attr)))
      return rewriter.notifyMatchFailure(op, "exponent not constant");
    if (auto splat = dyn_cast<SplatElementsAttr>(attr))
      attr = splat.getSplatValue<Attribute>();
    auto n = dyn_cast<IntegerAttr>(attr);
    if (!n)
      return rewriter.notifyMatchFailure(op, "exponent not one constant");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, expand::powInteger(Num{op.getLhs(), &b},
                                              n.getValue().getSExtValue())
                               .value);
    return success();
  }
};

struct ExpandMathPass : impl::ExpandMathBase<ExpandMathPass> {
  void runOnOperation() override {
    int64_t before = countCalls();
    RewritePatternSet patterns(&getContext());
    populateExpandMathPatterns(patterns);
    // A walk, not the greedy driver: nothing created here needs a second look,
    // and constants must not be folded with the host's libm.
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    int64_t left = 0;
    getOperation()->walk([&](Operation *op) {
      if (!isCall(op))
        return;
      ++left;
      op->emitError() << "'" << op->getName() << "' on "
                      << op->getOperand(0).getType()
                      << " has no expansion; it would take a math library";
    });
    numExpanded += before - left;
    if (left)
      signalPassFailure();
  }

  static bool isCall(Operation *op) {
    return isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
           !isInlineMathOp(op);
  }
  int64_t countCalls() {
    int64_t count = 0;
    getOperation()->walk([&](Operation *op) { count += isCall(op); });
    return count;
  }
};

} // namespace

bool isInlineMathOp(Operation *op) {
  // An approximation that somebody has asked for is the target's.
  if (auto power = dyn_cast<math::Exp2Op>(op))
    return power.getType().isF32() &&
           bitEnumContainsAny(power.getFastmath(), arith::FastMathFlags::afn);
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::ClampFOp,
             math::CopySignOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp,
             math::FmaOp, math::IsFiniteOp, math::IsInfOp, math::IsNaNOp,
             math::IsNormalOp, math::RoundEvenOp, math::RoundOp, math::SqrtOp,
             math::TruncOp>(op);
}

void populateExpandMathPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandUnary<math::ExpOp, expand::exp>,
               ExpandUnary<math::Exp2Op, expand::exp2>,
               ExpandUnary<math::ExpM1Op, expand::expm1>,
               ExpandUnary<math::LogOp, expand::log>,
               ExpandUnary<math::Log2Op, expand::log2>,
               ExpandUnary<math::Log1pOp, expand::log1p>,
               ExpandUnary<math::TanhOp, expand::tanh>,
               ExpandUnary<math::ErfOp, expand::erf>,
               ExpandUnary<math::SinOp, expand::sin>,
               ExpandUnary<math::CosOp, expand::cos>,
               ExpandUnary<math::RsqrtOp, expand::rsqrt>, ExpandPowF,
               ExpandFPowI, ExpandIPowI>(patterns.getContext());
}

} // namespace nova
