//===- Call.cpp - One graph node on its way to nova operations ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

Call::Call(OpBuilder &builder, Location loc, const graph::Graph &graph,
           uint32_t index, const OpEntry &entry, const Signature &signature,
           const Bound &bound,
           llvm::function_ref<mlir::Value(const graph::Ref &)> lookup)
    : Build(builder, loc), graph(graph), index(index), entry(entry),
      signature(signature), bound(bound), lookup(lookup) {}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

size_t Call::paramIndex(StringRef name) const {
  for (auto [i, param] : llvm::enumerate(signature.params))
    if (param.name == name)
      return i;
  llvm::report_fatal_error("operation table: " + entry.name +
                           " has no parameter " + name);
}

const graph::Value &Call::arg(StringRef name) const {
  return *bound.values[paramIndex(name)];
}

mlir::Value Call::tensor(StringRef name) const {
  const auto *ref = arg(name).as<graph::Ref>();
  return ref ? lookup(*ref) : mlir::Value();
}

SmallVector<mlir::Value> Call::tensors(StringRef name) const {
  SmallVector<mlir::Value> values;
  for (const graph::Value &each : *arg(name).as<graph::ValueList>()) {
    const auto *ref = each.as<graph::Ref>();
    values.push_back(ref ? lookup(*ref) : mlir::Value());
  }
  return values;
}

Operand Call::operand(StringRef name) const {
  Operand operand;
  const graph::Value &value = arg(name);
  if (const auto *ref = value.as<graph::Ref>()) {
    operand.value = lookup(*ref);
    operand.dtype = dtypeOf(operand.value);
  } else {
    operand.number = *Number::of(value);
    operand.dtype = operand.number.dtype;
  }
  return operand;
}

int64_t Call::integer(StringRef name) const { return *arg(name).as<int64_t>(); }

std::optional<int64_t> Call::maybeInteger(StringRef name) const {
  return isNull(name) ? std::nullopt : std::optional(integer(name));
}

SmallVector<int64_t> Call::integers(StringRef name) const {
  const graph::Value &value = arg(name);
  if (const auto *one = value.as<int64_t>())
    return {*one};
  SmallVector<int64_t> list;
  if (const auto *values = value.as<graph::ValueList>())
    for (const graph::Value &each : *values)
      list.push_back(*each.as<int64_t>());
  return list;
}

double Call::real(StringRef name) const {
  return Number::of(arg(name))->asDouble();
}

std::optional<double> Call::maybeReal(StringRef name) const {
  return isNull(name) ? std::nullopt : std::optional(real(name));
}

bool Call::flag(StringRef name) const { return *arg(name).as<bool>(); }

SmallVector<bool> Call::flags(StringRef name) const {
  SmallVector<bool> list;
  for (const graph::Value &each : *arg(name).as<graph::ValueList>())
    list.push_back(*each.as<bool>());
  return list;
}

StringRef Call::text(StringRef name) const {
  const auto *text = arg(name).as<std::string>();
  return text ? StringRef(*text) : StringRef();
}

Number Call::number(StringRef name) const { return *Number::of(arg(name)); }

std::optional<Number> Call::maybeNumber(StringRef name) const {
  return Number::of(arg(name));
}

std::optional<DType> Call::dtype(StringRef name) const {
  const auto *dtype = arg(name).as<DType>();
  return dtype ? std::optional(*dtype) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

FailureOr<int64_t> Call::dim(StringRef name, int64_t rank) {
  int64_t given = integer(name), span = std::max<int64_t>(rank, 1);
  if (given < -span || given >= span)
    return failAt(name, "got dimension " + Twine(given) +
                            ", expected one in [" + Twine(-span) + ", " +
                            Twine(span) + ") for rank " + Twine(rank));
  return given < 0 ? given + span : given;
}

FailureOr<SmallVector<int64_t>> Call::dimsInOrder(StringRef name,
                                                  int64_t rank) {
  SmallVector<int64_t> dims;
  int64_t span = std::max<int64_t>(rank, 1);
  for (int64_t given : integers(name)) {
    if (given < -span || given >= span)
      return failAt(name, "got dimension " + Twine(given) +
                              ", expected one in [" + Twine(-span) + ", " +
                              Twine(span) + ") for rank " + Twine(rank));
    int64_t dim = given < 0 ? given + span : given;
    if (llvm::is_contained(dims, dim))
      return failAt(name, "got dimension " + Twine(given) +
                              " twice, expected distinct ones");
    dims.push_back(dim);
  }
  return dims;
}

FailureOr<SmallVector<int64_t>> Call::dims(StringRef name, int64_t rank) {
  if (isNull(name))
    return allDims(rank);
  auto dims = dimsInOrder(name, rank);
  if (failed(dims))
    return failure();
  if (dims->empty())
    return allDims(rank);
  // A 0-d tensor has no dimension to name, but PyTorch lets one say 0 or -1.
  if (rank == 0)
    dims->clear();
  llvm::sort(*dims);
  return dims;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

DType Call::resultType(ArrayRef<Operand> operands) {
  ResultType type;
  for (const Operand &operand : operands)
    if (operand.value)
      type.addTensor(operand.dtype, rankOf(operand.value) > 0);
    else
      type.addNumber(operand.number);
  return type.result();
}

mlir::Value Call::materialize(const Operand &operand, DType common,
                              DType math) {
  if (operand.value)
    return cast(cast(operand.value, common), math);
  return splat(operand.number, math);
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

LogicalResult Call::fail(const Twine &what) {
  // One message per node: what follows a failure is mostly its consequence.
  if (!reported)
    emitError(loc) << "nodes[" << index << "]: " << entry.name << ": "
                   << what.str();
  reported = true;
  return failure();
}

LogicalResult Call::failAt(StringRef name, const Twine &what) {
  StringRef path = bound.paths[paramIndex(name)];
  if (!reported)
    emitError(loc) << "nodes[" << index << "]" << (path.empty() ? "" : ".")
                   << path << ": " << entry.name << ": " << name << ": "
                   << what.str();
  reported = true;
  return failure();
}

LogicalResult Call::result(mlir::Value value) {
  if (!value)
    return failure();
  return results({value});
}

LogicalResult Call::results(ArrayRef<mlir::Value> values) {
  if (reported)
    return failure();
  produced.assign(values.begin(), values.end());
  return success();
}
