//===- Nova.h - The nova dialect: the one public include -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_IR_NOVA_H
#define NOVA_IR_NOVA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace nova {
/// Each result element depends on the operand elements at its own position.
template <typename ConcreteType>
class Pointwise : public mlir::OpTrait::TraitBase<ConcreteType, Pointwise> {};
/// Rearranges without computing; becomes indexing in whoever reads it.
template <typename ConcreteType>
class ViewLike : public mlir::OpTrait::TraitBase<ConcreteType, ViewLike> {};

/// NumPy broadcasting of two static shapes; failure if they do not agree.
mlir::FailureOr<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs);

/// Row-major element strides of a shape.
llvm::SmallVector<int64_t> contiguousStrides(llvm::ArrayRef<int64_t> shape);

/// Size of one element in memory, in bytes (i1 takes one).
int64_t elementBytes(mlir::Type elementType);

/// Attribute names of the step contract (see the dialect's description).
namespace attr {
inline constexpr llvm::StringLiteral graph = "nova.graph";
inline constexpr llvm::StringLiteral name = "nova.name";
inline constexpr llvm::StringLiteral role = "nova.role";
inline constexpr llvm::StringLiteral path = "nova.path";
inline constexpr llvm::StringLiteral strides = "nova.strides";
inline constexpr llvm::StringLiteral advance = "nova.advance";
inline constexpr llvm::StringLiteral updates = "nova.updates";
inline constexpr llvm::StringLiteral kernel = "nova.kernel";
inline constexpr llvm::StringLiteral space = "nova.space";
/// Of a kernel that is several in one launch (nova/Transforms/KernelGroups.h).
inline constexpr llvm::StringLiteral group = "nova.group";
inline constexpr llvm::StringLiteral tile = "nova.tile";
/// Tile of each local axis, in the order of its first loop (GPU schedules).
inline constexpr llvm::StringLiteral localTile = "nova.local_tile";
inline constexpr llvm::StringLiteral map = "nova.map";
/// i64, from `configured` on, for GPUs: warps of a block.
inline constexpr llvm::StringLiteral warps = "nova.warps";
/// i64, likewise: slots of the rings that bring operands of products (1: none).
inline constexpr llvm::StringLiteral stages = "nova.stages";
/// i64, likewise: blocks that a multiprocessor's registers are to be divided among.
inline constexpr llvm::StringLiteral residentBlocks = "nova.resident_blocks";
/// i64, likewise: blocks of a launch that stay on the device and go from tile to tile
/// (absent: every block has one), and teams of warps among which a block's tiles are
/// dealt out (absent: one).
inline constexpr llvm::StringLiteral persistentBlocks = "nova.persistent_blocks";
inline constexpr llvm::StringLiteral teams = "nova.teams";
/// i64, likewise: rows of tiles that are gone through column by column before the
/// next ones, so that blocks that run at once share what they read (1: row-major).
inline constexpr llvm::StringLiteral rasterRows = "nova.raster_rows";
/// String, likewise: which lowering the schedule is for (config::familyName).
inline constexpr llvm::StringLiteral family = "nova.family";
/// Likewise: schedules, the first to try first (nova/Transforms/Candidates.h).
inline constexpr llvm::StringLiteral candidates = "nova.candidates";
/// Likewise: what was enumerated and cannot run, with why, as strings.
inline constexpr llvm::StringLiteral dropped = "nova.dropped";
inline constexpr llvm::StringLiteral inplace = "nova.inplace";
/// From `configured` on: the predicted time of a launch, and one line on why
/// the tile was chosen.
inline constexpr llvm::StringLiteral predictedNs = "nova.predicted_ns";
inline constexpr llvm::StringLiteral reason = "nova.reason";
/// From `plan` on (see nova/Transforms/Plan.h).
inline constexpr llvm::StringLiteral arena = "nova.arena";
inline constexpr llvm::StringLiteral places = "nova.places";
inline constexpr llvm::StringLiteral after = "nova.after";
/// i64 on a kernel's argument or result, from `plan` on: its address is a multiple
/// of this many bytes in every launch (absent: 16).
inline constexpr llvm::StringLiteral alignment = "nova.alignment";
} // namespace attr
} // namespace nova

#include "nova/IR/NovaDialect.h.inc"
#include "nova/IR/NovaEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "nova/IR/NovaAttrs.h.inc"
#define GET_OP_CLASSES
#include "nova/IR/NovaOps.h.inc"

#endif // NOVA_IR_NOVA_H
