//===- WarpWide.cpp - shfl vote match redux activemask elect
//---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.9.6 (shfl.sync), 9.7.13.9 to 9.7.13.13 (vote.sync, match.sync,
// activemask, redux.sync, elect.sync), 9.7.13.2 (bar.warp.sync).
//
//===----------------------------------------------------------------------===//
#include "../Lanes.h"

#include <algorithm>

using namespace nova::sim;
using nova::sim::ptx::Operand;

namespace {

/// The row of member masks; the instruction waits for these lanes.
void takeMembers(Decoder &d, size_t k) {
  d.out.members = d.source(k, {'b', 32, false, "b32"});
  d.out.kind = Kind::Members;
}

/// op[0] d, op[1] a, op[2] b, op[3] c, op[4] p or kNone; aux: mode.
void shuffle(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = w.row<uint32_t>(i.op[1]), *b = w.row<uint32_t>(i.op[2]),
                 *c = w.row<uint32_t>(i.op[3]);
  alignas(64) uint32_t values[kLanes] = {};
  uint32_t inRange = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = std::countr_zero(left);
    int by = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
    int most = (l & segment) | (clamp & ~segment), least = l & segment;
    int from = l;
    bool good = false;
    switch (i.aux) {
    case 0: // up
      from = l - by;
      good = from >= most;
      break;
    case 1: // down
      from = l + by;
      good = from <= most;
      break;
    case 2: // bfly
      from = l ^ by;
      good = from <= most;
      break;
    default: // idx
      from = least | (by & ~segment);
      good = from <= most;
    }
    if (!good)
      from = l;
    if (!(mask >> from & 1))
      throw FaultFound{FaultKind::Undefined,
                       "reads lane " + std::to_string(from) +
                           ", which does not execute it",
                       static_cast<uint32_t>(l),
                       {},
                       {}};
    values[l] = a[from];
    inRange |= uint32_t(good) << l;
  }
  store(w.row<uint32_t>(i.op[0]), values, mask);
  if (i.op[4] != kNone) {
    uint32_t &p = w.predicate(i.op[4]);
    p = (p & ~mask) | inRange;
  }
}

bool decodeShfl(Decoder &d) {
  if (!d.take("sync"))
    d.fail("expected .sync");
  static constexpr std::string_view modes[] = {"up", "down", "bfly", "idx"};
  uint32_t mode = 0;
  while (mode < 4 && !d.take(modes[mode]))
    ++mode;
  if (mode == 4)
    d.fail("no mode that the simulator knows");
  TypeMod t = d.type();
  d.expectCount(5, 5);
  const Operand &to = d.operand(0);
  if (to.kind == Operand::Pair) {
    d.out.op[0] = d.target(to.items[0], 32);
    d.out.op[4] = d.target(to.items[1], 1);
  } else {
    d.out.op[0] = d.target(to, 32);
  }
  TypeMod b32{'b', 32, false, "b32"};
  for (unsigned k = 1; k <= 3; ++k)
    d.out.op[k] = d.source(k, b32);
  takeMembers(d, 4);
  d.out.aux = mode;
  d.out.run = shuffle;
  return t.bits == 32;
}

/// op[0] d, op[1] the predicate; aux: 0 all 1 any 2 uni 3 ballot, 8 negated.
void vote(Warp &w, const Inst &i, uint32_t mask) {
  uint32_t p = w.predicate(i.op[1]);
  p = ((i.aux & 8) ? ~p : p) & mask;
  if ((i.aux & 7) == 3) {
    for (uint32_t left = mask; left; left &= left - 1)
      w.row<uint32_t>(i.op[0])[std::countr_zero(left)] = p;
    return;
  }
  bool r = (i.aux & 7) == 0   ? p == mask
           : (i.aux & 7) == 1 ? p != 0
                              : p == 0 || p == mask;
  uint32_t &to = w.predicate(i.op[0]);
  to = (to & ~mask) | (r ? mask : 0);
}

bool decodeVote(Decoder &d) {
  if (!d.take("sync"))
    d.fail("expected .sync");
  static constexpr std::string_view modes[] = {"all", "any", "uni", "ballot"};
  uint32_t mode = 0;
  while (mode < 4 && !d.take(modes[mode]))
    ++mode;
  if (mode == 4)
    d.fail("no mode that the simulator knows");
  d.type();
  d.expectCount(3, 3);
  bool negated = false;
  d.out.op[0] = d.target(0, mode == 3 ? 32 : 1);
  d.out.op[1] = d.predicate(d.operand(1), negated);
  takeMembers(d, 2);
  d.out.aux = mode | (negated ? 8 : 0);
  d.out.run = vote;
  return true;
}

template <typename T> void match(Warp &w, const Inst &i, uint32_t mask) {
  const T *a = w.row<T>(i.op[1]);
  uint32_t *to = w.row<uint32_t>(i.op[0]);
  alignas(64) uint32_t values[kLanes] = {};
  bool all = true;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    for (unsigned k = 0; k < kLanes; ++k)
      if ((mask >> k & 1) && a[k] == a[l])
        values[l] |= uint32_t(1) << k;
    all &= values[l] == mask;
  }
  if (i.aux) {
    std::fill_n(values, kLanes, all ? mask : 0);
    if (i.op[4] != kNone) {
      uint32_t &p = w.predicate(i.op[4]);
      p = (p & ~mask) | (all ? mask : 0);
    }
  }
  store(to, values, mask);
}

bool decodeMatch(Decoder &d) {
  bool all = d.take("all");
  if (!all && !d.take("any"))
    d.fail("no .all or .any");
  if (!d.take("sync"))
    d.fail("expected .sync");
  TypeMod t = d.type();
  d.expectCount(3, 3);
  const Operand &to = d.operand(0);
  if (to.kind == Operand::Pair) {
    d.out.op[0] = d.target(to.items[0], 32);
    d.out.op[4] = d.target(to.items[1], 1);
  } else {
    d.out.op[0] = d.target(to, 32);
  }
  d.out.op[1] = d.source(1, t);
  takeMembers(d, 2);
  d.out.aux = all;
  d.out.run = t.bits == 64 ? match<uint64_t> : match<uint32_t>;
  return true;
}

/// aux: 0 add 1 min 2 max 3 and 4 or 5 xor, 8 signed.
void reduce(Warp &w, const Inst &i, uint32_t mask) {
  const uint32_t *a = w.row<uint32_t>(i.op[1]);
  uint32_t r = a[std::countr_zero(mask)];
  for (uint32_t left = mask & (mask - 1); left; left &= left - 1) {
    uint32_t v = a[std::countr_zero(left)];
    bool less = (i.aux & 8) ? int32_t(v) < int32_t(r) : v < r;
    switch (i.aux & 7) {
    case 0:
      r += v;
      break;
    case 1:
      r = less ? v : r;
      break;
    case 2:
      r = less ? r : v;
      break;
    case 3:
      r &= v;
      break;
    case 4:
      r |= v;
      break;
    default:
      r ^= v;
    }
  }
  for (uint32_t left = mask; left; left &= left - 1)
    w.row<uint32_t>(i.op[0])[std::countr_zero(left)] = r;
}

bool decodeRedux(Decoder &d) {
  if (!d.take("sync"))
    d.fail("expected .sync");
  static constexpr std::string_view ops[] = {"add", "min", "max",
                                             "and", "or",  "xor"};
  uint32_t op = 0;
  while (op < 6 && !d.take(ops[op]))
    ++op;
  TypeMod t = d.type();
  if (op == 6 || !t.isInteger() || t.bits != 32)
    d.fail("no operation and type that the simulator knows");
  d.expectCount(3, 3);
  d.out.op[0] = d.target(0, 32);
  d.out.op[1] = d.source(1, t);
  takeMembers(d, 2);
  d.out.aux = op | (t.kind == 's' ? 8 : 0);
  d.out.run = reduce;
  return true;
}

bool decodeActivemask(Decoder &d) {
  d.type();
  d.expectCount(1, 1);
  d.out.op[0] = d.target(0, 32);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1)
      w.row<uint32_t>(i.op[0])[std::countr_zero(left)] = mask;
  };
  return true;
}

/// ISA 9.7.13.13: one lane is chosen, always the same one.
bool decodeElect(Decoder &d) {
  if (!d.take("sync"))
    d.fail("expected .sync");
  d.expectCount(2, 2);
  const Operand &to = d.operand(0);
  if (to.kind != Operand::Pair)
    d.fail("no d|p");
  d.out.op[0] = d.target(to.items[0], 32);
  d.out.op[1] = d.target(to.items[1], 1);
  takeMembers(d, 1);
  d.out.run = [](Warp &w, const Inst &i, uint32_t mask) {
    uint32_t leader = mask & (0 - mask);
    uint32_t &p = w.predicate(i.op[1]);
    p = (p & ~mask) | leader;
    for (uint32_t left = mask; left; left &= left - 1)
      w.row<uint32_t>(i.op[0])[std::countr_zero(left)] =
          static_cast<uint32_t>(std::countr_zero(leader));
  };
  return true;
}

} // namespace

void nova::sim::addWarpInstructions(InstructionTable &table) {
  table.add("shfl", decodeShfl);
  table.add("vote", decodeVote);
  table.add("match", decodeMatch);
  table.add("redux", decodeRedux);
  table.add("activemask", decodeActivemask);
  table.add("elect", decodeElect);
}
