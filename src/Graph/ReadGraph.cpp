//===- ReadGraph.cpp - nova.graph version 1, strictly ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphText.h"
#include "Reader.h"
#include "nova/Support/File.h"

#include <cmath>
#include <limits>

using namespace nova;
using namespace nova::graph;

// Far above any real graph (the largest here has 0.7 MB), far below what would
// exhaust memory: the tree takes some ten times the text.
static constexpr uint64_t fileCap = uint64_t{1} << 30;

/// What the caller of a step gives memory for must fit into some.
bool Reader::fitsMemory(const Tensor &tensor, const JsonPath &path) {
  // 1.1 TB: several times what any device has.
  constexpr int64_t mostBytes = int64_t{1} << 40;
  int64_t bytes = dtypeBytes(tensor.dtype);
  for (int64_t extent : tensor.shape) // tensor() has checked the product
    bytes *= extent;
  if (tensor.strides && bytes > 0) {
    bytes = 1;
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      bytes += (tensor.shape[i] - 1) * (*tensor.strides)[i];
    bytes *= dtypeBytes(tensor.dtype);
  }
  if (bytes <= mostBytes)
    return true;
  return fail(path, "got " + std::string(dtypeName(tensor.dtype)) + " " +
                        shapeText(tensor.shape) + " of " +
                        std::to_string(bytes) + " bytes, expected at most " +
                        std::to_string(mostBytes) +
                        ": no device holds more");
}

bool Reader::readInput(const Json &json, const JsonPath &path, Input &out) {
  if (!object(json, path,
              {{"name", true},
               {"role", true},
               {"path", false},
               {"dtype", true},
               {"shape", true},
               {"strides", false},
               {"advance", false}}) ||
      !text(*json.find("name"), member(path, "name"), out.name) ||
      !tensor(json, path, out))
    return false;
  const Json &role = *json.find("role");
  const auto *word = role.as<std::string>();
  bool known = false;
  for (InputRole each :
       {InputRole::Parameter, InputRole::State, InputRole::Buffer,
        InputRole::Scalar, InputRole::Input})
    if (word && *word == roleName(each)) {
      out.role = each;
      known = true;
    }
  if (!known)
    return got(member(path, "role"), role,
               "parameter, state, buffer, scalar or input");
  out.path = out.name;
  if (const Json *own = json.find("path")) {
    const auto *words = own->as<std::string>();
    if (!words)
      return got(member(path, "path"), *own, "a string");
    if (!words->empty() && !text(*own, member(path, "path"), out.path))
      return false;
    out.path = *words;
  }
  if (out.role == InputRole::Scalar && !out.shape.empty())
    return fail(member(path, "shape"),
                "got " + shapeText(out.shape) + ", expected [] for a scalar");
  if (!fitsMemory(out, member(path, "shape")))
    return false;
  if (const Json *advance = json.find("advance")) {
    JsonPath advancePath = member(path, "advance");
    if (out.role != InputRole::Scalar)
      return fail(advancePath, "got " + advance->text() +
                                   ", expected none: only a scalar advances");
    if (const int64_t *i = advance->as<int64_t>())
      out.advance = static_cast<double>(*i);
    else if (const double *d = advance->as<double>())
      out.advance = *d;
    else
      return got(advancePath, *advance, "a number");
    if (!isFloating(out.dtype) && out.advance != std::trunc(out.advance))
      return got(advancePath, *advance,
                 "an integer for " + std::string(dtypeName(out.dtype)));
  }
  return true;
}

bool Reader::readNode(const Json &json, const JsonPath &path, uint32_t index) {
  Node &out = graph.nodes[index];
  if (!object(json, path,
              {{"name", true},
               {"op", true},
               {"args", true},
               {"kwargs", false},
               {"results", true}}) ||
      !text(*json.find("name"), member(path, "name"), out.name) ||
      !text(*json.find("op"), member(path, "op"), out.op))
    return false;
  const Json::Array *args, *results;
  JsonPath argsPath = member(path, "args");
  if (!array(*json.find("args"), argsPath, "values", args))
    return false;
  out.args.resize(args->size());
  for (size_t i = 0; i < args->size(); ++i)
    if (!value((*args)[i], element(argsPath, i), out.args[i]))
      return false;
  if (const Json *kwargs = json.find("kwargs")) {
    JsonPath kwargsPath = member(path, "kwargs");
    const auto *members = kwargs->as<Json::Object>();
    if (!members)
      return got(kwargsPath, *kwargs, "an object");
    for (const auto &[key, each] : *members)
      if (!value(each, member(kwargsPath, key),
                 out.kwargs.emplace_back(key, Value()).second))
        return false;
  }
  JsonPath resultsPath = member(path, "results");
  if (!array(*json.find("results"), resultsPath, "tensors", results))
    return false;
  for (size_t i = 0; i < results->size(); ++i) {
    auto &result = out.results.emplace_back();
    const Json &each = (*results)[i];
    JsonPath eachPath = element(resultsPath, i);
    if (each.isNull())
      continue;
    if (!object(each, eachPath,
                {{"dtype", true}, {"shape", true}, {"strides", false}}) ||
        !tensor(each, eachPath, result.emplace()))
      return false;
  }
  return true;
}

bool Reader::readOutput(const Json &json, const JsonPath &path, Output &out) {
  if (!object(json, path,
              {{"ref", true},
               {"result", false},
               {"role", true},
               {"updates", false}}) ||
      !reference(json, path, out.value) ||
      !fitsMemory(graph.tensor(out.value), path))
    return false;
  const Json &role = *json.find("role");
  const auto *word = role.as<std::string>();
  bool known = false;
  for (OutputRole each : {OutputRole::Loss, OutputRole::Output,
                          OutputRole::Gradient, OutputRole::Update})
    if (word && *word == roleName(each)) {
      out.role = each;
      known = true;
    }
  if (!known)
    return got(member(path, "role"), role, "loss, output, gradient or update");
  const Json *updates = json.find("updates");
  JsonPath updatesPath = member(path, "updates");
  if (!updates)
    return out.role != OutputRole::Update ||
           fail(updatesPath, "missing: an update names the input it replaces");
  if (out.role != OutputRole::Update)
    return fail(updatesPath, "got " + updates->text() +
                                 ", expected none for the role " + *word);
  std::string name;
  if (!text(*updates, updatesPath, name))
    return false;
  auto found = names.find(name);
  if (found == names.end() || found->second.kind != Ref::Kind::Input) {
    std::vector<std::string_view> known;
    for (const Input &input : graph.inputs)
      known.push_back(input.name);
    return fail(updatesPath, "got " + quotedText(name) +
                                 ", expected the name of an input" +
                                 didYouMean(name, known));
  }
  const Input &input = graph.inputs[found->second.index];
  const Tensor &tensor = graph.tensor(out.value);
  if (tensor.dtype != input.dtype || tensor.shape != input.shape)
    return fail(
        updatesPath,
        quotedText(name) + " is " + std::string(dtypeName(input.dtype)) + " " +
            shapeText(input.shape) + ", the value that replaces it is " +
            std::string(dtypeName(tensor.dtype)) + " " +
            shapeText(tensor.shape) + "; expected the same");
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (graph.outputs[i].updates == found->second.index)
      return fail(updatesPath, quotedText(name) + " is updated by outputs[" +
                                   std::to_string(i) +
                                   "] already; expected one update");
  out.updates = found->second.index;
  return true;
}

bool Reader::header(const Json &root, const JsonPath &path) {
  // Format and version come before "unknown field": a later version has others.
  if (!root.as<Json::Object>())
    return got(path, root, "one object");
  const Json *format = root.find("format"), *version = root.find("version");
  if (!format)
    return fail(member(path, "format"), "missing, expected \"nova.graph\"");
  if (!format->as<std::string>() || *format->as<std::string>() != "nova.graph")
    return got(member(path, "format"), *format, "\"nova.graph\"");
  if (!version)
    return fail(member(path, "version"), "missing, expected 1");
  if (!version->as<int64_t>() || *version->as<int64_t>() != 1)
    return got(member(path, "version"), *version, "1");
  return object(root, path,
                {{"format", true},
                 {"version", true},
                 {"name", true},
                 {"producer", false},
                 {"inputs", true},
                 {"constants", true},
                 {"nodes", true},
                 {"outputs", true}}) &&
         text(*root.find("name"), member(path, "name"), graph.name);
}

/// Enters every name of a section, so that a reference to a later node can be
/// told from one to no node at all.
bool Reader::declareNames(const Json &list, const JsonPath &path,
                          Ref::Kind kind) {
  const Json::Array *elements;
  if (!array(list, path, "objects", elements))
    return false;
  if (elements->size() > std::numeric_limits<uint32_t>::max())
    return fail(path, "more than 2^32 elements");
  for (size_t i = 0; i < elements->size(); ++i) {
    const Json *name = (*elements)[i].find("name");
    if (!name || !name->as<std::string>())
      continue; // named when the element itself is read
    auto [entry, fresh] = names.try_emplace(
        *name->as<std::string>(), Ref{kind, static_cast<uint32_t>(i), 0});
    if (fresh)
      continue;
    const Ref &other = entry->second;
    std::string_view section = other.kind == Ref::Kind::Input      ? "inputs"
                               : other.kind == Ref::Kind::Constant ? "constants"
                                                                   : "nodes";
    JsonPath elementPath = element(path, i);
    return fail(member(elementPath, "name"),
                name->text() + " is the name of " + std::string(section) + "[" +
                    std::to_string(other.index) + "] already");
  }
  return true;
}

bool Reader::read(const Json &root) {
  JsonPath top, inputs = member(top, "inputs"),
                constants = member(top, "constants"),
                nodes = member(top, "nodes"), outputs = member(top, "outputs");
  if (!header(root, top) ||
      !declareNames(*root.find("inputs"), inputs, Ref::Kind::Input) ||
      !declareNames(*root.find("constants"), constants, Ref::Kind::Constant) ||
      !declareNames(*root.find("nodes"), nodes, Ref::Kind::Node))
    return false;
  const auto &inputList = *root.find("inputs")->as<Json::Array>();
  graph.inputs.resize(inputList.size());
  for (size_t i = 0; i < inputList.size(); ++i)
    if (!readInput(inputList[i], element(inputs, i), graph.inputs[i]))
      return false;
  const auto &constantList = *root.find("constants")->as<Json::Array>();
  graph.constants.resize(constantList.size());
  for (size_t i = 0; i < constantList.size(); ++i)
    if (!readConstant(constantList[i], element(constants, i),
                      graph.constants[i]))
      return false;
  const auto &nodeList = *root.find("nodes")->as<Json::Array>();
  graph.nodes.resize(nodeList.size());
  for (; nodesRead < nodeList.size(); ++nodesRead)
    if (!readNode(nodeList[nodesRead], element(nodes, nodesRead), nodesRead))
      return false;
  const Json::Array *outputList;
  if (!array(*root.find("outputs"), outputs, "objects", outputList))
    return false;
  if (outputList->empty())
    return fail(outputs, "got [], expected at least one output");
  for (size_t i = 0; i < outputList->size(); ++i) {
    Output output;
    if (!readOutput((*outputList)[i], element(outputs, i), output))
      return false;
    graph.outputs.push_back(output);
  }
  return true;
}

Expected<Graph> nova::graph::parseGraph(std::string_view text,
                                        const std::string &folder) {
  auto json = parseJson(text);
  if (!json)
    return json.error();
  Reader reader(folder);
  if (!reader.read(*json))
    return badInput(reader.message, reader.hint);
  return std::move(reader.graph);
}

Expected<Graph> nova::graph::readGraph(const std::string &path) {
  auto text = readFile(path, "graph", fileCap);
  if (!text)
    return text.error();
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "."
                       : slash == 0               ? "/"
                                                  : path.substr(0, slash);
  auto graph = parseGraph(*text, folder);
  if (!graph)
    graph.error().message = path + ": " + graph.error().message;
  return graph;
}
