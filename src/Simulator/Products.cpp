//===- Products.cpp - Registers of products, and who touches them ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"
#include "Machine.h"

#include <algorithm>
#include <unordered_map>

using namespace nova::sim;

void nova::sim::watchRegisters(Code &code,
                               const std::vector<Touched> &touched) {
  if (!code.hasProducts)
    return;
  std::sort(code.watched.begin(), code.watched.end());
  code.watched.erase(std::unique(code.watched.begin(), code.watched.end()),
                     code.watched.end());
  std::unordered_map<uint32_t, uint32_t> number;
  for (uint32_t k = 0; k < code.watched.size(); ++k)
    number[code.watched[k]] = k;
  for (size_t i = 0; i < code.body.size(); ++i) {
    Inst &inst = code.body[i];
    if (isProduct(inst)) {
      // Of a product, its own registers, in its order.
      const uint32_t *rows = code.lists.data() + inst.list + kProductRows;
      uint32_t count = code.lists[inst.list + kProductCount];
      inst.target = static_cast<uint32_t>(code.watches.size());
      for (uint32_t k = 0; k < count; ++k)
        code.watches.push_back(number.at(rows[k]));
      continue;
    }
    std::vector<uint32_t> found;
    for (uint32_t row : touched[i].reads)
      if (auto k = number.find(row); k != number.end())
        found.push_back(2 * k->second);
    for (uint32_t row : touched[i].writes)
      if (auto k = number.find(row); k != number.end())
        found.push_back(2 * k->second + 1);
    if (found.empty())
      continue;
    inst.watch = static_cast<uint32_t>(code.watches.size());
    code.watches.push_back(static_cast<uint32_t>(found.size()));
    code.watches.insert(code.watches.end(), found.begin(), found.end());
  }
}

/// "first wgmma.commit_group, then wgmma.wait_group 1".
static std::string waitAdvice(const WarpProducts &p, uint32_t group) {
  bool committed = group < p.open;
  return std::string("first ") +
         (committed ? "" : "wgmma.commit_group, then ") + "wgmma.wait_group " +
         std::to_string(committed ? p.open - 1 - group : 0);
}

void Warp::touchWatched(const Inst &inst) {
  const uint32_t *entry = code->watches.data() + inst.watch;
  for (uint32_t k = 1; k <= entry[0]; ++k) {
    WatchedRegister &r = products.registers[entry[k] / 2];
    bool writes = entry[k] & 1;
    if (r.group > products.done)
      throw FaultFound{FaultKind::ProductPending,
                       std::string(writes ? "writes" : "reads") +
                           " a register that the product issued at " +
                           describeInst(*code, r.inst) +
                           (r.shape ? " still sums into: " : " still reads: ") +
                           waitAdvice(products, r.group),
                       {},
                       {},
                       {}};
    if (writes) {
      r.written = true;
      r.writtenInst = indexOf(inst);
    }
  }
}

void Warp::useInProduct(uint32_t watched, uint32_t shape) {
  WatchedRegister &r = products.registers[watched];
  if (r.written)
    throw FaultFound{
        FaultKind::ProductPending,
        std::string("uses a register that ") +
            (r.writtenInst
                 ? "was written at " + describeInst(*code, r.writtenInst)
                 : "nothing has ordered yet") +
            ", with no wgmma.fence since: it comes after the last write and "
            "before the product",
        {},
        {},
        {}};
  // Products of one shape may sum into the same registers, in order.
  if (r.group > products.done && (r.shape || shape) && r.shape != shape)
    throw FaultFound{
        FaultKind::ProductPending,
        "uses a register otherwise than the product issued at " +
            describeInst(*code, r.inst) +
            ", which still has it: " + waitAdvice(products, r.group),
        {},
        {},
        {}};
  r.group = products.open;
  r.inst = indexOf(*current);
  r.shape = shape;
}
