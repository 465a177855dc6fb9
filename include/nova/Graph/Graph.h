//===- Graph.h - The graph file: one training step as plain data ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `nova.graph` version 1 (graphs/README.md is the format's description), read
// into plain structs and checked as far as that is possible without knowing
// what any operation computes. No MLIR here: Import gives the nodes meaning.
//
// A Graph returned by readGraph() holds every rule of the format: names are
// unique and defined before use, references point at results that exist, sizes
// fit 64 bits, the bytes of constants are there, updates match their input.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_GRAPH_GRAPH_H
#define NOVA_GRAPH_GRAPH_H

#include "nova/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nova::graph {

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

enum class DType : uint8_t {
  Float64,
  Float32,
  BFloat16,
  Float16,
  Int64,
  Int32,
  Int16,
  Int8,
  UInt8,
  Bool,
};

/// "float32", ...: the name in graph files.
std::string_view dtypeName(DType dtype);
std::optional<DType> dtypeFromName(std::string_view name);
/// Bytes per element in memory; a bool is one byte, 0 or 1.
unsigned dtypeBytes(DType dtype);
bool isFloating(DType dtype);

struct Tensor {
  DType dtype = DType::Float32;
  /// Sizes, each >= 0; their product in bytes fits a signed 64-bit integer.
  std::vector<int64_t> shape;
  /// Element strides, only where the tensor is not contiguous row-major (a
  /// list that says "contiguous" is dropped by the reader). Each >= 0.
  std::optional<std::vector<int64_t>> strides;

  int64_t elementCount() const;
  /// Bytes of the dense tensor.
  int64_t denseBytes() const { return elementCount() * dtypeBytes(dtype); }
};

/// "[3,40]".
std::string shapeText(const std::vector<int64_t> &shape);
/// Element strides of a contiguous row-major tensor.
std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &shape);

//===----------------------------------------------------------------------===//
// Values: what stands in args and kwargs
//===----------------------------------------------------------------------===//

/// A reference to an input, a constant, or a result of an earlier node.
struct Ref {
  enum class Kind : uint8_t { Input, Constant, Node };
  Kind kind = Kind::Input;
  /// Index into Graph::inputs, constants or nodes.
  uint32_t index = 0;
  /// Which result; 0 for inputs and constants.
  uint32_t result = 0;
  bool operator==(const Ref &) const = default;
};

/// {"enum": "cuda:0"}: a device, layout or memory format.
struct EnumName {
  std::string name;
  bool operator==(const EnumName &) const = default;
};

struct Value;
using ValueList = std::vector<Value>;

struct Value {
  std::variant<std::monostate, bool, int64_t, double, std::string, Ref, DType,
               EnumName, ValueList>
      data;

  template <typename T> const T *as() const { return std::get_if<T>(&data); }
  bool isNull() const { return data.index() == 0; }
};

/// The value as a graph file would spell it, cut after about `limit`
/// characters: for messages. References show the name behind them.
struct Graph;
std::string valueText(const Value &value, const Graph &graph,
                      size_t limit = 80);

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

enum class InputRole : uint8_t { Parameter, State, Buffer, Scalar, Input };
enum class OutputRole : uint8_t { Loss, Output, Gradient, Update };
std::string_view roleName(InputRole role);
std::string_view roleName(OutputRole role);

struct Input : Tensor {
  std::string name;
  InputRole role = InputRole::Input;
  /// The producer's own name; the input's name where the file has none.
  std::string path;
  /// What a runner adds after each step (scalars only).
  double advance = 0;
};

struct Constant : Tensor {
  std::string name;
  /// Dense row-major little-endian elements, denseBytes() of them.
  std::string bytes;
  /// The file they came from, as the graph spells it (relative to its folder);
  /// empty for inline values. Not part of the canonical form.
  std::string file;
};

struct Node {
  std::string name;
  std::string op;
  std::vector<Value> args;
  /// In the order of the file; keys are unique.
  std::vector<std::pair<std::string, Value>> kwargs;
  /// nullopt for a result nobody has.
  std::vector<std::optional<Tensor>> results;
};

struct Output {
  Ref value;
  OutputRole role = OutputRole::Output;
  /// Index of the input whose storage the value replaces; for updates only.
  std::optional<uint32_t> updates;
};

struct Graph {
  std::string name;
  std::vector<Input> inputs;
  std::vector<Constant> constants;
  std::vector<Node> nodes;
  std::vector<Output> outputs;

  /// The dtype, shape and strides behind a reference.
  const Tensor &tensor(const Ref &ref) const;
  /// The name behind a reference.
  const std::string &nameOf(const Ref &ref) const;
};

/// Reads and checks a graph file. Every failure is BadInput and names the file,
/// the JSON path, the value found and what was expected. Constants may name
/// safetensors files in the folder of `path`, nowhere else.
Expected<Graph> readGraph(const std::string &path);

/// The same from text. `folder` is where constants may have their files; empty:
/// such constants are refused (a graph from standard input has no folder).
Expected<Graph> parseGraph(std::string_view text,
                           const std::string &folder = {});

/// The canonical form: JSON with sorted keys, no white space, no producer,
/// constants as the SHA-256 of their bytes. Two files that mean the same step
/// (other formatting, key order, spelled-out defaults, constants inline or in a
/// file) have the same canonical form.
std::string canonicalGraph(const Graph &graph);

/// "sha256:" and 64 hexadecimal digits over canonicalGraph().
std::string graphDigest(const Graph &graph);

} // namespace nova::graph

#endif // NOVA_GRAPH_GRAPH_H
