//===- Code.h - A kernel in the form that is executed ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers are rows of 32 lanes in one file per warp, addressed by byte
// offset: 4 bytes a lane up to 32 bits, 8 for 64 bits (16 bits stand in the low
// half of 4 bytes, what is above them means nothing). A predicate is one word
// with a bit per lane. Immediates and special registers are rows too, so that
// every source of every instruction is a row.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_CODE_H
#define NOVA_SIMULATOR_CODE_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nova::sim {

constexpr unsigned kLanes = 32;
constexpr uint32_t kAllLanes = ~uint32_t(0);
constexpr uint32_t kNone = ~uint32_t(0);

/// The first address of shared memory.
constexpr uint64_t kSharedBase = 1024;
/// Generic and global addresses: bits 40 and up choose the memory.
constexpr unsigned kWindowShift = 40;
constexpr uint64_t kSharedWindow = uint64_t(0x700000) << kWindowShift;
constexpr uint64_t kLocalWindow = uint64_t(0x710000) << kWindowShift;
constexpr uint64_t kParameterWindow = uint64_t(0x720000) << kWindowShift;
/// Shared addresses of a cluster: bits 24 and up are the block's rank.
constexpr unsigned kRankShift = 24;
/// Where a thread's local memory starts, and where parameters do in their
/// space.
constexpr uint64_t kLocalBase = 256;
constexpr uint64_t kParameterBase = 512;

class Warp;
struct Fragment;
struct Inst;

/// Executes for the lanes of `mask`, which is not 0.
using Handler = void (*)(Warp &, const Inst &, uint32_t mask);

/// Inst::small of an instruction that ends the threads that execute it.
constexpr uint16_t kEndsThread = 0xE0F;
/// Inst::small of bar.warp.sync.
constexpr uint16_t kWarpBarrier = 0xBA7;

/// What a flow instruction did with its fragment.
enum class Next {
  Advance, ///< Go on with the next instruction.
  Stay,    ///< The program counter is set, go on there.
  Switch,  ///< The fragment waits, has split or is gone.
};
/// `mask` may be 0: nobody's guard holds.
using FlowHandler = Next (*)(Warp &, uint32_t fragment, const Inst &,
                             uint32_t mask);

enum class Kind : uint8_t {
  Plain,
  Flow,    ///< `flow` is called instead of `run`.
  Aligned, ///< Every live lane of the warp must execute it together.
  Members, ///< Every live lane of the row `members` must.
};

struct Inst {
  union {
    Handler run;
    FlowHandler flow;
  };
  Kind kind = Kind::Plain;
  bool guardNegated = false;
  uint16_t small = 0;     ///< An instruction's own.
  uint32_t guard = kNone; ///< A predicate's offset.
  uint32_t op[5] = {kNone, kNone, kNone, kNone, kNone};
  uint32_t list = kNone; ///< Into Code::lists: operands that do not fit.
  int64_t immediate = 0;
  uint32_t aux = 0; ///< An instruction's own.
  uint32_t members = kNone;
  uint32_t target = kNone;     ///< Of a branch.
  uint32_t reconverge = kNone; ///< Its immediate post-dominator.
  /// Into Code::watches: registers of products that it touches.
  uint32_t watch = kNone;
  uint32_t line = 0, location = 0;
  uint32_t text = kNone; ///< Where it begins in the PTX.
  Inst() : run(nullptr) {}
};

/// A row that is the same for all lanes, or is filled when a block starts.
struct ConstantRow {
  uint64_t bits = 0;
  unsigned width = 32;
};
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  Clock,
  Clock64,
  SmId,
  NsmId,
  GridId,
  ActiveMask,
  DynamicSmemSize,
  TotalSmemSize,
  ClusterCtaRank,
  ClusterNctaRank,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NclusterIdX,
  NclusterIdY,
  NclusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
};

struct SharedVariable {
  std::string name;
  uint64_t offset = 0, bytes = 0; ///< bytes 0: up to the end.
};

struct Parameter {
  std::string name;
  uint64_t offset = 0, bytes = 0;
};

struct GlobalVariable {
  std::string name;
  std::string bytes;
  bool writable = true;
};

struct Code {
  std::string name, symbol;
  std::string text; ///< The PTX, for reports.
  std::vector<Inst> body;
  std::vector<uint32_t> lists;
  std::vector<std::pair<uint32_t, ConstantRow>> constants; ///< By offset.
  std::vector<std::pair<uint32_t, Special>> specials;
  /// Addresses of shared variables, to which a block adds its rank.
  std::vector<std::pair<uint32_t, ConstantRow>> sharedAddresses;
  uint32_t fileBytes = 0; ///< Of a warp's registers.
  uint32_t registers = 0; ///< Of 32 bits, as declared (virtual).
  std::vector<Parameter> parameters;
  uint64_t parameterBytes = 0;
  std::vector<SharedVariable> shared;
  uint64_t staticShared = 0;    ///< Bytes.
  uint64_t sharedAlignment = 1; ///< Of dynamic shared memory.
  uint64_t localBytes = 0;      ///< Per thread.
  /// Shared memory is watched in pieces of this many bytes: the narrowest
  /// access of the kernel, so that none covers part of a piece.
  unsigned granule = 16;
  std::vector<GlobalVariable> globals;
  /// Rows that products use, and what each instruction that touches some has: a
  /// count, then 2 k for reading watched[k], 2 k + 1 for writing it.
  std::vector<uint32_t> watched, watches;
  bool hasProducts = false, hasMbarriers = false;
  std::vector<uint32_t> requiredThreads, maxThreads; ///< Empty: not said.
  std::vector<std::string> sources;                  ///< By Inst::location.
};

} // namespace nova::sim

#endif // NOVA_SIMULATOR_CODE_H
