//===- TileCandidates.cpp - Schedules worth a look ---------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TileCandidates.h"

#include "TileModel.h"

#include <algorithm>

using namespace nova;
using namespace nova::config;

namespace {
/// The longest row that stays in registers.
constexpr int64_t kResident = 8192;
constexpr int64_t kRowChunk = 2048;
/// Elements of a row's sum that a thread has.
constexpr int64_t kRowRegisters = 8;
/// Positions of updates that are compared with a tile at a time.
constexpr int64_t kPositions = 256;
/// A depth up to this is taken at once where the operand serves two products.
constexpr int64_t kSharedDepth = 128;
constexpr size_t kTileRank = 3;

/// Rows and columns of the result of a lone product, from the largest that serves
/// each byte read most often to the smallest.
constexpr std::pair<int64_t, int64_t> kSides[] = {{128, 128}, {64, 64},  {128, 64}, {64, 128}, {128, 96},
                                                  {96, 128},  {96, 64},  {64, 96},  {64, 32},  {32, 64},
                                                  {32, 32},   {16, 64},  {64, 16},  {16, 16}};
constexpr int64_t kLoneDepths[] = {32, 16, 64};
/// For warpgroups.
constexpr std::pair<int64_t, int64_t> kWarpgroupSides[] = {{256, 128}, {128, 256}, {128, 128}, {128, 192}, {192, 128},
                                                           {64, 256},  {256, 64},  {64, 128},  {128, 64},  {64, 64}};
constexpr int64_t kWarpgroupGridSides[] = {128, 64};
constexpr int64_t kWarpgroupChunks[] = {64, 32, 128};
constexpr int64_t kWarpgroupWarps = 4, kWarpgroupRows = 64, kPanelBytes = 128;
/// The same of several products: what the grid divides, and what loops do.
constexpr int64_t kGridSides[] = {64, 128, 32, 16};
constexpr int64_t kChunks[] = {64, 32, 16, 128};

class Enumeration {
public:
  Enumeration(const TileProblem &problem, const target::Device &device) : problem(problem), device(device) {}

  void products();
  void rows();
  void selections();
  void segments();
  void elements();

  std::vector<TileSchedule> found;

private:
  int64_t widest(const AxisSet &axes) const;
  TileSchedule empty(const char *reason) const {
    TileSchedule schedule;
    schedule.tile.assign(problem.axes.size(), 1);
    schedule.reason = reason;
    return schedule;
  }
  void grow(TileSchedule &schedule, int64_t axis, int64_t limit) const {
    if (axis >= 0)
      schedule.tile[axis] = std::max(schedule.tile[axis], tileExtent(problem.axes[axis].extent, limit));
  }
  void warpgroupProducts();
  void loneProduct(int64_t rows, int64_t columns, int64_t depth);
  void severalProducts(int64_t side, int64_t chunk);
  bool inChunks(const TileSchedule &schedule) const;
  void add(TileSchedule schedule, std::initializer_list<int64_t> warps, std::initializer_list<int64_t> stages = {1});
  int64_t tiles(const TileSchedule &schedule) const;
  void addTeams(TileSchedule schedule, std::initializer_list<int64_t> stages);
  void rowTiles(int64_t most, int64_t chunk);
  void columnTiles(int64_t inner, int64_t along, int64_t most);
  void fill(TileSchedule &schedule, int64_t elements, int64_t most) const;

  const TileProblem &problem;
  const target::Device &device;
  Family family = Family::Portable; ///< Of what is added.
};
} // namespace

int64_t nova::config::tileExtent(int64_t extent, int64_t limit) {
  // Below this much of a power of two a tile leaves lanes idle.
  constexpr int64_t kSmallestCore = 16;
  extent = std::min(extent, limit);
  int64_t best = 1;
  while (best < extent)
    best *= 2;
  for (int64_t odd : {3, 5, 7})
    for (int64_t core = kSmallestCore; core * odd < best; core *= 2)
      if (core * odd >= extent)
        best = core * odd;
  return best;
}

static int64_t floorPowerOfTwo(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value)
    power *= 2;
  return power;
}

int64_t Enumeration::widest(const AxisSet &axes) const {
  int64_t best = -1;
  for (unsigned axis : axes)
    if (best < 0 || problem.axes[axis].extent > problem.axes[best].extent)
      best = axis;
  return best;
}

void Enumeration::add(TileSchedule schedule, std::initializer_list<int64_t> warps,
                      std::initializer_list<int64_t> stages) {
  for (int64_t w : warps)
    for (int64_t s : stages) {
      schedule.warps = w;
      schedule.stages = s;
      schedule.family = family;
      // One warpgroup leaves registers for a second block.
      schedule.residentBlocks = family == Family::Hopper && w == kWarpgroupWarps && schedule.teams == 1 ? 2 : 1;
      // A block that has the multiprocessor for itself stays: copies for its next tile
      // begin before the last one is stored.
      bool stays = family == Family::Hopper && problem.contractions.size() == 1 && inChunks(schedule) &&
                   schedule.residentBlocks == 1 && tiles(schedule) > device.smCount;
      schedule.persistentBlocks = stays ? device.smCount : 0;
      bool known = std::any_of(found.begin(), found.end(), [&](const TileSchedule &other) {
        return other.tile == schedule.tile && other.warps == w && other.stages == s && other.family == family &&
               other.teams == schedule.teams;
      });
      if (!known)
        found.push_back(schedule);
    }
}

int64_t Enumeration::tiles(const TileSchedule &schedule) const {
  int64_t count = 1;
  for (size_t axis = 0; axis < problem.axes.size(); ++axis)
    if (!problem.axes[axis].local)
      count *= (problem.axes[axis].extent + schedule.tile[axis] - 1) / schedule.tile[axis];
  return count;
}

/// Two warpgroups with a tile each: one multiplies while the other stores. For blocks
/// that get several tiles.
void Enumeration::addTeams(TileSchedule schedule, std::initializer_list<int64_t> stages) {
  if (tiles(schedule) <= device.smCount)
    return;
  schedule.teams = 2;
  add(std::move(schedule), {kWarpgroupWarps}, stages);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static int64_t powerOfTwoPart(int64_t value) { return value & -value; }

/// What warpgroups multiply, and whether each warpgroup of the block finds 64 rows.
static bool fitsWarpgroups(const ContractionDesc &contraction, const TileSchedule &schedule, bool several) {
  auto extent = [&](const AxisSet &axes) {
    int64_t elements = 1;
    for (unsigned axis : axes)
      elements *= schedule.tile[axis];
    return powerOfTwoPart(elements);
  };
  int64_t m = extent(contraction.m), n = extent(contraction.n), k = extent(contraction.k);
  int64_t pieces = std::max(m, n) / kWarpgroupRows * (std::min(m, n) / 8);
  // Of several products one takes what another made, from registers, and what lies in
  // memory the other way: of 16 bits that needs no panel along the depth.
  int64_t least = several && contraction.elementBytes == 2 ? kPanelBytes / 2 : kPanelBytes;
  return k * contraction.elementBytes >= least && std::max(m, n) >= kWarpgroupRows && std::min(m, n) >= 8 &&
         schedule.warps / kWarpgroupWarps <= pieces;
}

/// Is there a loop that rings can run ahead of?
bool Enumeration::inChunks(const TileSchedule &schedule) const {
  for (size_t axis = 0; axis < problem.axes.size(); ++axis)
    if (problem.axes[axis].local && schedule.tile[axis] < problem.axes[axis].extent)
      return true;
  return false;
}

void Enumeration::loneProduct(int64_t rows, int64_t columns, int64_t depth) {
  const ContractionDesc &contraction = problem.contractions.front();
  TileSchedule schedule = empty("products of tiles");
  for (auto [axes, limit] : {std::pair(&contraction.m, rows), std::pair(&contraction.n, columns)}) {
    int64_t axis = widest(*axes);
    bool whole = axis >= 0 && problem.axes[axis].local && problem.axes[axis].extent <= kSharedDepth;
    grow(schedule, axis, whole ? kSharedDepth : limit);
  }
  grow(schedule, widest(contraction.k), depth);
  if (!inChunks(schedule))
    return add(schedule, {4, 8});
  if (family == Family::Hopper) {
    addTeams(schedule, {6, 5, 4, 3});
    return add(schedule, {4, 8}, {6, 4, 3, 2});
  }
  add(schedule, {4, 8}, {4, 3, 2});
}

/// What several products share is taken whole if it is short.
void Enumeration::severalProducts(int64_t side, int64_t chunk) {
  TileSchedule schedule = empty("products of tiles");
  auto limitOf = [&](int64_t axis, int64_t otherwise) {
    if (axis < 0 || !problem.axes[axis].local)
      return otherwise;
    return problem.axes[axis].extent <= kSharedDepth ? kSharedDepth : chunk;
  };
  for (const ContractionDesc &contraction : problem.contractions) {
    for (const AxisSet *axes : {&contraction.m, &contraction.n})
      grow(schedule, widest(*axes), limitOf(widest(*axes), side));
    grow(schedule, widest(contraction.k), limitOf(widest(contraction.k), chunk));
  }
  // A warpgroup for every 64 rows: what it multiplies next is what it has just made.
  if (family == Family::Hopper)
    return add(schedule, {side / kWarpgroupRows * kWarpgroupWarps}, {4, 3, 2, 1});
  if (inChunks(schedule))
    add(schedule, {4, 8}, {4, 3, 2, 1});
  else
    add(schedule, {4, 8, 16});
}

/// For warpgroups: 64 rows or columns at least, and a panel of 128 bytes of the depth.
void Enumeration::warpgroupProducts() {
  for (const ContractionDesc &contraction : problem.contractions)
    if (contraction.unit == ProductUnit::Fma)
      return;
  family = Family::Hopper;
  const ContractionDesc &first = problem.contractions.front();
  if (problem.contractions.size() == 1)
    for (auto [rows, columns] : kWarpgroupSides)
      loneProduct(rows, columns, kPanelBytes / first.elementBytes);
  else
    for (int64_t side : kWarpgroupGridSides)
      for (int64_t chunk : kWarpgroupChunks)
        severalProducts(side, chunk);
  family = Family::Portable;
  std::erase_if(found, [&](const TileSchedule &schedule) {
    return std::any_of(problem.contractions.begin(), problem.contractions.end(),
                       [&](const ContractionDesc &contraction) {
                         return !fitsWarpgroups(contraction, schedule, problem.contractions.size() > 1);
                       });
  });
}

void Enumeration::products() {
  if (device.warpgroups)
    warpgroupProducts();
  if (problem.contractions.size() == 1) {
    for (auto [rows, columns] : kSides)
      for (int64_t depth : kLoneDepths)
        loneProduct(rows, columns, depth);
    return;
  }
  for (int64_t side : kGridSides)
    for (int64_t chunk : kChunks)
      severalProducts(side, chunk);
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

/// More positions to a block while the tile has room, the innermost axis first.
void Enumeration::fill(TileSchedule &schedule, int64_t elements, int64_t most) const {
  size_t rank = std::count_if(schedule.tile.begin(), schedule.tile.end(), [](int64_t tile) { return tile > 1; });
  for (unsigned axis : problem.innermost) {
    int64_t room = most / elements;
    if (schedule.tile[axis] > 1 || room < 2 || rank == kTileRank)
      continue;
    int64_t limit = floorPowerOfTwo(std::min<int64_t>(room, problem.axes[axis].local ? most : 16));
    schedule.tile[axis] = tileExtent(problem.axes[axis].extent, limit);
    elements *= schedule.tile[axis];
    rank += schedule.tile[axis] > 1;
  }
}

/// Rows that are reduced along the contiguous axis: as many as fit.
void Enumeration::rowTiles(int64_t most, int64_t chunk) {
  unsigned inner = problem.innermost.front();
  int64_t extent = problem.axes[inner].extent;
  TileSchedule schedule = empty("");
  schedule.reason = "rows of " + std::to_string(extent);
  schedule.tile[inner] = tileExtent(extent, extent <= kResident && !chunk ? kResident : chunk ? chunk : kRowChunk);
  fill(schedule, schedule.tile[inner], most);
  add(schedule, {4, 8, 16});
}

/// Columns: some of them, and a chunk of the long axis.
void Enumeration::columnTiles(int64_t width, int64_t depth, int64_t most) {
  AxisSet reduced;
  for (unsigned i = 0; i < problem.axes.size(); ++i)
    if (problem.axes[i].local)
      reduced.push_back(i);
  unsigned along = widest(reduced), inner = problem.innermost.front();
  TileSchedule schedule = empty("");
  schedule.reason = "columns of " + std::to_string(problem.axes[along].extent);
  schedule.tile[inner] = tileExtent(problem.axes[inner].extent, width);
  schedule.tile[along] = tileExtent(problem.axes[along].extent, depth);
  fill(schedule, schedule.tile[inner] * schedule.tile[along], most);
  add(schedule, {4, 8});
}

void Enumeration::rows() {
  if (problem.axes[problem.innermost.front()].local) {
    for (int64_t most : {4096, 2048, 1024})
      rowTiles(most, 0);
    for (int64_t chunk : {2048, 1024})
      rowTiles(chunk, chunk);
    return;
  }
  for (auto [width, depth] : {std::pair(32, 128), std::pair(32, 64), std::pair(64, 64), std::pair(16, 128),
                              std::pair(32, 32), std::pair(16, 32)})
    columnTiles(width, depth, width * depth);
  // Few rows, as the parts of a split sum: many columns.
  int64_t rows = 1;
  for (const AxisDesc &axis : problem.axes)
    if (axis.local)
      rows = std::max(rows, axis.extent);
  for (auto [width, depth] : {std::pair(256, 16), std::pair(512, 8), std::pair(1024, 4), std::pair(512, 2)})
    if (rows <= depth)
      columnTiles(width, depth, width * depth);
}

/// Sums of what data selects: positions are looked at one by one, so that a tile
/// of the result is as large as registers allow, and whole rows before many.
void Enumeration::selections() {
  for (int64_t room : {4096, 2048, 1024, 512}) {
    TileSchedule schedule = empty("rows that data selects");
    for (bool selected : {false, true})
      for (unsigned axis : problem.innermost) {
        if (problem.axes[axis].local || problem.axes[axis].selected != selected || room < 2)
          continue;
        schedule.tile[axis] = tileExtent(problem.axes[axis].extent, floorPowerOfTwo(room));
        room /= schedule.tile[axis];
      }
    // Positions are compared a chunk at a time.
    for (unsigned axis = 0; axis < problem.axes.size(); ++axis)
      if (problem.axes[axis].local && problem.axes[axis].reduced)
        schedule.tile[axis] = tileExtent(problem.axes[axis].extent, kPositions);
    add(schedule, {4, 8});
  }
}

/// One row each, or a part of it: so few registers of a thread that many updates can be
/// on their way (src/Tiling/SegmentSum.cpp).
void Enumeration::segments() {
  for (int64_t most : {256, 512, 1024, 2048}) {
    TileSchedule schedule = empty("sums of segments");
    int64_t room = most;
    for (unsigned axis : problem.innermost) {
      if (problem.axes[axis].single || problem.axes[axis].local || room < 2)
        continue;
      schedule.tile[axis] = tileExtent(problem.axes[axis].extent, floorPowerOfTwo(room));
      room /= schedule.tile[axis];
    }
    int64_t elements = 1;
    for (int64_t tile : schedule.tile)
      elements *= tile;
    int64_t warps = 1;
    while (warps < 8 && elements > warps * 32 * kRowRegisters)
      warps *= 2;
    add(schedule, {warps});
  }
}

void Enumeration::elements() {
  for (int64_t most : {1024, 2048, 512, 256}) {
    TileSchedule schedule = empty("elements");
    int64_t room = most;
    size_t rank = 0;
    for (unsigned axis : problem.innermost) {
      if (room < 2 || rank == kTileRank)
        break;
      int64_t tile = tileExtent(problem.axes[axis].extent, floorPowerOfTwo(room));
      schedule.tile[axis] = tile;
      room /= tile;
      rank += tile > 1;
    }
    add(schedule, {4, 8});
  }
}

std::vector<TileSchedule> nova::config::enumerate(const TileProblem &problem, const target::Device &device) {
  Enumeration enumeration(problem, device);
  auto any = [&](bool AxisDesc::*member) {
    return std::any_of(problem.axes.begin(), problem.axes.end(),
                       [&](const AxisDesc &axis) { return axis.*member; });
  };
  if (!problem.contractions.empty())
    enumeration.products();
  else if (any(&AxisDesc::selected))
    enumeration.selections();
  else if (any(&AxisDesc::single))
    enumeration.segments();
  else if (any(&AxisDesc::local))
    enumeration.rows();
  else
    enumeration.elements();
  for (TileSchedule &schedule : enumeration.found)
    schedule.rasterRows = rasterRows(problem, schedule, device);
  return enumeration.found;
}

int64_t nova::config::rasterRows(const TileProblem &problem, const TileSchedule &schedule, const target::Device &device) {
  if (problem.contractions.size() != 1)
    return 1;
  auto tiles = [&](const AxisSet &axes, int64_t &extent) {
    int64_t count = 1;
    for (unsigned axis : axes)
      if (!problem.axes[axis].local) {
        count *= (problem.axes[axis].extent + schedule.tile[axis] - 1) / schedule.tile[axis];
        extent *= schedule.tile[axis];
      }
    return count;
  };
  int64_t m = 1, n = 1;
  int64_t rows = tiles(problem.contractions.front().m, m), columns = tiles(problem.contractions.front().n, n);
  if (rows < 2 || columns < 2)
    return 1;
  // A square, in elements, of as many tiles as run at once.
  int64_t together = device.smCount * std::max(schedule.residentBlocks, schedule.teams), band = 1;
  while ((band + 1) * (band + 1) * m <= together * n)
    ++band;
  if (band >= rows)
    return rows;
  // Bands of one height, if some height near it gives that.
  for (int64_t away = 0; away <= band / 3; ++away)
    for (int64_t height : {band + away, band - away})
      if (height > 1 && rows % height == 0)
        return height;
  return band;
}
