//===- ImportNova.cpp - Graph nodes that name nova operations -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ImportNova.h"

#include "nova/Import/Import.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;

bool importer::isNovaOp(StringRef name, MLIRContext *context) {
  if (!name.starts_with("nova.") || name == LaunchOp::getOperationName() ||
      name == ConstantOp::getOperationName())
    return false;
  return RegisteredOperationName::lookup(name, context).has_value();
}

std::vector<std::string> nova::supportedNovaOps(MLIRContext &context) {
  loadGraphDialects(context);
  std::vector<std::string> names;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (isNovaOp(name.getStringRef(), &context))
      names.push_back(name.getStringRef().str());
  llvm::sort(names);
  return names;
}

namespace {

class NovaNode : public Build {
public:
  NovaNode(OpBuilder &builder, Location loc, const graph::Graph &graph,
           uint32_t index,
           llvm::function_ref<mlir::Value(const graph::Ref &)> lookup)
      : Build(builder, loc), graph(graph), node(graph.nodes[index]),
        index(index), lookup(lookup) {}

  FailureOr<SmallVector<mlir::Value>> run();

  LogicalResult fail(const Twine &what) override { return failAt("", what); }

private:
  LogicalResult failAt(const Twine &path, const Twine &what) {
    std::string below = path.str();
    emitError(loc) << "nodes[" << index << "]" << (below.empty() ? "" : ".")
                   << below << ": " << node.op << ": " << what.str();
    return failure();
  }
  LogicalResult operands(const graph::ValueList &args, const Twine &path);
  LogicalResult attribute(StringRef key, const graph::Value &value);
  std::string probe(ArrayRef<Type> types);
  Attribute convert(StringRef key, const graph::Value &value);
  template <typename EnumAttr, typename Enum>
  Attribute enumeration(const graph::Value &value) {
    const auto *word = value.as<std::string>();
    auto symbol = symbolizeEnum<Enum>(word ? StringRef(*word) : StringRef());
    return symbol ? EnumAttr::get(context(), *symbol) : Attribute();
  }

  const graph::Graph &graph;
  const graph::Node &node;
  uint32_t index;
  llvm::function_ref<mlir::Value(const graph::Ref &)> lookup;
  SmallVector<mlir::Value> values;
  SmallVector<int32_t> segments;
  SmallVector<NamedAttribute> attributes;
};

LogicalResult NovaNode::operands(const graph::ValueList &args,
                                 const Twine &path) {
  for (auto [i, each] : llvm::enumerate(args)) {
    std::string here = (path + "[" + Twine(i) + "]").str();
    size_t before = values.size();
    if (const auto *ref = each.as<graph::Ref>())
      values.push_back(lookup(*ref));
    else if (const auto *inner = each.as<graph::ValueList>()) {
      if (failed(operands(*inner, here)))
        return failure();
    } else if (!each.isNull())
      return failAt(here, "got " + valueText(each, graph) +
                              ", expected a reference: attributes go by name "
                              "in kwargs");
    segments.push_back(values.size() - before);
  }
  return success();
}

/// The attribute a keyword means: its kind follows from the dialect's names,
/// which mean the same in every operation.
Attribute NovaNode::convert(StringRef key, const graph::Value &value) {
  if (key == "predicate")
    return enumeration<ComparePredicateAttr, ComparePredicate>(value);
  if (key == "form")
    return enumeration<GeluFormAttr, GeluForm>(value);
  if (key == "reduction")
    return enumeration<LossReductionAttr, LossReduction>(value);
  if (key == "value" || key == "start" || key == "step") {
    // A number of the tensor's own element type.
    std::optional<Number> number = Number::of(value);
    bool known = !values.empty() || (!node.results.empty() && node.results[0]);
    if (!number || !known)
      return {};
    return element(*number, values.empty() ? node.results[0]->dtype
                                           : dtypeOf(values[0]));
  }
  if (key == "eps" || key == "threshold" || key == "scale") {
    std::optional<Number> number = Number::of(value);
    if (!number || number->dtype == graph::DType::Bool)
      return {};
    return builder.getF64FloatAttr(number->asDouble());
  }
  if (const bool *flag = value.as<bool>())
    return *flag ? builder.getUnitAttr() : Attribute();
  if (const int64_t *number = value.as<int64_t>())
    return builder.getI64IntegerAttr(*number);
  const auto *list = value.as<graph::ValueList>();
  if (!list || !llvm::all_of(*list, [](const graph::Value &each) {
        return each.as<int64_t>();
      }))
    return {};
  SmallVector<int64_t> numbers;
  for (const graph::Value &each : *list)
    numbers.push_back(*each.as<int64_t>());
  return builder.getDenseI64ArrayAttr(numbers);
}

LogicalResult NovaNode::attribute(StringRef key, const graph::Value &value) {
  auto info = RegisteredOperationName::lookup(node.op, context());
  SmallVector<StringRef> known;
  for (StringAttr name : info->getAttributeNames())
    if (name != "operandSegmentSizes")
      known.push_back(name.getValue());
  if (!llvm::is_contained(known, key))
    return failAt("kwargs." + key, "unknown attribute, expected one of " +
                                       llvm::join(known, ", "));
  if (const bool *flag = value.as<bool>(); flag && !*flag)
    return success(); // a flag that is not set
  Attribute converted = convert(key, value);
  if (!converted)
    return failAt("kwargs." + key, "got " + valueText(value, graph) +
                                       ", which is no value of this attribute");
  attributes.push_back(namedAttr(key, converted));
  return success();
}

/// What the verifier objects to; empty if nothing.
std::string NovaNode::probe(ArrayRef<Type> types) {
  OperationState state(loc, node.op, values, types, attributes);
  OwningOpRef<Operation *> op = Operation::create(state);
  return objections(context(),
                    [&] { return (*op)->getName().verifyInvariants(*op); });
}

FailureOr<SmallVector<mlir::Value>> NovaNode::run() {
  if (failed(operands(node.args, "args")))
    return failure();
  for (const auto &[key, value] : node.kwargs)
    if (failed(attribute(key, value)))
      return failure();
  auto info = RegisteredOperationName::lookup(node.op, context());
  if (info->hasTrait<OpTrait::AttrSizedOperandSegments>()) {
    // layer_norm, the one operation of several optional operands, has three.
    segments.resize(std::max<size_t>(segments.size(), 3), 0);
    attributes.push_back(namedAttr("operandSegmentSizes",
                                   builder.getDenseI32ArrayAttr(segments)));
  }
  bool inferred = info->hasInterface<InferTypeOpInterface>();
  SmallVector<Type> types;
  for (const auto &result : node.results) {
    if (!result && !inferred)
      return fail("a result is null, expected its dtype and shape: they do not "
                  "follow from the operands");
    // A null result's type is inferred below; any type makes that happen.
    types.push_back(result ? Type(tensorType(*result, context()))
                           : RankedTensorType::get({}, builder.getI1Type()));
  }
  // The verifier first: inference relies on the number of operands and on
  // required attributes being there. (It does not compare result types.)
  std::string why = probe(types);
  if (!why.empty())
    return fail(why);
  Operation *op = create(node.op, values, attributes,
                         inferred ? TypeRange() : TypeRange(types));
  if (!op)
    return failure();
  return llvm::to_vector_of<mlir::Value>(op->getResults());
}

} // namespace

FailureOr<SmallVector<mlir::Value>> importer::importNovaNode(
    OpBuilder &builder, Location loc, const graph::Graph &graph, uint32_t index,
    llvm::function_ref<mlir::Value(const graph::Ref &)> lookup) {
  return NovaNode(builder, loc, graph, index, lookup).run();
}
