//===- ReadValue.cpp - Typed access to JSON, tensors, values --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphText.h"
#include "Reader.h"
#include "nova/Graph/NearestNames.h"

#include <algorithm>
#include <limits>

using namespace nova;
using namespace nova::graph;

static constexpr std::string_view dtypeList =
    "float64, float32, bfloat16, float16, int64, int32, int16, int8, uint8 or "
    "bool";

std::string
nova::graph::didYouMean(std::string_view name,
                        const std::vector<std::string_view> &known) {
  std::vector<std::string> near = nearestNames(name, known);
  std::string text;
  for (size_t i = 0; i < near.size(); ++i)
    text += (i ? ", " : "; nearest: ") + near[i];
  return text;
}

bool Reader::fail(const JsonPath &path, std::string what) {
  if (message.empty()) {
    std::string where = path.text();
    message = (where.empty() ? "" : where + ": ") + std::move(what);
  }
  return false;
}

bool Reader::got(const JsonPath &path, const Json &value,
                 std::string expected) {
  return fail(path, "got " + value.text() + ", expected " + expected);
}

//===----------------------------------------------------------------------===//
// Typed access
//===----------------------------------------------------------------------===//

bool Reader::object(const Json &json, const JsonPath &path, Fields fields) {
  const auto *members = json.as<Json::Object>();
  if (!members)
    return got(path, json, "an object");
  for (const auto &[key, value] : *members) {
    // Reserved by the format; said before "unknown field" would be.
    if (key == "dims")
      return fail(member(path, key),
                  "symbolic sizes are not supported; got " + value.text());
    if (std::any_of(fields.begin(), fields.end(),
                    [&](const Field &field) { return field.name == key; }))
      continue;
    std::vector<std::string_view> known;
    for (const Field &field : fields)
      known.push_back(field.name);
    std::string list;
    for (size_t i = 0; i < known.size(); ++i)
      list += (i ? ", " : "") + std::string(known[i]);
    return fail(member(path, key), "unknown field, expected one of " + list);
  }
  for (const Field &field : fields)
    if (field.required && !json.find(field.name))
      return fail(member(path, field.name), "missing");
  return true;
}

bool Reader::text(const Json &json, const JsonPath &path, std::string &out) {
  const auto *value = json.as<std::string>();
  if (!value || value->empty())
    return got(path, json, "a string that is not empty");
  // Names go to manifests, files, lines of text and C strings.
  if (std::any_of(value->begin(), value->end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return got(path, json, "a string without control characters");
  out = *value;
  return true;
}

bool Reader::array(const Json &json, const JsonPath &path, std::string_view of,
                   const Json::Array *&out) {
  out = json.as<Json::Array>();
  return out || got(path, json, "a list of " + std::string(of));
}

bool Reader::sizes(const Json &json, const JsonPath &path,
                   std::string_view what, std::vector<int64_t> &out) {
  const Json::Array *list;
  if (!array(json, path, what, list))
    return false;
  out.reserve(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    const Json &entry = (*list)[i];
    if (entry.as<std::string>())
      return fail(element(path, i),
                  "symbolic sizes are not supported; got " + entry.text());
    const int64_t *size = entry.as<int64_t>();
    if (!size || *size < 0)
      return got(element(path, i), entry, "an integer that is not negative");
    out.push_back(*size);
  }
  return true;
}

bool Reader::dtype(const Json &json, const JsonPath &path, DType &out) {
  const auto *name = json.as<std::string>();
  std::optional<DType> known;
  if (name)
    known = dtypeFromName(*name);
  if (!known)
    return got(path, json, std::string(dtypeList));
  out = *known;
  return true;
}

/// dtype, shape and strides, with every size and offset inside 64 bits.
bool Reader::tensor(const Json &json, const JsonPath &path, Tensor &out) {
  JsonPath shapePath = member(path, "shape");
  if (!dtype(*json.find("dtype"), member(path, "dtype"), out.dtype) ||
      !sizes(*json.find("shape"), shapePath, "sizes", out.shape))
    return false;
  int64_t bytes = dtypeBytes(out.dtype);
  bool empty = false;
  for (int64_t extent : out.shape) {
    empty |= extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes))
      return fail(shapePath, "got " + shapeText(out.shape) +
                                 ", expected less than 2^63 bytes");
  }
  const Json *strides = json.find("strides");
  if (!strides)
    return true;
  JsonPath stridesPath = member(path, "strides");
  std::vector<int64_t> steps;
  if (!sizes(*strides, stridesPath, "element strides", steps))
    return false;
  if (steps.size() != out.shape.size())
    return fail(stridesPath, "got " + shapeText(steps) + ", expected " +
                                 std::to_string(out.shape.size()) +
                                 " strides for shape " + shapeText(out.shape));
  // The last byte that the strides reach.
  int64_t reach = 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    int64_t far;
    if (__builtin_mul_overflow(std::max<int64_t>(out.shape[i], 1) - 1, steps[i],
                               &far) ||
        __builtin_add_overflow(reach, far, &reach))
      return fail(stridesPath,
                  "got " + shapeText(steps) +
                      ", expected a reach of less than 2^63 bytes");
  }
  if (__builtin_mul_overflow(reach, int64_t{dtypeBytes(out.dtype)}, &reach))
    return fail(stridesPath, "got " + shapeText(steps) +
                                 ", expected a reach of less than 2^63 bytes");
  // The stride of a dimension of size 1 is never used.
  std::vector<int64_t> dense = contiguousStrides(out.shape);
  bool contiguous = true;
  for (size_t i = 0; i < steps.size(); ++i)
    contiguous &= steps[i] == dense[i] || out.shape[i] == 1;
  if (!contiguous && !empty)
    out.strides = std::move(steps);
  return true;
}

/// The value of {"float": ...}.
bool Reader::floatWord(const Json &json, const JsonPath &path, double &out) {
  const auto *word = json.as<std::string>();
  if (word && *word == "inf")
    out = std::numeric_limits<double>::infinity();
  else if (word && *word == "-inf")
    out = -std::numeric_limits<double>::infinity();
  else if (word && *word == "nan")
    out = std::numeric_limits<double>::quiet_NaN();
  else
    return got(path, json, "\"inf\", \"-inf\" or \"nan\"");
  return true;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool Reader::reference(const Json &json, const JsonPath &path, Ref &out) {
  std::string name;
  JsonPath refPath = member(path, "ref");
  if (!text(*json.find("ref"), refPath, name))
    return false;
  auto found = names.find(name);
  if (found == names.end()) {
    std::vector<std::string_view> known;
    for (const auto &entry : names)
      known.push_back(entry.first);
    return fail(refPath,
                "undefined name " + quotedText(name) + didYouMean(name, known));
  }
  out = found->second;
  if (out.kind == Ref::Kind::Node && out.index >= nodesRead)
    return fail(refPath, quotedText(name) + " is defined later, at nodes[" +
                             std::to_string(out.index) +
                             "]; expected an earlier node");
  size_t count = 1;
  if (out.kind == Ref::Kind::Node)
    count = graph.nodes[out.index].results.size();
  int64_t result = 0;
  JsonPath resultPath = member(path, "result");
  if (const Json *which = json.find("result")) {
    const int64_t *number = which->as<int64_t>();
    if (!number || *number < 0)
      return got(resultPath, *which, "an integer that is not negative");
    result = *number;
  }
  if (result >= static_cast<int64_t>(count))
    return fail(resultPath, "got " + std::to_string(result) + ", expected " +
                                (count ? "less than " : "no reference: ") +
                                std::to_string(count) + ", the results of " +
                                quotedText(name));
  out.result = static_cast<uint32_t>(result);
  if (out.kind == Ref::Kind::Node &&
      !graph.nodes[out.index].results[out.result])
    return fail(path, "result " + std::to_string(result) + " of " +
                          quotedText(name) + " is null: nobody has it");
  return true;
}

bool Reader::value(const Json &json, const JsonPath &path, Value &out) {
  if (json.isNull())
    return true;
  if (const bool *b = json.as<bool>()) {
    out.data = *b;
    return true;
  }
  if (const int64_t *i = json.as<int64_t>()) {
    out.data = *i;
    return true;
  }
  if (const double *d = json.as<double>()) {
    out.data = *d;
    return true;
  }
  if (const auto *s = json.as<std::string>()) {
    out.data = *s;
    return true;
  }
  if (const auto *list = json.as<Json::Array>()) {
    auto &values = out.data.emplace<ValueList>(list->size());
    for (size_t i = 0; i < list->size(); ++i)
      if (!value((*list)[i], element(path, i), values[i]))
        return false;
    return true;
  }
  if (json.find("ref")) {
    if (!object(json, path, {{"ref", true}, {"result", false}}))
      return false;
    return reference(json, path, out.data.emplace<Ref>());
  }
  if (const Json *word = json.find("float"))
    return object(json, path, {{"float", true}}) &&
           floatWord(*word, member(path, "float"), out.data.emplace<double>());
  if (const Json *name = json.find("dtype"))
    return object(json, path, {{"dtype", true}}) &&
           dtype(*name, member(path, "dtype"), out.data.emplace<DType>());
  if (const Json *name = json.find("enum"))
    return object(json, path, {{"enum", true}}) &&
           text(*name, member(path, "enum"), out.data.emplace<EnumName>().name);
  return got(
      path, json,
      "a number, bool, string, null, list, or an object with ref, float, "
      "dtype or enum");
}
