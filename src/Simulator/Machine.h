//===- Machine.h - Warps and blocks while they run ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp is a set of fragments: lanes that share a program counter. A branch
// on which lanes disagree makes children of a fragment, which waits at the
// branch's immediate post-dominator until they have come there or have left.
// Any fragment that is not waiting may run, so lanes that wait for others of
// their own warp do not hold these up (ISA 3.1, independent thread scheduling).
// Blocks run in clusters, whose warps take turns; most have one block.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_MACHINE_H
#define NOVA_SIMULATOR_MACHINE_H

#include "Mbarrier.h"
#include "Products.h"
#include "SharedMemory.h"
#include "nova/Simulator/Simulator.h"

#include <bit>
#include <deque>
#include <string>
#include <vector>

namespace nova::sim {

class Block;
class Cluster;

/// Thrown by instructions, caught where a block runs. The rest of the report
/// (kernel, line, block) is added there.
struct FaultFound {
  FaultKind kind;
  std::string what;
  std::optional<uint32_t> lane;
  std::optional<uint64_t> address;
  std::string buffer;
};

struct Fragment {
  enum State : uint8_t {
    Free,
    Runnable,
    Split,     ///< Its children run.
    AtSync,    ///< At a warp-wide instruction, for other lanes.
    AtBarrier, ///< At a barrier of the block.
    Waiting,   ///< Tries its instruction again when somebody wakes it.
    Polling,   ///< Would repeat what it just tried: others go first.
  };
  uint32_t mask = 0;
  uint32_t pc = 0;
  uint32_t reconverge = kNone;
  uint32_t parent = kNone;
  uint32_t children = 0;
  State state = Free;
};

/// Copies that cp.async has begun and nobody has waited for.
struct AsyncCopy {
  uint32_t mask = 0;
  uint32_t bytes = 0;
  uint32_t group = 0; ///< Number of the group, the same for all of `mask`.
  std::array<uint32_t, kLanes> offset{};
};

/// Bulk copies from shared memory that a thread has begun: bulk groups (ISA
/// 9.7.9.25.5). What they read is held until it is waited for.
struct BulkRead {
  uint8_t lane = 0;
  uint32_t group = 0, inst = 0;
  uint32_t held = 0; ///< SharedMemory::hold.
};

/// A tensor map among the parameters, by its place there.
struct MapParameter {
  uint64_t offset = 0;
  const TensorMap *map = nullptr;
};

/// One launch: what all its blocks share.
struct LaunchContext {
  const Code *code = nullptr;
  Shape shape;
  const Options *options = nullptr;
  std::vector<Memory> memories; ///< By window, from 1 on.
  std::string parameters;       ///< Their bytes.
  std::vector<MapParameter> maps;
  uint64_t sharedBytes = 0;
  uint32_t threads = 0; ///< Of a block.
  uint32_t warpsPerBlock() const { return (threads + kLanes - 1) / kLanes; }
  uint32_t clusterBlocks() const {
    return shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
  }
};

class Warp {
public:
  void start(Block &block, uint32_t index, uint32_t lanes);
  /// Runs until no fragment can go on.
  void run();

  template <typename T> T *row(uint32_t offset) {
    return reinterpret_cast<T *>(file.data() + offset);
  }
  uint32_t &predicate(uint32_t offset) { return *row<uint32_t>(offset); }
  const uint32_t *list(const Inst &i) const {
    return code->lists.data() + i.list;
  }
  uint32_t indexOf(const Inst &i) const {
    return static_cast<uint32_t>(&i - code->body.data());
  }

  bool finished() const { return alive == 0; }
  bool canRun() const;
  /// Fragments that polled get another turn.
  void wake();

  /// A product has one of Code::watched, as accumulator of a shape or, with 0,
  /// as operand.
  void useInProduct(uint32_t watched, uint32_t shape);

  // For flow instructions.
  void split(uint32_t fragment, const Inst &inst, uint32_t taken) {
    splitTo(fragment, taken, inst.target, fragments[fragment].pc + 1,
            inst.reconverge);
  }
  /// Lanes `taken` go on at `there`, the others at `here`; all meet at
  /// `reconverge`.
  void splitTo(uint32_t fragment, uint32_t taken, uint32_t there, uint32_t here,
               uint32_t reconverge);
  void jump(uint32_t fragment, uint32_t to) { fragments[fragment].pc = to; }
  void leave(uint32_t fragment, uint32_t lanes); ///< These threads end.
  /// The fragment tries the same instruction again once it is woken.
  Next waitAt(uint32_t fragment) {
    fragments[fragment].state = Fragment::Waiting;
    return Next::Switch;
  }
  void wakeUp(uint32_t fragment) {
    if (fragments[fragment].state == Fragment::Waiting)
      fragments[fragment].state = Fragment::Runnable;
  }
  Accessor accessor(uint8_t lane) const {
    return {agent, agent, lane, indexOf(*current)};
  }
  /// A barrier has let the fragment pass.
  void release(uint32_t fragment) {
    fragments[fragment].state = Fragment::Runnable;
    ++fragments[fragment].pc;
  }

  Block *block = nullptr;
  const Code *code = nullptr;
  uint32_t index = 0;    ///< In its block.
  uint32_t agent = 0;    ///< In the cluster (Clocks.h).
  uint32_t launched = 0; ///< Lanes that are threads of the block.
  uint32_t alive = 0;    ///< Of these, who has not ended.
  std::vector<Fragment> fragments;
  std::deque<AsyncCopy> copies;
  std::array<uint32_t, kLanes> groups{}; ///< cp.async groups committed.
  std::vector<BulkRead> bulkReads;
  std::array<uint32_t, kLanes> bulkGroups{};
  WarpProducts products;
  /// Registers of a thread, once setmaxnreg said so.
  std::optional<uint32_t> registers;
  /// One more than the phase of the cluster's barrier that a lane has arrived
  /// at and not waited for; 0 for none.
  std::array<uint64_t, kLanes> clusterPhase{};
  std::vector<uint8_t> local; ///< lane * Code::localBytes.
  std::vector<uint8_t> localWritten;
  uint64_t warpInstructions = 0, laneInstructions = 0;
  /// The instruction that runs or failed.
  const Inst *current = nullptr;

private:
  /// An instruction touches registers of products: none may still have them.
  void touchWatched(const Inst &inst);
  void execute(uint32_t fragment);
  bool converged(uint32_t fragment, const Inst &inst, uint32_t mask) const;
  bool joinAtSync();
  void rejoin(uint32_t fragment);
  void drop(uint32_t fragment);
  uint32_t make(const Fragment &fragment);

  std::vector<uint8_t> storage;
  struct File {
    uint8_t *base = nullptr;
    uint8_t *data() { return base; }
  } file;
};

/// A named barrier (ISA 9.7.13.1): who has arrived, for how many.
struct Barrier {
  uint32_t expected = 0; ///< Threads; 0 while nobody has arrived.
  uint32_t arrived = 0;
  uint32_t inst = 0; ///< Of the first arrival.
  Order released;
  std::vector<std::pair<uint32_t, uint32_t>> waiting; ///< Warp, fragment.
  uint32_t population = 0;                            ///< For bar.red.popc.
  bool all = true, any = false;
};

/// One block of a cluster.
class Block {
public:
  Block(const LaunchContext &launch, Cluster &cluster)
      : launch(launch), cluster(cluster) {}
  void start(std::array<uint32_t, 3> id, uint32_t rank);

  const LaunchContext &launch;
  Cluster &cluster;
  std::array<uint32_t, 3> id{};
  uint32_t rank = 0; ///< In the cluster.
  /// Of its shared memory, in the cluster's.
  uint64_t sharedBase = kSharedBase;
  SharedMemory shared;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  Mbarriers mbarriers;
  std::vector<WarpgroupOrder> warpgroups;
  /// 32-bit registers that no warp has, for setmaxnreg.inc.
  int64_t freeRegisters = 0;
  std::vector<std::pair<uint32_t, uint32_t>> waitForRegisters;

  bool ended() const {
    for (const Warp &w : warps)
      if (!w.finished())
        return false;
    return true;
  }

  /// A fragment arrives at barrier `which` for `expected` threads, as `count`
  /// of them; `inst` is the instruction. With `wait` it is released when the
  /// barrier is complete. Returns whether it now waits.
  bool arrive(Warp &warp, uint32_t fragment, uint32_t which, uint32_t expected,
              uint32_t count, bool wait);

private:
  void complete(Barrier &barrier);
};

/// barrier.cluster (ISA 9.7.13.3).
struct ClusterBarrier {
  uint64_t phase = 0;
  uint32_t arrived = 0; ///< Threads.
  Order collecting, completed;
  std::vector<std::pair<Warp *, uint32_t>> waiting;
};

/// Blocks that run together.
class Cluster {
public:
  explicit Cluster(const LaunchContext &launch);
  /// Runs the cluster whose first block is `first` to its end; the fault that
  /// ended it otherwise.
  std::optional<Fault> run(std::array<uint32_t, 3> first, uint64_t seed);

  /// Sums over the clusters run so far.
  Counts counts;

  const LaunchContext &launch;
  Clocks clocks;
  std::vector<Block> blocks;
  ClusterBarrier barrier;
  /// Grows with all that may let somebody go on.
  uint64_t events = 0;

  Warp &warpOf(unsigned agent) {
    uint32_t each = launch.warpsPerBlock();
    return blocks[agent / each].warps[agent % each];
  }
  /// Threads that have not ended.
  uint32_t threadsAlive() const;
  void arriveAtCluster(Warp &warp, uint32_t lanes, bool releases);
  void completeCluster();

private:
  [[noreturn]] void diagnose();
  Fault describe(FaultFound &found);
  Warp *running = nullptr;
};

/// Words of a product's list: how many registers it has, then them.
constexpr unsigned kProductCount = 0, kProductRows = 1;
bool isProduct(const Inst &inst);

/// Instruction `inst` as "PTX line 12".
std::string describeInst(const Code &code, uint32_t inst);

} // namespace nova::sim

#endif // NOVA_SIMULATOR_MACHINE_H
