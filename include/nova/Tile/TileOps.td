//===- TileOps.td - Operations of the tile dialect ---------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILE_OPS_TD
#define NOVA_TILE_OPS_TD

include "nova/Tile/TileDialect.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

def Tile_Tile : StaticShapeTensorOf<[AnyType]>;

def Tile_PointOp : Tile_Op<"point", [Pure]> {
  let summary = "the number of this grid point, 0 to tile.grid - 1";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_MemberOp : Tile_Op<"member", [Pure]> {
  let summary = "which of several members in a row a grid point is of, and which of its points";
  let description = [{
    Member k has the points `starts[k]` to `starts[k + 1]` - 1, the last one all that
    follow: `member` is the last k with `starts[k]` <= `point`, and `local` is
    `point` - `starts[k]`. `starts` begins with 0 and ascends.
  }];
  let arguments = (ins Index:$point, DenseI64ArrayAttr:$starts);
  let results = (outs Index:$member, Index:$local);
  let assemblyFormat = "$point `starts` $starts attr-dict";
  let hasVerifier = 1;
}

def Tile_SelectOp : Tile_Op<"select", [Pure]> {
  let summary = "one of several parameters of the program, by number";
  let description = [{
    `memories[number]`, a parameter. All have equal element types and equal strides; the
    result's extents are theirs, dynamic (`?`) where theirs differ. `number` is below
    their count.
  }];
  let arguments = (ins Index:$number, Variadic<AnyMemRef>:$memories);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$number `of` $memories attr-dict `:` type($memories) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What the result's type is; null for memories that cannot be chosen from.
    static ::mlir::MemRefType commonType(::mlir::TypeRange memories);
  }];
}

def Tile_RangeOp : Tile_Op<"range", [Pure]> {
  let summary = "start, start + 1, ...";
  let description = "A tile of rank one of type `index`: element i is `start + i`.";
  let arguments = (ins Index:$start);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$start attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "a tile of equal elements";
  let arguments = (ins AnyType:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "reads a tile of memory";
  let description = [{
    Element (i0, i1, ...) of the result is the memory's element at `offsets`, to
    whose component `along[k]` i_k is added. `along` names a different memory
    dimension for each dimension of the tile, in any order. `bounds[k]`: 0, the
    whole tile lies inside along that dimension; 1, it may reach over the upper
    edge; 2, over both (an offset may be negative). What is outside is `fill`
    (zero if there is none) and is not accessed. Offsets along other dimensions lie
    inside.
  }];
  let arguments = (ins AnyMemRef:$memory, Variadic<Index>:$offsets, Optional<AnyType>:$fill,
                       DenseI64ArrayAttr:$along, DenseI64ArrayAttr:$bounds);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $memory `[` $offsets `]` `along` $along `bounds` $bounds (`fill` $fill^ `:` type($fill))?
    attr-dict `:` type($memory) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes a tile to memory";
  let description = "The reverse of `tile.load`; what is outside is dropped.";
  let arguments = (ins Tile_Tile:$value, AnyMemRef:$memory, Variadic<Index>:$offsets,
                       DenseI64ArrayAttr:$along, DenseI64ArrayAttr:$bounds);
  let assemblyFormat = [{
    $value `,` $memory `[` $offsets `]` `along` $along `bounds` $bounds
    attr-dict `:` type($value) `,` type($memory)
  }];
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "reads memory at computed places";
  let description = [{
    One index for each memory dimension: a scalar `index`, or a tile of `index` of
    the result's shape. Where `mask` (a tile of i1 of that shape) is false the
    element is zero and nothing is accessed; elsewhere indices lie inside.
  }];
  let arguments = (ins AnyMemRef:$memory, Variadic<AnyType>:$indices, Optional<Tile_Tile>:$mask);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $memory `[` $indices `:` type($indices) `]` (`mask` $mask^ `:` type($mask))?
    attr-dict `:` type($memory) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeats a tile along new dimensions, and reorders the others";
  let description = [{
    Dimension k of the operand becomes dimension `dims[k]` of the result, of equal
    extent; the result repeats along its other dimensions. With as many dimensions
    as the operand it is a transpose. A tile of rank 0 has no `dims`.
  }];
  let arguments = (ins Tile_Tile:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$operand `dims` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure, SingleBlock, RecursiveMemoryEffects, IsolatedFromAbove]> {
  let summary = "combines the elements of tiles along one dimension";
  let description = [{
    The region takes two groups of scalars, one of each operand's element type,
    and yields one group: an associative and commutative combination. The results
    lack dimension `dim`. Combined in an order of the compiler's choice.
  }];
  let arguments = (ins Variadic<Tile_Tile>:$operands, I64Attr:$dim);
  let results = (outs Variadic<Tile_Tile>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = [{
    $operands `along` $dim attr-dict `:` type($operands) `->` type($results) $combiner
  }];
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["ReduceOp"]>]> {
  let summary = "ends a combiner";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "accumulator + lhs * rhs, matrices";
  let description = [{
    lhs MxK, rhs KxN, accumulator MxN. Operands have equal element types (f64, f32,
    bf16, f16), the accumulator's is f32 (f64 for f64). For f32 operands `precision`
    says whether they are used as they are (`f32`) or rounded to nearest, ties away
    from zero, to tf32 or, ties to even, to bf16. `by`, set with the layouts: what
    multiplies, where it is not mma.sync if that fits the shapes and FMA if not.
    `flipped_warpgroup` computes the transposed product, rhs^T lhs^T. A product that is
    `in_flight` is on its way when the operation ends, and nobody but another product,
    as accumulator, may use its result before a tile.settle; those that were in flight
    before it have read their operands by then.
  }];
  let arguments = (ins Tile_Tile:$lhs, Tile_Tile:$rhs, Tile_Tile:$accumulator,
                       Tile_PrecisionAttr:$precision,
                       OptionalAttr<Tile_MultiplierAttr>:$multiplier,
                       UnitAttr:$in_flight);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator $precision (`by` $multiplier^)?
    (`in_flight` $in_flight^)? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_SettleOp : Tile_Op<"settle", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "waits for products in flight; the accumulator of the last of them";
  let arguments = (ins Tile_Tile:$operand);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

def Tile_AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "whether any element of a tile of i1 is true; a scalar";
  let arguments = (ins Tile_Tile:$operand);
  let results = (outs I1:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure]> {
  let summary = "inclusive running sums along one dimension";
  let description = "Element i of the result is the sum of elements 0 to i along `dim`.";
  let arguments = (ins Tile_Tile:$operand, I64Attr:$dim);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$operand `along` $dim attr-dict `:` type($operand)  `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ScalarOp : Tile_Op<"scalar", [Pure]> {
  let summary = "the element of a tile of rank 0";
  let arguments = (ins Tile_Tile:$operand);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// After layout assignment
//===----------------------------------------------------------------------===//

def Tile_ConvertOp : Tile_Op<"convert", [Pure]> {
  let summary = "the same tile in another layout";
  let description = [{
    Registers, shuffles or shared memory, as the two layouts ask for. Types differ in
    their encoding only.
  }];
  let arguments = (ins Tile_Tile:$operand);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// From `pipelined` on
//===----------------------------------------------------------------------===//

def Tile_AllocOp : Tile_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a ring of slots in shared memory, for the rest of the kernel";
  let results = (outs Tile_Buffer:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_AsyncLoadOp : Tile_Op<"async_load", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "starts copying a tile of memory into a slot";
  let description = [{
    As `tile.load`, into slot `slot`, 0 to slots - 1. `when`, a scalar: false starts
    nothing. What is outside the memory becomes zero. The slot may be
    read after a `tile.wait` on a token that this one was committed with.
  }];
  let arguments = (ins AnyMemRef:$memory, Variadic<Index>:$offsets, Tile_Buffer:$buffer, Index:$slot,
                       Optional<I1>:$when, DenseI64ArrayAttr:$along, DenseI64ArrayAttr:$bounds);
  let results = (outs Tile_Token:$token);
  let assemblyFormat = [{
    $memory `[` $offsets `]` `into` $buffer `[` $slot `]` (`when` $when^)? `along` $along `bounds` $bounds
    attr-dict `:` type($memory) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_CommitOp : Tile_Op<"commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "makes the copies started since the last commit one group";
  let arguments = (ins Variadic<Tile_Token>:$tokens);
  let results = (outs Tile_Token:$token);
  // In brackets: without, a value at the start of the next line would be a token.
  let assemblyFormat = "`[` $tokens `]` attr-dict";
}

def Tile_WaitOp : Tile_Op<"wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until all groups but the last `pending` have arrived, for all threads";
  let description = [{
    Afterwards every thread of the block may read what the arrived groups wrote, and
    every thread has passed its reads before this point (the slots they read may be
    written again).
  }];
  let arguments = (ins I64Attr:$pending);
  let results = (outs Tile_Token:$token);
  let assemblyFormat = "$pending attr-dict";
  let hasVerifier = 1;
}

def Tile_LocalLoadOp : Tile_Op<"local_load", [MemoryEffects<[MemRead]>]> {
  let summary = "reads a slot into registers";
  let description = "`dims`: dimension k of the slot is dimension dims[k] of the tile.";
  let arguments = (ins Tile_Buffer:$buffer, Index:$slot, Tile_Token:$token, DenseI64ArrayAttr:$dims);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$buffer `[` $slot `]` `after` $token `dims` $dims attr-dict `:` type($buffer) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Roles and channels
//===----------------------------------------------------------------------===//

def Tile_RoleOp : Tile_Op<"role", [SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "what warps of their own do, beside the rest of the program";
  let description = [{
    Roles stand at the program's top level, after the rings and channels that they
    use, each after those whose channels it receives from. The region holds loops,
    scalars and the operations of channels and rings; it computes its own scalars.
    `warps` warps execute it, or, with `single`, one thread of them.
  }];
  let arguments = (ins I64Attr:$warps, UnitAttr:$single);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`of` $warps (`single` $single^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Tile_ChannelOp : Tile_Op<"channel", [MemoryEffects<[MemAlloc]>]> {
  let summary = "barriers of the slots of rings, for the rest of the kernel";
  let results = (outs Tile_Channel:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_AcquireOp : Tile_Op<"acquire", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sender: waits until the slot is empty";
  let description = [{
    With `bytes`, announces how much the copies that follow will write, together:
    their arrival is what receivers await. Without, a `tile.send` follows.
  }];
  let arguments = (ins Tile_Channel:$channel, Index:$slot, I1:$phase, OptionalAttr<I64Attr>:$bytes);
  let assemblyFormat = [{
    $channel `[` $slot `,` $phase `]` (`bytes` $bytes^)? attr-dict `:` type($channel)
  }];
}

def Tile_BulkLoadOp : Tile_Op<"bulk_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sender: starts copying a tile of memory into an acquired slot";
  let description = [{
    As `tile.load`, into slot `slot` of the ring. What is outside the memory becomes
    zero. With `tf32`, float32 elements arrive rounded to tf32, to nearest.
  }];
  let arguments = (ins AnyMemRef:$memory, Variadic<Index>:$offsets, Tile_Buffer:$buffer, Index:$slot,
                       Tile_Channel:$channel, DenseI64ArrayAttr:$along, DenseI64ArrayAttr:$bounds,
                       UnitAttr:$tf32);
  let assemblyFormat = [{
    $memory `[` $offsets `]` `into` $buffer `[` $slot `]` `through` $channel `along` $along `bounds` $bounds
    (`tf32` $tf32^)? attr-dict `:` type($memory) `,` type($buffer) `,` type($channel)
  }];
  let hasVerifier = 1;
}

def Tile_LocalStoreOp : Tile_Op<"local_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "sender: writes a tile into an acquired slot";
  let description = "`dims`: dimension k of the slot is dimension dims[k] of the tile.";
  let arguments = (ins Tile_Tile:$value, Tile_Buffer:$buffer, Index:$slot, DenseI64ArrayAttr:$dims);
  let assemblyFormat = [{
    $value `,` $buffer `[` $slot `]` `dims` $dims attr-dict `:` type($value) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_SendOp : Tile_Op<"send", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sender: has written the slot";
  let arguments = (ins Tile_Channel:$channel, Index:$slot);
  let assemblyFormat = "$channel `[` $slot `]` attr-dict `:` type($channel)";
}

def Tile_AwaitOp : Tile_Op<"await", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "receiver: waits until the slot is full";
  let arguments = (ins Tile_Channel:$channel, Index:$slot, I1:$phase);
  let results = (outs Tile_Token:$token);
  let assemblyFormat = "$channel `[` $slot `,` $phase `]` attr-dict `:` type($channel)";
}

def Tile_ReleaseOp : Tile_Op<"release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "receiver: has read the slot";
  let arguments = (ins Tile_Channel:$channel, Index:$slot);
  let assemblyFormat = "$channel `[` $slot `]` attr-dict `:` type($channel)";
}

#endif // NOVA_TILE_OPS_TD
