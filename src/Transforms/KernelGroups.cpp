//===- KernelGroups.cpp - Kernels that are several in one launch -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/KernelGroups.h"

#include "nova/IR/Nova.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace nova;

static constexpr StringLiteral kMembers = "members", kShared = "shared";

std::optional<KernelGroup> nova::groupOf(func::FuncOp kernel) {
  auto attribute = kernel->getAttrOfType<DictionaryAttr>(attr::group);
  if (!attribute)
    return std::nullopt;
  KernelGroup group;
  group.members = attribute.getAs<IntegerAttr>(kMembers).getInt();
  group.shared = attribute.getAs<IntegerAttr>(kShared).getInt();
  group.arguments = (kernel.getNumArguments() - group.shared) / group.members;
  group.results = kernel.getNumResults() / group.members;
  return group;
}

void nova::setGroup(func::FuncOp kernel, unsigned members, unsigned shared) {
  Builder builder(kernel.getContext());
  kernel->setAttr(attr::group, builder.getDictionaryAttr(
                                   {builder.getNamedAttr(kMembers, builder.getI64IntegerAttr(members)),
                                    builder.getNamedAttr(kShared, builder.getI64IntegerAttr(shared))}));
}

SmallVector<ArrayRef<int64_t>> nova::memberSpaces(func::FuncOp kernel) {
  ArrayRef<int64_t> space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  auto group = groupOf(kernel);
  if (!group)
    return {space};
  SmallVector<ArrayRef<int64_t>> spaces;
  size_t rank = space.size() / group->members;
  for (unsigned member = 0; member < group->members; ++member)
    spaces.push_back(space.slice(member * rank, rank));
  return spaces;
}

unsigned nova::largestMember(func::FuncOp kernel) {
  SmallVector<ArrayRef<int64_t>> spaces = memberSpaces(kernel);
  auto largest = llvm::max_element(spaces, [](ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
    return !a.empty() && a.front() < b.front();
  });
  return largest - spaces.begin();
}

std::string nova::describeSpaces(func::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SmallVector<ArrayRef<int64_t>> spaces = memberSpaces(kernel);
  for (size_t first = 0, next = 0; first < spaces.size(); first = next) {
    while (next < spaces.size() && spaces[next] == spaces[first])
      ++next;
    os << (first ? ", " : "");
    if (groupOf(kernel))
      os << next - first << " x ";
    os << "[";
    llvm::interleaveComma(spaces[first], os);
    os << "]";
  }
  return text;
}

OwningOpRef<func::FuncOp> nova::memberOf(func::FuncOp kernel, unsigned member) {
  KernelGroup group = *groupOf(kernel);
  Block &whole = kernel.getBody().front();
  OpBuilder builder(kernel.getContext());
  SmallVector<unsigned> arguments, results;
  for (unsigned i = 0; i < group.shared + group.arguments; ++i)
    arguments.push_back(group.argument(member, i));
  for (unsigned r = 0; r < group.results; ++r)
    results.push_back(group.result(member, r));
  SmallVector<Type> inputs, outputs;
  for (unsigned i : arguments)
    inputs.push_back(kernel.getArgumentTypes()[i]);
  for (unsigned r : results)
    outputs.push_back(kernel.getResultTypes()[r]);
  OwningOpRef<func::FuncOp> copy =
      func::FuncOp::create(kernel.getLoc(), kernel.getSymName(), builder.getFunctionType(inputs, outputs));
  for (NamedAttribute attribute : kernel->getDiscardableAttrs())
    if (attribute.getName() != attr::group)
      (*copy)->setAttr(attribute.getName(), attribute.getValue());
  copy->setPrivate();
  int64_t rank = memberSpaces(kernel)[member].size();
  (*copy)->setAttr(attr::space, builder.getDenseI64ArrayAttr(memberSpaces(kernel)[member]));
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (DictionaryAttr attributes = kernel.getArgAttrDict(argument))
      copy->setArgAttrs(i, attributes);
  for (auto [i, result] : llvm::enumerate(results)) {
    SmallVector<int64_t> map(kernel.getResultAttrOfType<DenseI64ArrayAttr>(result, attr::map).asArrayRef());
    for (int64_t &dim : map)
      dim = dim < 0 ? dim : dim - member * rank;
    copy->setResultAttrs(i, kernel.getResultAttrDict(result));
    copy->setResultAttr(i, attr::map, builder.getDenseI64ArrayAttr(map));
  }

  Block *block = copy->addEntryBlock();
  IRMapping mapping;
  for (auto [i, argument] : llvm::enumerate(arguments))
    mapping.map(whole.getArgument(argument), block->getArgument(i));
  // What its results need, and that needs.
  DenseSet<Operation *> needed;
  auto need = [&](Value value) {
    if (Operation *op = value.getDefiningOp(); op && op->getBlock() == &whole)
      needed.insert(op);
  };
  for (unsigned result : results)
    need(whole.getTerminator()->getOperand(result));
  for (Operation &op : llvm::reverse(whole))
    if (needed.contains(&op))
      op.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), need); });
  builder.setInsertionPointToEnd(block);
  for (Operation &op : whole)
    if (needed.contains(&op))
      builder.clone(op, mapping);
  SmallVector<Value> returned;
  for (unsigned result : results)
    returned.push_back(mapping.lookup(whole.getTerminator()->getOperand(result)));
  func::ReturnOp::create(builder, whole.getTerminator()->getLoc(), returned);
  return copy;
}
