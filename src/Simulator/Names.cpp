//===- Names.cpp - Registers, variables and labels of a kernel ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include <algorithm>
#include <bit>

using namespace nova;
using namespace nova::sim;

static uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

uint32_t Names::allocate(unsigned width) {
  uint32_t offset = code.fileBytes;
  // A predicate is one word; rows start where a vector register may.
  code.fileBytes += width == 1 ? 4 : width == 64 ? 256 : 128;
  return offset;
}

static std::string initialBytes(const ptx::Variable &v) {
  std::string bytes(v.bytes(), '\0');
  unsigned size = v.type.bits / 8;
  for (size_t k = 0; k < v.initial.size(); ++k)
    for (unsigned b = 0; b < size && k * size + b < bytes.size(); ++b)
      bytes[k * size + b] = static_cast<char>(v.initial[k] >> (8 * b));
  return bytes;
}

Names::Names(const ptx::Module &module, const ptx::Entry &entry, Code &code)
    : entry(entry), code(code) {
  // Predicates first: what follows stays aligned.
  for (bool predicates : {true, false}) {
    for (const ptx::Register &r : entry.registers) {
      if ((r.type.kind == 'p') != predicates)
        continue;
      unsigned width = std::max(r.type.bits, predicates ? 1u : 16u);
      if (r.type.bits > 64)
        throw Unknown{{ErrorCode::Missing,
                       "registers of " + std::to_string(r.type.bits) +
                           " bits ('" + std::string(r.name) +
                           "'), which the simulator does not know",
                       {}}};
      uint32_t count = r.count.value_or(1);
      static constexpr uint32_t kMost = 1 << 20;
      if (count > kMost)
        throw Unknown{{ErrorCode::Missing,
                       std::to_string(count) + " registers '" +
                           std::string(r.name) + "', the limit is " +
                           std::to_string(kMost),
                       {}}};
      if (r.count)
        for (uint32_t k = 0; k < count; ++k)
          numbered[{r.scope, r.name}].push_back({allocate(width), width});
      else
        rows[{r.scope, r.name}] = {allocate(width), width};
      code.registers += predicates ? 0 : count * ((width + 31) / 32);
    }
    code.fileBytes = static_cast<uint32_t>(alignUp(code.fileBytes, 64));
  }
  for (const ptx::Variable &p : entry.params) {
    code.parameterBytes = alignUp(code.parameterBytes, p.alignment);
    addresses[p.name] = kParameterBase + code.parameterBytes;
    code.parameters.push_back(
        {std::string(p.name), code.parameterBytes, p.bytes()});
    code.parameterBytes += p.bytes();
  }
  auto shared = [&](const ptx::Variable &v) {
    if (v.elements == 0) {
      code.sharedAlignment = std::max(code.sharedAlignment, v.alignment);
      return;
    }
    code.staticShared = alignUp(code.staticShared, v.alignment);
    addresses[v.name] = kSharedBase + code.staticShared;
    sharedNames.insert(v.name);
    code.shared.push_back({std::string(v.name), code.staticShared, v.bytes()});
    code.staticShared += v.bytes();
  };
  for (const auto *list : {&module.variables, &entry.variables})
    for (const ptx::Variable &v : *list)
      if (v.space == ptx::Space::Shared)
        shared(v);
      else if (v.space == ptx::Space::Local) {
        code.localBytes = alignUp(code.localBytes, v.alignment);
        addresses[v.name] = kLocalBase + code.localBytes;
        code.localBytes += v.bytes();
      }
  // What the launch sizes comes after what the kernel sizes.
  uint64_t dynamic = alignUp(code.staticShared, code.sharedAlignment);
  for (const ptx::Variable &v : module.variables) {
    if (v.space == ptx::Space::Shared && v.elements == 0) {
      code.staticShared = dynamic;
      addresses[v.name] = kSharedBase + dynamic;
      sharedNames.insert(v.name);
      code.shared.push_back({std::string(v.name), dynamic, 0});
    } else if (v.space == ptx::Space::Global || v.space == ptx::Space::Const) {
      // Windows of variables come before those of the arguments.
      addresses[v.name] = uint64_t(1 + code.globals.size()) << kWindowShift;
      code.globals.push_back({std::string(v.name), initialBytes(v),
                              v.space == ptx::Space::Global});
    }
  }
}

const Names::Row *Names::find(std::string_view name, uint32_t scope) const {
  size_t digits = name.find_last_not_of("0123456789") + 1;
  for (;; scope = entry.scopes[scope]) {
    auto found = rows.find({scope, name});
    if (found != rows.end())
      return &found->second;
    if (digits < name.size()) {
      auto set = numbered.find({scope, name.substr(0, digits)});
      if (set != numbered.end()) {
        size_t number = 0;
        for (char c : name.substr(digits))
          number = std::min<size_t>(number * 10 + size_t(c - '0'), 1 << 24);
        if (number < set->second.size())
          return &set->second[number];
      }
    }
    if (scope == 0)
      return nullptr;
  }
}

uint32_t Names::constant(uint64_t bits, unsigned width) {
  if (width == 32)
    bits &= 0xffffffff;
  auto [entry, isNew] = constants.try_emplace({bits, width}, 0);
  if (isNew) {
    // Predicates are small; keep rows aligned.
    entry->second = allocate(width == 1 ? 32 : width);
    code.constants.push_back({entry->second, {bits, width}});
  }
  return entry->second;
}

uint32_t Names::sharedAddress(uint64_t address, unsigned width) {
  auto [entry, isNew] = sharedRows.try_emplace({address, width}, 0);
  if (isNew) {
    entry->second = allocate(width);
    code.sharedAddresses.push_back({entry->second, {address, width}});
  }
  return entry->second;
}

std::optional<Names::Row> Names::special(std::string_view name) {
  static const std::map<std::string_view, Special> table = {
      {"%tid.x", Special::TidX},
      {"%tid.y", Special::TidY},
      {"%tid.z", Special::TidZ},
      {"%ntid.x", Special::NtidX},
      {"%ntid.y", Special::NtidY},
      {"%ntid.z", Special::NtidZ},
      {"%ctaid.x", Special::CtaidX},
      {"%ctaid.y", Special::CtaidY},
      {"%ctaid.z", Special::CtaidZ},
      {"%nctaid.x", Special::NctaidX},
      {"%nctaid.y", Special::NctaidY},
      {"%nctaid.z", Special::NctaidZ},
      {"%laneid", Special::LaneId},
      {"%warpid", Special::WarpId},
      {"%nwarpid", Special::NwarpId},
      {"%lanemask_eq", Special::LanemaskEq},
      {"%lanemask_le", Special::LanemaskLe},
      {"%lanemask_lt", Special::LanemaskLt},
      {"%lanemask_ge", Special::LanemaskGe},
      {"%lanemask_gt", Special::LanemaskGt},
      {"%clock", Special::Clock},
      {"%smid", Special::SmId},
      {"%nsmid", Special::NsmId},
      {"%dynamic_smem_size", Special::DynamicSmemSize},
      {"%total_smem_size", Special::TotalSmemSize},
      {"%cluster_ctarank", Special::ClusterCtaRank},
      {"%cluster_nctarank", Special::ClusterNctaRank},
      {"%clusterid.x", Special::ClusterIdX},
      {"%clusterid.y", Special::ClusterIdY},
      {"%clusterid.z", Special::ClusterIdZ},
      {"%nclusterid.x", Special::NclusterIdX},
      {"%nclusterid.y", Special::NclusterIdY},
      {"%nclusterid.z", Special::NclusterIdZ},
      {"%cluster_ctaid.x", Special::ClusterCtaidX},
      {"%cluster_ctaid.y", Special::ClusterCtaidY},
      {"%cluster_ctaid.z", Special::ClusterCtaidZ},
      {"%cluster_nctaid.x", Special::ClusterNctaidX},
      {"%cluster_nctaid.y", Special::ClusterNctaidY},
      {"%cluster_nctaid.z", Special::ClusterNctaidZ},
  };
  if (name == "%clock64" || name == "%gridid" || name == "%globaltimer")
    return Row{constant(0, 64), 64};
  auto found = table.find(name);
  if (found == table.end())
    return std::nullopt;
  auto [entry, isNew] = specials.try_emplace(found->second, 0);
  if (isNew) {
    entry->second = allocate(32);
    code.specials.push_back({entry->second, found->second});
  }
  return Row{entry->second, 32};
}

std::optional<uint64_t> Names::address(std::string_view name) const {
  auto found = addresses.find(name);
  if (found == addresses.end())
    return std::nullopt;
  return found->second;
}

const Parameter *Names::parameter(std::string_view name) const {
  for (const Parameter &p : code.parameters)
    if (p.name == name)
      return &p;
  return nullptr;
}

std::optional<uint32_t> Names::label(std::string_view name,
                                     uint32_t scope) const {
  for (;; scope = entry.scopes[scope]) {
    for (const ptx::Label &l : entry.labels)
      if (l.name == name && l.scope == scope)
        return l.at;
    if (scope == 0)
      return std::nullopt;
  }
}
