//===- Control.cpp - Branches, and the ends of threads
//---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.12 (bra, brx.idx, ret, exit) and 9.7.19 (trap, nanosleep, ...).
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"

using namespace nova::sim;

namespace {

Next branch(Warp &w, uint32_t fragment, const Inst &i, uint32_t mask) {
  const Fragment &f = w.fragments[fragment];
  if (!mask || i.target == f.pc + 1)
    return Next::Advance;
  if (mask == f.mask) {
    w.jump(fragment, i.target);
    return Next::Stay;
  }
  if (i.aux)
    throw FaultFound{FaultKind::Undefined,
                     "a branch that says .uni, on which lanes disagree",
                     static_cast<uint32_t>(std::countr_zero(mask)),
                     {},
                     {}};
  w.split(fragment, i, mask);
  return Next::Switch;
}

/// The list holds the targets, aux their number, op[0] the index.
Next indexedBranch(Warp &w, uint32_t fragment, const Inst &i, uint32_t mask) {
  if (!mask)
    return Next::Advance;
  const uint32_t *index = w.row<uint32_t>(i.op[0]);
  uint32_t first = index[std::countr_zero(mask)], same = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    if (index[l] >= i.aux)
      throw FaultFound{FaultKind::Undefined,
                       "index " + std::to_string(index[l]) + " of " +
                           std::to_string(i.aux) + " targets",
                       l,
                       {},
                       {}};
    same |= uint32_t(index[l] == first) << l;
  }
  uint32_t target = w.list(i)[first];
  if (same == w.fragments[fragment].mask) {
    w.jump(fragment, target);
    return Next::Stay;
  }
  // Lanes of one target at a time; the others come back to this instruction.
  w.splitTo(fragment, same, target, w.fragments[fragment].pc, i.reconverge);
  return Next::Switch;
}

Next end(Warp &w, uint32_t fragment, const Inst &, uint32_t mask) {
  if (!mask)
    return Next::Advance;
  bool all = mask == w.fragments[fragment].mask;
  w.leave(fragment, mask);
  return all ? Next::Switch : Next::Advance;
}

bool decodeBra(Decoder &d) {
  d.out.aux = d.take("uni");
  d.expectCount(1, 1);
  d.out.target = d.branchTarget(d.operand(0));
  d.out.kind = Kind::Flow;
  d.out.flow = branch;
  return true;
}

bool decodeBrx(Decoder &d) {
  if (!d.take("idx"))
    d.fail("expected .idx");
  d.take("uni");
  d.expectCount(2, 2);
  d.out.op[0] = d.source(0, {'u', 32, false, "u32"});
  auto found = d.names.entry.branchTargets.find(d.operand(1).name);
  if (found == d.names.entry.branchTargets.end())
    d.fail("'" + std::string(d.operand(1).name) + "' is no list of targets");
  std::vector<uint32_t> targets;
  for (std::string_view name : found->second) {
    nova::sim::ptx::Operand o;
    o.kind = nova::sim::ptx::Operand::Name;
    o.name = name;
    targets.push_back(d.branchTarget(o));
  }
  d.out.aux = static_cast<uint32_t>(targets.size());
  d.out.list = d.addList(targets);
  d.out.kind = Kind::Flow;
  d.out.flow = indexedBranch;
  return true;
}

bool decodeEnd(Decoder &d) {
  d.take("uni");
  d.expectCount(0, 0);
  d.out.kind = Kind::Flow;
  d.out.small = kEndsThread;
  d.out.flow = end;
  return true;
}

bool decodeTrap(Decoder &d) {
  d.expectCount(0, 0);
  d.out.run = [](Warp &, const Inst &, uint32_t mask) {
    throw FaultFound{FaultKind::Trap,
                     "the kernel gives up",
                     static_cast<uint32_t>(std::countr_zero(mask)),
                     {},
                     {}};
  };
  return true;
}

/// Time does not pass, and nobody watches.
bool decodeNothing(Decoder &d) {
  d.takeType();
  d.out.run = [](Warp &, const Inst &, uint32_t) {};
  return true;
}

} // namespace

void nova::sim::addControlInstructions(InstructionTable &table) {
  table.add("bra", decodeBra);
  table.add("brx", decodeBrx);
  table.add("ret", decodeEnd);
  table.add("exit", decodeEnd);
  table.add("trap", decodeTrap);
  table.add("nanosleep", decodeNothing);
  table.add("pmevent", decodeNothing);
}
