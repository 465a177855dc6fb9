//===- Build.cpp - Making nova operations from importers ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Build.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

std::string importer::shapeText(ArrayRef<int64_t> shape) {
  return graph::shapeText(shape.vec());
}

std::string importer::numberText(double value) {
  return valueText(graph::Value{value}, graph::Graph());
}

SmallVector<int64_t> importer::allDims(int64_t rank) {
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

std::string importer::objections(MLIRContext *context,
                                 llvm::function_ref<LogicalResult()> check) {
  std::string said;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    said += (said.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  if (succeeded(check()))
    return "";
  return said.empty() ? "it is refused without a reason" : said;
}

/// Infers the result types of `state`, by the operation's own rules.
static LogicalResult inferTypes(OperationState &state) {
  std::optional<RegisteredOperationName> info = state.name.getRegisteredInfo();
  auto *inference = info ? info->getInterface<InferTypeOpInterface>() : nullptr;
  if (!inference)
    return emitError(state.location) << "its result types cannot be inferred";
  MLIRContext *context = state.getContext();
  DictionaryAttr attributes = state.attributes.getDictionary(context);
  // The attributes of a registered operation live in its properties.
  int bytes = info->getOpPropertyByteSize();
  SmallVector<std::max_align_t, 8> storage(
      (bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  OpaqueProperties properties(bytes ? storage.data() : nullptr);
  LogicalResult result = success();
  if (bytes) {
    info->initOpProperties(properties, OpaqueProperties(nullptr));
    result = info->setOpPropertiesFromAttribute(
        state.name, properties, attributes,
        [&] { return emitError(state.location); });
  }
  if (succeeded(result))
    result =
        inference->inferReturnTypes(context, state.location, state.operands,
                                    attributes, properties, {}, state.types);
  if (bytes)
    info->destroyOpProperties(properties);
  return result;
}

Operation *Build::create(StringRef name, ArrayRef<mlir::Value> operands,
                         ArrayRef<NamedAttribute> attributes, TypeRange types) {
  if (!llvm::all_of(operands, [](mlir::Value v) { return bool(v); }))
    return nullptr;
  OperationState state(loc, name);
  state.addOperands(operands);
  state.addAttributes(attributes);
  state.addTypes(types);
  std::string why;
  if (types.empty())
    why = objections(context(), [&] { return inferTypes(state); });
  if (!why.empty()) {
    (void)fail(why);
    return nullptr;
  }
  for (Type type : state.types)
    if (!isSized(llvm::cast<RankedTensorType>(type).getShape()))
      return nullptr;
  // Verified now, while the node is known, not when the module is done: an
  // operand may have an element type that the operation does not take.
  Operation *op = builder.create(state);
  why =
      objections(context(), [&] { return op->getName().verifyInvariants(op); });
  if (why.empty())
    return op;
  op->erase();
  (void)fail(why);
  return nullptr;
}

bool Build::isSized(ArrayRef<int64_t> shape) {
  int64_t bytes = 8;
  for (int64_t extent : shape)
    if (extent < 0 ||
        __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes)) {
      (void)fail("a tensor of shape " + shapeText(shape) +
                 " would be needed, expected less than 2^63 bytes");
      return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

TypedAttr Build::element(const Number &number, DType dtype) {
  Type type = elementType(dtype, context());
  if (graph::isFloating(dtype))
    return FloatAttr::get(type, number.asDouble());
  if (dtype == DType::Bool)
    return IntegerAttr::get(type, number.isFloat() ? number.floating != 0
                                                   : number.integer != 0);
  int64_t value = number.integer;
  if (number.isFloat()) {
    // Saturates (NaN gives 0): a plain conversion would be undefined.
    bool exact;
    llvm::APSInt integer(64, /*isUnsigned=*/false);
    APFloat(number.floating)
        .convertToInteger(integer, APFloat::rmTowardZero, &exact);
    value = integer.getExtValue();
  }
  unsigned width = type.getIntOrFloatBitWidth();
  // Wraps like a C conversion, as PyTorch does.
  return IntegerAttr::get(type,
                          APInt(64, static_cast<uint64_t>(value)).trunc(width));
}

mlir::Value Build::splat(const Number &number, DType dtype,
                         ArrayRef<int64_t> shape) {
  if (!isSized(shape))
    return {};
  auto type = RankedTensorType::get(shape, elementType(dtype, context()));
  Attribute value = element(number, dtype);
  return ConstantOp::create(builder, loc, type,
                            DenseElementsAttr::get(type, value));
}

mlir::Value Build::iota(const Number &start, const Number &step, DType dtype,
                        int64_t count) {
  auto type = RankedTensorType::get({count}, elementType(dtype, context()));
  return IotaOp::create(builder, loc, type, element(start, dtype),
                        element(step, dtype));
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

mlir::Value Build::cast(mlir::Value value, DType dtype) {
  if (!value || dtypeOf(value) == dtype)
    return value;
  auto type = typeOf(value).clone(elementType(dtype, context()));
  return CastOp::create(builder, loc, type, value);
}

mlir::Value Build::compare(ComparePredicate predicate, mlir::Value lhs,
                           mlir::Value rhs) {
  return emit<CompareOp>(
      {lhs, rhs}, {namedAttr("predicate",
                             ComparePredicateAttr::get(context(), predicate))});
}

mlir::Value Build::truth(mlir::Value value) { return cast(value, DType::Bool); }

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

mlir::Value Build::reshape(mlir::Value value, ArrayRef<int64_t> shape) {
  if (!value || shapeOf(value) == shape)
    return value;
  auto from = typeOf(value);
  auto to = RankedTensorType::get(shape, from.getElementType());
  if (from.getNumElements() != to.getNumElements()) {
    (void)fail("cannot view " + shapeText(from.getShape()) + " (" +
               Twine(from.getNumElements()) + " elements) as " +
               shapeText(shape) + " (" + Twine(to.getNumElements()) + ")");
    return {};
  }
  return ReshapeOp::create(builder, loc, to, value);
}

mlir::Value Build::broadcast(mlir::Value value, ArrayRef<int64_t> shape) {
  if (!value || shapeOf(value) == shape)
    return value;
  if (!isSized(shape))
    return {};
  auto wide = broadcastShapes(shape, shapeOf(value));
  if (failed(wide) || ArrayRef<int64_t>(*wide) != shape) {
    (void)fail("cannot expand " + shapeText(shapeOf(value)) + " to " +
               shapeText(shape));
    return {};
  }
  auto to = RankedTensorType::get(shape, typeOf(value).getElementType());
  return BroadcastOp::create(builder, loc, to, value);
}

mlir::Value Build::transpose(mlir::Value value, ArrayRef<int64_t> permutation) {
  if (!value || llvm::equal(permutation, allDims(permutation.size())))
    return value;
  return emit<TransposeOp>({value}, {listAttr("permutation", permutation)});
}

mlir::Value Build::sliceDim(mlir::Value value, int64_t dim, int64_t start,
                            int64_t size, int64_t step) {
  if (!value || (start == 0 && step == 1 && size == shapeOf(value)[dim]))
    return value;
  int64_t rank = rankOf(value);
  SmallVector<int64_t> offsets(rank, 0), sizes(shapeOf(value)),
      strides(rank, 1);
  offsets[dim] = start;
  sizes[dim] = size;
  strides[dim] = step;
  return emit<SliceOp>({value},
                       {listAttr("offsets", offsets), listAttr("sizes", sizes),
                        listAttr("strides", strides)});
}

mlir::Value Build::unsqueeze(mlir::Value value, int64_t dim) {
  if (!value)
    return {};
  SmallVector<int64_t> shape(shapeOf(value));
  shape.insert(shape.begin() + dim, 1);
  return reshape(value, shape);
}

mlir::Value Build::squeeze(mlir::Value value, int64_t dim) {
  if (!value)
    return {};
  SmallVector<int64_t> shape(shapeOf(value));
  shape.erase(shape.begin() + dim);
  return reshape(value, shape);
}

mlir::Value Build::sum(mlir::Value value, ArrayRef<int64_t> dims, bool keep) {
  // A sum over no dimension is the value itself.
  if (!value || dims.empty())
    return value;
  SmallVector<NamedAttribute> attributes{listAttr("dims", dims)};
  if (keep)
    attributes.push_back(unitAttr("keepdims"));
  return emit<SumOp>({value}, attributes);
}
