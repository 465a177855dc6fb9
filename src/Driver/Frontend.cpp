//===- Frontend.cpp - The operand GRAPH, whatever it is -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Frontend.h"

#include "nova/GpuCodegen/KernelCompiler.h"
#include "nova/IR/Nova.h"
#include "nova/Import/Import.h"
#include "nova/Support/File.h"
#include "nova/Support/Hash.h"
#include "nova/Transforms/KernelContract.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <iostream>
#include <iterator>
#include <set>

using namespace mlir;
using namespace nova;
using driver::Frontend;

/// A JSON graph is an object; nothing in MLIR begins with a brace, except
/// "{-#" of resources.
static bool looksLikeMlir(std::string_view text) {
  constexpr std::string_view bytecode = "ML\xefR";
  if (text.substr(0, bytecode.size()) == bytecode)
    return true;
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos)
    return false;
  return text.substr(first, 3) == "{-#" || text.substr(first, 2) == "//" ||
         text[first] == '#' || text[first] == '!' ||
         text.substr(first, 6) == "module" ||
         text.substr(first, 5) == "func." ||
         text.substr(first, 9) == "\"builtin.";
}

Expected<Frontend> Frontend::read(const std::string &path) {
  Frontend result;
  result.path = path;
  bool standardInput = path == "-";
  if (standardInput) {
    result.text.assign(std::istreambuf_iterator<char>(std::cin), {});
    result.path = "<stdin>";
  } else {
    Expected<std::string> text = readFile(path, "graph");
    if (!text)
      return text.error();
    result.text = std::move(*text);
  }
  if (looksLikeMlir(result.text))
    return result;
  Expected<graph::Graph> graph =
      standardInput ? graph::parseGraph(result.text) : graph::readGraph(path);
  if (!graph) {
    if (standardInput)
      graph.error().message = "standard input: " + graph.error().message;
    return graph.error();
  }
  result.graph = std::move(*graph);
  return result;
}

OwningOpRef<ModuleOp> Frontend::import(MLIRContext &context) const {
  if (graph)
    return importGraph(*graph, context);
  loadGpuCodegenDialects(context); // all that a stage may hold
  return importMlir(llvm::MemoryBufferRef(text, path), context);
}

std::optional<std::string> Frontend::name() const {
  return graph ? std::optional(graph->name) : std::nullopt;
}

std::optional<std::string> Frontend::digest() const {
  return graph ? std::optional(graph::graphDigest(*graph)) : std::nullopt;
}

std::vector<std::string> Frontend::files() const {
  std::vector<std::string> files;
  if (path != "<stdin>")
    files.push_back(path);
  if (!graph)
    return files;
  // The graph keeps the bytes of its constants, not where they came from.
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  if (!json) {
    llvm::consumeError(json.takeError());
    return files;
  }
  std::set<std::string> others;
  if (const llvm::json::Object *object = json->getAsObject())
    if (const llvm::json::Array *constants = object->getArray("constants"))
      for (const llvm::json::Value &constant : *constants)
        if (const llvm::json::Object *fields = constant.getAsObject())
          if (std::optional<llvm::StringRef> file = fields->getString("file"))
            others.insert(file->str());
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const std::string &file : others)
    files.push_back((folder / file).string());
  return files;
}

std::string driver::moduleName(ModuleOp module) {
  func::FuncOp step = findStep(module);
  auto name =
      step ? step->getAttrOfType<StringAttr>(attr::graph) : StringAttr();
  return name ? name.str() : "";
}

Stage driver::stageOf(ModuleOp module) {
  Stage stage = Stage::Graph;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function->hasAttr(attr::arena))
      return Stage::Plan;
    if (isKernel(function))
      stage = std::max(stage, function->hasAttr(attr::tile) ? Stage::Configured
                                                            : Stage::Fused);
  }
  return stage;
}

/// Of the module that holds the step.
static constexpr StringLiteral graphDigestAttr = "nova.graph_digest",
                               moduleDigestAttr = "nova.module_digest",
                               deviceAttr = "nova.device",
                               matmulAttr = "nova.matmul";

static std::string digestOfContent(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  flags.printGenericOpForm().useLocalScope();
  for (Operation &op : *module.getBody()) {
    op.print(os, flags);
    os << "\n";
  }
  return "sha256:" + sha256Hex(text);
}

void driver::recordDigest(ModuleOp module, StringRef graphDigest) {
  Builder builder(module.getContext());
  module->setAttr(graphDigestAttr, builder.getStringAttr(graphDigest));
  module->setAttr(moduleDigestAttr,
                  builder.getStringAttr(digestOfContent(module)));
}

std::string driver::moduleDigest(ModuleOp module) {
  std::string content = digestOfContent(module);
  auto graph = module->getAttrOfType<StringAttr>(graphDigestAttr);
  auto own = module->getAttrOfType<StringAttr>(moduleDigestAttr);
  bool isDigest = graph && graph.getValue().starts_with("sha256:") &&
                  graph.size() == content.size();
  return isDigest && own && own.getValue() == content ? graph.str() : content;
}

void driver::recordDevice(ModuleOp module, const target::Device &device,
                          StringRef matmul) {
  Builder builder(module.getContext());
  module->setAttr(deviceAttr, builder.getStringAttr(StringRef(device.name)));
  module->setAttr(matmulAttr, builder.getStringAttr(matmul));
}

Status driver::checkDevice(ModuleOp module, const target::Device &device,
                           StringRef matmul) {
  auto text = [&](StringRef name) {
    auto value = module->getAttrOfType<StringAttr>(name);
    return value ? value.str() : std::string();
  };
  std::string made = text(deviceAttr), multiplied = text(matmulAttr);
  if (made == device.name && multiplied == matmul)
    return Status::ok();
  std::string stage(stageName(stageOf(module)));
  if (made.empty())
    return badInput("the module holds the stage '" + stage +
                        "', and does not say for which device",
                    "compile the graph, or what --stop-after fused gives");
  return badInput("the module holds the stage '" + stage + "' for " + made +
                      " with products in " + multiplied + ", expected " +
                      std::string(device.name) + " with products in " +
                      matmul.str(),
                  "give --target and --precision as they were, or compile what "
                  "--stop-after fused gives");
}
