//===- Simulator.h - PTX kernels executed on the CPU ----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes the PTX of a kernel, warp by warp, and watches what it does. No
// LLVM, no CUDA. Semantics are those of the PTX ISA manual, cited by section
// where an instruction is implemented. What an instruction leaves open (an
// approximation, the order of a tensor core's sums) is computed more exactly
// than a device does; src/Simulator/Instructions (ProductSums.h,
// SpecialFunctions.cpp) says by how much results may differ.
//
// Threads of a warp run together, with an active mask; they part at a branch
// and meet again at its immediate post-dominator. A warp runs until it must
// wait; which one runs then is drawn from a seed. Blocks are spread over the
// cores. Accesses are ordered by barriers (a happens-before relation on
// warps), so a race is found in any interleaving, not only in the one that
// shows it. What runs by itself (bulk copies, products of warpgroups) is done
// when it is begun, and what it reads and writes may not be touched before
// somebody has waited for it as the ISA asks.
//
// Addresses. Each pointer argument is a memory of its own: addresses of one
// never reach another, however they are computed. A shared address starts at
// 1024, as on devices that reserve the first kilobyte.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_SIMULATOR_H
#define NOVA_SIMULATOR_SIMULATOR_H

#include "nova/Support/Error.h"
#include "nova/Target/Target.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nova::sim {

enum class FaultKind {
  OutOfBounds,    ///< An address outside every memory it may mean.
  Misaligned,     ///< Not a multiple of the access's size.
  Uninitialised,  ///< Shared or arena memory that nobody wrote.
  NotWritable,    ///< Outside the declared outputs of the launch.
  Race,           ///< Two warps, or lanes, on shared memory, unordered.
  AsyncPending,   ///< Memory that an asynchronous copy still owns.
  ProductPending, ///< Registers or memory that a product of wgmma still uses.
  ProxyFence,     ///< The asynchronous proxy uses what no fence shows it.
  Phase,          ///< An mbarrier misused: arrivals, phases, its life.
  Transaction,    ///< Bytes that copies bring and an mbarrier does not expect.
  PartialBarrier, ///< A barrier that some threads do not reach.
  Divergence,     ///< A warp-wide instruction that lanes reach apart.
  Deadlock,       ///< Everybody waits.
  Endless,        ///< More instructions than the limit allows.
  Limit,          ///< More than the device has.
  Undefined,      ///< What the ISA calls undefined behaviour.
  Trap,           ///< The kernel's own trap.
};
/// "race", "partial barrier", ...
std::string_view nameOf(FaultKind kind);

/// What a kernel did that no right kernel does.
struct Fault {
  FaultKind kind = FaultKind::Undefined;
  std::string what; ///< In words, with the values.
  std::string kernel;
  uint32_t line = 0;  ///< Of the PTX; 0 for a launch as a whole.
  std::string opcode; ///< At that line.
  std::string source; ///< Where the line came from: "file:line:column".
  std::array<uint32_t, 3> block{};
  std::optional<uint32_t> warp, lane;
  std::optional<uint64_t> address;
  std::string buffer; ///< The memory it is about; may be empty.
  /// All of it, on one line.
  std::string text() const;
};

/// Memory behind a pointer argument. `written` has a byte per byte of `data`,
/// non-zero where somebody wrote; null when everything is initialised.
struct Memory {
  std::string name;
  uint8_t *data = nullptr;
  uint8_t *written = nullptr;
  uint64_t size = 0;
  bool writable = true;
};

/// A tensor map, by value: what cuTensorMapEncodeTiled is given, innermost
/// dimension first. The numbers of the last four are places in the lists of
/// nova/Bundle/TensorMapWords.h; strides are in bytes, rank-1 of them.
struct TensorMap {
  Memory memory;
  uint64_t offset = 0; ///< Of the tensor, in the memory.
  std::vector<uint64_t> sizes, strides, box, elementStrides;
  unsigned elementType = 0, interleave = 0, swizzle = 0, fill = 0;
};

/// An argument: a pointer `offset` bytes into a memory, a tensor map, or a
/// value.
struct Argument {
  std::optional<Memory> memory;
  uint64_t offset = 0;
  std::string value; ///< Its bytes, for an argument without memory.
  std::optional<TensorMap> map;
};

struct Shape {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint64_t dynamicShared = 0; ///< Bytes.
  /// That a thread starts with, for setmaxnreg; 0: not known.
  uint32_t registers = 0;
};

struct Options {
  unsigned threads = 0; ///< 0: one per usable CPU.
  uint64_t seed = 0;    ///< Which warp runs when several could.
  /// Whose limits are held; null for none but the ISA's.
  const target::Device *device = nullptr;
  /// Instructions one warp may execute before it is called endless.
  uint64_t maxInstructions = uint64_t(1) << 30;
};

struct Counts {
  uint64_t warpInstructions = 0;
  uint64_t laneInstructions = 0; ///< By active lanes.
  double coreSeconds = 0;        ///< Of CPU time, over all threads.
  Counts &operator+=(const Counts &other);
};

struct Outcome {
  Counts counts;
  std::optional<Fault> fault; ///< That of the first block in grid order.
};

struct Code; // The decoded form, private to src/Simulator.

/// One kernel of a PTX text, ready to be launched any number of times.
class Kernel {
public:
  /// Finds `symbol` in `ptx`. BadInput where the text is no PTX (with the
  /// line), Missing for an instruction or modifier the simulator does not know
  /// (with its text and line). `name` is what reports call the kernel.
  static Expected<Kernel> load(std::string_view ptx, std::string_view symbol,
                               std::string_view name);

  /// Runs a grid. An error (Missing) only where this machine cannot simulate.
  Expected<Outcome> launch(const Shape &shape,
                           const std::vector<Argument> &arguments,
                           const Options &options) const;

  size_t parameterCount() const;
  /// Bytes of parameter i.
  uint64_t parameterBytes(size_t i) const;

private:
  std::shared_ptr<const Code> code;
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_SIMULATOR_H
