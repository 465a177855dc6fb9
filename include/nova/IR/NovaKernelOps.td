//===- NovaKernelOps.td - Operations that only kernels have -*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_KERNEL_OPS_TD
#define NOVA_KERNEL_OPS_TD

include "nova/IR/NovaDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nova_SegmentSumOp : Op<Nova_Dialect, "segment_sum", [Pure, InferTypeOpAdaptor]> {
  let summary = "init, then result[r, b] += updates[order[j], b] for bounds[r] <= j < bounds[r + 1]";
  let description = [{
    What nova.index_put with `accumulate` computes where it is known which updates
    each row takes (nova-sort-updates). `r` numbers the first `rows` dimensions of
    init, row-major. The lower 32 bits of an entry of `order` number a position,
    those of the leading dimensions of updates, row-major. Sums are added in the order
    of j, in float32 where elements have fewer bits. `bounds` does not decrease.
  }];
  let arguments = (ins AnyStaticShapeTensor:$init, AnyStaticShapeTensor:$updates,
                       StaticShapeTensorOf<[I64]>:$order, StaticShapeTensorOf<[I32]>:$bounds, I64Attr:$rows);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // NOVA_KERNEL_OPS_TD
