//===- KernelClusters.h - Which operations become one kernel ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cluster has a shape S and a set L of local dimensions; the others (those
// longer than 1) are its parallel space. Every value a member computes has a
// binding: for each of its dimensions the dimension of S it runs along, or -1
// where it has size 1. A cluster is one kernel: one grid point computes one
// tile of the space and all of L, so
//
//   - a member may read another member's value only at the point's own
//     position (the binding says so), except along L, of which it sees all;
//   - a reduction may run along L only;
//   - what a member reads by computed position, and every operand of a
//     contraction, attention or scatter, comes from memory: from outside.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_TRANSFORMS_KERNELCLUSTERS_H
#define NOVA_SRC_TRANSFORMS_KERNELCLUSTERS_H

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallBitVector.h"

#include <string>
#include <vector>

namespace nova {

struct Cluster {
  /// What may still join: anything elementwise or row-wise, only an elementwise
  /// epilogue, or nothing.
  enum class Kind { Open, Epilogue, Sealed };

  Kind kind = Kind::Open;
  std::string role;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallBitVector local;
  std::vector<mlir::Operation *> ops; ///< In step order once finished.
  llvm::BitVector ancestors;          ///< Clusters that must run before.
  unsigned firstIndex = 0;            ///< Position of the earliest member.
  bool recomputes = false;            ///< Only repeated operations so far.
  /// Why its first operation is in no kernel that computes one of its operands:
  /// the operation that computes that, and what prevents it.
  std::vector<std::pair<mlir::Operation *, std::string>> apart;

  /// Dimensions of S along which results are computed in parallel.
  llvm::SmallVector<unsigned> spaceDims() const;
  /// Local dimensions trail the space ones (a row), and a space is left.
  bool isRowWise() const;
};

using Binding = llvm::SmallVector<int64_t>;

/// Partitions the computing operations of a step.
class KernelClusters {
public:
  /// Marks an operation repeated for the kernel that reads it: it must not join
  /// the kernel its operands come from.
  static constexpr llvm::StringLiteral recomputeAttr = "nova.recompute";

  /// With `fuse` false every operation is a cluster of its own.
  KernelClusters(mlir::func::FuncOp step, bool fuse);

  /// Live clusters in the order they run: dependences first, and a reader of a
  /// step argument before the cluster that computes its update, where both hold.
  std::vector<unsigned> schedule() const;

  const Cluster &cluster(unsigned id) const { return clusters[id]; }
  /// The cluster that computes `op`; -1 for views, sources and the terminator.
  int clusterOf(mlir::Operation *op) const;
  llvm::ArrayRef<int64_t> binding(mlir::Value value) const { return bindings.find(value)->second; }

  /// Whether operand `index` of `op` may be another member's value (else it is
  /// read from memory).
  bool readsInPlace(mlir::Operation *op, unsigned index) const {
    return alone(op).operands[index].has_value();
  }

  /// Constants that are splats, and iotas: duplicated into every reader.
  static bool isDuplicated(mlir::Operation *op);
  /// A view that may stand inside a kernel: one that only adds or drops unit
  /// dimensions, repeats, or (below nova.copy) permutes.
  static bool isInnerView(mlir::Operation *op);
  /// The value `value` views, through inner views only.
  static mlir::Value throughInnerViews(mlir::Value value);

private:
  /// An operation by itself: its cluster, and how operands and results run
  /// along that cluster's shape. No binding: the operand comes from memory.
  struct Solo {
    Cluster cluster;
    llvm::SmallVector<std::optional<Binding>> operands;
    llvm::SmallVector<Binding> results;
  };
  /// Another cluster that joins, and where its dimensions go.
  struct Merge {
    unsigned id;
    Binding map;
  };

  Solo alone(mlir::Operation *op) const;
  void place(mlir::Operation *op, bool fuse);
  /// Null if it joined; else what prevents it.
  const char *tryJoin(mlir::Operation *op, const Solo &solo, unsigned primary,
                      llvm::ArrayRef<unsigned> others);
  std::optional<Binding> matchDims(mlir::Operation *op, const Solo &solo, unsigned primary,
                                   llvm::ArrayRef<Merge> merges) const;
  std::optional<Binding> embed(const Cluster &from, const Cluster &into) const;
  bool staysInside(unsigned id, mlir::Operation *op) const;
  /// Does `reader` read from memory what `writer` computes, so that they may not be one
  /// kernel?
  bool readsFromMemory(unsigned reader, unsigned writer) const;
  /// Is `value` made element by element, with nothing but memory before it?
  bool isMadeOfMemory(mlir::Value value, unsigned writer) const;
  bool pathOutside(unsigned from, unsigned to, const llvm::BitVector &inside) const;
  void absorb(unsigned into, const Merge &merge);
  void dependOn(unsigned id, unsigned before);

  mlir::func::FuncOp step;
  unsigned capacity = 0; ///< Clusters there can be: bits of every set of them.
  std::vector<Cluster> clusters;
  std::vector<bool> live;
  llvm::DenseMap<mlir::Operation *, unsigned> ids, positions;
  llvm::DenseMap<mlir::Value, Binding> bindings;
  llvm::DenseSet<mlir::Value> leaves; ///< Stored transposed; read from memory.
};

/// What a reader sees: through inner views, and through the transpose that a
/// nova.copy stores.
mlir::Value sourceOf(mlir::Operation *op, mlir::Value operand);

/// The binding of `view`, given that of the value it views through sourceOf.
Binding viewBinding(mlir::Value view, mlir::Value source, llvm::ArrayRef<int64_t> binding);

} // namespace nova

#endif // NOVA_SRC_TRANSFORMS_KERNELCLUSTERS_H
