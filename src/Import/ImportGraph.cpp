//===- ImportGraph.cpp - A graph file as a module at the stage `graph` ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportNova.h"
#include "OpTable.h"
#include "nova/Graph/NearestNames.h"
#include "nova/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;

void nova::loadGraphDialects(MLIRContext &context) {
  context.loadDialect<NovaDialect, func::FuncDialect, tensor::TensorDialect>();
}

namespace {

class Importer {
public:
  Importer(const graph::Graph &graph, MLIRContext &context)
      : graph(graph), context(&context), builder(&context) {}

  OwningOpRef<ModuleOp> run();

private:
  Location location(StringRef name, StringRef section, size_t index) {
    auto path =
        NameLoc::get(builder.getStringAttr(section + "[" + Twine(index) + "]"));
    return NameLoc::get(builder.getStringAttr(name), path);
  }
  mlir::Value lookup(const graph::Ref &ref) const {
    switch (ref.kind) {
    case graph::Ref::Kind::Input:
      return step.getArgument(ref.index);
    case graph::Ref::Kind::Constant:
      return constants[ref.index];
    case graph::Ref::Kind::Node:
      break;
    }
    return nodes[ref.index][ref.result];
  }

  void makeStep();
  std::string resultName(const graph::Ref &ref) const;
  void importConstant(uint32_t index);
  void reportUnknown();
  bool isKnown(StringRef op) { return findOp(op) || isNovaOp(op, context); }
  void importNode(uint32_t index);
  FailureOr<SmallVector<mlir::Value>> build(uint32_t index, Location loc);
  LogicalResult check(uint32_t index, Location loc,
                      ArrayRef<mlir::Value> produced);
  void finish();

  const graph::Graph &graph;
  MLIRContext *context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  mutable func::FuncOp step;
  std::vector<mlir::Value> constants;
  std::vector<SmallVector<mlir::Value, 1>> nodes;
  bool failed = false;
};

void Importer::makeStep() {
  SmallVector<Type> inputs, results;
  for (const graph::Input &input : graph.inputs)
    inputs.push_back(tensorType(input, context));
  for (const graph::Output &output : graph.outputs)
    results.push_back(tensorType(graph.tensor(output.value), context));
  builder.setInsertionPointToEnd(module->getBody());
  step = func::FuncOp::create(builder, module->getLoc(), "step",
                              builder.getFunctionType(inputs, results));
  step->setAttr(attr::graph, builder.getStringAttr(graph.name));
  Block *body = step.addEntryBlock();
  for (auto [i, input] : llvm::enumerate(graph.inputs)) {
    body->getArgument(i).setLoc(location(input.name, "inputs", i));
    SmallVector<NamedAttribute> attributes;
    auto add = [&](StringRef name, Attribute value) {
      attributes.emplace_back(builder.getStringAttr(name), value);
    };
    add(attr::name, builder.getStringAttr(input.name));
    add(attr::role, builder.getStringAttr(roleName(input.role)));
    add(attr::path, builder.getStringAttr(input.path));
    if (input.strides)
      add(attr::strides, builder.getDenseI64ArrayAttr(*input.strides));
    if (input.advance != 0)
      add(attr::advance, builder.getF64FloatAttr(input.advance));
    step.setArgAttrs(i, builder.getDictionaryAttr(attributes));
  }
  for (auto [i, output] : llvm::enumerate(graph.outputs)) {
    step.setResultAttr(i, attr::name,
                       builder.getStringAttr(resultName(output.value)));
    step.setResultAttr(i, attr::role,
                       builder.getStringAttr(roleName(output.role)));
    if (output.updates)
      step.setResultAttr(i, attr::updates,
                         builder.getI64IntegerAttr(*output.updates));
  }
  builder.setInsertionPointToEnd(body);
}

/// What an output is called: the producer's name of the value it returns.
std::string Importer::resultName(const graph::Ref &ref) const {
  const std::string &name = graph.nameOf(ref);
  return ref.result == 0 ? name : name + ":" + std::to_string(ref.result);
}

void Importer::importConstant(uint32_t index) {
  const graph::Constant &constant = graph.constants[index];
  auto type = tensorType(constant, context);
  DenseElementsAttr value;
  if (constant.dtype == graph::DType::Bool) {
    // One byte per element here, whatever the attribute's own storage.
    SmallVector<bool> bits(constant.bytes.begin(), constant.bytes.end());
    value = DenseElementsAttr::get(type, ArrayRef<bool>(bits));
  } else {
    value = DenseElementsAttr::getFromRawBuffer(
        type, ArrayRef<char>(constant.bytes.data(), constant.bytes.size()));
  }
  Location loc = location(constant.name, "constants", index);
  constants.push_back(ConstantOp::create(builder, loc, type, value));
}

/// "add" of "aten.add.Tensor" and of "nova.add".
StringRef baseName(StringRef op) {
  StringRef base = op.split('.').second;
  return base.empty() ? op : base.split('.').first;
}

/// "; nearest: ..." of the operations whose own name is near, other overloads
/// of the same operation first; nothing if none is.
std::string nearestOps(StringRef op, ArrayRef<std::string> known) {
  StringRef base = baseName(op);
  size_t limit = std::max<size_t>(1, base.size() / 3);
  std::vector<std::tuple<size_t, bool, StringRef>> near;
  for (StringRef candidate : known) {
    size_t distance = graph::editDistance(base, baseName(candidate), limit);
    bool other = op.split('.').first != candidate.split('.').first;
    if (distance <= limit)
      near.emplace_back(distance, other, candidate);
  }
  llvm::sort(near);
  std::string text;
  for (const auto &[distance, other, name] :
       ArrayRef(near).take_front(std::min<size_t>(near.size(), 3)))
    text += (text.empty() ? "; nearest: " : ", ") + name.str();
  return text;
}

/// One diagnostic over every node whose operation is unknown.
void Importer::reportUnknown() {
  std::string lines;
  size_t count = 0;
  llvm::StringMap<std::string> nearest;
  std::vector<std::string> known;
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    if (isKnown(node.op))
      continue;
    if (known.empty()) {
      known = supportedNovaOps(*context);
      for (const OpInfo &info : supportedOps())
        known.push_back(info.name.str());
    }
    ++count;
    auto [hint, fresh] = nearest.try_emplace(node.op);
    if (fresh)
      hint->second = nearestOps(node.op, known);
    lines += "\n  nodes[" + std::to_string(i) + "] \"" + node.name +
             "\": " + node.op + hint->second;
  }
  if (count == 0)
    return;
  failed = true;
  emitError(module->getLoc())
      << count << (count == 1 ? " node has" : " nodes have")
      << " an operation that is not supported:" << lines;
}

FailureOr<SmallVector<mlir::Value>> Importer::build(uint32_t index,
                                                    Location loc) {
  const graph::Node &node = graph.nodes[index];
  auto find = [&](const graph::Ref &ref) { return lookup(ref); };
  const TableRow *row = findOp(node.op);
  if (!row)
    return importNovaNode(builder, loc, graph, index, find);
  Bound bound;
  BindError error;
  if (!bindArguments(row->signature, node, graph, bound, error))
    return emitError(loc) << "nodes[" << index << "]." << error.path << ": "
                          << node.op << ": " << error.what;
  Call call(builder, loc, graph, index, *row->entry, row->signature, bound,
            find);
  if (mlir::failed(row->entry->import(call)))
    return failure();
  return std::move(call.produced);
}

/// The declared results against what was built.
LogicalResult Importer::check(uint32_t index, Location loc,
                              ArrayRef<mlir::Value> produced) {
  const graph::Node &node = graph.nodes[index];
  auto complain = [&](const Twine &path) -> InFlightDiagnostic {
    failed = true;
    return emitError(loc) << "nodes[" << index << "].results" << path.str()
                          << ": ";
  };
  std::string computes = " (" + node.op + ")";
  if (produced.size() != node.results.size())
    return complain("") << "got " << node.results.size()
                        << " results, expected " << produced.size() << computes;
  LogicalResult agrees = success();
  for (auto [i, pair] :
       llvm::enumerate(llvm::zip_equal(node.results, produced))) {
    auto &[declared, value] = pair;
    std::string path = "[" + std::to_string(i) + "]";
    if (!declared)
      continue; // nobody has it: whatever it is, it is unused
    if (!value) {
      agrees = complain(path)
               << "got " << dtypeName(declared->dtype).data() << " "
               << shapeText(declared->shape) << ", expected null" << computes;
      continue;
    }
    graph::DType dtype = importer::dtypeOf(value);
    if (declared->dtype != dtype)
      agrees = complain(path + ".dtype")
               << "got " << StringRef(dtypeName(declared->dtype))
               << ", expected " << StringRef(dtypeName(dtype)) << computes;
    if (ArrayRef<int64_t>(declared->shape) != shapeOf(value))
      agrees = complain(path + ".shape")
               << "got " << shapeText(declared->shape) << ", expected "
               << importer::shapeText(shapeOf(value)) << computes;
  }
  return agrees;
}

void Importer::importNode(uint32_t index) {
  const graph::Node &node = graph.nodes[index];
  Location loc = location(node.name, "nodes", index);
  auto &values = nodes[index];
  if (isKnown(node.op)) {
    auto built = build(index, loc);
    if (succeeded(built) && succeeded(check(index, loc, *built))) {
      values.assign(built->begin(), built->end());
      return;
    }
    failed = true;
  }
  // Later nodes are still checked, against what this one declares. The module
  // is thrown away, so that it does not matter what stands here.
  for (const auto &result : node.results)
    values.push_back(
        result ? tensor::EmptyOp::create(
                     builder, loc, tensorType(*result, context), ValueRange())
                     .getResult()
               : mlir::Value());
}

void Importer::finish() {
  SmallVector<mlir::Value> results;
  for (const graph::Output &output : graph.outputs)
    results.push_back(lookup(output.value));
  func::ReturnOp::create(builder, module->getLoc(), results);
}

OwningOpRef<ModuleOp> Importer::run() {
  loadGraphDialects(*context);
  module = ModuleOp::create(NameLoc::get(builder.getStringAttr(graph.name)));
  makeStep();
  reportUnknown();
  for (uint32_t i = 0; i < graph.constants.size(); ++i)
    importConstant(i);
  nodes.resize(graph.nodes.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    importNode(i);
  if (failed)
    return nullptr;
  finish();
  if (mlir::failed(verify(*module)) || mlir::failed(verifyStep(*module)))
    return nullptr;
  return std::move(module);
}

} // namespace

OwningOpRef<ModuleOp> nova::importGraph(const graph::Graph &graph,
                                        MLIRContext &context) {
  return Importer(graph, context).run();
}
