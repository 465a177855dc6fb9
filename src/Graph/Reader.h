//===- Reader.h - The graph reader's parts --------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One Reader per file. Methods return false after recording the first error,
// always as "PATH: got VALUE, expected WHAT" or "PATH: WHAT".
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_GRAPH_READER_H
#define NOVA_SRC_GRAPH_READER_H

#include "Json.h"
#include "nova/Graph/Graph.h"
#include "nova/Support/Safetensors.h"

#include <initializer_list>
#include <map>
#include <string>
#include <unordered_map>

namespace nova::graph {

inline JsonPath member(const JsonPath &path, std::string_view key) {
  return {&path, key, -1};
}
inline JsonPath element(const JsonPath &path, size_t index) {
  return {&path, {}, static_cast<int64_t>(index)};
}
/// "; nearest: a, b" or nothing.
std::string didYouMean(std::string_view name,
                       const std::vector<std::string_view> &known);

class Reader {
public:
  explicit Reader(std::string folder) : folder(std::move(folder)) {}

  bool read(const Json &root);

  Graph graph;
  std::string message;
  std::string hint;

private:
  struct Field {
    std::string_view name;
    bool required;
  };
  using Fields = std::initializer_list<Field>;

  bool fail(const JsonPath &path, std::string what);
  bool got(const JsonPath &path, const Json &value, std::string expected);

  // Typed access; each names what it expected.
  bool object(const Json &json, const JsonPath &path, Fields fields);
  bool text(const Json &json, const JsonPath &path, std::string &out);
  bool array(const Json &json, const JsonPath &path, std::string_view of,
             const Json::Array *&out);
  bool sizes(const Json &json, const JsonPath &path, std::string_view what,
             std::vector<int64_t> &out);
  bool tensor(const Json &json, const JsonPath &path, Tensor &out);
  bool fitsMemory(const Tensor &tensor, const JsonPath &path);
  bool dtype(const Json &json, const JsonPath &path, DType &out);
  bool floatWord(const Json &json, const JsonPath &path, double &out);

  // Sections.
  bool header(const Json &root, const JsonPath &path);
  bool declareNames(const Json &list, const JsonPath &path, Ref::Kind kind);
  bool readInput(const Json &json, const JsonPath &path, Input &out);
  bool readConstant(const Json &json, const JsonPath &path, Constant &out);
  bool readNode(const Json &json, const JsonPath &path, uint32_t index);
  bool readOutput(const Json &json, const JsonPath &path, Output &out);
  bool value(const Json &json, const JsonPath &path, Value &out);
  bool reference(const Json &json, const JsonPath &path, Ref &out);

  // ReadConstant.cpp.
  bool constantValues(const Json &json, const JsonPath &path, Constant &out);
  bool constantElement(const Json &json, const JsonPath &path, DType dtype,
                       char *out);
  bool constantFile(const Json &json, const JsonPath &path, Constant &out);
  bool resolveFile(const JsonPath &path, const std::string &file,
                   std::string &out);

  std::string folder;
  std::unordered_map<std::string_view, Ref> names;
  /// Nodes read so far: what a reference may point at.
  uint32_t nodesRead = 0;
  std::map<std::string, SafetensorsFile> files;
};

} // namespace nova::graph

#endif // NOVA_SRC_GRAPH_READER_H
