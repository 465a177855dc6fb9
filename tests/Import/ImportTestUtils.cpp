//===- ImportTestUtils.cpp - One-node graphs, imported and printed --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportTestUtils.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace nova;

//===----------------------------------------------------------------------===//
// Graph text
//===----------------------------------------------------------------------===//

/// "float32[3,4]" as `"dtype":"float32","shape":[3,4]`.
static std::string tensorFields(StringRef type) {
  auto [dtype, shape] = type.split('[');
  return "\"dtype\":\"" + dtype.str() + "\",\"shape\":[" + shape.str();
}

std::string nova::oneNode(const std::vector<std::string> &inputs,
                          const std::string &op, const std::string &args,
                          const std::string &kwargs,
                          const std::vector<std::string> &results) {
  std::string text =
      R"({"format":"nova.graph","version":1,"name":"one","inputs":[)";
  for (auto [i, input] : llvm::enumerate(inputs))
    text += (i ? "," : "") + ("{\"name\":\"x" + std::to_string(i)) +
            R"(","role":"input","path":"",)" + tensorFields(input) + "}";
  text += R"(],"constants":[],"nodes":[{"name":"n","op":")" + op +
          "\",\"args\":" + args + ",\"kwargs\":" + kwargs + ",\"results\":[";
  std::string outputs;
  for (auto [i, result] : llvm::enumerate(results)) {
    text += i ? "," : "";
    text += result == "null" ? result : "{" + tensorFields(result) + "}";
    if (result != "null")
      outputs += (outputs.empty() ? "" : ",") +
                 ("{\"ref\":\"n\",\"result\":" + std::to_string(i)) +
                 R"(,"role":"output"})";
  }
  text += "]}],\"outputs\":[" + outputs + "]}";
  // Arguments are written with 'x0' for {"ref":"x0"}.
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string name = "'x" + std::to_string(i) + "'";
    for (size_t at; (at = text.find(name)) != text.npos;)
      text.replace(at, name.size(), "{\"ref\":\"x" + std::to_string(i) + "\"}");
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Operations as expressions
//===----------------------------------------------------------------------===//

static std::string typeText(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << tensor.getElementType() << "["
         << llvm::join(
                llvm::map_range(tensor.getShape(),
                                [](int64_t d) { return std::to_string(d); }),
                ",")
         << "]";
  return text;
}

static std::string attributeText(Attribute attribute) {
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute))
    return graph::shapeText(list.asArrayRef().vec());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return graph::valueText(graph::Value{number.getValue().convertToDouble()},
                            graph::Graph());
  if (auto number = dyn_cast<IntegerAttr>(attribute)) {
    if (number.getType().isInteger(1))
      return number.getValue().isZero() ? "false" : "true";
    bool isUnsigned = number.getType().isUnsignedInteger();
    return llvm::toString(number.getValue(), 10, !isUnsigned);
  }
  if (auto predicate = dyn_cast<ComparePredicateAttr>(attribute))
    return stringifyEnum(predicate.getValue()).str();
  if (auto form = dyn_cast<GeluFormAttr>(attribute))
    return stringifyEnum(form.getValue()).str();
  if (auto reduction = dyn_cast<LossReductionAttr>(attribute))
    return stringifyEnum(reduction.getValue()).str();
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

static std::string expression(mlir::Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return "x" + std::to_string(argument.getArgNumber());
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    std::string text = elements.isSplat() && !elements.empty()
                           ? attributeText(elements.getSplatValue<Attribute>())
                           : "[...]";
    return text + ":" + typeText(value.getType());
  }
  std::string text = op->getName().stripDialect().str() + "(";
  text += llvm::join(llvm::map_range(op->getOperands(), expression), ", ");
  text += ")";
  std::vector<std::string> attributes;
  for (NamedAttribute each : op->getAttrs())
    if (each.getName() != "operandSegmentSizes")
      attributes.push_back(each.getName().str() +
                           (isa<UnitAttr>(each.getValue())
                                ? ""
                                : "=" + attributeText(each.getValue())));
  if (!attributes.empty())
    text += "{" + llvm::join(attributes, " ") + "}";
  if (isa<CastOp, ReshapeOp, BroadcastOp, IotaOp>(op))
    text += ":" + typeText(value.getType());
  if (op->getNumResults() > 1)
    text += "#" + std::to_string(cast<OpResult>(value).getResultNumber());
  return text;
}

std::string nova::imported(const std::string &graphText) {
  auto graph = graph::parseGraph(graphText);
  if (!graph)
    return "graph: " + graph.error().message;
  Imported imported;
  auto module = imported.import(*graph);
  if (!module)
    return imported.errors;
  auto step = (*module).lookupSymbol<func::FuncOp>("step");
  std::vector<std::string> lines;
  for (mlir::Value value :
       step.getBody().front().getTerminator()->getOperands())
    lines.push_back(expression(value));
  return llvm::join(lines, "\n");
}
