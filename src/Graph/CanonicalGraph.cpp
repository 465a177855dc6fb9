//===- CanonicalGraph.cpp - One spelling per meaning, and its digest ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and paths are part of it: the manifest repeats them, so they change the
// bundle. The producer and where a constant's bytes were kept are not.
//
//===----------------------------------------------------------------------===//

#include "GraphText.h"
#include "nova/Graph/Graph.h"
#include "nova/Support/Hash.h"

#include <algorithm>
#include <cmath>

using namespace nova::graph;

namespace {

void writeList(const std::vector<int64_t> &list, std::string &out) {
  out += shapeText(list);
}

void writeRef(const Ref &ref, const Graph &graph, std::string &out) {
  out += "\"ref\":" + quotedText(graph.nameOf(ref));
  if (ref.result)
    out += ",\"result\":" + std::to_string(ref.result);
}

void writeValue(const Value &value, const Graph &graph, std::string &out,
                size_t limit) {
  if (out.size() > limit)
    return;
  if (value.isNull())
    out += "null";
  else if (const bool *b = value.as<bool>())
    out += *b ? "true" : "false";
  else if (const int64_t *i = value.as<int64_t>())
    out += std::to_string(*i);
  else if (const double *d = value.as<double>())
    out += std::isfinite(*d) ? floatText(*d)
                             : "{\"float\":\"" + floatText(*d) + "\"}";
  else if (const auto *s = value.as<std::string>())
    out += quotedText(*s);
  else if (const auto *ref = value.as<Ref>()) {
    out += '{';
    writeRef(*ref, graph, out);
    out += '}';
  } else if (const auto *dtype = value.as<DType>())
    out += "{\"dtype\":\"" + std::string(dtypeName(*dtype)) + "\"}";
  else if (const auto *name = value.as<EnumName>())
    out += "{\"enum\":" + quotedText(name->name) + "}";
  else {
    const auto &list = *value.as<ValueList>();
    out += '[';
    for (size_t i = 0; i < list.size() && out.size() <= limit; ++i) {
      if (i)
        out += ',';
      writeValue(list[i], graph, out, limit);
    }
    out += ']';
  }
}

/// `"dtype":...,` and, after `between`, `"shape":...[,"strides":...]`.
void writeTensor(const Tensor &tensor, std::string_view between,
                 std::string &out) {
  out += "\"dtype\":\"" + std::string(dtypeName(tensor.dtype)) + "\"";
  out += between;
  out += ",\"shape\":";
  writeList(tensor.shape, out);
  if (tensor.strides) {
    out += ",\"strides\":";
    writeList(*tensor.strides, out);
  }
}

template <typename List, typename Write>
void writeArray(std::string_view key, const List &list, std::string &out,
                Write write) {
  out += "\"" + std::string(key) + "\":[";
  bool first = true;
  for (const auto &element : list) {
    if (!first)
      out += ',';
    first = false;
    write(element);
  }
  out += ']';
}

void writeNode(const Node &node, const Graph &graph, std::string &out) {
  out += '{';
  writeArray("args", node.args, out, [&](const Value &value) {
    writeValue(value, graph, out, SIZE_MAX);
  });
  if (!node.kwargs.empty()) {
    auto sorted = node.kwargs;
    std::sort(sorted.begin(), sorted.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    out += ",\"kwargs\":{";
    for (size_t i = 0; i < sorted.size(); ++i) {
      out += (i ? "," : "") + quotedText(sorted[i].first) + ":";
      writeValue(sorted[i].second, graph, out, SIZE_MAX);
    }
    out += '}';
  }
  out += ",\"name\":" + quotedText(node.name) +
         ",\"op\":" + quotedText(node.op) + ",";
  writeArray("results", node.results, out,
             [&](const std::optional<Tensor> &result) {
               if (!result) {
                 out += "null";
                 return;
               }
               out += '{';
               writeTensor(*result, "", out);
               out += '}';
             });
  out += '}';
}

} // namespace

std::string nova::graph::valueText(const Value &value, const Graph &graph,
                                   size_t limit) {
  std::string out;
  writeValue(value, graph, out, limit);
  return cutText(out, limit);
}

std::string nova::graph::canonicalGraph(const Graph &graph) {
  std::string out = "{";
  writeArray("constants", graph.constants, out, [&](const Constant &constant) {
    out += "{\"digest\":\"sha256:" + sha256Hex(constant.bytes) + "\",";
    writeTensor(constant, ",\"name\":" + quotedText(constant.name), out);
    out += '}';
  });
  out += ",\"format\":\"nova.graph\",";
  writeArray("inputs", graph.inputs, out, [&](const Input &input) {
    out += '{';
    if (input.advance != 0)
      out += "\"advance\":" + floatText(input.advance) + ",";
    writeTensor(input,
                ",\"name\":" + quotedText(input.name) +
                    ",\"path\":" + quotedText(input.path) + ",\"role\":\"" +
                    std::string(roleName(input.role)) + "\"",
                out);
    out += '}';
  });
  out += ",\"name\":" + quotedText(graph.name) + ",";
  writeArray("nodes", graph.nodes, out,
             [&](const Node &node) { writeNode(node, graph, out); });
  out += ',';
  writeArray("outputs", graph.outputs, out, [&](const Output &output) {
    out += '{';
    writeRef(output.value, graph, out);
    out += ",\"role\":\"" + std::string(roleName(output.role)) + "\"";
    if (output.updates)
      out += ",\"updates\":" + quotedText(graph.inputs[*output.updates].name);
    out += '}';
  });
  return out + ",\"version\":1}";
}

std::string nova::graph::graphDigest(const Graph &graph) {
  return "sha256:" + sha256Hex(canonicalGraph(graph));
}
