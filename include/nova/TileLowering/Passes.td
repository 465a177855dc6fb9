//===- Passes.td - Passes on tile programs ----------------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILELOWERING_PASSES_TD
#define NOVA_TILELOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldExponents : Pass<"nova-fold-exponents", "mlir::func::FuncOp"> {
  let summary = "makes exponentials that products round cheap";
  let description = [{
    An exponential of float32 that a product takes as a factor, rounded to tf32 or 16
    bits, or that scales such a product's sums, becomes an approximate `math.exp2`
    (`fastmath<afn>`: one instruction) of a multiply-add, with the factor before it and
    what is subtracted scaled by log2(e). A maximum along a dimension is taken before
    a positive factor is applied: that is exact.
  }];
  let dependentDialects = ["::nova::tile::TileDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def GuardSelections : Pass<"nova-guard-selections", "mlir::func::FuncOp"> {
  let summary = "skips masks of positions on tiles of which they hide nothing";
  let description = [{
    In loops. Where a selection between a tile and a constant depends on a comparison
    of positions (`tile.range`, splats, combinations of comparisons), the first and last
    positions say whether the whole tile is kept: then a branch goes around it.
  }];
  let dependentDialects = ["::nova::tile::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def OrderPoints : Pass<"nova-order-points", "mlir::func::FuncOp"> {
  let summary = "lets blocks with long loops start before those with short ones";
  let description = [{
    Where the trip counts of a program's loops depend on the grid point, repeat with some
    period and rise or fall within it, blocks take the points in order of their length,
    the longest first.
  }];
  let dependentDialects = ["::nova::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def SinkTiles : Pass<"nova-sink-tiles", "mlir::func::FuncOp"> {
  let summary = "moves what computes and reads tiles to where they are used first";
  let description = [{
    At a program's top level. A tile that is there before a loop and used behind it
    would take registers all through the loop, from the sums of its products. Reads
    stay before the first store.
  }];
  let dependentDialects = ["::nova::tile::TileDialect"];
}

def AssignTileLayouts : Pass<"nova-assign-tile-layouts", "mlir::func::FuncOp"> {
  let summary = "gives every tile of a program its layout";
  let description = [{
    Values that elementwise operations and loops connect share one layout. Anchors,
    in this order: the accumulator of a product (wgmma's fragment in a program with
    `tile.asynchronous`, the way round that moves operands least; mma.sync's; or a block
    of neighbours for FMA); the largest access to memory (neighbouring lanes on
    neighbouring addresses). From an assigned group the layout reaches what is
    broadcast into it and what is reduced out of it as a slice, and transposes.

    Where a value is wanted in another layout than it has, a `tile.convert` is
    inserted: before the operands of products, where two groups meet, and around
    an access that the group's layout would make slow (half of each 32-byte sector
    unused). Constants, splats and ranges are repeated rather than converted.

    Does nothing to functions without `tile.warps`.
  }];
  let dependentDialects = ["::nova::tile::TileDialect"];
}

def PersistTiles : Pass<"nova-persist-tiles", "mlir::func::FuncOp"> {
  let summary = "lets blocks stay on the device and go from grid point to grid point";
  let description = [{
    A program with `tile.persistent_blocks` less than `tile.grid`, whose one loop adds
    products of operands that tensor maps can bring, in a constant number of steps, is
    put into a loop over every so-manieth grid point; `tile.grid` becomes the number of
    blocks. With `tile.teams` (two) the loop's iterations are for the teams in turns
    (`tile.dealt`), and a channel hands the turn to multiply from one to the next. Other
    programs stay as they are, of one team.
  }];
  let dependentDialects = ["::nova::tile::TileDialect"];
}

def OverlapProducts : Pass<"nova-overlap-products", "mlir::func::FuncOp"> {
  let summary = "lets a loop's products run on while the next step begins";
  let description = [{
    Where all that a loop does with a tile is to add a product of two tiles that
    descriptors read from rings of three slots or more, the product is put in flight,
    the slots are released one step later, and the sums are settled behind the loop.
  }];
  let dependentDialects = ["::nova::tile::TileDialect"];
}

def DivideByInstruction : Pass<"nova-divide-by-instruction", "mlir::ModuleOp"> {
  let summary = "float32 quotients and square roots as single instructions";
  let description = [{
    `arith.divf` of f32 becomes `div.full.f32` (2 ulp), `math.sqrt` of f32
    `sqrt.approx.f32` (1 ulp): neither has a slow path. Other types stay as they are.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def SpecializeTiles : Pass<"nova-specialize-tiles", "mlir::func::FuncOp"> {
  let summary = "gives the copies that products of warpgroups need to a warp of their own";
  let description = [{
    In a program with `tile.asynchronous`, loads that nothing but such products read
    become copies by tensor maps, which a `tile.role` of its own starts. In loops they go
    through rings of `tile.stages` slots (fewer where the loop is shorter), outside of
    loops through one slot. Loads that a product reads first share a channel. A float32
    operand on the right of its products that lies in memory with the depth outside
    goes through a second role, which writes it transposed.

    A load stays as it is where a tensor map cannot do it (the strides or the address
    are no multiples of 16 bytes, rows are shorter than 128 bytes, what is outside is
    not zero), where data decides its place, in nested loops, or behind a store.
  }];
  let dependentDialects = ["::nova::tile::TileDialect"];
}

def PipelineTiles : Pass<"nova-pipeline-tiles", "mlir::func::FuncOp"> {
  let summary = "copies what products need into rings of shared memory, ahead of their loop";
  let description = [{
    In every loop, loads that one product alone reads become asynchronous copies into
    a ring of `tile.stages` slots, which run that many less one iterations ahead. An
    iteration waits for its slot, starts the copy into the slot that the iteration
    before has read, and computes. A load stays as it is where its neighbours in
    memory are fewer than 4 bytes, where it does not fill with zeros, or where the
    loop stores.

    Does nothing without `tile.stages`, or below two.
  }];
  let dependentDialects = ["::nova::tile::TileDialect"];
}

def LowerTilesToThreads : Pass<"nova-lower-tiles-to-threads", "mlir::ModuleOp"> {
  let summary = "turns tile programs into code of one thread";
  let description = [{
    Replaces every tile program (a function with `tile.warps`) by an `llvm.func`
    with `nvvm.kernel`: one pointer to global memory per parameter. Each tile
    becomes the scalars that a thread holds under the tile's layout; operations
    become `arith`, `math`, `scf`, `llvm` and `nvvm` operations on them.

    - Accesses become vectors of up to 16 bytes, predicated where the tile may hang
      over the memory's edge.
    - Reductions combine registers, then lanes by butterfly shuffles, then warps
      through shared memory.
    - Products become wgmma, mma.sync (tf32, bf16, f16) or FMA; operands that are
      converted for a product are read from swizzled shared memory as the product needs
      them.
    - Roles become warps behind the others, channels pairs of mbarriers, bulk loads
      copies by tensor maps, which are the kernel's last parameters. Registers move to
      the warps that multiply.
    - Conversions are renamings of registers where the threads agree, else go through
      shared memory.

    The function carries `nova.shared_bytes`, the dynamic shared memory it uses,
    `nova.tensor_maps`, and `nvvm.reqntid`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect"];
}

#endif // NOVA_TILELOWERING_PASSES_TD
