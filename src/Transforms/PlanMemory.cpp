//===- PlanMemory.cpp - Where every value of a step lives ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelAnalysis.h"

#include "nova/IR/StridedView.h"
#include "nova/Transforms/Passes.h"
#include "nova/Transforms/Plan.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

#include <numeric>

namespace nova {
#define GEN_PASS_DEF_PLANMEMORY
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

/// What base addresses are multiples of (the manifest's rule for a caller's
/// memory; the arena's buffers are at multiples of more).
static constexpr int64_t kBaseAlignment = 16;

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * elementBytes(type.getElementType());
}

namespace {

/// Where a launch result is stored, and while which launches.
struct Stored {
  PlaceKind kind = PlaceKind::arena;
  int64_t index = -1; ///< Input, output, or arena buffer.
  int64_t first = 0, last = 0;
  int64_t unit = -1;  ///< Arena: the packed piece it shares with its aliases.
  int64_t alias = -1; ///< Arena: the buffer it takes over.
};

/// An update that is computed aside and moved in at the end.
struct Deferred {
  Value value;
  PlaceKind kind; ///< Input (an update) or output.
  int64_t index;
};

class Planner {
public:
  explicit Planner(func::FuncOp step) : step(step) {}
  void run();

private:
  void collect();
  void storeOutputs();
  bool updatesInPlace(OpResult value, int64_t input);
  void storeIntermediates();
  void takeOver(LaunchOp launch, int64_t time);
  void write();
  PlaceAttr placeOf(Value base, int64_t elementOffset, Type elementType);
  SmallVector<std::pair<unsigned, unsigned>> &candidates(LaunchOp launch);
  void setDependences(ArrayRef<Operation *> operations);

  func::FuncOp step;
  SmallVector<LaunchOp> launches;
  llvm::DenseMap<Operation *, int64_t> times;
  llvm::DenseMap<Value, SmallVector<int64_t>> readers; ///< Launches, ascending.
  llvm::MapVector<Value, Stored> stored;
  llvm::DenseMap<Value, int64_t> constants;
  SmallVector<Deferred> deferred;
  std::vector<Lifetime> units;
  SmallVector<Value> buffers; ///< Arena buffers by index.
  llvm::StringMap<SmallVector<std::pair<unsigned, unsigned>>> pairs;
  llvm::StringMap<llvm::SmallSetVector<std::pair<unsigned, unsigned>, 4>> used;
};

SmallVector<std::pair<unsigned, unsigned>> &Planner::candidates(LaunchOp launch) {
  auto [entry, fresh] = pairs.try_emplace(launch.getKernel());
  if (fresh)
    entry->second = inplaceCandidates(
        SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr()));
  return entry->second;
}

void Planner::collect() {
  for (Operation &op : step.getBody().front()) {
    if (isa<ConstantOp>(op))
      constants[op.getResult(0)] = constants.size();
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      continue;
    int64_t time = launches.size();
    times[launch] = time;
    launches.push_back(launch);
    for (Value operand : launch.getInputs())
      if (readers[operand].empty() || readers[operand].back() != time)
        readers[operand].push_back(time);
    for (Value result : launch.getResults())
      stored[result] = {PlaceKind::arena, -1, time, time};
  }
  for (auto &[value, where] : stored)
    if (auto it = readers.find(value); it != readers.end())
      where.last = it->second.back();
}

/// Whether the argument that `launch` reads at one operand only is, for result
/// `result`, one of the kernel's in-place pairs.
static std::optional<unsigned> soleOperand(LaunchOp launch, Value base) {
  std::optional<unsigned> found;
  for (auto [index, operand] : llvm::enumerate(launch.getInputs()))
    if (operand == base) {
      if (found)
        return std::nullopt;
      found = index;
    }
  return found;
}

bool Planner::updatesInPlace(OpResult value, int64_t input) {
  auto launch = cast<LaunchOp>(value.getOwner());
  int64_t time = times[launch];
  Value argument = step.getArgument(input);
  for (int64_t reader : readers[argument]) {
    if (reader > time)
      return false; // would see the new value
    if (reader < time)
      continue;
    auto operand = soleOperand(launch, argument);
    std::pair<unsigned, unsigned> pair(operand.value_or(0), value.getResultNumber());
    if (!operand || !llvm::is_contained(candidates(launch), pair))
      return false;
    used[launch.getKernel()].insert(pair);
  }
  return true;
}

void Planner::storeOutputs() {
  auto ret = cast<func::ReturnOp>(step.getBody().front().getTerminator());
  for (OpOperand &operand : ret->getOpOperands()) {
    int64_t index = operand.getOperandNumber();
    auto base = cast<OpResult>(resolveView(operand.get()).base);
    Stored &where = stored[base];
    auto updates = step.getResultAttrOfType<IntegerAttr>(index, attr::updates);
    if (where.kind != PlaceKind::arena) {
      // It is in the caller's memory already, for another result.
      deferred.push_back({base, updates ? PlaceKind::input : PlaceKind::output,
                          updates ? updates.getInt() : index});
    } else if (!updates) {
      where.kind = PlaceKind::output;
      where.index = index;
    } else if (updatesInPlace(base, updates.getInt())) {
      where.kind = PlaceKind::input;
      where.index = updates.getInt();
    } else {
      where.last = launches.size() + deferred.size();
      deferred.push_back({base, PlaceKind::input, updates.getInt()});
    }
  }
}

/// Results of `launch` take the memory of operands that die with it.
void Planner::takeOver(LaunchOp launch, int64_t time) {
  for (auto [a, r] : candidates(launch)) {
    Value operand = launch.getInputs()[a], result = launch.getResult(r);
    auto it = stored.find(operand);
    Stored &to = stored[result];
    if (it == stored.end() || to.kind != PlaceKind::arena || to.unit >= 0)
      continue;
    Stored &from = it->second;
    auto view = cast<ViewAttr>(launch.getViews()[a]);
    if (from.kind != PlaceKind::arena || from.last != time || view.getOffset() != 0 ||
        bytesOf(operand) != bytesOf(result) || !soleOperand(launch, operand) ||
        units[from.unit].last > time)
      continue;
    to.unit = from.unit;
    to.alias = from.index;
    units[to.unit].last = to.last;
    used[launch.getKernel()].insert({a, r});
  }
}

void Planner::storeIntermediates() {
  for (auto [time, launch] : llvm::enumerate(launches)) {
    takeOver(launch, time);
    for (Value result : launch.getResults()) {
      Stored &where = stored[result];
      if (where.kind != PlaceKind::arena)
        continue;
      where.index = buffers.size();
      buffers.push_back(result);
      if (where.unit < 0) {
        where.unit = units.size();
        units.push_back({bytesOf(result), where.first, where.last});
      }
    }
  }
}

PlaceAttr Planner::placeOf(Value base, int64_t elementOffset, Type elementType) {
  int64_t bytes = elementOffset * elementBytes(elementType);
  MLIRContext *context = step.getContext();
  if (auto argument = dyn_cast<BlockArgument>(base))
    return PlaceAttr::get(context, PlaceKind::input, argument.getArgNumber(), bytes);
  if (auto it = constants.find(base); it != constants.end())
    return PlaceAttr::get(context, PlaceKind::constant, it->second, bytes);
  const Stored &where = stored.find(base)->second;
  return PlaceAttr::get(context, where.kind, where.index, bytes);
}

/// Sets `nova.after`: every earlier operation that touches the same bytes, one
/// of the two writing, less those implied by another.
void Planner::setDependences(ArrayRef<Operation *> operations) {
  struct Access {
    PlaceKind kind;
    int64_t index, begin, end;
    bool writes;
  };
  auto access = [&](PlaceAttr place, bool writes) -> Access {
    if (place.getKind() != PlaceKind::arena)
      return {place.getKind(), place.getIndex(), 0, 1, writes};
    const Lifetime &unit = units[stored[buffers[place.getIndex()]].unit];
    return {PlaceKind::arena, 0, unit.offset, unit.offset + std::max<int64_t>(unit.size, 1), writes};
  };
  std::vector<SmallVector<Access>> accesses;
  std::vector<llvm::BitVector> before;
  Builder builder(step.getContext());
  for (auto [time, op] : llvm::enumerate(operations)) {
    auto &mine = accesses.emplace_back();
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      auto places = launch->getAttrOfType<ArrayAttr>(attr::places);
      for (auto [i, place] : llvm::enumerate(places))
        mine.push_back(access(cast<PlaceAttr>(place), i >= launch.getInputs().size()));
    } else {
      auto transfer = cast<TransferOp>(op);
      mine.push_back(access(transfer.getTo(), true));
      mine.push_back(access(transfer.getFrom(), false));
    }
    auto &ancestors = before.emplace_back(operations.size());
    SmallVector<int64_t> after;
    for (int64_t earlier = (int64_t)time - 1; earlier >= 0; --earlier) {
      if (ancestors.test(earlier))
        continue;
      bool conflict = llvm::any_of(mine, [&](const Access &a) {
        return llvm::any_of(accesses[earlier], [&](const Access &b) {
          return (a.writes || b.writes) && a.kind == b.kind && a.index == b.index &&
                 a.begin < b.end && b.begin < a.end;
        });
      });
      if (!conflict)
        continue;
      after.push_back(earlier);
      ancestors.set(earlier);
      ancestors |= before[earlier];
    }
    llvm::sort(after);
    op->setAttr(attr::after, builder.getDenseI64ArrayAttr(after));
  }

}

void Planner::write() {
  OpBuilder builder(step.getBody().front().getTerminator());
  MLIRContext *context = step.getContext();
  SmallVector<Operation *> operations;
  for (LaunchOp launch : launches) {
    SmallVector<Attribute> places;
    for (auto [operand, view] : llvm::zip_equal(launch.getInputs(), launch.getViews()))
      places.push_back(placeOf(operand, cast<ViewAttr>(view).getOffset(), getElementTypeOrSelf(operand.getType())));
    for (Value result : launch.getResults())
      places.push_back(placeOf(result, 0, getElementTypeOrSelf(result.getType())));
    launch->setAttr(attr::places, builder.getArrayAttr(places));
    operations.push_back(launch);
  }
  for (const Deferred &d : deferred)
    operations.push_back(TransferOp::create(
        builder, d.value.getLoc(), PlaceAttr::get(context, d.kind, d.index, 0),
        placeOf(d.value, 0, getElementTypeOrSelf(d.value.getType())), bytesOf(d.value)));
  int64_t size = packArena(units);
  setDependences(operations);

  SmallVector<Attribute> buffersAttr;
  for (Value value : buffers) {
    const Stored &where = stored[value];
    buffersAttr.push_back(BufferAttr::get(context, units[where.unit].offset, bytesOf(value), where.first,
                                          where.last, where.alias));
  }
  step->setAttr(attr::arena, builder.getDictionaryAttr(
                                 {builder.getNamedAttr("size", builder.getI64IntegerAttr(size)),
                                  builder.getNamedAttr("lower_bound", builder.getI64IntegerAttr(peakLiveBytes(units))),
                                  builder.getNamedAttr("buffers", builder.getArrayAttr(buffersAttr))}));
  for (auto &entry : used) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        step, StringAttr::get(context, entry.getKey()));
    auto sorted = entry.second.takeVector();
    llvm::sort(sorted);
    SmallVector<Attribute> list;
    for (auto [a, r] : sorted)
      list.push_back(builder.getDenseI64ArrayAttr({a, r}));
    kernel->setAttr(attr::inplace, builder.getArrayAttr(list));
  }
}

/// Writes onto each kernel what divides the address of every argument and result,
/// in all its launches: below 16 only where a view starts at an odd place.
static void writeAlignments(ArrayRef<LaunchOp> launches) {
  llvm::MapVector<Operation *, SmallVector<int64_t>> known;
  for (LaunchOp launch : launches) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
    auto places = launch->getAttrOfType<ArrayAttr>(attr::places);
    SmallVector<int64_t> &alignments = known[kernel];
    alignments.resize(places.size(), kBaseAlignment);
    for (auto [alignment, place] : llvm::zip_equal(alignments, places))
      alignment = std::gcd(alignment, cast<PlaceAttr>(place).getOffset());
  }
  for (auto &[op, alignments] : known) {
    auto kernel = cast<func::FuncOp>(op);
    Builder builder(kernel.getContext());
    for (auto [i, alignment] : llvm::enumerate(alignments)) {
      if (alignment == kBaseAlignment)
        continue;
      Attribute value = builder.getI64IntegerAttr(alignment);
      if (i < kernel.getNumArguments())
        kernel.setArgAttr(i, attr::alignment, value);
      else
        kernel.setResultAttr(i - kernel.getNumArguments(), attr::alignment, value);
    }
  }
}

void Planner::run() {
  collect();
  storeOutputs();
  storeIntermediates();
  write();
  writeAlignments(launches);
}

struct PlanMemory : ::nova::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    func::FuncOp step = findStep(getOperation());
    if (!step) {
      getOperation().emitError("holds no step to plan");
      return signalPassFailure();
    }
    Planner(step).run();
  }
};

} // namespace
