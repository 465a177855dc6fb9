//===- KernelClusters.cpp - Which operations become one kernel -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelClusters.h"

#include "nova/IR/StridedView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;

/// Operations of one kernel. What fusion, code generation and ptxas do with a body
/// grows faster than the body: a chain of thousands becomes several kernels, and the
/// value stored between two of them costs little beside so much arithmetic.
static constexpr size_t kMostOps = 256;

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

int KernelClusters::clusterOf(Operation *op) const {
  auto it = ids.find(op);
  return it == ids.end() ? -1 : (int)it->second;
}

/// Where the dimensions of `from` go in `into`, by the order of those longer
/// than 1: all of them, or (a cluster of row statistics) into's space.
std::optional<Binding> KernelClusters::embed(const Cluster &from, const Cluster &into) const {
  if (from.kind != Cluster::Kind::Open)
    return std::nullopt;
  auto place = [&](ArrayRef<unsigned> dims) -> std::optional<Binding> {
    Binding map(from.shape.size(), -1);
    size_t next = 0;
    for (size_t i = 0; i < from.shape.size(); ++i) {
      if (from.shape[i] == 1)
        continue;
      if (next == dims.size() || into.shape[dims[next]] != from.shape[i])
        return std::nullopt;
      map[i] = dims[next++];
    }
    return next == dims.size() ? std::optional(map) : std::nullopt;
  };
  SmallVector<unsigned> all;
  for (unsigned i = 0; i < into.shape.size(); ++i)
    if (into.shape[i] != 1)
      all.push_back(i);
  if (auto map = place(all)) {
    // Reductions join where the same dimensions are local, or none are yet.
    bool undecided = into.local.none() && into.kind == Cluster::Kind::Open;
    for (size_t i = 0; i < map->size(); ++i)
      if ((*map)[i] >= 0 && from.local.any() && !undecided && from.local.test(i) != into.local.test((*map)[i]))
        return std::nullopt;
    return map;
  }
  return from.local.none() ? place(into.spaceDims()) : std::nullopt;
}

/// Whether all readers of what cluster `id` computes are in it, or are `op`.
bool KernelClusters::staysInside(unsigned id, Operation *op) const {
  for (Operation *member : clusters[id].ops)
    for (Operation *user : member->getUsers())
      if (user != op && clusterOf(user) != (int)id)
        return false;
  return true;
}

bool KernelClusters::pathOutside(unsigned from, unsigned to, const llvm::BitVector &inside) const {
  for (unsigned x : clusters[to].ancestors.set_bits())
    if (!inside.test(x) && clusters[x].ancestors.test(from))
      return true;
  return false;
}

/// Where the dimensions of the operation's own shape go in the cluster it
/// joins, from how it reads the cluster's values.
std::optional<Binding> KernelClusters::matchDims(Operation *op, const Solo &solo, unsigned primary,
                                                 ArrayRef<Merge> merges) const {
  const Cluster &target = clusters[primary];
  Binding map(solo.cluster.shape.size(), -1);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value source = sourceOf(op, operand);
    int id = clusterOf(source.getDefiningOp());
    const Merge *merge = llvm::find_if(merges, [&](const Merge &m) { return (int)m.id == id; });
    if (id < 0 || (id != (int)primary && merge == merges.end()))
      continue;
    if (!solo.operands[i] || leaves.contains(source))
      return std::nullopt;
    Binding seen = viewBinding(operand, source, binding(source));
    for (auto [along, own] : llvm::zip_equal(seen, *solo.operands[i])) {
      if (along < 0)
        continue;
      int64_t there = id == (int)primary ? along : merge->map[along];
      if (own < 0 || there < 0 || (map[own] >= 0 && map[own] != there))
        return std::nullopt;
      map[own] = there;
    }
  }
  // Dimensions along which only outside operands run: the same place, if local.
  // No two run along one: a column beside its own transpose is a square, of
  // which a grid point has the diagonal only.
  llvm::SmallBitVector used(target.shape.size());
  for (int64_t dim : map) {
    if (dim >= 0 && used.test(dim))
      return std::nullopt;
    if (dim >= 0)
      used.set(dim);
  }
  for (size_t i = 0; i < map.size(); ++i) {
    int64_t size = solo.cluster.shape[i];
    if (size == 1 || map[i] >= 0)
      continue;
    if (map.size() != target.shape.size() || target.shape[i] != size || used.test(i) ||
        !target.local.test(i))
      return std::nullopt;
    map[i] = i;
    used.set(i);
  }
  for (size_t i = 0; i < map.size(); ++i)
    if (map[i] >= 0 && target.shape[map[i]] != solo.cluster.shape[i])
      return std::nullopt;
  return map;
}

const char *KernelClusters::tryJoin(Operation *op, const Solo &solo, unsigned primary,
                                    ArrayRef<unsigned> others) {
  Cluster &target = clusters[primary];
  if (target.kind == Cluster::Kind::Sealed)
    return "nothing can be computed behind it in one kernel";
  if (target.ops.size() >= kMostOps)
    return "that kernel has as many operations as one may have";
  if (solo.cluster.kind != Cluster::Kind::Open)
    return "it reads this operand from memory";
  bool computes = op->hasTrait<nova::Pointwise>();
  if (target.kind == Cluster::Kind::Epilogue && !computes)
    return "behind a product only elementwise operations are computed";

  llvm::BitVector inside(capacity);
  inside.set(primary);
  SmallVector<Merge> merges;
  size_t size = target.ops.size() + 1;
  for (unsigned other : others) {
    auto map = embed(clusters[other], target);
    if (!map || size + clusters[other].ops.size() > kMostOps)
      continue;
    inside.set(other);
    bool crossed = false;
    for (unsigned member : inside.set_bits())
      crossed |= member != other &&
                 (pathOutside(member, other, inside) || pathOutside(other, member, inside) ||
                  readsFromMemory(member, other) || readsFromMemory(other, member));
    if (crossed)
      inside.reset(other);
    else
      merges.push_back({other, *map}), size += clusters[other].ops.size();
  }

  auto map = matchDims(op, solo, primary, merges);
  if (!map)
    return "it reads another place of it than the one being computed";

  // Local dimensions: the operation's must be the cluster's, or the first.
  llvm::SmallBitVector local(target.shape.size());
  bool reduces = false;
  for (unsigned i = 0; i < map->size(); ++i)
    if ((*map)[i] >= 0 && solo.cluster.local.test(i)) {
      local.set((*map)[i]);
      reduces = true;
    }
  llvm::SmallBitVector realLocal(target.shape.size());
  for (unsigned i = 0; i < target.shape.size(); ++i)
    realLocal[i] = target.local.test(i) && target.shape[i] != 1;
  for (const Merge &m : merges) {
    llvm::SmallBitVector theirs(target.shape.size());
    for (unsigned i = 0; i < m.map.size(); ++i)
      if (m.map[i] >= 0 && clusters[m.id].local.test(i))
        theirs.set(m.map[i]);
    if (theirs.any() && realLocal.any() && theirs != realLocal)
      return "they reduce along other dimensions";
    realLocal |= theirs;
  }
  if (reduces && realLocal.any() && realLocal != local)
    return "they reduce along other dimensions";
  llvm::SmallBitVector finalLocal = realLocal.any() ? realLocal : local;

  // The operation must run along the whole space.
  Cluster shaped = target;
  shaped.local = finalLocal;
  llvm::SmallBitVector covered(target.shape.size());
  for (int64_t dim : *map)
    if (dim >= 0)
      covered.set(dim);
  for (unsigned dim : shaped.spaceDims())
    if (!covered.test(dim))
      return "it does not run along all dimensions of the kernel's grid";
  // Where rows are not what is local, only the reduced values leave the kernel:
  // storing whole columns from one grid point would waste the device.
  if (finalLocal.any() && !shaped.isRowWise() && target.kind == Cluster::Kind::Open) {
    if (reduces) {
      for (unsigned member : inside.set_bits())
        if (!staysInside(member, op) && realLocal.none())
          return "its operand is needed elsewhere too, and columns are reduced without being stored";
    } else if ((covered & finalLocal) == finalLocal) {
      return "whole columns would be stored by one grid point";
    }
  }

  // No cycle: what comes from outside may not depend on the kernel.
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value base = resolveView(operand).base;
    int id = clusterOf(base.getDefiningOp());
    if (id < 0)
      continue;
    bool inner = inside.test(id) && sourceOf(op, operand) == base && solo.operands[i];
    if (inner)
      continue;
    if (inside.test(id))
      return "it reads a value of the kernel from memory";
    for (unsigned member : inside.set_bits())
      if (clusters[id].ancestors.test(member))
        return "another operand depends on the kernel and is computed outside it";
  }

  for (const Merge &m : merges)
    absorb(primary, m);
  Cluster &joined = clusters[primary];
  joined.local = finalLocal;
  joined.recomputes &= op->hasAttr(recomputeAttr);
  if (joined.kind == Cluster::Kind::Open && (reduces || joined.role != solo.cluster.role)) {
    bool row = joined.isRowWise() && joined.local.any();
    joined.role = joined.local.none() ? "pointwise" : row ? "rowwise" : "columnwise";
  }
  joined.ops.push_back(op);
  ids[op] = primary;
  bool leaf = isa<CopyOp>(op) && op->getOperand(0).getDefiningOp<TransposeOp>();
  for (auto [value, own] : llvm::zip_equal(op->getResults(), solo.results)) {
    Binding bound;
    for (int64_t dim : own)
      bound.push_back(dim < 0 ? -1 : (*map)[dim]);
    bindings[value] = bound;
    if (leaf)
      leaves.insert(value);
  }
  return nullptr;
}

void KernelClusters::absorb(unsigned into, const Merge &merge) {
  Cluster &target = clusters[into], &gone = clusters[merge.id];
  for (Operation *op : gone.ops) {
    ids[op] = into;
    for (Value value : op->getResults())
      for (int64_t &dim : bindings[value])
        dim = dim < 0 ? -1 : merge.map[dim];
  }
  target.ops.insert(target.ops.end(), gone.ops.begin(), gone.ops.end());
  target.firstIndex = std::min(target.firstIndex, gone.firstIndex);
  target.recomputes &= gone.recomputes;
  gone.ancestors.reset(into);
  target.ancestors |= gone.ancestors;
  target.ancestors.reset(merge.id);
  for (unsigned x = 0; x < clusters.size(); ++x)
    if (live[x] && (clusters[x].ancestors.test(merge.id) || clusters[x].ancestors.test(into))) {
      clusters[x].ancestors.reset(merge.id);
      clusters[x].ancestors.set(into);
      clusters[x].ancestors |= target.ancestors;
    }
  live[merge.id] = false;
  gone = Cluster{};
}

void KernelClusters::dependOn(unsigned id, unsigned before) {
  if (id == before || clusters[id].ancestors.test(before))
    return;
  clusters[id].ancestors.set(before);
  clusters[id].ancestors |= clusters[before].ancestors;
  for (unsigned x = 0; x < clusters.size(); ++x)
    if (live[x] && clusters[x].ancestors.test(id))
      clusters[x].ancestors |= clusters[id].ancestors;
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

void KernelClusters::place(Operation *op, bool fuse) {
  Solo solo = alone(op);
  bool joined = false, repeated = op->hasAttr(recomputeAttr);
  std::vector<std::pair<Operation *, std::string>> apart;
  if (fuse) {
    SmallVector<unsigned> candidates;
    for (Value operand : op->getOperands()) {
      int id = clusterOf(sourceOf(op, operand).getDefiningOp());
      if (id >= 0 && !llvm::is_contained(candidates, id) && (!repeated || clusters[id].recomputes))
        candidates.push_back(id);
    }
    // A contraction's epilogue saves the most; then the largest shape, into
    // which smaller ones (row statistics, an optimizer state) can merge; then
    // the latest producer.
    auto rank = [&](unsigned id) {
      const Cluster &c = clusters[id];
      int64_t elements = 1;
      for (int64_t size : c.shape)
        elements *= size;
      return std::tuple(c.kind == Cluster::Kind::Epilogue, elements, id);
    };
    llvm::sort(candidates, [&](unsigned a, unsigned b) { return rank(a) > rank(b); });
    for (size_t i = 0; i < candidates.size() && !joined; ++i) {
      SmallVector<unsigned> others;
      for (unsigned other : candidates)
        if (other != candidates[i])
          others.push_back(other);
      const char *why = tryJoin(op, solo, candidates[i], others);
      joined = !why || !tryJoin(op, solo, candidates[i], {});
      if (!joined)
        apart.push_back({clusters[candidates[i]].ops.front(), why});
    }
  }
  if (!joined) {
    unsigned id = clusters.size();
    clusters.push_back(solo.cluster);
    live.push_back(true);
    clusters[id].ancestors.resize(capacity);
    clusters[id].ops.push_back(op);
    clusters[id].firstIndex = positions[op];
    clusters[id].recomputes = repeated;
    clusters[id].apart = std::move(apart);
    ids[op] = id;
    for (auto [value, own] : llvm::zip_equal(op->getResults(), solo.results))
      bindings[value] = own;
  }
  unsigned id = ids[op];
  for (Value operand : op->getOperands()) {
    int before = clusterOf(resolveView(operand).base.getDefiningOp());
    if (before >= 0)
      dependOn(id, before);
  }
}

KernelClusters::KernelClusters(func::FuncOp step, bool fuse) : step(step) {
  capacity = step.getBody().front().getOperations().size();
  for (Operation &op : step.getBody().front()) {
    positions[&op] = positions.size();
    if (isView(&op) || isDuplicated(&op) || isa<ConstantOp>(op) || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    place(&op, fuse);
  }
  for (Cluster &c : clusters)
    llvm::sort(c.ops, [&](Operation *a, Operation *b) { return positions[a] < positions[b]; });
}

std::vector<unsigned> KernelClusters::schedule() const {
  KernelClusters order = *this;
  func::FuncOp step = this->step; // MLIR handles are not const-correct
  // Readers of a step argument before the cluster that computes its update.
  auto ret = cast<func::ReturnOp>(step.getBody().front().getTerminator());
  llvm::DenseMap<Value, SmallVector<unsigned>> readers;
  for (unsigned id = 0; id < clusters.size(); ++id)
    for (Operation *op : clusters[id].ops)
      for (Value operand : op->getOperands()) {
        Value base = resolveView(operand).base;
        if (isa<BlockArgument>(base) && !llvm::is_contained(readers[base], id))
          readers[base].push_back(id);
      }
  for (OpOperand &operand : ret->getOpOperands()) {
    auto updates = step.getResultAttrOfType<IntegerAttr>(
        operand.getOperandNumber(), attr::updates);
    int writer = clusterOf(resolveView(operand.get()).base.getDefiningOp());
    if (!updates || writer < 0)
      continue;
    auto argument = step.getArgument(updates.getInt());
    for (unsigned reader : readers.lookup(argument))
      if (reader != (unsigned)writer && !order.clusters[reader].ancestors.test(writer))
        order.dependOn(writer, reader);
  }
  std::vector<unsigned> result;
  llvm::BitVector done(capacity);
  std::vector<unsigned> waiting;
  for (unsigned id = 0; id < clusters.size(); ++id)
    if (live[id])
      waiting.push_back(id);
  llvm::stable_sort(waiting, [&](unsigned a, unsigned b) {
    return clusters[a].firstIndex < clusters[b].firstIndex;
  });
  while (!waiting.empty()) {
    auto next = llvm::find_if(waiting, [&](unsigned id) {
      return !order.clusters[id].ancestors.test(done);
    });
    assert(next != waiting.end() && "clusters depend on each other in a circle");
    done.set(*next);
    result.push_back(*next);
    waiting.erase(next);
  }
  return result;
}
