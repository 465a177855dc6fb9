//===- Signature.h - Operator schemas, and arguments bound to them --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of operations gives each overload's signature as text, in PyTorch's
// own notation with two liberties: SymInt is written int, and `Tensor/Scalar`
// marks a tensor parameter where a Python number may stand (it then promotes as
// a wrapped number). Positional arguments, keywords and defaults follow from
// the text, and so do the checks of every value's kind.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_IMPORT_SIGNATURE_H
#define NOVA_SRC_IMPORT_SIGNATURE_H

#include "nova/Graph/Graph.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace nova::importer {

struct Param {
  enum class Kind {
    Tensor,         // Tensor
    TensorOrScalar, // Tensor/Scalar
    TensorList,     // Tensor[]
    OptTensorList,  // Tensor?[]: elements may be null
    Int,
    IntList, // int[]; int[1] and longer take one int for a list of one
    Float,
    Bool,
    BoolList,
    String,
    Scalar,
    DType,   // ScalarType
    Ignored, // Device, Layout, MemoryFormat: cannot change a value
  };
  Kind kind = Kind::Tensor;
  bool optional = false; // '?': null is a value
  bool oneForList = false;
  bool keywordOnly = false;
  llvm::StringRef type;
  llvm::StringRef name;
  /// The value where the call has none; unset: the argument is required.
  std::optional<graph::Value> defaultValue;
};

struct Signature {
  std::vector<Param> params;
};

/// Parses the text of the table. Only called on this program's own tables: bad
/// text is a defect of novac (a test parses them all).
Signature parseSignature(llvm::StringRef text);

/// One value for each parameter.
struct Bound {
  llvm::SmallVector<const graph::Value *, 8> values;
  /// JSON paths below the node: "args[1]", "kwargs.dim", or "" for a default.
  llvm::SmallVector<std::string, 0> paths;
};

/// A binding failure: the path below the node and what is wrong there.
struct BindError {
  std::string path;
  std::string what;
};

/// Binds a node's args and kwargs. On failure fills `error`.
bool bindArguments(const Signature &signature, const graph::Node &node,
                   const graph::Graph &graph, Bound &out, BindError &error);

} // namespace nova::importer

#endif // NOVA_SRC_IMPORT_SIGNATURE_H
