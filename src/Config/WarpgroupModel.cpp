//===- WarpgroupModel.cpp - The time of products of warpgroups --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lone product of warpgroups is a loop over the depth, and what comes behind it. The
// loop takes as long as the slowest of products, shared memory, L2, and the rings: with
// s slots a step takes 1 / s of what a slot is busy and then empty. Blocks with one tile
// each take
//
//   start + loop + rest,
//
// blocks that stay loop + rest + turn for each of their tiles, and teams, of which one
// multiplies while the other does the rest, max(loop, (loop + rest) / 2) + turn. Numbers
// without another source are fitted to one H200.
//
//===----------------------------------------------------------------------===//
#include "TileModel.h"

#include <algorithm>
#include <tuple>

using namespace nova;
using namespace nova::config;

/// The same by a tensor map into shared memory while others copy, seconds.
static constexpr double kBulkLatency = 1000e-9;
/// From the end of one block to the first product of the next, and from one team's last
/// product to the other's first, seconds. Fitted to 8192 x 50304 x 768 on an H200: bf16
/// and TF32 took 1160 and 2130 us in blocks of 128x256, 940 and 1760 us in teams.
static constexpr double kBlockStart = 3500e-9, kTurn = 700e-9;
/// L2 to one multiprocessor by tensor maps, a clock (H200: bf16, 4096^3 in teams of
/// 128x128 took 184 us).
static constexpr double kBulkBytesPerClock = 53;
/// Arithmetic by as few warps as a block for warpgroups has takes this many times
/// what all lanes would need.
static constexpr double kFewWarps = 1.5;
/// The same of a loop that starts products and nothing else.
static constexpr int64_t kFewOwnRegisters = 32;
/// Of roles of their own (src/TileLowering/Channels.cpp).
static constexpr int64_t kCopierRegisters = 40, kMoverRegisters = 72, kMostRegisters = 240;
/// Shared memory through which a warp brings what it has into another order.
static constexpr int64_t kWarpScratchBytes = 1024;
/// Threads that share an allocation of registers; of a warpgroup, and its rows.
static constexpr int64_t kWarpgroupThreads = 128, kWarpgroupRows = 64;
/// What a step of a loop costs warpgroups beside the products, in clocks: they wait
/// for a slot and for the products to end. Fitted to 4096^3 on an H200 (TF32, NT:
/// 299 TFLOP/s with 128x128, 332 with 256x128).
static constexpr double kStepClocks = 110;
/// The same where the left operand is read into registers first; twice that if the
/// instructions are not the widest, which hide more of it (TF32, NN, 4096^3 on an H200:
/// 346 us with 256x128, 486 with 128x128; 8192 x 768 x 3072: 148 with 256x128, 141 with
/// 192x128 in a wave less).
static constexpr double kHeldClocks = 225;
static constexpr int64_t kWidestProduct = 256;
/// What products cost of which every warpgroup has some columns of all rows: narrow ones.
static constexpr double kNarrowCost = 1.2;
/// Passes over shared memory that turning an operand takes: it is read, and written with
/// banks hit twice, by few warps (TF32, TN, 4096^3: 564 us with 256x128).
static constexpr int64_t kTurnedPasses = 5;
/// Share of its rate that wgmma reaches between these.
static constexpr double kWgmmaShare = 0.92;


static int64_t ceilDiv(int64_t a, int64_t b) { return b > 0 ? (a + b - 1) / b : 0; }

/// The operand on the right of wgmma must have its depth inside if its elements have
/// 4 bytes; the product is turned round if that helps. Is it written once more,
/// transposed, by a role of its own?
static bool turnsOperand(const ContractionDesc &contraction) {
  return contraction.elementBytes == 4 && !contraction.leftDepthInner && !contraction.rightDepthInner;
}

int64_t config::warpgroupRegisters(const TileProblem &problem, const TileSchedule &schedule,
                                   const target::Device &device) {
  bool turns = std::any_of(problem.contractions.begin(), problem.contractions.end(), turnsOperand);
  int64_t multiplying = schedule.teams * schedule.warps * 32 / kWarpgroupThreads, groups = multiplying + 1 + turns;
  int64_t start = device.registersPerSm / schedule.residentBlocks / (kWarpgroupThreads * groups) /
                  kRegisterGranule * kRegisterGranule;
  int64_t left = start * groups - kCopierRegisters - (turns ? kMoverRegisters : 0);
  return std::min(kMostRegisters, left / std::max<int64_t>(multiplying, 1) / kRegisterGranule * kRegisterGranule);
}

void TileModel::addWarpgroupProduct(const ContractionDesc &contraction, Demand &demand) const {
  int64_t m = tileElements(contraction.m), n = tileElements(contraction.n), k = tileElements(contraction.k);
  AxisSet all = contraction.m;
  for (const AxisSet *axes : {&contraction.n, &contraction.k, &contraction.batch})
    all.insert(all.end(), axes->begin(), axes->end());
  double points = volume(all, true), depth = points / double(m * n);
  demand.products += 2 * points / (productRate(contraction.unit) * kWgmmaShare);
  // The left operand is read once, the right one for every 64 rows of it.
  bool flipped = contraction.elementBytes == 4 && contraction.leftDepthInner && !contraction.rightDepthInner;
  int64_t left = flipped ? n : m, right = flipped ? m : n;
  // Warpgroups that do not find rows for each of them divide columns, too.
  int64_t blocks = left / kWarpgroupRows, groups = schedule.warps * 32 / kWarpgroupThreads;
  int64_t readers = groups > 1 && blocks % groups ? groups : 1;
  double words = double(left * readers + blocks * right);
  // Several products share operands, and wait for each other anyway.
  bool alone = problem.contractions.size() == 1;
  if (alone)
    words += double(left + right); // what copies write
  // A left operand in registers comes into them between one step's products and the
  // next one's; those of other warpgroups may run meanwhile.
  bool held = alone && contraction.elementBytes == 4 && (flipped || turnsOperand(contraction));
  if (readers > 1)
    demand.products *= kNarrowCost;
  double between = !held                       ? kStepClocks
                   : right >= kWidestProduct ? kHeldClocks
                                             : 2 * kHeldClocks;
  demand.products += depth / double(k) * between / clock;
  // What is computed is written there first; what is turned is read, and written with
  // every bank hit twice.
  if (contraction.leftTensor < 0 || contraction.rightTensor < 0)
    words += double(left + right);
  if (turnsOperand(contraction))
    words += double(kTurnedPasses * right);
  demand.shared += words * double(contraction.elementBytes) * depth / (kSharedBytesPerClock * clock);
}

int64_t TileModel::warpgroupSharedBytes() const {
  int64_t rings = 0, scratch = 0;
  AxisSet seen;
  for (const ContractionDesc &contraction : problem.contractions) {
    int64_t m = tileElements(contraction.m), n = tileElements(contraction.n), k = tileElements(contraction.k);
    int64_t staged = 0;
    for (auto [tensor, side, axes] : {std::tuple(contraction.leftTensor, m, &contraction.m),
                                      std::tuple(contraction.rightTensor, n, &contraction.n)}) {
      int64_t bytes = side * k * contraction.elementBytes;
      if (tensor < 0) {
        staged += bytes;
        continue;
      }
      if (std::find(seen.begin(), seen.end(), (unsigned)tensor) != seen.end())
        continue;
      seen.push_back(tensor);
      auto moves = [&](const AxisSet &set) {
        return std::any_of(set.begin(), set.end(), [&](unsigned axis) { return streamed(axis); });
      };
      rings += bytes * (moves(*axes) || moves(contraction.k) ? schedule.stages : 1);
    }
    if (turnsOperand(contraction))
      rings += 2 * n * k * contraction.elementBytes;
    scratch = std::max(scratch, staged);
  }
  // Results of less than 4 bytes go through a part of the scratch area that each warp
  // has (src/TileLowering/SharedMemory.cpp).
  for (const MemoryDesc &memory : problem.memory)
    if (memory.written && memory.elementBytes < 4)
      scratch = std::max(scratch, schedule.warps * schedule.teams * kWarpScratchBytes);
  // Barriers.
  return rings + scratch + 1024;
}

/// What follows the loop goes element by element, so that its sums are what lives; if
/// it does not after all, ptxas says so.
int64_t TileModel::warpgroupProductRegisters() const {
  const ContractionDesc &product = problem.contractions.front();
  int64_t sums = ceilDiv(tileElements(product.m) * tileElements(product.n), threads);
  // Operands that descriptors name need none.
  bool descriptors = product.elementBytes == 2 || (product.leftDepthInner && product.rightDepthInner);
  if (descriptors)
    return sums + kFewOwnRegisters;
  // This step's left operand and, unless the other one is turned, the next one's.
  int64_t left = product.leftDepthInner && !product.rightDepthInner ? tileElements(product.n) : tileElements(product.m);
  int64_t blocks = ceilDiv(left, kWarpgroupRows * std::max<int64_t>(1, schedule.warps * 32 / kWarpgroupThreads));
  return sums + (turnsOperand(product) ? 1 : 2) * kLeftOperand * blocks + kFewOwnRegisters;
}

/// A lone product of warpgroups: `count` tiles of one multiprocessor, each a loop over
/// the depth and what comes behind it.
double TileModel::warpgroupSeconds(const Demand &demand, int64_t count, Prediction &p) const {
  const ContractionDesc &product = problem.contractions.front();
  // What the loop reads; all else is read and written behind it.
  double operands = 0;
  for (const AxisSet *side : {&product.m, &product.n}) {
    AxisSet axes = *side;
    axes.insert(axes.end(), product.k.begin(), product.k.end());
    axes.insert(axes.end(), product.batch.begin(), product.batch.end());
    operands += volume(axes, false) * double(product.elementBytes) / (kBulkBytesPerClock * clock);
  }
  double loop = demand.products;
  for (auto [seconds, bound] : {std::pair(demand.shared, Bound::Shared), std::pair(operands, Bound::L2)})
    if (seconds > loop)
      loop = seconds, p.bound = bound;
  // A slot is empty from when its products have ended until its next copy is there.
  double cycle = (double(steps()) * kBulkLatency + loop) / double(std::max<int64_t>(schedule.stages, 1));
  if (cycle > loop)
    loop = cycle, p.bound = Bound::Latency;
  double rest = std::max(demand.arithmetic * kFewWarps, std::max(0.0, demand.l2 - operands));
  if (schedule.teams > 1) {
    double turn = std::max(loop, (loop + rest) / double(schedule.teams)) + kTurn;
    if (turn > loop + kTurn)
      p.bound = Bound::Arithmetic;
    return kBulkLatency + double(count) * turn + rest;
  }
  if (schedule.persistentBlocks)
    return kBulkLatency + double(count) * (loop + rest + kTurn);
  double alone = kBlockStart + loop + rest;
  return std::max(double(count) * std::max(loop, rest), double(ceilDiv(count, p.blocksPerSm)) * alone);
}
