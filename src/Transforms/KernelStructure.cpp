//===- KernelStructure.cpp - What kernels that differ in size share --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelStructure.h"

#include "DescribeTiles.h"

#include "nova/Transforms/KernelAxes.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OwningOpRef.h"

#include <numeric>

using namespace mlir;
using namespace nova;
using namespace nova::tiling;

/// Bytes of the widest access of a thread.
static constexpr int64_t kWidestAccess = 16;

namespace {
/// Writes what a kernel with collapsed axes does as text in which its extent along
/// one axis is a question mark.
class Writer {
public:
  Writer(func::FuncOp kernel, const Axes &axes, AxisId longAxis)
      : kernel(kernel), axes(axes), longAxis(longAxis), os(text) {}

  /// Nothing if something cannot be one of several.
  std::optional<KernelStructure> run();

private:
  bool writeOp(Operation &op);
  bool writeGeneric(linalg::GenericOp op);
  void writeArguments();
  void writeResults();
  void define(Value value) { numbers.insert({value, numbers.size()}); }
  void writeOperands(Operation &op) {
    os << "(";
    for (Value operand : op.getOperands())
      os << numbers.lookup(operand) << ",";
    os << ")";
  }

  func::FuncOp kernel;
  const Axes &axes;
  AxisId longAxis;
  KernelStructure structure;
  DenseMap<Value, unsigned> numbers;
  int64_t narrowest = kWidestAccess; ///< Bytes of an element.
  std::string text;
  llvm::raw_string_ostream os;
};
} // namespace

/// Of an argument each dimension is as long as the loops that read it, which are
/// written with them.
void Writer::writeArguments() {
  structure.along.assign(kernel.getNumArguments(), false);
  kernel.walk([&](linalg::GenericOp op) {
    for (OpOperand *input : op.getDpsInputOperands())
      if (auto argument = dyn_cast<BlockArgument>(input->get()))
        structure.along[argument.getArgNumber()] |= llvm::is_contained(axes.ofOperand(*input), longAxis);
  });
  for (BlockArgument argument : kernel.getArguments()) {
    define(argument);
    Type element = getElementTypeOrSelf(argument.getType());
    os << element << "[";
    llvm::interleaveComma(argumentStrides(kernel, argument.getArgNumber()), os);
    os << "]";
    if (structure.along[argument.getArgNumber()])
      narrowest = std::min(narrowest, elementBytes(element));
  }
}

bool Writer::writeGeneric(linalg::GenericOp op) {
  for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges())) {
    os << linalg::GenericOp(op).getIteratorTypesArray()[loop] << " ";
    if (axes.ofLoop(op, loop) == longAxis)
      os << "?";
    else
      os << extent;
  }
  for (Attribute map : op.getIndexingMaps())
    os << map;
  for (Value argument : op.getBody()->getArguments())
    define(argument);
  for (Operation &inner : *op.getBody()) {
    if (inner.getNumRegions() || isa<tensor::ExtractOp>(inner))
      return false;
    if (auto index = dyn_cast<linalg::IndexOp>(inner); index && axes.ofLoop(op, index.getDim()) == longAxis)
      return false;
    os << inner.getName() << inner.getAttrDictionary();
    writeOperands(inner);
    for (Value result : inner.getResults()) {
      os << result.getType();
      define(result);
    }
  }
  return true;
}

bool Writer::writeOp(Operation &op) {
  os << "\n" << op.getName();
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    if (!writeGeneric(generic))
      return false;
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (isa<ElementsAttr>(constant.getValue()) && !splat)
      return false;
    os << (splat ? splat.getSplatValue<Attribute>() : Attribute(constant.getValue()));
  } else if (!isa<linalg::FillOp, tensor::EmptyOp, func::ReturnOp>(op)) {
    return false;
  }
  writeOperands(op);
  for (Value result : op.getResults()) {
    os << getElementTypeOrSelf(result.getType());
    define(result);
  }
  return true;
}

void Writer::writeResults() {
  for (unsigned r = 0; r < kernel.getNumResults(); ++r) {
    auto type = cast<RankedTensorType>(kernel.getResultTypes()[r]);
    os << "\n" << type.getElementType() << kernel.getResultAttrOfType<DenseI64ArrayAttr>(r, attr::map) << "[";
    llvm::interleaveComma(contiguousStrides(type.getShape()), os);
    os << "]";
    narrowest = std::min(narrowest, elementBytes(type.getElementType()));
  }
}

std::optional<KernelStructure> Writer::run() {
  Block &block = kernel.getBody().front();
  for (Value result : block.getTerminator()->getOperands())
    if (!llvm::is_contained(axes.ofValue(result), longAxis))
      return std::nullopt;
  os << kernel->getAttr(attr::role);
  writeArguments();
  for (Operation &op : block)
    if (!writeOp(op))
      return std::nullopt;
  writeResults();
  ArrayRef<int64_t> space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  structure.extent = space.front();
  os << "\nspace ";
  llvm::interleaveComma(space.drop_front(), os);
  // What a tile that hangs over the end may access at once.
  os << "\nwidth " << std::gcd(structure.extent, kWidestAccess / narrowest);
  structure.key = std::move(text);
  return std::move(structure);
}

FailureOr<std::optional<KernelStructure>> nova::structureOf(func::FuncOp kernel) {
  if (kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).empty())
    return std::optional<KernelStructure>();
  OwningOpRef<func::FuncOp> collapsed = kernel.clone();
  collapseAxes(*collapsed);
  auto axes = Axes::analyse(*collapsed);
  if (failed(axes))
    return failure();
  AxisId longAxis = kNoAxis;
  for (AxisId id = 0; id < (AxisId)axes->size(); ++id)
    if ((*axes)[id].space == 0)
      longAxis = id;
  if (longAxis == kNoAxis)
    return std::optional<KernelStructure>();
  std::optional<KernelStructure> structure = Writer(*collapsed, *axes, longAxis).run();
  // Rounding does not matter here, products of matrices do.
  if (structure && !describeTiles(*collapsed, *axes, "f32").contractions.empty())
    structure.reset();
  return structure;
}
