//===- ThreadEmitter.h - A tile program as the code of one thread ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TILELOWERING_THREADEMITTER_H
#define NOVA_SRC_TILELOWERING_THREADEMITTER_H

#include "Layouts.h"

#include "nova/TileLowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <functional>
#include <map>

namespace nova::tile {

/// Rings start at multiples of this many bytes: a row of banks, eight times, as
/// wide as a swizzle repeats.
inline constexpr int64_t kRingAlignment = 1024;

/// The named barrier of the consumers; 0 is the block's.
inline constexpr int64_t kConsumerBarrier = 1;

/// On the inline assembly of a predicated load, and of a store (i64: the first of
/// the registers that it stores).
inline constexpr llvm::StringLiteral kLoadAttr = "nova.load", kStoreAttr = "nova.store";

/// On what belongs together of a conversion (i64: which conversion).
inline constexpr llvm::StringLiteral kUnitAttr = "nova.unit";

/// Sorts the loads, arithmetic and stores at the end of a block by elements. `isPinned`:
/// loads of memory that the block's stores may overwrite.
void orderStores(mlir::Block &block, llvm::function_ref<bool(mlir::Operation *)> isPinned);

/// Where each of a thread's elements is: its part of the coordinates, the register.
std::map<LinearLayout::Coordinates, int64_t> registersByCoordinates(const LinearLayout &layout);

/// One instruction in PTX's own words.
mlir::LLVM::InlineAsmOp assembly(mlir::OpBuilder &builder, mlir::Location loc, mlir::TypeRange results,
                                 mlir::ValueRange operands, llvm::StringRef text,
                                 llvm::StringRef constraints, bool sideEffects = true);

/// What a thread holds of a tile: one scalar for each register of its layout.
using Registers = llvm::SmallVector<mlir::Value>;

/// A tile in shared memory: the core's elements row-major, 16-byte chunks
/// swizzled by the row so that columns of chunks fall into different banks;
/// repeats of the core (outer factors) one behind the other. The byte offset
/// within a core is linear over bits in the element's number.
struct SharedTile {
  mlir::Value base; ///< i32, bytes from the start of shared memory; null: 0.
  std::vector<int64_t> core, outer;
  int64_t elementBytes = 4;
  /// The swizzle: chunk ^= (row / perPhase) mod phases. Phases 1: none.
  int64_t perPhase = 1, phases = 1;
  /// Cut into panels of 128 bytes of every row (a matrix only).
  bool panels = false;

  int64_t coreBytes() const;
  int64_t bytes() const;
  /// From one panel to the next.
  int64_t panelBytes() const;
  /// Byte offset of a core element.
  int64_t offset(int64_t coreElement) const;
  /// Byte offset of a repeat of the core.
  int64_t repeatOffset(int64_t repeat) const;
};
/// A place for a matrix in panels; its rows hold whole panels.
SharedTile sharedPanels(llvm::ArrayRef<int64_t> core, llvm::ArrayRef<int64_t> outer,
                        int64_t elementBytes);
/// A place for a tile of this shape, swizzled so that rows of banks hold chunks of
/// different rows.
SharedTile sharedTileFor(llvm::ArrayRef<int64_t> core, llvm::ArrayRef<int64_t> outer,
                         int64_t elementBytes);
/// The type of a ring of `slots` such tiles.
BufferType bufferTypeFor(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t slots);
/// The same in panels.
BufferType panelBufferType(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t slots);
/// One slot of a ring.
SharedTile slotOf(BufferType type);

class ThreadEmitter {
public:
  ThreadEmitter(mlir::func::FuncOp program, int64_t warps);

  /// The kernel, next to the program; failure after a diagnostic.
  mlir::FailureOr<mlir::LLVM::LLVMFuncOp> run();

private:
  // --- ThreadEmitter.cpp: values, elementwise operations, control flow
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emit(mlir::Operation *op);
  mlir::LogicalResult emitFor(mlir::Operation *op);
  mlir::LogicalResult emitIf(mlir::Operation *op);
  mlir::LogicalResult emitElementwise(mlir::Operation *op);
  mlir::LogicalResult emitConstant(mlir::arith::ConstantOp op);
  void emitRange(RangeOp op);
  void emitBroadcast(BroadcastOp op);
  void emitAny(AnyOp op);

  /// Element by element instead of operation by operation, as far as effects allow.
  void orderBlock(mlir::Block &block);

  /// Tiles among `values` as the scalars of their registers.
  llvm::SmallVector<mlir::Value> flatten(mlir::ValueRange values);
  /// The reverse: what stands for each of `values` is the next of `flat`.
  void adopt(mlir::ValueRange values, mlir::ValueRange flat);
  /// Fills `block` with `source`, its terminator's operands flattened.
  mlir::LogicalResult emitBody(mlir::Block &source, mlir::Block &block);

  // --- Members.cpp
  /// The kernel's parameters are one table of pointers by value: whose code is for
  /// several members takes one by a number that is computed.
  void openTable();
  void emitMember(MemberOp op);
  void emitSelect(SelectOp op);
  /// values[number], a number that is the same in all threads.
  mlir::Value byNumber(mlir::Value number, llvm::ArrayRef<int64_t> values);
  mlir::Value extentOf(mlir::Value memory, unsigned dim);

  // --- GlobalMemory.cpp
  mlir::LogicalResult emitLoad(LoadOp op);
  mlir::LogicalResult emitStore(StoreOp op);
  mlir::LogicalResult emitGather(GatherOp op);

  // --- SharedMemory.cpp
  void emitConvert(ConvertOp op);
  /// The same where every warp has the elements that it needs, piece by piece; nothing
  /// if some do not, or pieces would be large.
  std::optional<Registers> convertInWarps(mlir::Value operand, const LinearLayout &from,
                                          const LinearLayout &to, mlir::Type element);
  void storeShared(const Registers &values, const LinearLayout &layout, const SharedTile &tile);
  /// The same, of a tile whose dimension order[i] is dimension i there, with
  /// registers regrouped so that stores are wide.
  void storeTurned(const Registers &values, const LinearLayout &layout,
                   llvm::ArrayRef<int64_t> order, const SharedTile &tile);
  Registers loadShared(mlir::Type element, const LinearLayout &layout, const SharedTile &tile);
  /// Loads the `count` registers from `first` on, neighbours in memory.
  Registers loadSharedVector(mlir::Type element, const LinearLayout &layout, const SharedTile &tile,
                             int64_t first, int64_t count);
  /// Neighbours that one access of shared memory may take in this layout.
  int64_t sharedVector(const LinearLayout &layout, const SharedTile &tile);
  /// Address of a register's element.
  mlir::Value sharedAddress(const LinearLayout &layout, const SharedTile &tile, int64_t reg);
  /// The thread's offset (linear in its number, by `images`) XOR `coreOffset`,
  /// plus `repeatOffset`, within `tile`.
  mlir::Value sharedPointer(const std::vector<int64_t> &images, const SharedTile &tile,
                            int64_t coreOffset, int64_t repeatOffset);
  /// Writes to the scratch area may start: everybody has read what was there.
  void beginScratch(int64_t bytes);
  /// Everybody may read it.
  void scratchWritten();
  /// Of the warps of one team.
  void barrier();
  /// i32: the number of the thread's team, and of its barrier.
  mlir::Value team();
  mlir::Value barrierNumber();

  // --- AsyncCopies.cpp
  void emitAlloc(AllocOp op);
  mlir::LogicalResult emitAsyncLoad(AsyncLoadOp op);
  void emitWait(WaitOp op);
  void emitLocalLoad(LocalLoadOp op);
  void emitLocalStore(LocalStoreOp op);
  /// The slot that a local_load reads.
  SharedTile slotAt(mlir::Value buffer, mlir::Value slot);

  /// A constant that becomes the offset of `bytes` of shared memory behind the
  /// scratch area.
  mlir::Value ringBase(int64_t bytes, int64_t alignment);

  // --- Channels.cpp
  /// What threads wrote to shared memory becomes visible to wgmma, which reads through
  /// another proxy.
  void fenceForProducts();
  void arriveOnce(mlir::Value barrier);
  void emitChannel(ChannelOp op);
  mlir::LogicalResult emitRoles(RoleOp first);
  void emitSend(SendOp op);
  void emitAcquire(AcquireOp op);
  mlir::LogicalResult emitBulkLoad(BulkLoadOp op);
  void emitAwait(AwaitOp op);
  void emitRelease(ReleaseOp op);
  void initializeChannels();
  /// Registers of a thread when the kernel starts.
  int64_t startRegisters() const;
  /// The full or empty barrier of a slot, ptr<3>.
  mlir::Value barrierOf(mlir::Value channel, mlir::Value slot, bool empty);
  /// The parameter with the tensor map of a copy, and the memory's dimensions that
  /// it has, innermost first.
  mlir::Value tensorMapOf(BulkLoadOp op, int64_t boxRows, llvm::SmallVectorImpl<int64_t> &dims);
  void declareTensorMaps();

  // --- WarpgroupProduct.cpp
  mlir::LogicalResult emitWarpgroupDot(DotOp op);
  void emitSettle(SettleOp op);
  Registers waitForProducts(llvm::ArrayRef<mlir::Value> sums, llvm::ArrayRef<mlir::Value> read, int64_t pending);
  /// A wgmma descriptor of a matrix in panels; `warpImages`: by how many bytes each
  /// bit of the warp's number moves it.
  mlir::Value descriptor(const SharedTile &tile, bool kInner, llvm::ArrayRef<int64_t> warpImages);
  /// Plans to write `source` (transposed or not: side x k) to panels at `base` of the
  /// scratch area, float32 rounded to tf32.
  SharedTile stageInPanels(mlir::Value source, bool transposed, int64_t base,
                           llvm::SmallVectorImpl<std::function<void()>> &writes);

  // --- Reduction.cpp
  mlir::LogicalResult emitReduce(ReduceOp op);
  /// A scalar of any type from the lane whose number differs in `mask`.
  mlir::Value butterfly(mlir::Value value, int64_t mask);
  /// Parts of values that warps have, in the scratch area.
  struct WarpShares {
    int64_t parts = 1;
    mlir::Value number; ///< i32: which part is this warp's.
    LinearLayout layout;
    llvm::SmallVector<mlir::Type> elements;
    llvm::SmallVector<SharedTile> tiles;
  };
  /// Each warp writes its `values` (one list of registers in `layout` for each of
  /// `elements`); those that differ in `warpBits` have different parts.
  WarpShares shareBetweenWarps(llvm::ArrayRef<Registers> values, llvm::ArrayRef<mlir::Type> elements,
                               const LinearLayout &layout, llvm::ArrayRef<unsigned> warpBits);
  /// Register `reg` of value `i` as `part` has it.
  mlir::Value loadShare(const WarpShares &all, size_t i, int64_t part, int64_t reg);

  // --- Scan.cpp
  void emitScan(ScanOp op);

  // --- Product.cpp, ProductOperand.cpp
  mlir::LogicalResult emitDot(DotOp op);
  friend class ProductOperand;

  // --- helpers
  LinearLayout layoutOf(mlir::Value tile);
  Registers &registers(mlir::Value tile);
  mlir::Value scalar(mlir::Value value) { return scalars.lookupOrDefault(value); }
  mlir::Value constantI32(int64_t value);
  mlir::Value constantIndex(int64_t value);
  /// XOR over the set bits of the thread's number (lane bits, then warp bits) of
  /// `images`: one per bit. An i32, computed at the start of the kernel.
  mlir::Value linearOfThread(const std::vector<int64_t> &images);
  /// The thread's part of coordinate `dim`.
  mlir::Value threadCoordinate(const LinearLayout &layout, unsigned dim);
  /// True in one thread of each group that holds copies; null if there are none.
  mlir::Value isOwner(const LinearLayout &layout);
  /// Runs `body` under a condition (null: always).
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// Values of memory type: i1 is a byte, index is i64.
  static mlir::Type memoryType(mlir::Type element, mlir::Builder &builder);
  /// Bytes of an element in memory.
  int64_t memoryBytes(mlir::Type element);
  mlir::Value toMemory(mlir::Value value);
  mlir::Value fromMemory(mlir::Value value, mlir::Type element);
  /// `words` (i32, i64, i16 or i8 scalars) as `count` elements, and back.
  Registers unpack(llvm::ArrayRef<mlir::Value> words, mlir::Type element, int64_t count);
  llvm::SmallVector<mlir::Value> pack(llvm::ArrayRef<mlir::Value> elements);

  /// A place in global memory for every register of a tile.
  struct Places {
    mlir::Value base;                         ///< ptr<1>: the thread's register 0.
    std::vector<int64_t> bytes;               ///< Of each register, from base.
    llvm::SmallVector<mlir::Value> predicate; ///< Null: inside.
    int64_t vector = 1;
  };
  Places place(const Access &access, const LinearLayout &layout);

  mlir::func::FuncOp program;
  int64_t warps;
  mlir::OpBuilder builder;
  mlir::OpBuilder entry;
  mlir::Location loc;
  mlir::LLVM::LLVMFuncOp kernel;
  mlir::Value thread; ///< i32, the number of the thread in its block.
  mlir::Value shared; ///< ptr<3>, start of shared memory.
  mlir::Value table;  ///< ptr, the pointers that are the one parameter; or null.
  /// Extents of what a tile.select chose, where they are no constants.
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> extents;
  llvm::DenseMap<mlir::Value, Registers> tiles;
  mlir::IRMapping scalars;
  std::map<std::vector<int64_t>, mlir::Value> linear;
  int64_t residentBlocks = 1;
  /// Teams of `warps` warps, each with points of its own.
  int64_t teams = 1;
  /// Constants that become the bytes of a team's scratch area.
  llvm::SmallVector<mlir::arith::ConstantOp> scratchSizes;
  /// Warps of roles of their own, which run beside the others.
  int64_t roleWarps = 0;
  llvm::SmallVector<ChannelOp> channels;
  llvm::SmallVector<mlir::DictionaryAttr> tensorMaps;
  int64_t scratchBytes = 0;
  /// Rings lie behind the scratch area, whose size is known at the end: their
  /// bases are constants that are set then.
  int64_t ringBytes = 0;
  llvm::SmallVector<std::pair<mlir::arith::ConstantOp, int64_t>> ringBases;
  /// Somebody may still read the scratch area, or, of a warp's own part of it, that warp
  /// alone.
  bool scratchBusy = false, warpsBusy = false;
  int64_t units = 0;
  /// Registers that products in flight read.
  Registers readInFlight;
  /// The same by product, of those that are settled in their step.
  llvm::DenseMap<mlir::Value, Registers> readInStep;
};

} // namespace nova::tile

#endif // NOVA_SRC_TILELOWERING_THREADEMITTER_H
