//===- NovaVerify.cpp - Verifiers of operations with a chosen result type --===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/IR/Nova.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace nova;

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  auto start = cast<TypedAttr>(getStart()), step = cast<TypedAttr>(getStep());
  if (type.getRank() != 1)
    return emitOpError("result ") << type << " is not of rank 1";
  if (start.getType() != type.getElementType() || step.getType() != type.getElementType())
    return emitOpError("start and step must have element type ") << type.getElementType();
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType())
    return emitOpError("changes the element type: ") << from << " to " << to;
  if (from.getNumElements() != to.getNumElements())
    return emitOpError("changes the number of elements: ")
           << from << " has " << from.getNumElements() << ", " << to << " has "
           << to.getNumElements();
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  auto wide = broadcastShapes(to.getShape(), from.getShape());
  if (from.getElementType() != to.getElementType() || failed(wide) ||
      ArrayRef<int64_t>(*wide) != to.getShape())
    return emitOpError("cannot broadcast ") << from << " to " << to;
  return success();
}

LogicalResult LaunchOp::verify() {
  if (getViews().size() != getInputs().size())
    return emitOpError("has ") << getInputs().size() << " operands and "
                               << getViews().size() << " views";
  for (Attribute view : getViews())
    if (!isa<ViewAttr>(view))
      return emitOpError("views holds ") << view << ", expected #nova.view";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!callee)
    return emitOpError("launches '") << getKernel() << "', which is no function here";
  if (!callee->hasAttr(attr::kernel))
    return emitOpError("launches '") << getKernel() << "', which is no kernel";
  // From `tiled` on a kernel takes memory: of its results too, and views are
  // part of the parameters' types.
  if (callee->hasAttr("tile.grid")) {
    if (callee.getNumArguments() != getInputs().size() + getResults().size())
      return emitOpError("has ") << getInputs().size() + getResults().size() << " operands and results for '"
                                 << getKernel() << "', which takes " << callee.getNumArguments();
    return success();
  }
  if (callee.getNumArguments() != getInputs().size())
    return emitOpError("passes ") << getInputs().size() << " operands to '" << getKernel()
                                  << "', which takes " << callee.getNumArguments();
  if (callee.getFunctionType().getResults() != getResults().getTypes())
    return emitOpError("has other result types than '") << getKernel() << "'";
  // The view must stay inside the memory of its operand. The operand of a step
  // argument with strides of its own has the extent its strides span.
  for (auto [index, operand] : llvm::enumerate(getInputs())) {
    auto view = cast<ViewAttr>(getViews()[index]);
    auto type = cast<RankedTensorType>(callee.getArgumentTypes()[index]);
    if ((int64_t)view.getStrides().size() != type.getRank())
      return emitOpError("view ") << index << " has " << view.getStrides().size()
                                  << " strides for an argument of rank " << type.getRank();
  }
  return success();
}
