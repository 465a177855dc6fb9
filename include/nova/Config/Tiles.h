//===- Tiles.h - Schedules of tile programs for GPUs -----------*- C++ -*-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the configurator is told of a kernel, and what it answers: candidates in
// the order in which they are to be tried. The lowering may refuse one and ptxas
// may spill: then the next is taken. Pure, as Configure.h is.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_CONFIG_TILES_H
#define NOVA_CONFIG_TILES_H

#include "nova/Target/Target.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nova::config {

//===----------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------===//

/// Numbers of axes (TileProblem::axes).
using AxisSet = std::vector<unsigned>;

/// Something that runs together in a kernel (nova/Transforms/KernelAxes.h).
struct AxisDesc {
  int64_t extent = 1;
  bool local = false;   ///< Not a dimension of the grid.
  bool reduced = false; ///< Something reduces along it.
  bool scanned = false; ///< A running sum runs along it.
  /// Data says which position along it is meant: of what is reduced, few
  /// positions contribute to one tile.
  bool selected = false;
  /// Of the grid: a grid point has one position along it.
  bool single = false;
  /// Of several kernels in one launch, which differ along this axis of the grid: the
  /// extent of each; `extent` is the longest. Empty: there is one.
  std::vector<int64_t> members;
};

/// What multiplies, if the tile holds whole instructions; FMA else.
enum class ProductUnit : uint8_t {
  Fma,
  Tf32, ///< Tensor cores, float32 operands rounded to tf32.
  Half, ///< Tensor cores, operands of 16 bits.
};

/// A sum of products: along which axes its rows, columns and depth run; axes of
/// both operands and the result are batches and need no tile.
struct ContractionDesc {
  AxisSet m, n, k, batch;
  ProductUnit unit = ProductUnit::Fma;
  int64_t elementBytes = 4; ///< Of an operand's element.
  /// The operand is memory that nobody else reads: it comes through a ring.
  bool leftInMemory = true, rightInMemory = true;
  /// Which tensor each operand is, if it is one as it stands, read by others or not:
  /// one that two products read comes once. -1: it is computed.
  int64_t leftTensor = 0, rightTensor = 1;
  /// Its neighbours in memory lie along the depth.
  bool leftDepthInner = true, rightDepthInner = true;
};

/// A value that threads hold in registers from one step of the kernel to another.
struct ValueDesc {
  AxisSet axes;
  int64_t elementBytes = 4;
  int64_t first = 0, last = 0; ///< Numbers of steps.
  /// It is summed along these: where they are taken in chunks it lives throughout,
  /// and, unless it is a product, has their elements too.
  AxisSet reduced;
  bool isProduct = false;
  /// It is made of whole tiles, not element by element: what it is made of and what
  /// is needed after it is all there at that step.
  bool whole = false;
  /// It is memory that products alone read, several of them: warpgroups leave it there.
  bool isOperand = false;
};

/// Arithmetic on each point along some axes.
struct WorkDesc {
  AxisSet axes;
  int64_t operations = 0;
};

/// An argument or a result.
struct MemoryDesc {
  AxisSet axes;
  int64_t elementBytes = 4;
  int64_t bytes = 0; ///< All of it, each element once.
  bool written = false;
};

struct TileProblem {
  std::vector<AxisDesc> axes;
  std::vector<ContractionDesc> contractions;
  std::vector<ValueDesc> values;
  std::vector<WorkDesc> work;
  std::vector<MemoryDesc> memory;
  /// Axes from the one with the smallest stride in memory outwards, as most of
  /// the memory that the kernel touches has it.
  AxisSet innermost;
};

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// Which lowering a schedule is for. Every device has Portable.
enum class Family : uint8_t {
  /// cp.async into rings, mma.sync or FMA; all warps do the same.
  Portable,
  /// TMA and wgmma, warps divided by role: compute capability 9.0a.
  Hopper,
};
/// "portable", "hopper".
std::string_view familyName(Family family);

struct TileSchedule {
  std::vector<int64_t> tile; ///< One entry per axis.
  int64_t warps = 4;
  /// Slots of the rings that bring operands of products; 1: none.
  int64_t stages = 1;
  Family family = Family::Portable;
  /// Blocks that a multiprocessor's registers are to be divided among (Hopper).
  int64_t residentBlocks = 1;
  /// Blocks that stay on the device, each with every so-manieth tile; 0: a block has
  /// one tile.
  int64_t persistentBlocks = 0;
  /// Teams of `warps` warps that take a block's tiles in turns: one multiplies while
  /// another stores.
  int64_t teams = 1;
  /// Rows of tiles that are gone through together, column by column.
  int64_t rasterRows = 1;
  int64_t registers = 0;   ///< A thread needs, estimated.
  int64_t sharedBytes = 0; ///< A block needs, estimated.
  int64_t predictedNs = 0; ///< Of one launch.
  std::string reason;      ///< One line for people.
};

/// Start and end of a launch in a graph, seconds: an empty kernel on H100 and A100.
inline constexpr double kLaunchSeconds = 2e-6;

/// "tile 128 64 32, 4 warps, 3 stages", the part of the reason that tells one
/// schedule from another.
std::string describe(const TileSchedule &schedule);

/// They differ in the depth of rings only: what one needs of registers the other
/// needs too.
bool sameShape(const TileSchedule &a, const TileSchedule &b);

struct TileChoice {
  /// Best first, one at least.
  std::vector<TileSchedule> candidates;
  /// What cannot run and would have been faster, with why ("tile ...: 300 registers
  /// ..."), the fastest first; then how many more were left out.
  std::vector<std::string> dropped;
};

/// The smallest extent of a tile that holds `extent`, or `limit` if that is less:
/// a power of two times 1, 3, 5 or 7 (what layouts can express).
int64_t tileExtent(int64_t extent, int64_t limit);

/// `device` is a row of the table of kind Gpu.
TileChoice configureTiles(const TileProblem &problem, const target::Device &device);

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// What limits a launch.
enum class Bound : uint8_t { Products, Arithmetic, Shared, L2, Dram, Latency };
std::string_view boundName(Bound bound);

struct Prediction {
  double seconds = 0;
  Bound bound = Bound::Latency;
  int64_t blocks = 0;
  int64_t blocksPerSm = 0; ///< Resident at once.
  int64_t registers = 0;   ///< A thread.
  int64_t sharedBytes = 0; ///< A block.
  /// Straight-line multiply-adds of a thread: what ptxas has to look at.
  int64_t unrolledFmas = 0;
  /// The same of what follows the loop of a product of warpgroups: instructions.
  int64_t unrolledOperations = 0;
};

/// The time of one launch; the formulas stand in src/Config/TileModel.cpp. Reads
/// tile, warps, stages and family of the schedule.
Prediction predict(const TileProblem &problem, const TileSchedule &schedule, const target::Device &device);

//===----------------------------------------------------------------------===//
// Reductions in two stages
//===----------------------------------------------------------------------===//

/// A reduction of memory.
struct ReductionDesc {
  int64_t outputs = 1; ///< Values it makes.
  int64_t depth = 1;   ///< Values that each is made of.
  /// Of a product of matrices: rows, columns, and how many products there are side
  /// by side; 0 rows: it is none.
  int64_t rows = 0, columns = 0, batch = 1;
  ProductUnit unit = ProductUnit::Fma;
  int64_t elementBytes = 4; ///< Of an operand of a product.
  /// Its neighbours in memory lie along the depth.
  bool leftDepthInner = true, rightDepthInner = true;
};

/// Into how many equal parts a loop of `extent` is cut: a divisor of it; 1: the
/// reduction stays whole. A product is cut where predict() says that parts, and a
/// launch that sums them, take less time; anything else so that the device is
/// full, but no part shorter than is worth a value in memory.
int64_t reductionParts(const ReductionDesc &desc, int64_t extent, const target::Device &device);

} // namespace nova::config

#endif // NOVA_CONFIG_TILES_H
