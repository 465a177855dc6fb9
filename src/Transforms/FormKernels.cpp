//===- FormKernels.cpp - Group operations into kernels and outline them ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelClusters.h"

#include "nova/IR/StridedView.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace nova {
#define GEN_PASS_DEF_FORMKERNELS
#include "nova/Transforms/Passes.h.inc"
} // namespace nova

using namespace mlir;
using namespace nova;

/// Graph node names in a location: the importer's NameLocs.
static void collectNodeNames(Location loc, llvm::SetVector<StringAttr> &names) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    names.insert(name.getName());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      collectNodeNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectNodeNames(call.getCallee(), names);
  }
}

namespace {

/// Builds one kernel function from a cluster.
class Outliner {
public:
  Outliner(const KernelClusters &clusters, unsigned id, const llvm::DenseSet<Value> &stored)
      : clusters(clusters), id(id), cluster(clusters.cluster(id)), stored(stored) {}

  func::FuncOp build(OpBuilder &moduleBuilder, StringRef name);

  struct Argument {
    Value base;
    StridedView view;
  };
  SmallVector<Argument> arguments;
  SmallVector<Value> results; ///< Values of the step this kernel computes.

private:
  Value operandInside(OpBuilder &builder, Value operand);
  Value cloneViews(OpBuilder &builder, Value view, Value source, Value mapped);

  const KernelClusters &clusters;
  unsigned id;
  const Cluster &cluster;
  const llvm::DenseSet<Value> &stored;
  IRMapping inside;
  Block *body = nullptr;
};

/// Repeats inside the kernel the views that lead from `source` to `view`.
Value Outliner::cloneViews(OpBuilder &builder, Value view, Value source, Value mapped) {
  if (view == source)
    return mapped;
  Operation *op = view.getDefiningOp();
  Value inner = cloneViews(builder, op->getOperand(0), source, mapped);
  IRMapping one;
  one.map(op->getOperand(0), inner);
  return builder.clone(*op, one)->getResult(0);
}

Value Outliner::operandInside(OpBuilder &builder, Value operand) {
  if (Value known = inside.lookupOrNull(operand))
    return known;
  ResolvedView resolved = resolveView(operand);
  Operation *producer = resolved.base.getDefiningOp();
  Value mapped;
  if (producer && clusters.clusterOf(producer) == (int)id) {
    mapped = cloneViews(builder, operand, resolved.base, inside.lookup(resolved.base));
  } else if (producer && KernelClusters::isDuplicated(producer)) {
    Value copy = builder.clone(*producer)->getResult(0);
    if (auto constant = dyn_cast<ConstantOp>(producer); constant && operand != resolved.base) {
      // A splat is a splat under any view.
      copy.getDefiningOp()->erase();
      auto type = cast<ShapedType>(operand.getType());
      copy = ConstantOp::create(builder, constant.getLoc(), type,
                                cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type));
      mapped = copy;
    } else {
      mapped = cloneViews(builder, operand, resolved.base, copy);
    }
  } else {
    // Equal views of one memory are one argument.
    for (auto [index, argument] : llvm::enumerate(arguments))
      if (argument.base == resolved.base && argument.view == *resolved.view)
        return body->getArgument(index);
    arguments.push_back({resolved.base, *resolved.view});
    return body->addArgument(operand.getType(), operand.getLoc());
  }
  inside.map(operand, mapped);
  return mapped;
}

func::FuncOp Outliner::build(OpBuilder &moduleBuilder, StringRef name) {
  MLIRContext *context = moduleBuilder.getContext();
  auto kernel = func::FuncOp::create(moduleBuilder, moduleBuilder.getUnknownLoc(), name,
                                     FunctionType::get(context, {}, {}));
  kernel.setPrivate();
  body = kernel.addEntryBlock();
  OpBuilder builder = OpBuilder::atBlockBegin(body);
  for (Operation *op : cluster.ops) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(operandInside(builder, operand));
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    copy->removeAttr(KernelClusters::recomputeAttr);
    inside.map(op->getResults(), copy->getResults());
    for (Value result : op->getResults())
      if (stored.contains(result))
        results.push_back(result);
  }
  SmallVector<Value> returned;
  SmallVector<DictionaryAttr> resultAttrs, argumentAttrs;
  SmallVector<unsigned> spaceDims = cluster.spaceDims();
  for (Value result : results) {
    returned.push_back(inside.lookup(result));
    SmallVector<int64_t> map;
    for (int64_t dim : clusters.binding(result)) {
      auto *found = llvm::find(spaceDims, (unsigned)dim);
      map.push_back(dim < 0 || found == spaceDims.end() ? -1 : found - spaceDims.begin());
    }
    resultAttrs.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(attr::map, builder.getDenseI64ArrayAttr(map))));
  }
  func::ReturnOp::create(builder, builder.getUnknownLoc(), returned);
  for (const Argument &argument : arguments) {
    NamedAttrList attrs;
    StridedView packed = StridedView::contiguous(argument.view.shape);
    packed.offset = argument.view.offset;
    StridedView here = argument.view;
    here.offset = 0;
    if (!here.isContiguous())
      attrs.set(attr::strides, builder.getDenseI64ArrayAttr(argument.view.strides));
    argumentAttrs.push_back(attrs.getDictionary(context));
  }
  SmallVector<Type> resultTypes;
  for (Value value : returned)
    resultTypes.push_back(value.getType());
  kernel.setFunctionType(FunctionType::get(context, body->getArgumentTypes(), resultTypes));
  kernel.setAllArgAttrs(argumentAttrs);
  kernel.setAllResultAttrs(resultAttrs);
  SmallVector<int64_t> space;
  for (unsigned dim : spaceDims)
    space.push_back(cluster.shape[dim]);
  kernel->setAttr(attr::kernel, builder.getUnitAttr());
  kernel->setAttr(attr::role, builder.getStringAttr(cluster.role));
  kernel->setAttr(attr::space, builder.getDenseI64ArrayAttr(space));
  // Locations differ between layers; the launch keeps the node names.
  kernel.walk([&](Operation *op) { op->setLoc(builder.getUnknownLoc()); });
  for (BlockArgument argument : body->getArguments())
    argument.setLoc(builder.getUnknownLoc());
  return kernel;
}

struct FormKernels : ::nova::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    func::FuncOp step = findStep(module);
    if (!step) {
      module.emitError("holds no step: no function with the attribute '") << attr::graph << "'";
      return signalPassFailure();
    }
    Block &block = step.getBody().front();
    Operation *ret = block.getTerminator();
    KernelClusters clusters(step, !noFusion);

    // Values read outside the kernel that computes them need memory.
    llvm::DenseSet<Value> stored;
    for (Operation &op : block) {
      if (isView(&op))
        continue;
      for (Value operand : op.getOperands()) {
        Value base = resolveView(operand).base;
        int producer = clusters.clusterOf(base.getDefiningOp());
        if (producer >= 0 && producer != clusters.clusterOf(&op))
          stored.insert(base);
      }
    }

    OpBuilder moduleBuilder = OpBuilder::atBlockEnd(module.getBody());
    OpBuilder builder(ret);
    IRMapping memory; // base values of the step -> arguments, constants, launch results
    llvm::StringMap<func::FuncOp> known;
    unsigned count = 0;
    for (unsigned id : clusters.schedule()) {
      const Cluster &cluster = clusters.cluster(id);
      Outliner outliner(clusters, id, stored);
      std::string name = "kernel_" + std::to_string(count);
      func::FuncOp kernel = outliner.build(moduleBuilder, name);
      if (outliner.results.empty()) { // nobody reads any of it
        kernel.erase();
        continue;
      }
      std::string text;
      llvm::raw_string_ostream stream(text);
      kernel.setName("kernel");
      kernel->print(stream, OpPrintingFlags().useLocalScope().printGenericOpForm());
      auto [entry, fresh] = known.try_emplace(text, kernel);
      if (fresh) {
        kernel.setName(name);
        ++count;
      } else {
        kernel.erase();
      }

      SmallVector<Value> operands;
      SmallVector<Attribute> views, nodes;
      for (const auto &argument : outliner.arguments) {
        operands.push_back(memory.lookupOrDefault(argument.base));
        views.push_back(ViewAttr::get(&getContext(), argument.view.offset, argument.view.strides));
      }
      llvm::SetVector<StringAttr> names;
      for (Operation *op : cluster.ops)
        collectNodeNames(op->getLoc(), names);
      nodes.append(names.begin(), names.end());
      auto launch = LaunchOp::create(builder, cluster.ops.front()->getLoc(),
                                     entry->second.getFunctionType().getResults(),
                                     entry->second.getName(), operands, builder.getArrayAttr(views),
                                     builder.getArrayAttr(nodes));
      for (auto [value, result] : llvm::zip_equal(outliner.results, launch.getResults()))
        memory.map(value, result);
      for (const auto &[producer, why] : cluster.apart)
        remark::missed(launch.getLoc(), remark::RemarkOpts::name("not-fused").category(getArgument()))
            << ("'" + cluster.ops.front()->getName().getStringRef() + "' is not in the kernel of '" +
                producer->getName().getStringRef() + "': " + why)
                   .str();
      ++numLaunches;
    }
    numKernels += count;

    // The step keeps its launches and the views that its results are.
    for (OpOperand &operand : ret->getOpOperands()) {
      Value base = resolveView(operand.get()).base;
      SmallVector<Operation *> chain;
      for (Value v = operand.get(); v != base; v = v.getDefiningOp()->getOperand(0))
        chain.push_back(v.getDefiningOp());
      Value mapped = memory.lookupOrDefault(base);
      for (Operation *op : llvm::reverse(chain)) {
        IRMapping one;
        one.map(op->getOperand(0), mapped);
        mapped = builder.clone(*op, one)->getResult(0);
      }
      operand.set(mapped);
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
  }
};

} // namespace
