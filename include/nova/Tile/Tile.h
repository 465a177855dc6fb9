//===- Tile.h - The tile dialect: the one public include -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILE_TILE_H
#define NOVA_TILE_TILE_H

#include "nova/Layout/LinearLayout.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace nova::tile {
/// Attributes of a tile program (a function).
namespace attr {
/// i64: warps of the block that runs it.
inline constexpr llvm::StringLiteral warps = "tile.warps";
/// i64: number of grid points.
inline constexpr llvm::StringLiteral grid = "tile.grid";
/// i64, of an argument: its address is a multiple of this many bytes (16 if absent).
inline constexpr llvm::StringLiteral alignment = "tile.alignment";
/// unit, of an argument: a result of the program may share its memory.
inline constexpr llvm::StringLiteral overwritten = "tile.overwritten";
/// i64: slots of the rings through which loops prefetch; below 2: none.
inline constexpr llvm::StringLiteral stages = "tile.stages";
/// i64: blocks that a multiprocessor is to hold at once, for which its registers
/// must do; 1 if absent.
inline constexpr llvm::StringLiteral residentBlocks = "tile.resident_blocks";
/// unit: the device copies by tensor maps and multiplies by whole warpgroups
/// (compute capability 9.0a), and the program is to use both.
inline constexpr llvm::StringLiteral asynchronous = "tile.asynchronous";
/// i64: teams of tile.warps warps each. The grid points of a block that stays are
/// dealt out to them one after the other; 1 if absent.
inline constexpr llvm::StringLiteral teams = "tile.teams";
/// i64: blocks of a launch that stays on the device, each taking every so-manieth
/// grid point; absent: a block has one point.
inline constexpr llvm::StringLiteral persistentBlocks = "tile.persistent_blocks";
/// On a loop over a block's grid points (unit): its iterations are the teams'.
inline constexpr llvm::StringLiteral dealt = "tile.dealt";
} // namespace attr
} // namespace nova::tile

#include "nova/Tile/TileDialect.h.inc"
#include "nova/Tile/TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "nova/Tile/TileAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "nova/Tile/TileTypes.h.inc"

#define GET_OP_CLASSES
#include "nova/Tile/TileOps.h.inc"

#endif // NOVA_TILE_TILE_H
