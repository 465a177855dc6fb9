//===- TileModel.cpp - The time of a tile program on a GPU ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With B blocks over S multiprocessors, c of them resident on one at once, the
// busiest multiprocessor has n = ceil(B / S) of them. Of a block's time there
//
//   t = max(L2, products, arithmetic, shared, h (products + arithmetic + shared))
//   h = 1/2 + 3 / (warps that are resident together)
//
// is what its resources need: a warp does one thing after the other, and the more
// there are the more of it overlaps (h is fitted to products of 8192 x 768 to 50304
// x 768 on an H200: within a fifth). One block alone takes
//
//   d = 2 L + max(t, steps * L / (stages - 1))
//
// where L is the latency of memory, and stages - 1 the copies in flight.
// Blocks that are resident together hide each other's latency but share the
// resources, so that the multiprocessor takes max(n t, ceil(n / c) d); and the
// launch
//
//   launch + max(that, DRAM bytes / DRAM bandwidth).
//
// Products of warpgroups run beside everything else (h = 0): WarpgroupModel.cpp.
//
// Only sums, products and quotients: the same numbers on every machine.
//
//===----------------------------------------------------------------------===//
#include "TileModel.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace nova;
using namespace nova::config;

//===----------------------------------------------------------------------===//
// What the table of devices does not say
//===----------------------------------------------------------------------===//

/// From asking L2 or DRAM to having the data, seconds (DRAM on A100 and H100: 480
/// to 600 ns).
static constexpr double kLatency = 600e-9;
/// Share of the peak bandwidth that a stream of reads and writes gets.
static constexpr double kDramShare = 0.9;
/// L2 to one multiprocessor, a clock: 5120 bytes a clock over 108 (A100 paper).
static constexpr double kL2BytesPerClock = 47;
/// Conversions of a register a clock and multiprocessor (CUDA C++ Programming
/// Guide, "Throughput of Native Arithmetic Instructions": cvt.rna.tf32).
static constexpr double kConversionsPerClock = 64;
/// See h above.
static constexpr double kLeastOverlap = 0.5, kWarpsToOverlap = 3;
/// Registers that addresses, loop counters and masks take, beside data.
static constexpr int64_t kOwnRegisters = 40;
/// Of updates of a row that are on their way: what ptxas makes of the 96 of
/// src/Tiling/SegmentSum.cpp (66 registers a thread in all, of which 8 are the row's).
static constexpr int64_t kUpdatesInFlight = 40;
/// The same of warpgroups with several products: others copy, and descriptors that
/// differ by constants share a register. As few as have been seen to do: where they do
/// not, ptxas spills, and the next candidate is taken.
static constexpr int64_t kWarpgroupOwnRegisters = 20;
static int64_t ceilDiv(int64_t a, int64_t b) { return b > 0 ? (a + b - 1) / b : 0; }
static int64_t powerOfTwoPart(int64_t value) { return value & -value; }

TileModel::TileModel(const TileProblem &problem, const TileSchedule &schedule, const target::Device &device)
    : problem(problem), schedule(schedule), device(device), threads(schedule.warps * 32) {
  clock = device.flops.f32 / (2.0 * double(device.lanesPerSm) * double(device.smCount));
}

int64_t TileModel::chunks(unsigned axis) const {
  if (const auto &members = problem.axes[axis].members; !members.empty()) {
    int64_t count = 0;
    for (int64_t extent : members)
      count += ceilDiv(extent, schedule.tile[axis]);
    return count;
  }
  return ceilDiv(std::max<int64_t>(problem.axes[axis].extent, 1), schedule.tile[axis]);
}

bool TileModel::streamed(unsigned axis) const { return problem.axes[axis].local && chunks(axis) > 1; }

int64_t TileModel::tileElements(const AxisSet &axes) const {
  int64_t elements = 1;
  for (unsigned axis : axes)
    elements *= schedule.tile[axis];
  return elements;
}

double TileModel::volume(const AxisSet &axes, bool padded) const {
  double points = 1;
  for (unsigned axis : axes) {
    int64_t extent = std::max<int64_t>(problem.axes[axis].extent, 1), tile = schedule.tile[axis];
    if (const auto &members = problem.axes[axis].members; !members.empty())
      extent = std::accumulate(members.begin(), members.end(), int64_t{0});
    if (problem.axes[axis].local)
      points *= double(padded ? chunks(axis) * tile : extent);
    else
      points *= padded ? double(tile) : double(extent) / double(chunks(axis));
  }
  return points;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Fragment TileModel::fragment(const ContractionDesc &contraction) const {
  Fragment f;
  f.m = tileElements(contraction.m), f.n = tileElements(contraction.n), f.k = tileElements(contraction.k);
  int64_t m = powerOfTwoPart(f.m), n = powerOfTwoPart(f.n), k = powerOfTwoPart(f.k);
  bool holds = m >= 16 && n >= 8;
  f.unit = ProductUnit::Fma;
  if (holds && contraction.unit == ProductUnit::Half && k >= 16)
    f.unit = ProductUnit::Half;
  if (holds && contraction.unit == ProductUnit::Tf32 && k >= 8)
    f.unit = ProductUnit::Tf32;
  // How the accumulator's layout divides it: the longer side first, as the warps
  // of src/TileLowering/DotLayouts.cpp do. Sides that no bit divides repeat.
  bool fma = f.unit == ProductUnit::Fma;
  int64_t rows = m / (fma ? 4 : 16), columns = n / (fma ? 32 : 8);
  rows = std::max<int64_t>(rows, 1), columns = std::max<int64_t>(columns, 1);
  int64_t alongRows = 1, alongColumns = 1;
  for (int64_t w = 1; w < schedule.warps; w *= 2) {
    bool byRows = rows / alongRows * (fma ? 1 : 2) >= columns / alongColumns && rows / alongRows > 1;
    if (byRows)
      alongRows *= 2;
    else if (columns / alongColumns > 1)
      alongColumns *= 2;
  }
  f.warpRows = std::max<int64_t>(f.m / alongRows, 1);
  f.warpColumns = std::max<int64_t>(f.n / alongColumns, 1);
  f.accumulators = std::max<int64_t>(1, ceilDiv(f.warpRows * f.warpColumns, 32));
  return f;
}

double TileModel::productRate(ProductUnit unit) const {
  double rate = unit == ProductUnit::Half   ? device.flops.bf16
                : unit == ProductUnit::Tf32 ? device.flops.tf32
                                            : device.flops.f32;
  if (unit != ProductUnit::Fma && schedule.family == Family::Portable)
    rate *= device.mmaSyncShare;
  return rate / double(device.smCount);
}

void TileModel::addProducts(Demand &demand) const {
  for (const ContractionDesc &contraction : problem.contractions) {
    if (schedule.family == Family::Hopper) {
      addWarpgroupProduct(contraction, demand);
      continue;
    }
    Fragment f = fragment(contraction);
    AxisSet all = contraction.m;
    for (const AxisSet *axes : {&contraction.n, &contraction.k, &contraction.batch})
      all.insert(all.end(), axes->begin(), axes->end());
    double points = volume(all, true);
    demand.products += 2 * points / productRate(f.unit);
    // Every warp reads its rows and columns for each position of the depth.
    double depth = points / double(f.m * f.n);
    double words = double(schedule.warps * (f.warpRows + f.warpColumns)) * depth;
    double bytes = double(contraction.elementBytes);
    demand.shared += (words + double(f.m + f.n) * depth) * bytes / (kSharedBytesPerClock * clock);
    if (f.unit == ProductUnit::Tf32)
      demand.arithmetic += words / (kConversionsPerClock * clock);
    if (f.unit == ProductUnit::Fma)
      demand.arithmetic += words / (double(device.lanesPerSm) * clock);
  }
}

//===----------------------------------------------------------------------===//
// Registers and shared memory
//===----------------------------------------------------------------------===//

/// What is computed element by element need not be there all at once: what counts
/// is what lives while something is made of whole tiles.
int64_t TileModel::registers() const {
  if (schedule.family == Family::Hopper && problem.contractions.size() == 1)
    return warpgroupProductRegisters();
  int64_t steps = 1;
  for (const ValueDesc &value : problem.values)
    steps = std::max(steps, value.last + 1);
  std::vector<bool> whole(steps, false);
  for (const ValueDesc &value : problem.values)
    if (value.whole)
      whole[value.first] = true;
  std::vector<int64_t> live(steps, 0);
  for (const ValueDesc &value : problem.values) {
    if (value.isOperand && schedule.family == Family::Hopper)
      continue;
    bool inLoop = std::any_of(value.reduced.begin(), value.reduced.end(),
                              [&](unsigned axis) { return streamed(axis); });
    int64_t elements = tileElements(value.axes);
    if (inLoop && !value.isProduct)
      elements *= tileElements(value.reduced);
    int64_t each = ceilDiv(elements, threads) * ceilDiv(std::max<int64_t>(value.elementBytes, 1), 4);
    for (int64_t step = inLoop ? 0 : value.first; step <= value.last; ++step)
      if (whole[step] && (step < value.last || step == value.first || inLoop))
        live[step] += each;
  }
  int64_t operands = 0;
  for (const ContractionDesc &contraction : problem.contractions) {
    if (schedule.family == Family::Hopper) {
      operands = kLeftOperand;
      continue;
    }
    Fragment f = fragment(contraction);
    // Of one instruction's depth: what mma.sync holds of its warp's rows and
    // columns, what FMA holds of its thread's.
    int64_t held = f.unit == ProductUnit::Fma ? (f.accumulators > 16 ? 24 : 16)
                                              : (f.warpRows + f.warpColumns) / 4;
    operands = std::max(operands, held);
  }
  // Updates of a row, as many as fit (src/Tiling/SegmentSum.cpp).
  if (std::any_of(problem.axes.begin(), problem.axes.end(), [](const AxisDesc &axis) { return axis.single; }))
    operands += kUpdatesInFlight;
  int64_t own = schedule.family == Family::Hopper ? kWarpgroupOwnRegisters : kOwnRegisters;
  return *std::max_element(live.begin(), live.end()) + operands + own;
}

int64_t TileModel::sharedBytes() const {
  if (schedule.family == Family::Hopper)
    return warpgroupSharedBytes();
  int64_t rings = 0, scratch = 0;
  for (const ContractionDesc &contraction : problem.contractions) {
    Fragment f = fragment(contraction);
    bool loop = false;
    for (const AxisSet *axes : {&contraction.m, &contraction.n, &contraction.k})
      for (unsigned axis : *axes)
        loop |= streamed(axis);
    int64_t once = 0;
    for (auto [inMemory, elements, axes] : {std::tuple(contraction.leftInMemory, f.m * f.k, &contraction.m),
                                            std::tuple(contraction.rightInMemory, f.n * f.k, &contraction.n)}) {
      bool moves = loop && (std::any_of(axes->begin(), axes->end(), [&](unsigned a) { return streamed(a); }) ||
                            std::any_of(contraction.k.begin(), contraction.k.end(),
                                        [&](unsigned a) { return streamed(a); }));
      int64_t bytes = elements * contraction.elementBytes;
      if (inMemory && moves && schedule.stages > 1)
        rings += bytes * schedule.stages;
      else
        once += bytes;
    }
    scratch = std::max(scratch, once);
  }
  return rings + scratch;
}

int64_t TileModel::unrolledFmas() const {
  int64_t total = 0;
  if (schedule.family == Family::Hopper)
    return total;
  for (const ContractionDesc &contraction : problem.contractions)
    if (Fragment f = fragment(contraction); f.unit == ProductUnit::Fma)
      total += f.accumulators * f.k;
  return total;
}

int64_t TileModel::unrolledOperations() const {
  double total = 0;
  if (schedule.family == Family::Hopper && problem.contractions.size() == 1)
    for (const WorkDesc &work : problem.work)
      if (std::none_of(work.axes.begin(), work.axes.end(), [&](unsigned axis) { return streamed(axis); }))
        total += volume(work.axes, true) * double(work.operations) / double(threads);
  return int64_t(total);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

int64_t TileModel::blocks() const {
  int64_t count = 1;
  for (unsigned axis = 0; axis < problem.axes.size(); ++axis)
    if (!problem.axes[axis].local)
      count *= chunks(axis);
  return count;
}

int64_t TileModel::resident(int64_t registers, int64_t sharedBytes) const {
  if (schedule.family == Family::Hopper)
    return schedule.residentBlocks;
  registers = std::min<int64_t>(ceilDiv(registers, kRegisterGranule) * kRegisterGranule, 255);
  int64_t count = std::min(device.blocksPerSm, device.threadsPerSm / threads);
  count = std::min(count, device.registersPerSm / (registers * threads));
  count = std::min(count, device.sharedBytesPerSm / (sharedBytes + kReservedSharedBytes));
  return std::max<int64_t>(count, 1);
}

/// Chunks that one block looks at, one after the other.
int64_t TileModel::steps() const {
  int64_t most = 1;
  auto account = [&](std::initializer_list<const AxisSet *> sets) {
    int64_t count = 1;
    std::vector<bool> seen(problem.axes.size(), false);
    for (const AxisSet *axes : sets)
      for (unsigned axis : *axes)
        if (streamed(axis) && !seen[axis])
          seen[axis] = true, count *= chunks(axis);
    most = std::max(most, count);
  };
  for (const ContractionDesc &contraction : problem.contractions)
    account({&contraction.m, &contraction.n, &contraction.k});
  for (const MemoryDesc &memory : problem.memory)
    account({&memory.axes});
  return most;
}

/// A matrix that does not fit into L2 comes again for every wave of blocks that
/// go along what it does not have.
double TileModel::dramBytes(int64_t blocks, int64_t resident) const {
  double total = 0;
  int64_t waves = ceilDiv(blocks, device.smCount * resident);
  for (const MemoryDesc &memory : problem.memory) {
    int64_t again = 1;
    for (unsigned axis = 0; axis < problem.axes.size(); ++axis)
      if (!problem.axes[axis].local &&
          std::find(memory.axes.begin(), memory.axes.end(), axis) == memory.axes.end())
        again *= chunks(axis);
    bool fits = memory.bytes <= device.l2Bytes / 2;
    // Once for each band of rows, if it does not have them.
    if (schedule.rasterRows > 1) {
      const AxisSet &rows = problem.contractions.front().m;
      bool hasRows = std::any_of(rows.begin(), rows.end(), [&](unsigned axis) {
        return std::find(memory.axes.begin(), memory.axes.end(), axis) != memory.axes.end();
      });
      int64_t bands = 1;
      for (unsigned axis : rows)
        bands *= problem.axes[axis].local ? 1 : chunks(axis);
      again = hasRows ? 1 : ceilDiv(bands, schedule.rasterRows);
    }
    total += double(memory.bytes) * double(fits ? 1 : std::max<int64_t>(1, std::min(again, waves)));
  }
  return total;
}

Prediction TileModel::predict() const {
  Prediction p;
  p.registers = registers();
  p.sharedBytes = sharedBytes();
  p.unrolledFmas = unrolledFmas();
  p.unrolledOperations = unrolledOperations();
  p.blocks = blocks();
  p.blocksPerSm = resident(p.registers, p.sharedBytes);
  Demand demand;
  addProducts(demand);
  for (const WorkDesc &work : problem.work)
    demand.arithmetic += volume(work.axes, true) * double(work.operations) / (double(device.lanesPerSm) * clock);
  for (const MemoryDesc &memory : problem.memory)
    demand.l2 += volume(memory.axes, false) * double(memory.elementBytes) / (kL2BytesPerClock * clock);

  double perBlock = 0;
  for (auto [seconds, bound] : {std::pair(demand.products, Bound::Products),
                                std::pair(demand.arithmetic, Bound::Arithmetic),
                                std::pair(demand.shared, Bound::Shared), std::pair(demand.l2, Bound::L2)})
    if (seconds > perBlock)
      perBlock = seconds, p.bound = bound;
  int64_t count = ceilDiv(p.blocks, device.smCount);
  double together = double(std::max<int64_t>(1, std::min(count, p.blocksPerSm)) * schedule.warps);
  double overlapped = (kLeastOverlap + kWarpsToOverlap / together) *
                      (demand.products + demand.arithmetic + demand.shared);
  if (schedule.family == Family::Portable && overlapped > perBlock) {
    p.bound = p.bound == Bound::L2 ? Bound::Products : p.bound;
    perBlock = overlapped;
  }
  double flight = double(std::max<int64_t>(schedule.stages - 1, 1));
  double alone = 2 * kLatency + std::max(perBlock, double(steps()) * kLatency / flight);
  double busy = double(count) * perBlock;
  double waiting = double(ceilDiv(count, p.blocksPerSm)) * alone;
  double seconds = busy;
  if (waiting > busy)
    seconds = waiting, p.bound = Bound::Latency;
  if (schedule.family == Family::Hopper && problem.contractions.size() == 1) {
    p.bound = Bound::Products;
    seconds = warpgroupSeconds(demand, count, p);
  }
  double dram = dramBytes(p.blocks, p.blocksPerSm) / (device.dramBytesPerSecond * kDramShare);
  if (dram > seconds)
    seconds = dram, p.bound = Bound::Dram;
  p.seconds = kLaunchSeconds + seconds;
  return p;
}

Prediction config::predict(const TileProblem &problem, const TileSchedule &schedule, const target::Device &device) {
  return TileModel(problem, schedule, device).predict();
}

std::string_view config::boundName(Bound bound) {
  switch (bound) {
  case Bound::Products: return "products";
  case Bound::Arithmetic: return "arithmetic";
  case Bound::Shared: return "shared memory";
  case Bound::L2: return "L2";
  case Bound::Dram: return "DRAM";
  case Bound::Latency: return "latency";
  }
  return "";
}
