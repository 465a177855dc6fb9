//===- Passes.td - From kernels on tensors to tile programs -*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILING_PASSES_TD
#define NOVA_TILING_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerKernelsToTiles : Pass<"nova-lower-kernels-to-tiles", "::mlir::ModuleOp"> {
  let summary = "Rewrite each kernel as the tile program of one grid point";
  let description = [{
    Replaces every configured kernel (KernelContract.h) by a function of the
    tile dialect: memrefs in, loads, arithmetic on tiles, stores. No class of
    kernels is known here: everything follows from maps and bodies.

    **Axes.** Dimensions of values and loops of generics that run together are
    one axis; axes that `nova.map` binds run over the grid in tiles of
    `nova.tile`, the others are local with tiles of `nova.local_tile` (in the
    order in which they appear). A kernel whose schedule is for collapsed axes
    (`nova.collapsed`) is collapsed first. A local axis whose tile covers it is resident;
    else it is streamed: a loop over chunks wherever something reduces along
    it, or stores along it.

    **Demand.** Results ask for their operands. A value is computed once per
    scope, in the outermost loop in which all of its axes are at a place: what
    does not depend on a loop's axis stands before the loop. Reductions along
    the same streamed axes that do not need one another share a loop. A
    product-sum over one M, one N and one K axis is a `tile.dot`; any other
    reduction is its contribution, computed on tiles, and a `tile.reduce`.

    **Loops.** A sum of exp(x - m) * y shares the loop of the maximum m: it is
    relative to the maximum so far. Comparisons of positions (a select that hides
    what lies after a row's own position) bound the loop. Running sums are carried
    through it. Updates of nova.index_put are looked at a chunk at a time and
    applied one by one, in their order.

    **Edges.** Loads hang over the memory's edge where a tile does not divide an
    axis; before a reduction along such an axis what is outside is replaced by
    the identity, unless it is a loaded zero that serves as one.
  }];
  let options = [Option<"precision", "precision", "std::string", "\"f32\"",
                        "how float32 operands enter products: f32, tf32 or bf16">];
  let dependentDialects = ["::nova::tile::TileDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif // NOVA_TILING_PASSES_TD
