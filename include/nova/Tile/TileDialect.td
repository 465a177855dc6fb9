//===- TileDialect.td - The tile dialect ------------------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILE_DIALECT_TD
#define NOVA_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::nova::tile";
  let summary = "What one thread block computes: programs on tiles";
  let description = [{
    **The level.** A kernel at the stage `tiled` is a function

        func.func @matmul_04cb3701(%a: memref<120x48xf32>, %b: memref<48x144xf32>,
                                   %c: memref<120x144xf32>)
            attributes {nova.kernel, tile.warps = 4, tile.grid = 9}

    Its parameters are the kernel's arguments, then its results, as memrefs of
    static shape (strided where the memory is; stride 0 repeats; `i1` is one byte
    each). The body is the program of one grid point, `tile.point`. A program that
    serves several members, whose grids follow one another, asks `tile.member` whose
    point it is and takes that one's memory from `tile.select`: there extents are
    values. It uses

    - `arith` and `math` on scalars and, elementwise, on tiles;
    - `scf.for` and `scf.if` whose bounds and conditions are scalars (the same in
      every thread), with tiles as iteration arguments;
    - the operations of this dialect.

    Nothing else: no operation here knows of a matrix product, a softmax or an
    optimizer as such, and no pass below `configured` names a class of kernels.

    **Tiles.** A tile is an immutable value of type `tensor<MxNx...xT>` of static
    shape, rank 0 to 3: an SSA value without memory. Every extent is at least 2
    (axes of extent one are left out). Its encoding, absent until layouts are
    assigned, is a `#tile.layout`: which register of which thread of which warp
    holds which element (nova/Layout/LinearLayout.h has the algebra). Equal types
    mean equal layouts, so the verifiers of `arith` check that elementwise
    operands are laid out alike; `tile.convert` is the only way between two.

    **Two halves.** Up to `tiled` tiles are pure values: an interpreter executes
    the program op by op (nova/Tile/Interpreter.h), and that is its meaning.
    From `pipelined` on data also sits in `!tile.buffer`s: rings of slots in
    shared memory that have effects. There, what is asynchronous yields a
    `!tile.token`, and a slot is read only through the token of a wait that
    follows the copy; `tile.wait` and `tile.release` bound the slot's use, so that
    a producer in other warps (full and empty barriers) and a producer in the same
    warps (copy groups and block barriers) are the same program.

    **Roles.** A program may begin with `tile.role`s: what warps of their own do,
    while `tile.warps` others do the rest. Roles meet in `!tile.channel`s only: a
    sender acquires a slot (waits until it is empty) and fills the rings that go with
    it, by copies of its own or by stores; a receiver awaits the slot, reads it,
    releases it. A channel has one sender and one receiver. All warps of a role
    execute the same operations, and the order in which it uses a channel is the
    program's.

    **Edges are part of access.** Along each of its dimensions a load or store says
    whether the tile may hang over the memory's edge (`bounds`). What lies outside
    is not read: it reads as `fill`, the consumer's identity. Stores drop it.
    A value that is computed (not loaded) is garbage outside its axis' extent; the
    program replaces it by the identity (`arith.select` on `tile.range`) before it
    is reduced, multiplied along that axis or used as an index.

    **Numbers.** Elementwise operations round as `arith` says; a product and a sum
    may contract into an FMA. `tile.reduce` combines in an order that the layout
    fixes: deterministic, unspecified. `tile.dot` accumulates in float32 (float64
    for float64 operands) in an unspecified, deterministic order; `precision` says
    how float32 operands enter it.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 0;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::memref::MemRefDialect"];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Tile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Tile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Tile_LayoutAttr : Tile_Attr<"Layout", "layout",
                                [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "Which thread holds which element of a tile";
  let description = [{
    A linear layout (nova/Layout/LinearLayout.h): `core` extents (powers of two)
    times `outer` factors are the tile's shape; the bases are numbers of core
    elements.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"int64_t">:$core, OptionalArrayRefParameter<"int64_t">:$outer,
    OptionalArrayRefParameter<"int64_t">:$registers, OptionalArrayRefParameter<"int64_t">:$lanes,
    OptionalArrayRefParameter<"int64_t">:$warps);
  let assemblyFormat = [{
    `<` `core` `=` `[` (`]`) : ($core^ `]`)? `,` `outer` `=` `[` (`]`) : ($outer^ `]`)? `,`
    `registers` `=` `[` (`]`) : ($registers^ `]`)? `,` `lanes` `=` `[` (`]`) : ($lanes^ `]`)? `,`
    `warps` `=` `[` (`]`) : ($warps^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static LayoutAttr get(::mlir::MLIRContext *context, const ::nova::LinearLayout &layout);
    ::nova::LinearLayout layout() const;
  }];
}

def Tile_PrecisionF32 : I32EnumAttrCase<"f32", 0>;
def Tile_PrecisionTF32 : I32EnumAttrCase<"tf32", 1>;
def Tile_PrecisionBF16 : I32EnumAttrCase<"bf16", 2>;
def Tile_Precision : I32EnumAttr<"Precision", "how float32 operands enter a product",
    [Tile_PrecisionF32, Tile_PrecisionTF32, Tile_PrecisionBF16]> {
  let cppNamespace = "::nova::tile";
  let genSpecializedAttr = 0;
}
def Tile_PrecisionAttr : EnumAttr<Tile_Dialect, Tile_Precision, "precision">;

def Tile_MultiplierFma : I32EnumAttrCase<"fma", 0>;
def Tile_MultiplierWarpgroup : I32EnumAttrCase<"warpgroup", 1>;
def Tile_MultiplierFlippedWarpgroup : I32EnumAttrCase<"flipped_warpgroup", 2>;
def Tile_Multiplier : I32EnumAttr<"Multiplier", "what multiplies, where it is not up to the shapes",
    [Tile_MultiplierFma, Tile_MultiplierWarpgroup, Tile_MultiplierFlippedWarpgroup]> {
  let cppNamespace = "::nova::tile";
  let genSpecializedAttr = 0;
}
def Tile_MultiplierAttr : EnumAttr<Tile_Dialect, Tile_Multiplier, "multiplier">;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Tile_Type<string name, string typeMnemonic> : TypeDef<Tile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Tile_Buffer : Tile_Type<"Buffer", "buffer"> {
  let summary = "A ring of tiles in shared memory";
  let description = [{
    `slots` tiles of the given shape and element type. Within a slot, element e
    (row-major) sits at e with its 16-byte chunk's index XORed by bits of the row:
    chunk ^= (row / perPhase) mod phases; `phases` 1 is plain row-major.

    With `panels` a slot is cut into panels of 128 bytes of every row, one panel
    behind the other, each swizzled with 8 phases: what a tensor map writes and a
    warpgroup's product reads.
  }];
  let parameters = (ins "int64_t":$slots, ArrayRefParameter<"int64_t">:$shape,
                        "::mlir::Type":$elementType, "int64_t":$perPhase, "int64_t":$phases,
                        DefaultValuedParameter<"bool", "false">:$panels);
  let assemblyFormat = [{
    `<` $slots `,` `[` $shape `]` `,` $elementType `,` $perPhase `,` $phases (`,` `panels` `=` $panels^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Tile_Channel : Tile_Type<"Channel", "channel"> {
  let summary = "What the sender and the receiver of a ring tell each other";
  let description = [{
    For each of `slots` slots: a full barrier, that what was sent has arrived in the
    slot, and an empty one, that all have read it. The n-th use of a channel, by
    either side, is of slot n mod slots in phase (n / slots) mod 2; whoever uses it
    counts slot and phase along.
  }];
  let parameters = (ins "int64_t":$slots);
  let assemblyFormat = "`<` $slots `>`";
  let genVerifyDecl = 1;
}

def Tile_Token : Tile_Type<"Token", "token"> {
  let summary = "Proof that something asynchronous was started, or has ended";
  let assemblyFormat = "";
}

#endif // NOVA_TILE_DIALECT_TD
