//===- Signature.cpp - Operator schemas, and arguments bound to them ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Signature.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace nova;
using namespace nova::importer;
using graph::Value;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

[[noreturn]] static void badTable(StringRef text, StringRef why) {
  llvm::report_fatal_error("operation table: \"" + llvm::Twine(text) +
                           "\": " + why);
}

static void parseType(StringRef type, Param &param, StringRef text) {
  param.type = type;
  if (type == "Tensor?[]") {
    param.kind = Param::Kind::OptTensorList;
    return;
  }
  StringRef base = type;
  param.optional = base.consume_back("?");
  size_t bracket = base.find('[');
  bool list = bracket != StringRef::npos;
  if (list) {
    param.oneForList = base.substr(bracket) != "[]";
    base = base.take_front(bracket);
  }
  using Kind = Param::Kind;
  auto kind = llvm::StringSwitch<std::optional<Kind>>(base)
                  .Case("Tensor", list ? Kind::TensorList : Kind::Tensor)
                  .Case("Tensor/Scalar", Kind::TensorOrScalar)
                  .Case("int", list ? Kind::IntList : Kind::Int)
                  .Case("bool", list ? Kind::BoolList : Kind::Bool)
                  .Case("float", Kind::Float)
                  .Case("str", Kind::String)
                  .Case("Scalar", Kind::Scalar)
                  .Case("ScalarType", Kind::DType)
                  .Cases({"Device", "Layout", "MemoryFormat"}, Kind::Ignored)
                  .Default(std::nullopt);
  if (!kind)
    badTable(text, "unknown type " + type.str());
  param.kind = *kind;
}

static Value parseDefault(StringRef spelled, StringRef text) {
  int64_t integer;
  double floating;
  if (spelled == "None")
    return {};
  if (spelled == "True" || spelled == "False")
    return {spelled == "True"};
  if (spelled == "[]")
    return {graph::ValueList()};
  if (!spelled.getAsInteger(10, integer))
    return {integer};
  if (!spelled.getAsDouble(floating))
    return {floating};
  if (spelled.consume_front("'") && spelled.consume_back("'"))
    return {spelled.str()};
  badTable(text, "unknown default " + spelled.str());
}

Signature importer::parseSignature(StringRef text) {
  Signature signature;
  StringRef rest = text;
  if (!rest.consume_front("(") || !rest.consume_back(")"))
    badTable(text, "no parentheses");
  bool keywordOnly = false;
  while (!rest.empty()) {
    auto [item, tail] = rest.split(", ");
    rest = tail;
    if (item == "*") {
      keywordOnly = true;
      continue;
    }
    auto [type, named] = item.split(' ');
    auto [name, spelled] = named.split('=');
    Param param;
    parseType(type, param, text);
    param.name = name;
    param.keywordOnly = keywordOnly;
    if (!spelled.empty())
      param.defaultValue = parseDefault(spelled, text);
    signature.params.push_back(std::move(param));
  }
  return signature;
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

static bool isNumber(const Value &value) {
  return value.as<bool>() || value.as<int64_t>() || value.as<double>();
}

template <typename Check>
static bool isListOf(const Value &value, Check check) {
  const auto *list = value.as<graph::ValueList>();
  return list && llvm::all_of(*list, check);
}

static bool isRef(const Value &value) { return value.as<graph::Ref>(); }
static bool isInt(const Value &value) { return value.as<int64_t>(); }
static bool isBool(const Value &value) { return value.as<bool>(); }

static bool accepts(const Param &param, const Value &value) {
  using Kind = Param::Kind;
  if (value.isNull())
    return param.optional || param.kind == Kind::Ignored;
  switch (param.kind) {
  case Kind::Tensor:
    return isRef(value);
  case Kind::TensorOrScalar:
    return isRef(value) || isNumber(value);
  case Kind::TensorList:
    return isListOf(value, isRef);
  case Kind::OptTensorList:
    return isListOf(value,
                    [](const Value &v) { return v.isNull() || isRef(v); });
  case Kind::Int:
    return isInt(value);
  case Kind::IntList:
    return isListOf(value, isInt) || (param.oneForList && isInt(value));
  case Kind::Float:
    return value.as<double>() || isInt(value);
  case Kind::Bool:
    return isBool(value);
  case Kind::BoolList:
    return isListOf(value, isBool);
  case Kind::String:
    return value.as<std::string>();
  case Kind::Scalar:
    return isNumber(value);
  case Kind::DType:
    return value.as<graph::DType>();
  case Kind::Ignored:
    return value.as<graph::EnumName>() || isBool(value);
  }
  return false;
}

bool importer::bindArguments(const Signature &signature,
                             const graph::Node &node, const graph::Graph &graph,
                             Bound &out, BindError &error) {
  const auto &params = signature.params;
  out.values.assign(params.size(), nullptr);
  out.paths.resize(params.size());

  size_t positional = llvm::count_if(
      params, [](const Param &param) { return !param.keywordOnly; });
  if (node.args.size() > positional) {
    error = {"args", "got " + std::to_string(node.args.size()) +
                         " positional arguments, expected at most " +
                         std::to_string(positional)};
    return false;
  }
  for (size_t i = 0; i < node.args.size(); ++i) {
    out.values[i] = &node.args[i];
    out.paths[i] = "args[" + std::to_string(i) + "]";
  }
  for (const auto &[key, value] : node.kwargs) {
    std::string path = "kwargs." + key;
    auto param = llvm::find_if(
        params, [&](const Param &param) { return param.name == key; });
    if (param == params.end()) {
      std::string names = llvm::join(
          llvm::map_range(params,
                          [](const Param &param) { return param.name.str(); }),
          ", ");
      error = {path, "unknown keyword, expected one of " + names};
      return false;
    }
    size_t index = param - params.begin();
    if (out.values[index]) {
      error = {path, "given already, as " + out.paths[index]};
      return false;
    }
    out.values[index] = &value;
    out.paths[index] = path;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const Param &param = params[i];
    if (!out.values[i]) {
      if (!param.defaultValue) {
        error = {"args", "missing the argument " + param.name.str() + " (" +
                             param.type.str() + ")"};
        return false;
      }
      out.values[i] = &*param.defaultValue;
      continue;
    }
    if (!accepts(param, *out.values[i])) {
      error = {out.paths[i], "got " + valueText(*out.values[i], graph) +
                                 ", expected " + param.type.str() + " for " +
                                 param.name.str()};
      return false;
    }
  }
  return true;
}
