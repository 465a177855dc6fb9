//===- ExpandMath.h - Elementary functions as arithmetic ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp, log, tanh and the others as straight-line arithmetic: no libm, no
// libdevice, no table, no branch, the same on every target.
//
// Promises, for every function and type:
// - NaN in gives NaN out (but pow(x, 0) = pow(1, y) = 1); infinities, signed
//   zeros, subnormal arguments and results, and the overflow and underflow
//   thresholds are right to within the error below; pow follows C99 Annex F.
// - A value does not depend on the vector it stands in, nor on whether the
//   backend contracts products and sums into FMAs: every product that feeds a
//   sum already is one. (Tested in x86 code and in PTX text; not run on a GPU.)
// - Required of the target: IEEE arithmetic with subnormals and a fused
//   multiply-add instruction (x86-64-v3, any GPU). Without one, `math.fma`
//   would become a call.
//
// Largest error in ulp of the exact result (tests/Math/Ulp.h says how counted),
// against a wider type of glibc's on x86-64 with AVX2.
// f32: over all 2^32 values (`MathTests --exhaustive`). powf was sampled: 32 M
// pairs. f64 was sampled: 3 M values of all exponents and of the usual range,
// and those around every threshold; pow 2 M pairs. Special pairs besides.
// Cost: ns for each element on one core of a shared Sapphire Rapids Xeon, AVX2
// code, the best of many runs of `MathTests --cost` (up to 1.5 times that when
// the machine is busy), and instructions for each 8 elements of f32, loop
// included.
//
//   function   f32 ulp  at                 ns    instr.  f64 ulp   ns
//   exp         0.892   -0x1.765026p+2     0.37    22      0.86   1.01
//   exp2        0.879   -0x1.f9fc6ap+6     0.30    20      0.80   0.89
//   expm1       1.309    0x1.da88fap+5     0.38    29      1.58   1.09
//   log         0.938    0x1.55640ap+0     0.65    50      0.90   1.49
//   log2        1.450    0x1.5b9ad6p+0     0.65    50      1.46   1.49
//   log1p       1.688    0x1.559026p-2     0.65    51      1.47   1.59
//   tanh        1.363    0x1.429024p-1     0.62    45      1.33   2.12
//   erf         1.154    0x1.dfe6b2p-1     0.77    55      0.96   2.75
//   sin         1.577    0x1.ce5738p+87    1.90    93      2.37  10.11
//   cos         1.578    0x1.d02c14p+30    1.92    93      2.15  10.10
//   rsqrt       1.491    0x1.019566p-126   0.46     3      1.48   1.67
//   powf        0.534   (0x1.00030ap+0,    3.67   176      0.95   7.47
//                       -0x1.c4fb42p+20)
//
// Methods (coefficients and their own errors: src/Math/Coefficients.h, derived
// by scripts/fit_math.py):
// - exp, exp2: x = n ln2 + r in two FMAs (Cody and Waite), |r| <= ln2/2, a
//   polynomial of degree 6 (f64: 11), 2^n applied in two halves so that results
//   are rounded once into subnormals and overflow where they should.
// - expm1: the same reduction; 2^n (r + r^2 P) + (2^n - 1) in FMAs.
// - log, log2, log1p: x = 2^e (1 + f) with 1 + f in [2/3, 4/3);
//   f - f^2/2 + f^3 P(f), in f64 through s = f/(2 + f). log1p takes f from x,
//   not from the rounded 1 + x.
// - tanh: an odd polynomial below 5/8, 1 - 2/(exp(2|x|) + 1) above.
// - erf: an odd polynomial below 15/16; above, 1 - exp(Q(|x|)) in f32 and
//   1 - exp(-x^2) Q((|x|-2)/(|x|+2)) in f64.
// - sin, cos: right for every argument, however large. f32: x * 2/pi in
//   doubles, with the bits of 2/pi that count for the exponent of x. f64: pi/2
//   in three parts below 2^20, above it Payne and Hanek's product of integers.
//   Dear on a GPU with slow doubles.
// - powf: f32 as exp2(y log2|x|) in doubles; f64 with log2|x| in two doubles.
//   Constant exponents 0, +-0.5, +-1, +-2, 3 and 4 become products, quotients
//   and roots (error of powers: 2 at 0.5, 3 at 1.2, 4 at 1.9, -2 at 1.9).
// - fpowi: as powf; a variable exponent of at most 32 bits. ipowi: constant
//   exponents, by repeated squaring.
// - rsqrt: 1/sqrt(x), both correctly rounded.
// - f16 and bf16 are computed in f32 and rounded again: over all 65536 values
//   within 0.51 ulp.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_MATH_EXPANDMATH_H
#define NOVA_MATH_EXPANDMATH_H

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace nova {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "nova/Math/Passes.h.inc"

/// Adds the patterns that replace elementary functions of the math dialect on
/// scalars and vectors of f64, f32 and narrower floats. They create only arith
/// ops and inline math ops (fma, sqrt, absf, copysign, floor), so one walk over
/// the IR is enough. An op that they do not know, and any op on tensors, is
/// left as it is: the pass `nova-expand-math` makes that an error. Beware of
/// drivers that fold: the folds of math ops on constants use the host's libm.
void populateExpandMathPatterns(mlir::RewritePatternSet &patterns);

/// Whether `op`, of the math dialect, becomes an instruction or a short inline
/// sequence on a target with FMA and SSE4.1 (or on any GPU), not a call.
bool isInlineMathOp(mlir::Operation *op);

} // namespace nova

#endif // NOVA_MATH_EXPANDMATH_H
