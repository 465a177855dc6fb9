//===- InterpreterImpl.h - The state of a tile program that runs ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TILE_INTERPRETERIMPL_H
#define NOVA_TILE_INTERPRETERIMPL_H

#include "InterpreterElements.h"

#include "nova/Tile/Interpreter.h"
#include "nova/Tile/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/DenseMap.h"

#include <deque>

namespace nova::tile {

/// A memref parameter.
struct Memory {
  char *base = nullptr;
  llvm::SmallVector<int64_t> shape, strides;
  Format format;
};

/// Part of a load, store or copy: where its elements lie. `addresses` are in
/// the tile's row-major order, null outside the memory.
struct Access {
  Memory *memory = nullptr;
  llvm::SmallVector<int64_t> shape;
  std::vector<char *> addresses;
};

/// A ring of slots of one grid point. What was copied into a slot is seen only
/// once a wait has let it arrive.
struct Ring {
  struct Slot {
    std::vector<uint64_t> bits;
    bool inFlight = false;
    /// The wait at which the contents arrived; 0: never written.
    int64_t arrival = 0;
    /// Read since the last wait: other threads may still be at it.
    bool beingRead = false;
  };
  std::vector<Slot> slots;
};

/// A copy that was started: what it found then, and where it is to go.
struct Copy {
  mlir::Operation *op = nullptr;
  Access source;
  std::vector<uint64_t> bits;
  size_t ring = 0, slot = 0;
};

/// A channel: what its sender has sent. A role runs as a whole before the next one;
/// that it could not have run so far ahead is checked when the receiver gets to it.
struct Channel {
  struct Sent {
    mlir::Operation *acquire = nullptr;
    std::vector<Copy> copies; ///< Those of stores have no source.
    bool isWhole = false;     ///< A send followed the stores.
  };
  int64_t slots = 1;
  std::deque<Sent> sent; ///< And not yet awaited.
  int64_t acquired = 0, awaited = 0, released = 0;
};

/// What a token stands for.
struct Token {
  enum Kind { Load, Group, Wait } kind;
  /// Load: whether it waits for its commit. Wait: its number.
  bool uncommitted = false;
  int64_t number = 0;
};

class Interpreter {
public:
  Interpreter(mlir::func::FuncOp program, const InterpreterOptions &options)
      : program(program), options(options) {}

  /// Checks the signature against the buffers.
  llvm::LogicalResult bind(llvm::ArrayRef<void *> buffers);
  /// Executes one grid point.
  llvm::LogicalResult runPoint(int64_t point);

  /// What went wrong.
  std::string message;

private:
  /// Records why `op` cannot be executed.
  llvm::LogicalResult fail(mlir::Operation *op, const llvm::Twine &why);

  // Interpreter.cpp: values and control.
  const Held &get(mlir::Value value) const { return values.at(value); }
  int64_t getIndex(mlir::Value value) const { return get(value).bits[0]; }
  Memory &getMemory(mlir::Value value) { return memories[getIndex(value)]; }
  void set(mlir::Value value, Held held) { values[value] = std::move(held); }
  llvm::LogicalResult runBlock(mlir::Block &block,
                               llvm::SmallVectorImpl<Held> &yielded);
  llvm::LogicalResult execute(mlir::Operation *op);
  llvm::LogicalResult executeFor(mlir::scf::ForOp op);
  llvm::LogicalResult executeIf(mlir::scf::IfOp op);
  llvm::LogicalResult executeConstant(mlir::arith::ConstantOp op);
  llvm::LogicalResult executeElements(mlir::Operation *op);

  // InterpreterMemory.cpp: whose point, and which memory.
  void executeMember(MemberOp op);
  llvm::LogicalResult executeSelect(SelectOp op);

  // InterpreterTiles.cpp: pure operations on tiles.
  llvm::LogicalResult executeRange(RangeOp op);
  llvm::LogicalResult executeSplat(SplatOp op);
  llvm::LogicalResult executeBroadcast(BroadcastOp op);
  llvm::LogicalResult executeReduce(ReduceOp op);
  llvm::LogicalResult executeScan(ScanOp op);
  llvm::LogicalResult executeDot(DotOp op);
  llvm::LogicalResult executeAny(AnyOp op);
  /// scalar and convert: the operand, of another type.
  llvm::LogicalResult executeRename(mlir::Operation *op);

  // InterpreterMemory.cpp: memory.
  /// Where the elements of a tile of `shape` at `offsets` are; an error where
  /// `bounds` says that none lies outside and one does.
  llvm::LogicalResult locate(mlir::Operation *op, mlir::Value memory,
                             mlir::ValueRange offsets,
                             llvm::ArrayRef<int64_t> along,
                             llvm::ArrayRef<int64_t> bounds,
                             llvm::ArrayRef<int64_t> shape, Access &access);
  llvm::LogicalResult read(mlir::Operation *op, const Access &access,
                           size_t element, uint64_t &bits);
  llvm::LogicalResult write(mlir::Operation *op, const Access &access,
                            size_t element, uint64_t bits);
  llvm::LogicalResult executeLoad(LoadOp op);
  llvm::LogicalResult executeStore(StoreOp op);
  llvm::LogicalResult executeGather(GatherOp op);

  // InterpreterAsync.cpp: rings, copies and tokens.
  llvm::LogicalResult executeAlloc(AllocOp op);
  llvm::LogicalResult executeAsyncLoad(AsyncLoadOp op);
  llvm::LogicalResult executeCommit(CommitOp op);
  llvm::LogicalResult executeWait(WaitOp op);
  llvm::LogicalResult executeLocalLoad(LocalLoadOp op);
  llvm::LogicalResult findSlot(mlir::Operation *op, mlir::Value buffer,
                               mlir::Value slot, size_t &ring, size_t &number);
  llvm::LogicalResult arrive(const Copy &copy);

  // InterpreterChannels.cpp: roles.
  llvm::LogicalResult executeChannel(ChannelOp op);
  llvm::LogicalResult executeAcquire(AcquireOp op);
  llvm::LogicalResult executeBulkLoad(BulkLoadOp op);
  llvm::LogicalResult executeAwait(AwaitOp op);
  llvm::LogicalResult executeRelease(ReleaseOp op);
  llvm::LogicalResult executeLocalStore(LocalStoreOp op);
  llvm::LogicalResult executeSend(SendOp op);
  /// That a side's `count`-th use of a channel is of this slot and phase.
  llvm::LogicalResult checkTurn(mlir::Operation *op, const Channel &channel, int64_t count,
                                mlir::Value slot, mlir::Value phase);
  /// At the end of a grid point nothing may be in flight.
  llvm::LogicalResult checkSettled();

  /// Who touched an element of memory.
  struct Touched {
    int64_t writer = -1, reader = -1;
    bool manyReaders = false;
  };

  mlir::func::FuncOp program;
  InterpreterOptions options;
  std::vector<Memory> memories;
  /// By address; as a number, since the hash of pointers takes neighbours to
  /// lie 16 bytes apart.
  llvm::DenseMap<uintptr_t, Touched> touched;
  llvm::DenseMap<mlir::Operation *, ElementFunction> functions;

  // Of the current grid point.
  int64_t point = 0;
  llvm::DenseMap<mlir::Value, Held> values;
  std::vector<Ring> rings;
  std::vector<Channel> channels;
  std::vector<Token> tokens;
  std::vector<Copy> started;            ///< Copies since the last commit.
  std::deque<std::vector<Copy>> groups; ///< Committed and not arrived.
  int64_t waits = 0;
};

} // namespace nova::tile

#endif // NOVA_TILE_INTERPRETERIMPL_H
