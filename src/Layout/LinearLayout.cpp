//===- LinearLayout.cpp - Where the elements of a tile are ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Layout/LinearLayout.h"

#include <algorithm>
#include <bit>
#include <cassert>

using namespace nova;

int64_t nova::powerOfTwoPart(int64_t n) { return n & -n; }
int64_t nova::ceilPowerOfTwo(int64_t n) {
  return n <= 1 ? 1 : int64_t{1} << std::bit_width(uint64_t(n - 1));
}
unsigned nova::log2Exact(int64_t powerOfTwo) {
  assert(std::has_single_bit(uint64_t(powerOfTwo)));
  return std::countr_zero(uint64_t(powerOfTwo));
}

namespace {
/// A subspace of F2^64 in echelon form.
class Span {
public:
  /// Adds a vector; false if it was in the span already.
  bool add(int64_t vector) {
    for (int64_t basis : reduced)
      vector = std::min(vector, vector ^ basis);
    if (vector)
      reduced.push_back(vector);
    return vector != 0;
  }
  size_t dimension() const { return reduced.size(); }

private:
  std::vector<int64_t> reduced;
};
} // namespace

static int64_t combine(const LinearLayout::Bases &bases, int64_t index) {
  int64_t result = 0;
  for (size_t bit = 0; bit < bases.size(); ++bit)
    if (index >> bit & 1)
      result ^= bases[bit];
  return result;
}

static int64_t product(const std::vector<int64_t> &factors) {
  int64_t result = 1;
  for (int64_t factor : factors)
    result *= factor;
  return result;
}

LinearLayout::LinearLayout(std::vector<int64_t> coreExtents,
                           std::vector<int64_t> outerFactors,
                           Bases registerBases, Bases laneBases,
                           Bases warpBases)
    : core(std::move(coreExtents)), outer(std::move(outerFactors)),
      registers(std::move(registerBases)), lanes(std::move(laneBases)),
      warps(std::move(warpBases)) {
  if (outer.empty())
    outer.assign(core.size(), 1);
  assert(outer.size() == core.size() && lanes.size() == kLaneBits);
}

LinearLayout LinearLayout::blocked(const std::vector<int64_t> &shape,
                                   const std::vector<unsigned> &order,
                                   int64_t vector, int64_t warpCount) {
  size_t rank = shape.size();
  std::vector<int64_t> core(rank), outer(rank);
  for (size_t d = 0; d < rank; ++d) {
    core[d] = powerOfTwoPart(shape[d]);
    outer[d] = shape[d] / core[d];
  }
  // Bits of the core in the order in which they are handed out.
  std::vector<int64_t> bits;
  for (unsigned d : order) {
    int64_t unit = 1;
    for (size_t inner = d + 1; inner < rank; ++inner)
      unit *= core[inner];
    for (unsigned bit = 0; bit < log2Exact(core[d]); ++bit)
      bits.push_back(unit << bit);
  }
  size_t inVector =
      order.empty() ? 0
                    : std::min(log2Exact(vector), log2Exact(core[order[0]]));
  Bases registers(bits.begin(), bits.begin() + inVector);
  size_t next = inVector;
  auto take = [&](size_t count) {
    Bases bases;
    for (size_t i = 0; i < count; ++i)
      bases.push_back(next < bits.size() ? bits[next++] : 0);
    return bases;
  };
  Bases lanes = take(kLaneBits);
  Bases warps = take(log2Exact(warpCount));
  registers.insert(registers.end(), bits.begin() + next, bits.end());
  return LinearLayout(core, outer, registers, lanes, warps);
}

std::vector<int64_t> LinearLayout::shape() const {
  std::vector<int64_t> result(rank());
  for (unsigned d = 0; d < rank(); ++d)
    result[d] = core[d] * outer[d];
  return result;
}

int64_t LinearLayout::coreElements() const { return product(core); }
int64_t LinearLayout::outerElements() const { return product(outer); }
int64_t LinearLayout::elements() const {
  return coreElements() * outerElements();
}
int64_t LinearLayout::registerCount() const {
  return (int64_t{1} << registers.size()) * outerElements();
}

int64_t LinearLayout::coreElement(int64_t r, int64_t lane, int64_t warp) const {
  return combine(registers, r) ^ combine(lanes, lane) ^ combine(warps, warp);
}

LinearLayout::Coordinates LinearLayout::split(int64_t element) const {
  Coordinates coords(rank());
  for (unsigned d = rank(); d-- > 0;) {
    coords[d] = element % core[d];
    element /= core[d];
  }
  return coords;
}

int64_t LinearLayout::join(const Coordinates &coords) const {
  int64_t element = 0;
  for (unsigned d = 0; d < rank(); ++d)
    element = element * core[d] + coords[d];
  return element;
}

static void addOuter(const LinearLayout &layout, int64_t repeat,
                     LinearLayout::Coordinates &coords) {
  for (unsigned d = layout.rank(); d-- > 0;) {
    coords[d] += repeat % layout.outer[d] * layout.core[d];
    repeat /= layout.outer[d];
  }
}

LinearLayout::Coordinates LinearLayout::coordinates(int64_t r, int64_t lane,
                                                    int64_t warp) const {
  int64_t inCore = int64_t{1} << registers.size();
  Coordinates coords = split(coreElement(r % inCore, lane, warp));
  addOuter(*this, r / inCore, coords);
  return coords;
}

LinearLayout::Coordinates LinearLayout::registerCoordinates(int64_t r) const {
  return coordinates(r, 0, 0);
}

bool LinearLayout::isSurjective() const {
  Span span;
  for (const Bases *bases : {&registers, &lanes, &warps})
    for (int64_t basis : *bases)
      span.add(basis);
  return span.dimension() == log2Exact(coreElements());
}

bool LinearLayout::registersAreDistinct() const {
  Span span;
  return std::all_of(registers.begin(), registers.end(),
                     [&](int64_t basis) { return span.add(basis); });
}

static int64_t zeroBits(const LinearLayout::Bases &bases) {
  int64_t mask = 0;
  for (size_t bit = 0; bit < bases.size(); ++bit)
    if (bases[bit] == 0)
      mask |= int64_t{1} << bit;
  return mask;
}

int64_t LinearLayout::freeLaneBits() const { return zeroBits(lanes); }
int64_t LinearLayout::freeWarpBits() const { return zeroBits(warps); }

bool LinearLayout::isDisjoint() const {
  int64_t seen = 0;
  for (const Bases *bases : {&registers, &lanes, &warps})
    for (int64_t basis : *bases) {
      if (seen & basis)
        return false;
      seen |= basis;
    }
  return true;
}

/// The layout whose coordinates are `select` (dimension by dimension) of the
/// old one's.
template <typename Select>
static LinearLayout reshaped(const LinearLayout &layout,
                             std::vector<int64_t> core,
                             std::vector<int64_t> outer, Select select) {
  LinearLayout shape(core, outer, {}, LinearLayout::Bases(kLaneBits, 0), {});
  auto map = [&](const LinearLayout::Bases &bases) {
    LinearLayout::Bases result;
    for (int64_t basis : bases)
      result.push_back(shape.join(select(layout.split(basis))));
    return result;
  };
  return LinearLayout(core, outer, map(layout.registers), map(layout.lanes),
                      map(layout.warps));
}

LinearLayout LinearLayout::slice(unsigned dim) const {
  std::vector<int64_t> newCore = core, newOuter = outer;
  newCore.erase(newCore.begin() + dim);
  newOuter.erase(newOuter.begin() + dim);
  LinearLayout result =
      reshaped(*this, newCore, newOuter, [&](Coordinates coords) {
        coords.erase(coords.begin() + dim);
        return coords;
      });
  Span span;
  Bases kept;
  for (int64_t basis : result.registers)
    if (span.add(basis))
      kept.push_back(basis);
  result.registers = kept;
  return result;
}

LinearLayout
LinearLayout::transposed(const std::vector<unsigned> &order) const {
  auto permute = [&](const std::vector<int64_t> &values) {
    std::vector<int64_t> result(values.size());
    for (size_t i = 0; i < order.size(); ++i)
      result[i] = values[order[i]];
    return result;
  };
  LinearLayout result = reshaped(*this, permute(core), permute(outer), permute);
  return result;
}

LinearLayout LinearLayout::expanded(unsigned dim) const {
  std::vector<int64_t> newCore = core, newOuter = outer;
  newCore.insert(newCore.begin() + dim, 1);
  newOuter.insert(newOuter.begin() + dim, 1);
  return reshaped(*this, newCore, newOuter, [&](Coordinates coords) {
    coords.insert(coords.begin() + dim, 0);
    return coords;
  });
}

int64_t LinearLayout::contiguousRegisters(unsigned dim) const {
  int64_t unit = 1;
  for (unsigned inner = dim + 1; inner < rank(); ++inner)
    unit *= core[inner];
  // A bit of the run in any other basis would reverse the run in the threads or
  // registers that have that basis.
  auto users = [&](int64_t bit) {
    int64_t count = 0;
    for (const Bases *bases : {&registers, &lanes, &warps})
      for (int64_t basis : *bases)
        count += (basis & bit) != 0;
    return count;
  };
  int64_t count = 1;
  while (log2Exact(count) < registers.size() && count < core[dim] &&
         registers[log2Exact(count)] == unit * count &&
         users(unit * count) == 1)
    count *= 2;
  return count;
}

bool LinearLayout::sameThreads(const LinearLayout &to,
                               std::vector<int64_t> *mapping) const {
  if (core != to.core || outer != to.outer || warps.size() != to.warps.size())
    return false;
  // The threads' own parts agree; the registers' span must hold what `to`
  // needs.
  auto inSpan = [&](int64_t vector, int64_t &index) {
    // Solve combine(registers, index) == vector by elimination.
    std::vector<std::pair<int64_t, int64_t>> reduced; // vector, combination
    for (size_t bit = 0; bit < registers.size(); ++bit) {
      int64_t v = registers[bit], combination = int64_t{1} << bit;
      for (auto &[basis, of] : reduced)
        if ((v ^ basis) < v)
          v ^= basis, combination ^= of;
      if (v)
        reduced.push_back({v, combination});
    }
    index = 0;
    for (auto &[basis, of] : reduced)
      if ((vector ^ basis) < vector)
        vector ^= basis, index ^= of;
    return vector == 0;
  };
  if (lanes != to.lanes || warps != to.warps)
    return false;
  int64_t inCore = int64_t{1} << registers.size();
  int64_t toCore = int64_t{1} << to.registers.size();
  std::vector<int64_t> indices;
  for (int64_t r = 0; r < toCore; ++r) {
    int64_t index;
    if (!inSpan(combine(to.registers, r), index))
      return false;
    indices.push_back(index);
  }
  if (mapping) {
    mapping->clear();
    for (int64_t repeat = 0; repeat < outerElements(); ++repeat)
      for (int64_t index : indices)
        mapping->push_back(repeat * inCore + index);
  }
  return true;
}

std::string LinearLayout::str() const {
  std::string text;
  auto list = [&](const char *name, const std::vector<int64_t> &values) {
    text += text.empty() ? "" : ", ";
    text += std::string(name) + " = [";
    for (size_t i = 0; i < values.size(); ++i)
      text += (i ? ", " : "") + std::to_string(values[i]);
    text += "]";
  };
  list("core", core);
  list("outer", outer);
  list("registers", registers);
  list("lanes", lanes);
  list("warps", warps);
  return text;
}
