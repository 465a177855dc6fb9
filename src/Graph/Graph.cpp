//===- Graph.cpp - Names, sizes and spelling of graph data ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Graph/Graph.h"
#include "GraphText.h"

#include <charconv>
#include <cmath>

using namespace nova::graph;

namespace {
struct DTypeRow {
  std::string_view name;
  unsigned bytes;
};
// In the order of enum DType.
constexpr DTypeRow dtypeRows[] = {
    {"float64", 8}, {"float32", 4}, {"bfloat16", 2}, {"float16", 2},
    {"int64", 8},   {"int32", 4},   {"int16", 2},    {"int8", 1},
    {"uint8", 1},   {"bool", 1},
};
} // namespace

std::string_view nova::graph::dtypeName(DType dtype) {
  return dtypeRows[static_cast<size_t>(dtype)].name;
}

std::optional<DType> nova::graph::dtypeFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(dtypeRows); ++i)
    if (dtypeRows[i].name == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

unsigned nova::graph::dtypeBytes(DType dtype) {
  return dtypeRows[static_cast<size_t>(dtype)].bytes;
}

bool nova::graph::isFloating(DType dtype) { return dtype <= DType::Float16; }

std::string_view nova::graph::roleName(InputRole role) {
  constexpr std::string_view names[] = {"parameter", "state", "buffer",
                                        "scalar", "input"};
  return names[static_cast<size_t>(role)];
}

std::string_view nova::graph::roleName(OutputRole role) {
  constexpr std::string_view names[] = {"loss", "output", "gradient", "update"};
  return names[static_cast<size_t>(role)];
}

int64_t Tensor::elementCount() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

std::string nova::graph::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<int64_t>
nova::graph::contiguousStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

const Tensor &Graph::tensor(const Ref &ref) const {
  switch (ref.kind) {
  case Ref::Kind::Input:
    return inputs[ref.index];
  case Ref::Kind::Constant:
    return constants[ref.index];
  case Ref::Kind::Node:
    break;
  }
  return *nodes[ref.index].results[ref.result];
}

const std::string &Graph::nameOf(const Ref &ref) const {
  switch (ref.kind) {
  case Ref::Kind::Input:
    return inputs[ref.index].name;
  case Ref::Kind::Constant:
    return constants[ref.index].name;
  case Ref::Kind::Node:
    break;
  }
  return nodes[ref.index].name;
}

std::string nova::graph::quotedText(std::string_view raw) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : raw) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string nova::graph::floatText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text;
}

std::string nova::graph::cutText(std::string text, size_t limit) {
  if (text.size() <= limit)
    return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end) + "...";
}
