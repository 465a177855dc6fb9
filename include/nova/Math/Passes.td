//===- Passes.td - Passes of the Math library --------------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_MATH_PASSES
#define NOVA_MATH_PASSES

include "mlir/Pass/PassBase.td"

def ExpandMath : Pass<"nova-expand-math"> {
  let summary = "Replace elementary functions by arithmetic of our own";
  let description = [{
    Replaces `math.exp`, `log`, `tanh`, `erf`, `sin`, `powf` and friends, on
    scalars and on vectors of any shape, by straight-line arithmetic: no call,
    no table, no branch. The same expansion serves every target, so a graph
    computes the same values on each, and it vectorises where the target has
    vectors. The functions, their methods and their measured errors are listed
    in `nova/Math/ExpandMath.h`.

    Runs on any op; must run before the conversion to LLVM, after
    vectorisation or before it. What remains in the math dialect afterwards
    (`fma`, `sqrt`, `absf`, `copysign`, `floor`, `roundeven`, ...) is one
    instruction, or a short inline sequence, on a target with FMA and SSE4.1.

    Fails, naming every offending op and its type, when an op of the math
    dialect is left that would become a call into libm.

    Example:

    ```mlir
    %y = math.rsqrt %x : vector<8xf32>
    ```

    becomes

    ```mlir
    %one = arith.constant dense<1.0> : vector<8xf32>
    %s = math.sqrt %x : vector<8xf32>
    %y = arith.divf %one, %s : vector<8xf32>
    ```
  }];
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect"];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Number of math ops expanded">
  ];
}

#endif // NOVA_MATH_PASSES
