//===- NovaDialect.td - The nova dialect -------------------*- tablegen -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_DIALECT_TD
#define NOVA_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Nova_Dialect : Dialect {
  let name = "nova";
  let cppNamespace = "::nova";
  let summary = "The mathematics of a training step, forward and backward in one block";
  let description = [{
    Values are ranked tensors of static shape; operations have no side effects
    and say what is computed, never how. A step is one `func.func @step`:

    - the function carries `nova.graph = "NAME"` (the graph's name);
    - each argument carries `nova.name`, `nova.role` ("parameter" "state"
      "buffer" "scalar" "input"), `nova.path`, and where they apply
      `nova.strides` (array<i64>, element strides of the caller's memory; absent
      means contiguous row-major) and `nova.advance` (f64);
    - each result carries `nova.role` ("loss" "output" "gradient" "update") and
      for an update `nova.updates` (i64, the argument it replaces).

    Element types are f64 f32 bf16 f16, i64 i32 i16 i8 (signless, signed
    meaning), ui8 and i1. Binary operations broadcast as NumPy does; operands
    have equal element types (an explicit `nova.cast` promotes).

    From the stage `fused` on, the step is a sequence of `nova.launch` of
    kernels: private functions with `nova.kernel`, described in
    `nova/Transforms/KernelContract.h`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Nova_Attr<string name, string attrMnemonic> : AttrDef<Nova_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Nova_ViewAttr : Nova_Attr<"View", "view"> {
  let summary = "How a launch argument lies in the memory of its operand";
  let description = [{
    `offset` (elements) of the first element and one element stride per
    dimension of the kernel's argument. Stride 0 repeats (a broadcast). A chain
    of reshape, transpose, slice and broadcast composes into one such view.
  }];
  let parameters = (ins "int64_t":$offset, OptionalArrayRefParameter<"int64_t">:$strides);
  let assemblyFormat = "`<` $offset (`,` `[` $strides^ `]`)? `>`";
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Nova_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let genSpecializedAttr = 0;
  let cppNamespace = "::nova";
}

def Nova_ComparePredicate : Nova_Enum<"ComparePredicate", "comparison", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
  I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def Nova_ComparePredicateAttr : EnumAttr<Nova_Dialect, Nova_ComparePredicate, "predicate">;

def Nova_GeluForm : Nova_Enum<"GeluForm", "exact (erf) or tanh approximation", [
  I32EnumAttrCase<"erf", 0>, I32EnumAttrCase<"tanh", 1>]>;
def Nova_GeluFormAttr : EnumAttr<Nova_Dialect, Nova_GeluForm, "gelu_form">;

def Nova_LossReduction : Nova_Enum<"LossReduction", "how a loss is reduced over rows", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"sum", 2>]>;
def Nova_LossReductionAttr : EnumAttr<Nova_Dialect, Nova_LossReduction, "loss_reduction">;

//===----------------------------------------------------------------------===//
// The memory plan
//===----------------------------------------------------------------------===//

def Nova_PlaceKind : Nova_Enum<"PlaceKind", "whose memory", [
  I32EnumAttrCase<"arena", 0>, I32EnumAttrCase<"input", 1>, I32EnumAttrCase<"output", 2>,
  I32EnumAttrCase<"constant", 3>]>;

def Nova_PlaceAttr : Nova_Attr<"Place", "place"> {
  let summary = "Memory: byte `offset` into an arena buffer, an input, an output or a constant";
  let parameters = (ins EnumParameter<Nova_PlaceKind>:$kind, "int64_t":$index, "int64_t":$offset);
  let assemblyFormat = "`<` $kind `,` $index `,` $offset `>`";
}

def Nova_BufferAttr : Nova_Attr<"Buffer", "buffer"> {
  let summary = "An arena buffer: bytes [offset, offset + size), touched by launches first to last";
  let description = "`alias` is the buffer whose memory it takes over in place, or -1.";
  let parameters = (ins "int64_t":$offset, "int64_t":$size, "int64_t":$first, "int64_t":$last,
                        "int64_t":$alias);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // NOVA_DIALECT_TD
