//===- CheckNodes.cpp - novac check --nodes -------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One line per node of the graph, in its order:
//   NAME: RESULT, ... <- OPERATION, ...; KERNEL, ...
// the results that the node has, the nova operations that the importer makes of
// it, and the kernels whose launches say that they compute it.
//
//===----------------------------------------------------------------------===//

#include "Compiler.h"
#include "Verbs.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nova;
using namespace nova::driver;

namespace {
struct Line {
  std::string results;
  std::vector<std::string> operations, kernels; // distinct
};
} // namespace

static void addOnce(std::vector<std::string> &list, StringRef name) {
  if (!llvm::is_contained(list, name))
    list.push_back(name.str());
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  StringRef plain(text);
  plain.consume_front("tensor<");
  plain.consume_back(">");
  return plain.str();
}

static std::string nodeOf(Operation *op) {
  auto name = dyn_cast<NameLoc>(op->getLoc());
  return name ? name.getName().str() : std::string();
}

Status driver::printNodes(const Options &options) {
  // A compiler of its own: the stages of the other have gone on.
  Compiler compiler(options);
  if (Status status = compiler.read(options.operands[0]); !status)
    return status;
  Expected<ModuleOp> imported = compiler.runStages(Stage::Graph);
  if (!imported)
    return imported.error();
  std::vector<std::string> order;
  llvm::StringMap<Line> found;
  imported->walk([&](Operation *op) {
    std::string node = nodeOf(op);
    if (node.empty() || isa<ConstantOp>(op) || !isa<NovaDialect>(op->getDialect()))
      return;
    auto [place, fresh] = found.try_emplace(node);
    if (fresh)
      order.push_back(node);
    Line &line = place->second;
    addOnce(line.operations, op->getName().stripDialect());
    // The node's own results come last.
    line.results.clear();
    for (Type type : op->getResultTypes())
      line.results += (line.results.empty() ? "" : ", ") + typeText(type);
  });
  Expected<ModuleOp> fused = compiler.runStages(Stage::Fused);
  if (!fused)
    return fused.error();
  fused->walk([&](LaunchOp launch) {
    for (Attribute node : launch.getNodes())
      if (auto place = found.find(cast<StringAttr>(node).getValue()); place != found.end())
        addOnce(place->second.kernels, launch.getKernel());
  });
  for (const std::string &node : order) {
    const Line &line = found[node];
    llvm::outs() << node << ": " << line.results << " <- ";
    llvm::interleaveComma(line.operations, llvm::outs());
    llvm::outs() << "; ";
    if (line.kernels.empty())
      llvm::outs() << "no kernel of its own";
    else
      llvm::interleaveComma(line.kernels, llvm::outs());
    llvm::outs() << "\n";
  }
  return Status::ok();
}
