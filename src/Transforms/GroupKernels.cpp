//===- GroupKernels.cpp - One launch for kernels of one structure ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelStructure.h"

#include "nova/Config/Tiles.h"
#include "nova/IR/StridedView.h"
#include "nova/Target/Target.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/KernelCosts.h"
#include "nova/Transforms/KernelGroups.h"
#include "nova/Transforms/Passes.h"
#include "nova/Transforms/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

namespace nova {
#define GEN_PASS_DEF_GROUPKERNELS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

static constexpr int64_t kPointerBytes = 8;
/// Addresses are multiples of as much where a view starts at no odd place.
static constexpr int64_t kAlignment = 16;

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * elementBytes(type.getElementType());
}

namespace {

/// A launch as it stands in the step.
struct Member {
  LaunchOp launch;
  func::FuncOp kernel;
  int64_t extent = 0; ///< Along the first dimension of its space.
  int64_t time = 0;
  /// What must come after it: readers of its results, and who overwrites what it reads.
  int64_t before = std::numeric_limits<int64_t>::max();
};

struct Group {
  std::vector<Member> members; ///< In the order of the step.
  std::vector<bool> shared;    ///< Arguments that are the same in all members so far.
};

/// The step as a list of launches, and what moving one later does to memory.
class Timeline {
public:
  Timeline(func::FuncOp step, const SymbolTable &symbols);

  int64_t deadline(LaunchOp launch) const;
  /// Bytes that come from DRAM if `member` runs at `time`, and from L2 where it is.
  int64_t lostToL2(const Member &member, int64_t time, int64_t l2Bytes) const;
  /// Would the members' running at `time` raise the most bytes that are alive at one
  /// time?
  bool raisesPeak(ArrayRef<Member> members, int64_t time) const;
  /// Members run at `time` from now on.
  void move(ArrayRef<Member> members, int64_t time) { lives = moved(members, time); }

private:
  using Lives = llvm::MapVector<Value, Lifetime>;
  Lives moved(ArrayRef<Member> members, int64_t time) const;
  static int64_t peak(const Lives &lives) {
    std::vector<Lifetime> list;
    for (auto &[value, life] : lives)
      list.push_back(life);
    return peakLiveBytes(list);
  }

  llvm::DenseMap<Operation *, int64_t> times;
  std::vector<int64_t> traffic; ///< Bytes of all launches before each.
  /// Launches that read or write a value, in order.
  llvm::DenseMap<Value, SmallVector<int64_t>> touched;
  llvm::DenseMap<Value, int64_t> overwritten; ///< Arguments of the step, by when.
  Lives lives;                                ///< Of what is in the arena.
};

} // namespace

Timeline::Timeline(func::FuncOp step, const SymbolTable &symbols) {
  traffic.push_back(0);
  for (auto launch : step.getOps<LaunchOp>()) {
    int64_t time = times.size();
    times[launch] = time;
    traffic.push_back(traffic.back() + kernelBytes(symbols.lookup<func::FuncOp>(launch.getKernel())));
    for (Value operand : launch.getInputs()) {
      touched[operand].push_back(time);
      if (auto life = lives.find(operand); life != lives.end())
        life->second.last = time;
    }
    for (Value result : launch.getResults()) {
      touched[result].push_back(time);
      lives[result] = {bytesOf(result), time, time, -1};
    }
  }
  Operation *back = step.getBody().front().getTerminator();
  for (OpOperand &operand : back->getOpOperands()) {
    Value base = resolveView(operand.get()).base;
    lives.erase(base); // In the caller's memory.
    if (auto updates = step.getResultAttrOfType<IntegerAttr>(operand.getOperandNumber(), attr::updates))
      if (Operation *writer = base.getDefiningOp(); writer && times.count(writer))
        overwritten[step.getArgument(updates.getInt())] = times[writer];
  }
}

int64_t Timeline::deadline(LaunchOp launch) const {
  int64_t time = times.lookup(launch), deadline = std::numeric_limits<int64_t>::max();
  for (Value result : launch.getResults())
    for (int64_t reader : touched.lookup(result))
      if (reader > time)
        deadline = std::min(deadline, reader);
  for (Value operand : launch.getInputs())
    if (auto writer = overwritten.find(operand); writer != overwritten.end() && writer->second > time)
      deadline = std::min(deadline, writer->second);
  return deadline;
}

int64_t Timeline::lostToL2(const Member &member, int64_t time, int64_t l2Bytes) const {
  int64_t lost = 0;
  LaunchOp launch = member.launch;
  llvm::SmallSetVector<Value, 8> operands(launch.getInputs().begin(), launch.getInputs().end());
  for (Value operand : operands) {
    int64_t last = -1;
    for (int64_t touch : touched.find(operand)->second)
      if (touch < member.time)
        last = touch;
    if (last < 0)
      continue;
    auto between = [&](int64_t until) { return traffic[until] - traffic[last + 1]; };
    if (between(member.time) < l2Bytes && between(time) >= l2Bytes)
      lost += bytesOf(operand);
  }
  return lost;
}

Timeline::Lives Timeline::moved(ArrayRef<Member> members, int64_t time) const {
  Lives result = lives;
  for (const Member &member : members) {
    LaunchOp launch = member.launch;
    for (Value operand : launch.getInputs())
      if (auto life = result.find(operand); life != result.end())
        life->second.last = std::max(life->second.last, time);
    for (Value value : launch.getResults())
      if (auto life = result.find(value); life != result.end()) {
        life->second.first = std::max(life->second.first, time);
        life->second.last = std::max(life->second.last, time);
      }
  }
  return result;
}

bool Timeline::raisesPeak(ArrayRef<Member> members, int64_t time) const {
  return peak(moved(members, time)) > peak(lives);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Starts of an argument's view that fall on different places within a wide access
/// would make all members' accesses narrow.
static std::string alignmentsOf(LaunchOp launch) {
  std::string text;
  for (auto [operand, view] : llvm::zip_equal(launch.getInputs(), launch.getViews())) {
    int64_t start = cast<ViewAttr>(view).getOffset() * elementBytes(getElementTypeOrSelf(operand.getType()));
    text += " " + std::to_string(std::gcd(start, kAlignment));
  }
  return text;
}

static std::vector<bool> sharedWith(const Group &group, Member member) {
  std::vector<bool> shared = group.shared;
  Member first = group.members.front();
  for (size_t i = 0; i < shared.size(); ++i)
    shared[i] = shared[i] && first.launch.getInputs()[i] == member.launch.getInputs()[i] &&
                first.launch.getViews()[i] == member.launch.getViews()[i] &&
                first.kernel.getArgumentTypes()[i] == member.kernel.getArgumentTypes()[i];
  return shared;
}

static int64_t pointersOf(const std::vector<bool> &shared, size_t members, size_t results) {
  int64_t common = llvm::count(shared, true);
  return common + members * (shared.size() - common + results);
}

namespace {

/// Writes the kernel and the launch of a group.
class Merger {
public:
  Merger(const Group &given, StringRef name)
      : group(given), name(name), last(given.members.back().launch), context(last.getContext()) {
    // Equal ones side by side: whose a grid point is takes few comparisons then.
    llvm::stable_sort(group.members, [](const Member &a, const Member &b) { return a.extent > b.extent; });
  }
  LaunchOp run();

private:
  func::FuncOp makeKernel();
  LaunchOp makeLaunch();
  /// The numbers of the members' arguments that are all the same, or those of the others.
  SmallVector<unsigned> argumentsThatAre(bool shared) const {
    SmallVector<unsigned> list;
    for (unsigned i = 0; i < group.shared.size(); ++i)
      if (group.shared[i] == shared)
        list.push_back(i);
    return list;
  }

  Group group;
  std::string name;
  LaunchOp last; ///< In the step.
  MLIRContext *context;
};

} // namespace

func::FuncOp Merger::makeKernel() {
  func::FuncOp first = group.members.front().kernel;
  OpBuilder builder(first);
  SmallVector<Type> inputs, outputs;
  SmallVector<DictionaryAttr> inputAttrs, outputAttrs;
  SmallVector<int64_t> space;
  auto addArgument = [&](func::FuncOp kernel, unsigned number) {
    inputs.push_back(kernel.getArgumentTypes()[number]);
    DictionaryAttr attributes = kernel.getArgAttrDict(number);
    inputAttrs.push_back(attributes ? attributes : builder.getDictionaryAttr({}));
  };
  for (unsigned number : argumentsThatAre(true))
    addArgument(first, number);
  for (const Member &member : group.members) {
    func::FuncOp kernel = member.kernel;
    for (unsigned number : argumentsThatAre(false))
      addArgument(kernel, number);
    for (unsigned r = 0; r < kernel.getNumResults(); ++r) {
      outputs.push_back(kernel.getResultTypes()[r]);
      SmallVector<int64_t> map(kernel.getResultAttrOfType<DenseI64ArrayAttr>(r, attr::map).asArrayRef());
      for (int64_t &dim : map)
        dim = dim < 0 ? dim : dim + (int64_t)space.size();
      NamedAttrList attributes(kernel.getResultAttrDict(r));
      attributes.set(attr::map, builder.getDenseI64ArrayAttr(map));
      outputAttrs.push_back(attributes.getDictionary(context));
    }
    llvm::append_range(space, kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).asArrayRef());
  }
  auto merged = func::FuncOp::create(builder, first.getLoc(), name, builder.getFunctionType(inputs, outputs));
  merged.setPrivate();
  merged.setAllArgAttrs(inputAttrs);
  merged.setAllResultAttrs(outputAttrs);
  merged->setAttr(attr::kernel, builder.getUnitAttr());
  if (auto role = first->getAttrOfType<StringAttr>(attr::role))
    merged->setAttr(attr::role, builder.getStringAttr(role.getValue() + "_group"));
  merged->setAttr(attr::space, builder.getDenseI64ArrayAttr(space));

  Block *block = merged.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  SmallVector<unsigned> shared = argumentsThatAre(true), own = argumentsThatAre(false);
  SmallVector<Value> returned;
  size_t next = shared.size();
  for (const Member &member : group.members) {
    Block &body = func::FuncOp(member.kernel).getBody().front();
    IRMapping mapping;
    for (auto [i, number] : llvm::enumerate(shared))
      mapping.map(body.getArgument(number), block->getArgument(i));
    for (unsigned number : own)
      mapping.map(body.getArgument(number), block->getArgument(next++));
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping);
    for (Value result : body.getTerminator()->getOperands())
      returned.push_back(mapping.lookupOrDefault(result));
  }
  func::ReturnOp::create(builder, first.getLoc(), returned);
  setGroup(merged, group.members.size(), shared.size());
  return merged;
}

LaunchOp Merger::makeLaunch() {
  OpBuilder builder(last);
  SmallVector<Value> operands;
  SmallVector<Attribute> views;
  SmallVector<Type> types;
  llvm::SetVector<Attribute> nodes;
  auto add = [&](LaunchOp launch, unsigned number) {
    operands.push_back(launch.getInputs()[number]);
    views.push_back(launch.getViews()[number]);
  };
  for (unsigned number : argumentsThatAre(true))
    add(last, number);
  for (const Member &member : group.members) {
    LaunchOp launch = member.launch;
    for (unsigned number : argumentsThatAre(false))
      add(launch, number);
    llvm::append_range(types, launch.getResultTypes());
    for (Attribute node : launch.getNodes())
      nodes.insert(node);
  }
  auto merged = LaunchOp::create(builder, last.getLoc(), types, name, operands, builder.getArrayAttr(views),
                                 builder.getArrayAttr(nodes.getArrayRef()));
  size_t next = 0;
  for (const Member &member : group.members) {
    LaunchOp launch = member.launch;
    launch.replaceAllUsesWith(merged.getResults().slice(next, launch.getNumResults()));
    next += launch.getNumResults();
    launch.erase();
  }
  return merged;
}

LaunchOp Merger::run() {
  makeKernel();
  return makeLaunch();
}

namespace {
struct GroupKernels : ::nova::impl::GroupKernelsBase<GroupKernels> {
  using GroupKernelsBase::GroupKernelsBase;

  void runOnOperation() override;

private:
  /// Can the members of `group` still run when `member` does? Else somebody needs them.
  static bool canWait(const Group &group, const Member &member) {
    return llvm::all_of(group.members, [&](const Member &other) { return other.before > member.time; });
  }
  /// Why they had better not; empty if they may.
  std::string obstacle(const Group &group, const Member &member, const Timeline &timeline) const;
  void close(Group &group);

  const target::Device *gpu = nullptr;
  std::vector<Group> done;
};
} // namespace

std::string GroupKernels::obstacle(const Group &group, const Member &member, const Timeline &timeline) const {
  int64_t pointers = pointersOf(sharedWith(group, member), group.members.size() + 1,
                                func::FuncOp(member.kernel).getNumResults());
  if (pointers * kPointerBytes > parameterBytes)
    return std::to_string(pointers) + " pointers have " + std::to_string(pointers * kPointerBytes) +
           " bytes, a launch takes " + std::to_string(parameterBytes);
  for (const Member &other : group.members) {
    int64_t lost = timeline.lostToL2(other, member.time, gpu->l2Bytes);
    double seconds = double(lost) / gpu->dramBytesPerSecond;
    if (seconds > config::kLaunchSeconds)
      return std::to_string(lost) + " bytes would have left the L2 cache, which takes " +
             std::to_string(int64_t(seconds * 1e9)) + " ns to read again, a launch " +
             std::to_string(int64_t(config::kLaunchSeconds * 1e9)) + " ns";
  }
  if (timeline.raisesPeak(group.members, member.time))
    return "what they read would have to stay alive at the peak of memory";
  return {};
}

void GroupKernels::close(Group &group) {
  if (group.members.size() > 1)
    done.push_back(std::move(group));
  group = {};
}

void GroupKernels::runOnOperation() {
  ModuleOp module = getOperation();
  gpu = target::findGpu(device);
  if (!gpu) {
    module.emitError("no GPU '") << device << "' to group kernels for; known: " << target::gpuNames();
    return signalPassFailure();
  }
  func::FuncOp step = findStep(module);
  if (!step)
    return;
  SymbolTable symbols(module);
  Timeline timeline(step, symbols);
  // A gradient is final as early as it can be: others may wait for it.
  llvm::DenseSet<Value> early;
  for (OpOperand &operand : step.getBody().front().getTerminator()->getOpOperands())
    if (auto role = step.getResultAttrOfType<StringAttr>(operand.getOperandNumber(), attr::role);
        role && role.getValue() == "gradient")
      early.insert(resolveView(operand.get()).base);

  llvm::DenseMap<Operation *, std::optional<KernelStructure>> structures;
  std::vector<Group> open;
  llvm::StringMap<size_t> numbers; // Of groups, by structure.
  int64_t time = -1;
  for (auto launch : step.getOps<LaunchOp>()) {
    ++time;
    auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
    auto [entry, fresh] = structures.try_emplace(kernel);
    if (fresh && !kernel.isExternal()) {
      auto structure = structureOf(kernel);
      if (failed(structure))
        return signalPassFailure();
      entry->second = std::move(*structure);
    }
    if (!entry->second || llvm::any_of(launch.getResults(), [&](Value v) { return early.contains(v); }))
      continue;
    Member member{launch, kernel, entry->second->extent, time, timeline.deadline(launch)};
    size_t number = numbers.try_emplace(entry->second->key + alignmentsOf(launch), open.size()).first->second;
    if (number == open.size())
      open.emplace_back();
    Group &group = open[number];
    if (!canWait(group, member)) {
      close(group);
    } else if (!group.members.empty()) {
      std::string why = obstacle(group, member, timeline);
      if (!why.empty()) {
        remark::missed(launch.getLoc(), remark::RemarkOpts::name("not-grouped").category(getArgument()))
            << ("kernel '" + kernel.getSymName() + "' is not in the launch of the " +
                Twine(group.members.size()) + " like it before: " + why)
                   .str();
        close(group);
      }
    }
    if (group.members.empty()) {
      for (bool along : entry->second->along)
        group.shared.push_back(!along);
    } else {
      group.shared = sharedWith(group, member);
      timeline.move(group.members, time);
    }
    group.members.push_back(member);
  }
  for (Group &group : open)
    close(group);

  for (auto [i, group] : llvm::enumerate(done)) {
    size_t launches = group.members.size();
    LaunchOp merged = Merger(group, ("group_" + Twine(i)).str()).run();
    remark::passed(merged.getLoc(), remark::RemarkOpts::name("grouped").category(getArgument()))
        << std::to_string(launches) + " launches are one";
    ++numGroups;
    numGrouped += launches;
  }
  // Those whose launches have all gone.
  llvm::StringSet<> used;
  step.walk([&](LaunchOp launch) { used.insert(launch.getKernel()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (isKernel(kernel) && structures.count(kernel) && !used.contains(kernel.getSymName()))
      kernel.erase();
}
