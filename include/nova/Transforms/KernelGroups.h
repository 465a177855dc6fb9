//===- KernelGroups.h - Kernels that are several in one launch -*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel with the attribute `nova.group = {members, shared}` (made by
// nova-group-kernels) is that many kernels side by side, its members. Of its
// arguments the first `shared` are all members'; the others are the members' own, as
// many for each, member after member, and so are the results. The body holds the
// members' operations; no member needs what another one computes, and all members
// do the same but for the extent of the first dimension of their spaces.
//
// `nova.space` is the members' spaces, one after the other, and so are the
// dimensions that `nova.map` names. Of equal rank, once axes are collapsed, they
// share `nova.tile`, which has one entry for each dimension of one member. The grid
// is not a product but a sum: first all points of member 0, then those of member 1.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TRANSFORMS_KERNELGROUPS_H
#define NOVA_TRANSFORMS_KERNELGROUPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>

namespace nova {

struct KernelGroup {
  unsigned members = 1;
  unsigned shared = 0;    ///< Arguments of all members.
  unsigned arguments = 0; ///< Own arguments of each.
  unsigned results = 0;   ///< Of each.

  /// The number among all arguments of a member's argument, its shared ones first.
  unsigned argument(unsigned member, unsigned number) const {
    return number < shared ? number : number + member * arguments;
  }
  unsigned result(unsigned member, unsigned number) const { return member * results + number; }
};

/// Nothing for a kernel that is no group.
std::optional<KernelGroup> groupOf(mlir::func::FuncOp kernel);
/// Makes `kernel`, whose arguments and results are in a group's order, one.
void setGroup(mlir::func::FuncOp kernel, unsigned members, unsigned shared);

/// One member of a group with collapsed axes as a kernel of its own: a copy.
mlir::OwningOpRef<mlir::func::FuncOp> memberOf(mlir::func::FuncOp kernel, unsigned member);

/// The spaces of the members; of a kernel that is no group, its own alone.
llvm::SmallVector<llvm::ArrayRef<int64_t>> memberSpaces(mlir::func::FuncOp kernel);
/// The member with most points along the first dimension of its space.
unsigned largestMember(mlir::func::FuncOp kernel);
/// "[1024, 768]"; of a group "2 x [768], 3 x [4]".
std::string describeSpaces(mlir::func::FuncOp kernel);

} // namespace nova

#endif // NOVA_TRANSFORMS_KERNELGROUPS_H
